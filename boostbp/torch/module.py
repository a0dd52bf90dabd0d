"""GBDTModule: a layer of boosted trees as a torch module."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from boostbp.backends import load_backend
from boostbp.backends.base import Backend
from boostbp.estimators.single_layer import check_codes
from boostbp.inputs.rows import Rows
from boostbp.losses import Loss, load_loss
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.network import layers, steps
from boostbp.network.layers import BoundInput, Layer, LayerSpec, LossObjective, Objective, SquaredObjective
from boostbp.network.layers.layer_spec import HIDDEN, settings_of
from boostbp.network.steps import STARTS, Step, is_constant, moved, start_of
from boostbp.runtime import checks, interrupts, threads
from boostbp.runtime.arrays import Floats, errstate_in_methods
from boostbp.runtime.threads import single_threaded_blas
from boostbp.torch import states, tensors
from boostbp.torch.gathered import GatheredRows, LastFit, Momentum, Numbers, PendingCalls, StepTarget, check_known
from boostbp.torch.tensors import NOT_FINITE, Tensor, as_tensor, differentiable, torch, uncompiled_forward
from boostbp.trees.sparse import Table


@uncompiled_forward
@errstate_in_methods
class GBDTModule(torch.nn.Module):
    """Boosted trees with regressions in their leaves, (rows, features) -> (rows, outputs), as a torch module.

    It may be before, after or between other modules, and be used more than once. `boostbp.torch` has the rules of its
    training.

    Parameters
    ----------
    in_features : int or None
        None: the number of columns of the first input.
    out_features : int
    layer : LayerSpec, dict or None
        Settings of the trees: fields of `LayerSpec`. The defaults are those of a hidden layer.
    backend : {"lightgbm", "xgboost", "sklearn"} or Backend
        Library that grows the trees.
    categorical : sequence of int
        Input columns that hold category codes 0, 1, 2, ...
    start : {"projection", "noise"}
        Target of the first trees: random projections of the first input, or Gaussian noise.
    step : {"normalised", "plain"} or Step
        Whether `step_size` is in standard deviations of each output, or multiplies the gradient as in the paper.
    step_size, momentum : float
        alpha and mu of the paper; ignored if `step` is an object. The default step is half of the estimators', as
        neural layers above can only follow by small steps.
    reduction : {"mean", "sum"}
        Whether the loss is a mean or a sum over the rows of a call. It converts gradients to those of single rows.
    n_jobs : int or None
        Number of threads; the trees do not depend on it.
    random_state : int or None
        None draws it from the generator of torch, as for weights of other modules; `torch.manual_seed` fixes it.

    Attributes
    ----------
    layer : Layer or None
        The fitted trees. They are not parameters: `eval()` freezes them, ``requires_grad_(False)`` does not.
    baseline : (outputs,) float64
        Added to their output; 0 unless `boost` set it.
    settings : LayerSettings
        Settings of the trees; they may be replaced between steps.
    rule : Step
        Rule that moves outputs; it may be replaced between steps, for example by a schedule. Its `decay` has an effect
        only if `GBDTStep.step` gets the loss.
    expected_rows : int or None
        Number of rows of each step; see `GBDTStep`.
    """

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        layer: LayerSpec | Mapping[str, Any] | None = None,
        *,
        backend: str | Backend = "lightgbm",
        categorical: Sequence[int] = (),
        start: str = "projection",
        step: Literal["normalised", "plain"] | Step = "normalised",
        step_size: float = 0.2,
        momentum: float = 0.8,
        reduction: Literal["mean", "sum"] = "mean",
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__()
        out_features = checks.whole("out_features", out_features, 1)
        in_features = None if in_features is None else checks.whole("in_features", in_features, 1)
        self.categorical = tensors.category_columns(categorical, in_features)
        checks.one_of("start", start, tuple(STARTS))
        checks.one_of("reduction", reduction, ("mean", "sum"))
        self.in_features, self.out_features, self.backend = in_features, out_features, backend
        if random_state is None:
            random_state = int(torch.randint(2**31 - 1, (), device="cpu"))
        seed = checks.whole("random_state", random_state, 0)
        self.settings = settings_of(LayerSpec.of(layer, "layer").complete(HIDDEN), backend, seed=seed)
        self.start, self.reduction, self.rule = start, reduction, steps.rule_of(step, step_size, momentum)
        self.n_threads = threads.count(n_jobs)
        self.layer: Layer | None = None
        self.baseline: Floats = np.zeros(out_features)
        self.expected_rows: int | None = None
        self._random = np.random.default_rng(seed)
        self._momentum: Momentum | None = None
        self._last = LastFit()
        self._bound: BoundInput | None = None  # of the last fit, kept for the next one
        self._gathered = PendingCalls()
        self._announced: Numbers = None
        self._watched: list[tuple[Floats, Numbers]] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows of the last fit, which the next step must also have; 0 after the first trees."""
        return self._last.n_rows

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, (rows, outputs), in the type and on the device of `x`, (rows, features).

        The first call in train mode fits the first trees to its rows. If these are too few, outputs are constant until
        the first step.
        """
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"x is a {type(x).__name__}: a tree layer takes tensors. Use torch.as_tensor(x).")
        X, gathers = self._input(x), self.training and torch.is_grad_enabled()
        if x.grad_fn is None and self._last.above:
            tensors.refuse_empty_columns(X, self._last.complete)
        rows = self._announced if gathers or self._watched is not None else None
        if rows is not None and len(rows) != len(X):
            raise ValueError(f"{len(rows)} row numbers were announced for {len(X)} rows: announce each batch.")
        if self._watched is not None:
            self._watched.append((X, rows))
        if self.layer is None:
            self._first_trees(X)
        assert self.layer is not None
        is_dual = torch.autograd.forward_ad.unpack_dual(x).tangent is not None
        if not (gathers or (torch.is_grad_enabled() and x.requires_grad) or is_dual):
            return as_tensor(self.layer.predict(X, n_jobs=self.n_threads) + self.baseline, x)
        h, trace = self.layer.forward(X, n_jobs=self.n_threads)
        h += self.baseline
        if not gathers:
            return differentiable(x, h, trace, None)
        gathered, is_mean = self._gathered, self.reduction == "mean"
        call = gathered.call(X, h.copy(), rows, data=not x.requires_grad)
        return differentiable(x, h, trace, lambda G: gathered.add(call, G * len(G) if is_mean else G))

    def begin(self, x: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the first trees to the start of their outputs, like the first forward call, but with weights.

        Parameters
        ----------
        x : tensor or array-like, (rows, features)
        sample_weight : (rows,) array-like, optional
        """
        return self._first_trees(self._input(x), sample_weight)

    def step(self, *, sample_weight: ArrayLike | None = None) -> Self:
        """Move the outputs of the gathered rows along their gradients, and fit the trees to them again.

        Parameters
        ----------
        sample_weight : (rows,) array-like, optional
            Weights of the gathered rows in the fit; rows of weight 0 are left out. The gradient of a row must not
            include its weight.

        Raises
        ------
        RuntimeError
            If there was no gradient since the last step.
        ValueError
            If the rows are not those of the last fit, or cannot be identified, or a gradient is not finite.
        """
        check_known(self.expected_rows, self._gathered)
        return self.fit_moved(self.move(sample_weight=sample_weight))

    def move(self, *, sample_weight: ArrayLike | None = None, pace: float = 1.0) -> StepTarget:
        """Return the target of a step: the outputs after `pace` times a step. The trees do not change."""
        rows = self._rows()
        weight = tensors.weights(sample_weight, len(rows.X))
        m = np.zeros_like(rows.h) if self._momentum is None else self._momentum.of(rows)
        target, m = moved(self.rule, rows.h, m, rows.g, weight)
        if pace != 1.0:  # h + (target - h) would have rounding errors
            target = rows.h + pace * (target - rows.h)
        stuck = (rows.g.any(axis=0) | (self._last.n_rows == 0)) & is_constant(rows.h) & is_constant(target)
        if stuck.any():  # outputs of first trees on a few rows may be constant, without a unit for steps
            target[:, stuck], m[:, stuck] = self._start(rows.X, weight)[:, stuck], 0.0
        first = min(self._gathered.calls)
        return StepTarget(rows.X, target, weight, first, rows.hashes, Momentum(m, rows.rows))

    def fit_moved(self, moved: StepTarget) -> Self:
        """Fit the trees to outputs that `move` returned: the second half of `step`."""
        numbers = None if moved.momentum is None else moved.momentum.rows
        last = LastFit(len(moved.X), moved.hashes, numbers, above=moved.hashes is None)
        self._fit(last, moved.X, moved.target - self.baseline, moved.weight)
        self._momentum = moved.momentum or self._momentum
        return self

    def boost(
        self, loss: str | Loss, y: ArrayLike, *, x: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Boost the trees on a loss instead of calling `step`, for the last layer of a model.

        The output of the module is then the argument of the loss's `link`: log-odds, logarithms, unsorted quantiles.

        Parameters
        ----------
        loss : str or Loss
            As in `BoostBPClassifier` and `BoostBPRegressor`.
        y : tensor or array-like, (rows,) or (rows, outputs)
            Numbers, or class numbers, (rows,), for a module with an output for each class.
        x : tensor or array-like, (rows, features), optional
            The input; by default the rows gathered since the last step.
        sample_weight : (rows,) array-like, optional

        Raises
        ------
        ValueError
            If `y` is not a target of this loss, or the number of rows is not that of the last fit.
        """
        if x is None:
            check_known(self.expected_rows, self._gathered)
            rows = self._rows()
            last = LastFit(len(rows.X), rows.hashes, rows.rows, above=rows.hashes is None)
        else:
            X = self._input(x)
            rows = GatheredRows(X, X, X, None, hashes=None, repeated=0)
            self._last.check(rows, self.expected_rows)
            last = LastFit(len(X))
        target = tensors.as_targets(y, self.out_features, len(rows.X))
        weight = tensors.weights(sample_weight, len(target))
        objective = load_loss(loss, n_outputs=self.out_features)
        objective.check(target)
        self._fit(last, rows.X, target, weight, objective)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gathered rows and gradients. Optimizers, and ``zero_grad`` of a model around it, do not do so."""
        super().zero_grad(set_to_none)
        self._gathered.calls.clear()

    def forget(self) -> Self:
        """Drop gradients, momentum, bins and the number of training rows, but keep the trees."""
        self._gathered.calls.clear()
        self._momentum, self._bound, self._last = None, None, LastFit()
        return self

    def extra_repr(self) -> str:
        """Return the text of `repr`."""
        trees = "no trees yet" if self.layer is None else f"{self.layer.forest.n_trees} trees"
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, backend={self.backend!r}, "
            f"n_estimators={self.settings.n_estimators}, max_depth={self.settings.growth.max_depth}, {trees}"
        )

    def get_extra_state(self) -> Tensor:
        """Return the trees and the number of rows, (bytes,) uint8; `GBDTStep.state_dict` has the rest of training."""
        return states.tensor_of(self)

    def set_extra_state(self, state: object) -> None:
        """Load the trees of a state; raise ValueError if they do not fit this module."""
        restored = states.tree_state(state, self)
        self._gathered.start_anew()
        self.forget()
        self.layer, self.baseline, self.in_features, self._last = restored

    def __getstate__(self) -> dict[str, Any]:
        # Copies have no bins and rows of the library, and no gradients, as their graph belongs to the original.
        fresh = {"_bound": None, "_gathered": PendingCalls(), "_announced": None, "_watched": None}
        return {**self.__dict__, **fresh}

    def _input(self, x: ArrayLike) -> Floats:
        X = tensors.as_input(x, self.in_features)
        tensors.category_columns(self.categorical, X.shape[1])
        if isinstance(x, torch.Tensor) and x.grad_fn is not None:
            tensors.refuse_learnt_nan(x, X)
        return X

    def _first_trees(self, X: Floats, sample_weight: ArrayLike | None = None) -> Self:
        if not self.training:
            raise RuntimeError("this GBDTModule has no trees: call it in train mode, boost it, or load a state_dict.")
        if len(X) == 0:
            raise ValueError(f"x has shape {X.shape}: the first trees are fitted to the first rows that come.")
        weight = tensors.weights(sample_weight, len(X))
        last = LastFit()  # without rows, as the first call may be a mini-batch
        self._fit(last, X, self._start(X, weight), weight)
        return self

    def _start(self, X: Floats, weight: Floats) -> Floats:
        """Return the target of the first trees, (rows, outputs), from the rows with weight; 0 in the others."""
        target = np.zeros((len(X), self.out_features))
        used = Rows(Table(X, self.categorical), target, weight).counted()
        start = STARTS[self.start]
        target[weight > 0] = start_of(start, used.table, used.weight, self.out_features, self._random)
        return target

    def _rows(self) -> GatheredRows:
        """Return the checked rows of a step."""
        if not self._gathered:
            raise RuntimeError("no gradient reached this module: call the model in train mode, then loss.backward().")
        rows = self._gathered.join()
        self._last.check(rows, self.expected_rows)
        if not np.isfinite(rows.g).all():
            raise ValueError(NOT_FINITE)
        return rows

    def _fit(self, last: LastFit, X: Floats, target: Floats, weight: Floats, loss: Loss | None = None) -> None:
        """Fit the trees to a target, or boost them on a loss, with rows that have weight; an error changes nothing."""
        complete = np.logical_not(np.isnan(X).any(axis=0)) if len(X) >= tensors.MIN_COMPLETE_ROWS else None
        random = copy.deepcopy(self._random)
        rows = Rows(Table(X, self.categorical), target, weight).counted()
        table, target, weight, baseline = rows.table, rows.y, rows.weight, self.baseline
        objective: Objective = SquaredObjective(target, weight)
        with interrupts.deferred(), single_threaded_blas():
            if loss is not None:
                baseline = CheckedLoss(loss).baseline(target, weight)
                objective = LossObjective.of(loss, target, weight, baseline)
            bound = self._bound
            is_same = bound is not None and bound.settings is self.settings and np.array_equal(bound.weight, weight)
            if bound is None or not is_same or not np.array_equal(bound.table.X, table.X, equal_nan=True):
                check_codes(table.X, table.categorical)
                bound = BoundInput(load_backend(self.backend), table, self.settings, weight)
            seed = int(random.integers(2**30))
            layer = layers.fit(bound, objective, n_threads=self.n_threads, seed=seed).layer
        self._bound, self.layer, self.baseline, self._random = bound, layer, baseline, random
        self.in_features, self._last = X.shape[1], last._replace(complete=complete)
        self._gathered.start_anew()
