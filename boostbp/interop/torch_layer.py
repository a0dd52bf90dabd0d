"""GBDTModule: a layer of boosted trees as a torch module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from boostbp import backends, checks
from boostbp.backends.base import Table
from boostbp.extras import require
from boostbp.inputs import in_rows, read_weight
from boostbp.interop import torch_state
from boostbp.interop.gathered import Gathered, Rows
from boostbp.interop.torch_pass import Trees, TreesPass, as_floats, as_input, as_targets, as_tensor
from boostbp.learning import layers, losses
from boostbp.learning.layers import BoostTo, BoundInput, Layer, Objective, SquaredTo
from boostbp.learning.losses import Loss, own_losses
from boostbp.learning.starts import STARTS
from boostbp.learning.steps import Normalised, Plain, Step
from boostbp.single import check_codes, layer_settings
from boostbp.trees import threads

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = require("torch", extra="torch", what="boostbp.interop.torch_bridge")
    nn = torch.nn

__all__ = ["GBDTModule", "Moved"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64] | None


class Moved(NamedTuple):
    """Where a step wants the outputs of a layer to be; `first` is the number of its first call."""

    X: Floats
    target: Floats
    weight: Floats
    first: int


class GBDTModule(nn.Module):
    """Boosted trees with regressions in their leaves, (rows, features) -> (rows, outputs), as a torch module.

    It may stand before, after or between other modules, and more than once. The rules of its
    training are in `boostbp.interop.torch_bridge`.

    Parameters
    ----------
    in_features : int or None
        None: as many as the first input has.
    out_features : int
    backend, n_estimators, max_depth, ... :
        As in `fit_layer`; learning_rate=None lets the trees cover 95 % of a target.
    categorical : sequence of int
        Input columns that hold category codes 0, 1, 2, ...
    start : {"projection", "noise"}
        What the first trees are fitted to: random projections of the first input, or Gaussian noise.
    step : {"normalised", "plain"} or Step
        Whether `step_size` counts in spreads of each output, or multiplies the gradient as in the paper.
    step_size, momentum : float
        alpha and mu of the paper; not looked at if `step` is an object.
    reduction : {"mean", "sum"}
        Whether the loss that is differentiated is a mean over the rows of a call or a sum over
        them: a step needs the gradient of each row's own loss.
    n_jobs : int or None
        Threads; the trees do not depend on it.
    random_state : int

    Attributes
    ----------
    layer : Layer or None
        The fitted trees.
    baseline : (outputs,) float64
        Added to their output; 0 unless `boost` set it.
    settings : LayerSettings
        How the trees are fitted.
    rule : Step
        How outputs move; it may be exchanged between steps, as by a schedule.
    n_rows : int
        Rows of the last fit, but for that of the first trees.
    """

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        *,
        backend: Any = "lightgbm",
        n_estimators: int = 20,
        learning_rate: float | None = None,
        max_depth: int = 5,
        max_leaves: int | None = None,
        min_samples_leaf: int = 20,
        max_bins: int = 255,
        extra_trees: bool = False,
        basis: Any = "quadratic",
        reg_lambda: float = 1.0,
        penalize_constant: bool = True,
        standardize: bool = True,
        clip: bool = True,
        base: Literal["ridge", "additive"] | None = "ridge",
        base_lambda: float | Literal["gcv"] | None = None,
        leaves: Literal["refit", "native"] = "refit",
        multi_strategy: Literal["one_output_per_tree", "multi_output_tree"] = "one_output_per_tree",
        categorical: Sequence[int] = (),
        backend_params: Mapping[str, Any] | None = None,
        start: str = "projection",
        step: Literal["normalised", "plain"] | Step = "normalised",
        step_size: float = 0.5,
        momentum: float = 0.8,
        reduction: Literal["mean", "sum"] = "mean",
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        _check("out_features", out_features)
        if in_features is not None:
            _check("in_features", in_features)
        _check_columns(categorical, in_features)
        checks.one_of("start", start, tuple(STARTS))
        checks.one_of("reduction", reduction, ("mean", "sum"))
        self.in_features, self.out_features = in_features, out_features
        self.backend, self.categorical = backend, tuple(categorical)
        if learning_rate is None:
            learning_rate = 1.0 - 0.05 ** (1.0 / max(checks.NUMBERS["n_estimators"]("n_estimators", n_estimators), 1))
        self.settings = layer_settings(
            backend, n_estimators=n_estimators, max_depth=max_depth, max_leaves=max_leaves, max_bins=max_bins,
            min_samples_leaf=min_samples_leaf, extra_trees=extra_trees, learning_rate=learning_rate, basis=basis,
            reg_lambda=reg_lambda, penalize_constant=penalize_constant, standardize=standardize, clip=clip, base=base,
            base_lambda=base_lambda, leaves=leaves, multi_strategy=multi_strategy, random_state=random_state,
            backend_params=backend_params,
        )  # fmt: skip
        self.start, self.reduction, self.rule = start, reduction, _rule(step, step_size, momentum)
        self.n_threads = threads.count(n_jobs)
        self.layer: Layer | None = None
        self.baseline: Floats = np.zeros(out_features)
        self.n_rows = 0
        self._random = np.random.default_rng(random_state)
        self._memory: tuple[Floats, Numbers] | None = None
        self._bound: BoundInput | None = None
        self._gathered = Gathered()
        self._announced: Numbers = None
        self._watched: list[tuple[Floats, Numbers]] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Output, (rows, outputs), in the type and on the device of `x`, (rows, features)."""
        X, rows = self._input(x), self._announced
        if rows is not None and len(rows) != len(X):
            raise ValueError(
                f"{len(rows)} row numbers were announced for a call of {len(X)} rows: announce each batch."
            )
        if self._watched is not None:
            self._watched.append((X, rows))
        if self.layer is None:
            self._first_trees(X)
        assert self.layer is not None
        if not (torch.is_grad_enabled() and (self.training or x.requires_grad)):
            return as_tensor(self.layer.predict(X, n_jobs=self.n_threads) + self.baseline, x)
        gathered = self._gathered if self.training else None
        trees = Trees(self.layer, self.baseline, self.n_threads, gathered, self.reduction == "mean", rows)
        output: Tensor = TreesPass.apply(x, x.new_empty(0).requires_grad_(self.training), trees, X)
        return output

    def step(self, *, sample_weight: Any = None) -> Self:
        """Move the outputs of the gathered rows along their gradients, and fit the trees to them again.

        Parameters
        ----------
        sample_weight : (rows,) array-like, optional
            Weights of the gathered rows in the fit. The gradient of a row is to be without its weight.

        Raises
        ------
        RuntimeError
            If no gradient came since the last step.
        ValueError
            If there are fewer rows than at the last fit, or a gradient is not finite.
        """
        return self.fit_moved(self.move(sample_weight=sample_weight))

    def move(self, *, sample_weight: Any = None) -> Moved:
        """First half of `step`: move the outputs, and leave the trees as they are."""
        rows = self._rows()
        weight = in_rows(read_weight(sample_weight, len(rows.X)))
        m, numbers = self._memory or (np.zeros_like(rows.h), rows.rows)
        if m.shape != rows.h.shape or not _same(numbers, rows.rows):
            m = np.zeros_like(rows.h)
        target, m = self.rule.move(rows.h, m, rows.g, weight)
        self._memory = m, rows.rows
        return Moved(rows.X, target, weight, self._gathered.first)

    def fit_moved(self, moved: Moved) -> Self:
        """Second half of `step`: fit the trees to outputs that moved."""
        return self._fit(moved.X, SquaredTo(moved.target - self.baseline, moved.weight), moved.weight)

    def boost(self, loss: str | Loss, y: Any, *, x: Any = None, sample_weight: Any = None) -> Self:
        """Fit the trees by boosting on a loss itself: for the last layer of a model, in the place of `step`.

        Parameters
        ----------
        loss : str or Loss
            As in `BoostBPClassifier` and `BoostBPRegressor`.
        y : tensor or array-like, (rows,) or (rows, outputs)
            Numbers; or class numbers, (rows,), for a module with an output for each class.
        x : tensor or array-like, (rows, features), optional
            The input; the rows gathered since the last step if left out.
        sample_weight : (rows,) array-like, optional
        """
        X = self._rows().X if x is None else self._input(x)
        target = as_targets(y, self.out_features)
        if len(target) != len(X):
            raise ValueError(f"y has {len(target)} rows and the input has {len(X)}: give one target for each row.")
        weight = in_rows(read_weight(sample_weight, len(X)))
        found = losses.load(loss, n_outputs=self.out_features)
        found.check(target)
        baseline = own_losses.baseline(found, target, weight)
        own_losses.check(found, baseline, target)
        self.baseline = baseline
        return self._fit(X, BoostTo(found, target, weight, self.baseline), weight)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gathered rows and gradients; `GBDTStep.zero_grad` does it, torch's optimizers do not."""
        super().zero_grad(set_to_none)
        self._gathered.calls.clear()

    def forget(self) -> Self:
        """Forget the training rows but not the trees: gradients, momentum, bins, and how many they were."""
        self._gathered.calls.clear()
        self._memory, self._bound, self.n_rows = None, None, 0
        return self

    def extra_repr(self) -> str:
        """What `repr` shows."""
        trees = "no trees yet" if self.layer is None else f"{self.layer.forest.n_trees} trees"
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, backend={self.backend!r}, "
            f"n_estimators={self.settings.n_estimators}, max_depth={self.settings.growth.max_depth}, {trees}"
        )

    def get_extra_state(self) -> dict[str, Any]:
        """The trees, as tensors; momentum and gathered rows are no part of a state_dict."""
        sizes = {"in_features": self.in_features, "out_features": self.out_features}
        forest = None if self.layer is None else self.layer.forest
        return torch_state.state_of(forest, **sizes, baseline=torch.tensor(self.baseline))

    def set_extra_state(self, state: Any) -> None:
        """Take over the trees of a state; ValueError if they do not fit this module."""
        state = torch_state.read(state)
        for name in ("in_features", "out_features"):
            mine = getattr(self, name)
            if None not in (mine, state[name]) and mine != state[name]:
                raise ValueError(f"the state has {name}={state[name]}, and this module {name}={mine}: make it alike.")
        forest, baseline = torch_state.forest_of(state, self.settings.basis), as_floats(state["baseline"])
        shape = (state["in_features"], self.out_features)
        if baseline.shape != shape[1:] or (forest and (forest.n_features, forest.n_outputs) != shape):
            raise ValueError("the trees of the state have other sizes than it says: it is damaged.")
        self.layer, self.baseline = None if forest is None else Layer(forest), baseline
        self.in_features = self.in_features or state["in_features"]
        self._gathered.fitted()
        self.forget()

    def __getstate__(self) -> dict[str, Any]:
        # The library's bins stay with the original, and so do gradients: their graph is the original's.
        return {**self.__dict__, "_bound": None, "_gathered": Gathered(), "_announced": None, "_watched": None}

    def _input(self, x: Any) -> Floats:
        X = as_input(x, self.in_features)
        _check_columns(self.categorical, X.shape[1])
        return X

    @threads.one_in_blas()
    def _first_trees(self, X: Floats) -> None:
        if not self.training:
            raise RuntimeError(
                "this GBDTModule has no trees yet: call it in train mode, boost it, or load a state_dict."
            )
        weight, numeric = np.ones(len(X)), np.delete(X, self.categorical, axis=1)
        self._fit(X, SquaredTo(STARTS[self.start](numeric, weight, self.out_features, self._random), weight), weight)
        self.n_rows = 0  # the first call may be a mini-batch; the first step has all rows

    def _rows(self) -> Rows:
        """The rows of a step."""
        if not self._gathered:
            raise RuntimeError(
                "no gradient reached this GBDTModule: in train mode call the model and loss.backward() first."
            )
        rows = self._gathered.join()
        if len(rows.X) < self.n_rows:
            raise ValueError(
                f"{len(rows.X)} rows got a gradient since the last step, and the trees were fitted to {self.n_rows}: "
                "they are fitted from scratch, so go through all rows before a step. To train on fewer from now on, "
                "call forget()."
            )
        if not np.isfinite(rows.g).all():
            raise ValueError("dL/doutput has values that are not finite: look into the loss and the modules above.")
        return rows

    @threads.one_in_blas()
    def _fit(self, X: Floats, objective: Objective, weight: Floats) -> Self:
        bound = self._bound
        same = bound is not None and np.array_equal(bound.weight, weight)
        if bound is None or not (same and np.array_equal(bound.table.X, X, equal_nan=True)):
            check_codes(X, self.categorical)
            table = Table(X, self.categorical)
            self._bound = bound = BoundInput(backends.load(self.backend), table, self.settings, weight)
        seed = int(self._random.integers(2**30))
        self.layer = layers.fit(bound, objective, n_threads=self.n_threads, seed=seed).layer
        self.in_features, self.n_rows = X.shape[1], len(X)
        self._gathered.fitted()
        return self


def _check(name: str, size: Any) -> None:
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ValueError(f"{name}={size!r} is not allowed: give a whole number of at least 1.")


def _check_columns(categorical: Sequence[int], in_features: int | None) -> None:
    wrong = [j for j in categorical if j < 0 or (in_features is not None and j >= in_features)]
    if wrong:
        most = "from 0 on" if in_features is None else f"0 to {in_features - 1}"
        raise ValueError(f"categorical={tuple(categorical)!r}: {wrong[0]} is no column, which are {most}.")


def _rule(step: Any, step_size: float, momentum: float) -> Step:
    rules: dict[str, Any] = {"normalised": Normalised, "plain": Plain}
    if not isinstance(step, str):
        rule: Step = step
        return rule
    if step not in rules:
        raise ValueError(
            f"step={step!r} is not known: use 'normalised', 'plain' or an object of boostbp.learning.steps."
        )
    if not (step_size > 0 and np.isfinite(step_size)) or not 0 <= momentum < 1:
        raise ValueError(f"step_size={step_size!r}, momentum={momentum!r}: give a size above 0, a momentum in [0, 1).")
    return rules[step](step_size, momentum)


def _same(one: Numbers, other: Numbers) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
