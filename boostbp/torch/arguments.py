"""Checks of the arguments of a tree layer, and its fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp import backends, layers
from boostbp.backends.base import Backend, Table
from boostbp.inputs.targets import drop_zero_weight, read_weight, weights_in_rows
from boostbp.layers import BoundInput, Layer, LayerSettings, LossObjective, Objective, SquaredObjective
from boostbp.losses import Loss
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.network.starts import STARTS, start_of
from boostbp.runtime import interrupts
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import require
from boostbp.runtime.native_threads import single_threaded_blas
from boostbp.single import check_codes
from boostbp.torch.passes import as_floats, learns_from

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = require("torch", extra="torch", what="boostbp.torch")

_jit: Any = torch.jit  # whose functions are not exported by type
_MIN_ROWS = 20  # fewer rows do not tell a column without missing values from one with many; arbitrary


def category_columns(categorical: Sequence[int], in_features: int | None) -> tuple[int, ...]:
    """Return the columns that hold category codes, checked."""
    columns = tuple(categorical) if isinstance(categorical, Iterable) else (None,)
    if not all(isinstance(j, int | np.integer) and not isinstance(j, bool) for j in columns):
        raise ValueError(f"categorical={categorical!r} is not allowed: give a sequence of column numbers.")
    wrong = [j for j in columns if j < 0 or (in_features is not None and j >= in_features)]
    if wrong:
        allowed = "from 0 on" if in_features is None else f"0 to {in_features - 1}"
        raise ValueError(f"categorical={columns!r}: {wrong[0]} is no column, which are {allowed}.")
    return tuple(map(int, columns))


def weights(sample_weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return the weights of rows, (rows,), checked; ones for None."""
    if isinstance(sample_weight, torch.Tensor):
        sample_weight = as_floats(sample_weight)
    return weights_in_rows(read_weight(sample_weight, n_rows))


def as_input(x: ArrayLike, in_features: int | None) -> Floats:
    """Return the input of a module as float64 in memory of its own, (rows, features), checked."""
    if isinstance(x, torch.Tensor) and not x.is_floating_point():
        raise ValueError(f"x has dtype {x.dtype}: a tree layer takes floating types. Use x.float().")
    if isinstance(x, torch.Tensor) and x.layout is not torch.strided:
        raise ValueError(f"x has the layout {x.layout}: a tree layer takes dense tensors. Use x.to_dense().")
    if _jit.is_tracing():
        raise RuntimeError("torch.jit.trace and ONNX do not see into trees: they would keep the output of these rows.")
    try:
        X = as_floats(x)
    except RuntimeError as error:  # a tensor without numbers
        raise RuntimeError(
            "x has no numbers that could be read, as inside torch.func, torch.jit or on the device 'meta': a tree "
            f"layer computes outside of torch. Use torch.autograd for its gradients. ({error})"
        ) from error
    if X.ndim != 2:
        raise ValueError(f"x has shape {X.shape}: a tree layer takes (rows, features). Reshape it, as by x.flatten(1).")
    if in_features is not None and X.shape[1] != in_features:
        raise ValueError(f"x has {X.shape[1]} features, and this module in_features={in_features}.")
    if np.isinf(X).any():
        raise ValueError("x has infinite values: clip them, or replace them by NaN, which means missing.")
    return X


def as_targets(y: ArrayLike, n_outputs: int, n_rows: int) -> Floats:
    """Return targets as (rows, outputs); class numbers, (rows,), become one-hot rows."""
    target = as_floats(y)
    rows = len(target) if target.ndim else 0
    if rows != n_rows:
        raise ValueError(f"y has {rows} rows and the input has {n_rows}: give one target for each row.")
    if target.ndim == 1 and n_outputs > 1:
        if not np.isin(target, np.arange(n_outputs)).all():
            raise ValueError(
                f"y has shape {target.shape} and values that are no class numbers 0 to {n_outputs - 1}: "
                f"give (rows, {n_outputs})."
            )
        return np.eye(n_outputs)[target.astype(int)]
    target = target.reshape(n_rows, -1) if target.size else target
    if target.ndim != 2 or target.shape[1] != n_outputs or not np.isfinite(target).all():
        raise ValueError(f"y has shape {target.shape}: give finite numbers, (rows, {n_outputs}).")
    return target


def complete_columns(X: Floats) -> NDArray[np.bool_] | None:
    """Return which columns of (rows, features) have no missing value, (features,); None if there are too few rows."""
    return np.logical_not(np.isnan(X).any(axis=0)) if len(X) >= _MIN_ROWS else None


def refuse_learnt_nan(x: Tensor, X: Floats) -> None:
    """Refuse NaN from modules that learn: trees would hide it, and its gradients would make their weights NaN.

    Missing cells of data may stand in one tensor beside the output of such modules: they have no gradient to anything
    that learns.
    """
    missing = np.isnan(X)
    if not missing.any() or not learns_from(x, missing):
        return
    # Name a column with a finite gradient to weights if there is one: a NaN gradient may come from another column.
    [columns] = np.nonzero(missing.any(axis=0))
    learnt = [j for j in columns if learns_from(x, missing & (np.arange(X.shape[1]) == j), nan=False)]
    column = learnt[0] if learnt else columns[0]
    number = np.count_nonzero(missing[:, column])
    raise ValueError(
        f"x is NaN in {'all' if number == len(X) else number} rows of column {column}, which comes from a module that "
        "learns: its weights would become NaN. Give missing cells of data to trees directly, or fill them below a "
        "module that learns, as by torch.nan_to_num(x). If there were none, look for a division by 0, a logarithm or "
        "weights that are not finite below this tree layer, or use smaller steps there."
    )


def refuse_empty_columns(X: Floats, complete: NDArray[np.bool_] | None) -> None:
    """Refuse NaN that modules below made without a graph: trees would take it for missing values.

    `complete` are the columns without a missing value when the trees were fitted. Only a column that is NaN in all rows
    is refused: it may be a feature of the data, and those may be missing in new rows.
    """
    if complete is None or len(X) == 0:
        return
    empty = np.flatnonzero(np.isnan(X).all(axis=0) & complete)
    if len(empty):
        raise ValueError(
            f"x is NaN in all rows of column {empty[0]}, which had no missing value "
            "when the trees were fitted, and modules stand below: look for a division by 0, a logarithm or weights "
            "that are not finite below this tree layer, or use smaller steps there."
        )


def start_target(start: str, table: Table, weight: Floats, n_outputs: int, random: np.random.Generator) -> Floats:
    """Return a start by name, (rows, outputs): from the rows that have weight, and 0 in the others."""
    target = np.zeros((len(table.X), n_outputs))
    table, _, used = drop_zero_weight(table, target, weight)
    target[weight > 0] = start_of(STARTS[start], table, used, n_outputs, random)
    return target


class Refits:
    """Fits of trees by a backend; the bound input of the last fit is kept for the next one."""

    def __init__(self, backend: str | Backend) -> None:
        self.backend = backend
        self.bound: BoundInput | None = None

    @interrupts.deferred()
    @single_threaded_blas()
    def fit(
        self,
        table: Table,
        target: Floats,
        weight: Floats,
        loss: Loss | None,
        settings: LayerSettings,
        *,
        n_threads: int,
        seed: int,
    ) -> tuple[Layer, Floats]:
        """Fit trees to a target, (rows, outputs), or by boosting on a loss of it; rows of weight 0 are left out.

        Return the trees and the baseline of the loss, (outputs,); it is 0 without a loss.
        """
        table, target, weight = drop_zero_weight(table, target, weight)
        baseline = np.zeros(target.shape[1])
        objective: Objective = SquaredObjective(target, weight)
        if loss is not None:
            baseline = CheckedLoss(loss).baseline(target, weight)
            objective = LossObjective.of(loss, target, weight, baseline)
        bound = self.bound
        if (
            bound is None
            or bound.settings is not settings
            or not np.array_equal(bound.weight, weight)
            or not np.array_equal(bound.table.X, table.X, equal_nan=True)
        ):
            check_codes(table.X, table.categorical)
            bound = BoundInput(backends.load(self.backend), table, settings, weight)
        layer = layers.fit(bound, objective, n_threads=n_threads, seed=seed).layer
        self.bound = bound
        return layer, baseline
