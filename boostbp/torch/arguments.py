"""What a tree layer of a torch model is given: checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from boostbp import backends, layers
from boostbp.backends.base import Table
from boostbp.floats import Floats
from boostbp.inputs.targets import drop_zero_weight, read_weight
from boostbp.layers import BoundInput, Layer, LayerSettings, LossObjective, Objective, SquaredObjective
from boostbp.losses import Loss
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.network.starts import STARTS, start_of
from boostbp.single import check_codes
from boostbp.torch.passes import as_floats, is_tensor, learns_from
from boostbp.trees import interrupts, threads

ColumnMask = NDArray[np.bool_] | None
_ENOUGH = 20  # rows that tell columns without missing values from those that have many


def columns(categorical: Any, in_features: int | None) -> tuple[int, ...]:
    """Columns that hold category codes, checked."""
    columns = tuple(categorical) if isinstance(categorical, Iterable) else (categorical,)
    if not isinstance(categorical, Iterable) or not all(
        isinstance(j, int | np.integer) and not isinstance(j, bool) for j in columns
    ):
        raise ValueError(f"categorical={categorical!r} is not allowed: give a sequence of column numbers.")
    wrong = [j for j in columns if j < 0 or (in_features is not None and j >= in_features)]
    if wrong:
        most = "from 0 on" if in_features is None else f"0 to {in_features - 1}"
        raise ValueError(f"categorical={columns!r}: {wrong[0]} is no column, which are {most}.")
    return tuple(map(int, columns))


def weights(sample_weight: Any, n_rows: int) -> Floats:
    """Weights of rows, (rows,), as array or tensor, checked; ones for None."""
    return read_weight(as_floats(sample_weight) if is_tensor(sample_weight) else sample_weight, n_rows)


def complete(X: Floats) -> ColumnMask:
    """Which columns of (rows, features) have no missing value, (features,); None if too few rows tell."""
    return np.logical_not(np.isnan(X).any(axis=0)) if len(X) >= _ENOUGH else None


def refuse_learnt(x: Any, X: Floats) -> None:
    """Refuse NaN from modules that learn: trees would hide it, and its gradients would make their weights NaN.

    Missing cells of data that stand beside what comes from such modules, in a tensor of both, may be: no gradient goes
    from them to anything that learns.
    """
    missing = np.isnan(X)
    if not missing.any() or not learns_from(x, missing):
        return
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


def refuse_lost(X: Floats, complete: ColumnMask) -> None:
    """Refuse NaN that modules below made without a graph: trees would take them for missing values.

    `complete` are the columns that had no missing value when the trees were fitted. NaN in all rows tells: features of
    the data may be among what comes from below, and those may be missing in rows that are new.
    """
    if complete is None or len(X) == 0:
        return
    lost = np.flatnonzero(np.isnan(X).all(axis=0) & complete)
    if len(lost):
        raise ValueError(
            f"x is NaN in all rows of column {lost[0]}, which had no missing value "
            "when the trees were fitted, and modules stand below: look for a division by 0, a logarithm or weights "
            "that are not finite below this tree layer, or use smaller steps there."
        )


def start_in(start: str, table: Table, weight: Floats, n_outputs: int, random: np.random.Generator) -> Floats:
    """Start by name, (rows, outputs): from the rows that have weight; 0 in the others."""
    target = np.zeros((len(table.X), n_outputs))
    table, _, used = drop_zero_weight(table, target, weight)
    target[weight > 0] = start_of(STARTS[start], table, used, n_outputs, random)
    return target


class Fitted(NamedTuple):
    """Trees, and what is added to their output, (outputs,) float64: 0 where they were fitted to a target."""

    layer: Layer
    baseline: Floats


class Refits:
    """Fits of trees to rows of a library."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.bound: BoundInput | None = None  # the input of the last fit, as long as it stays

    @interrupts.deferred()
    @threads.single_threaded_blas()
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
    ) -> Fitted:
        """Fit trees to a target, (rows, outputs), or by boosting on a loss of it. Rows of weight 0 are none."""
        table, target, weight = drop_zero_weight(table, target, weight)
        baseline, objective = np.zeros(target.shape[1]), cast("Objective", SquaredObjective(target, weight))
        if loss is not None:
            baseline = CheckedLoss(loss).baseline(target, weight)
            objective = LossObjective.of(loss, target, weight, baseline)
        bound = self._bind(table, weight, settings)
        layer = layers.fit(bound, objective, n_threads=n_threads, seed=seed).layer
        self.bound = bound
        return Fitted(layer, baseline)

    def _bind(self, table: Table, weight: Floats, settings: LayerSettings) -> BoundInput:
        bound = self.bound
        same = bound is not None and bound.settings is settings and np.array_equal(bound.weight, weight)
        if bound is not None and same and np.array_equal(bound.table.X, table.X, equal_nan=True):
            return bound
        check_codes(table.X, table.categorical)
        return BoundInput(backends.load(self.backend), table, settings, weight)
