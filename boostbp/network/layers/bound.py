"""What a layer is fitted to: its input, bound to a library and to settings, and the objective of its rounds.

An objective is a squared distance or a loss, which the running fit of the layer, (rows, outputs), minimises. In its
methods, `outputs` is a slice; it has all outputs if the objective is not `separable`. Derivatives include row weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, TreeParams
from boostbp.backends.capabilities import capabilities_of, check_supported
from boostbp.losses import Loss
from boostbp.losses.checked_loss import CheckedLoss, try_loss
from boostbp.losses.residuals import SquaredError
from boostbp.runtime import checks, interrupts
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import SINGLE_PROCESS, training_in, workers
from boostbp.runtime.threads import Team
from boostbp.trees import basis as bases
from boostbp.trees.basis import BASES, Basis, try_basis
from boostbp.trees.leaves import ColumnBins
from boostbp.trees.linear import RidgeBase
from boostbp.trees.ridge import Prior, Ridge
from boostbp.trees.sparse import Sparse, Table, row_blocks

R = TypeVar("R")
# Up to this number of rows of all workers, each worker fits layers to all of them, without messages. A library sends
# two messages for each split; those of a tree take as long as growing it on some 20,000 rows with one core.
GATHERED_ROWS = 20_000
# Numbers of a block of rows, 256 kB: a loss allocates several such arrays, which stay in cache.
LOSS_BLOCK = 1 << 15
# Smallest weight of a row in a check: its product with a hessian is still above 0.
LEAST_WEIGHT = 1e-290


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """Complete settings of a layer.

    Fields that `LayerSpec` also has mean the same, and are all set. The others:
    """

    n_estimators: int = 100
    learning_rate: float = 0.1
    # with ``growth.multi_output``, `n_estimators` is the total number of trees, not the number for each output
    growth: TreeParams = field(default_factory=TreeParams)
    subsample: float = 1.0
    basis: Basis = BASES["quadratic"]
    ridge: Ridge = field(default_factory=Ridge)  # of the leaf regressions
    clip: bool = True
    base: Literal["ridge", "additive"] | None = None  # None: no base
    base_lambda: float | None = None  # None chooses by generalised cross-validation
    # smallest penalty of cross-validation as a share of a column's sum of squares; None: see `RidgeBase.bind`
    min_base_lambda: float | None = 0.0
    leaves: Literal["refit", "native"] = "refit"
    prior: Prior | None = None  # leaves of all trees, with which those of kept structures are blended


class BoundInput:
    """A layer's input, binned and decomposed once for any number of fits."""

    def __init__(self, backend: Backend, table: Table, settings: LayerSettings, weight: Floats) -> None:
        group = workers()
        self.settings, self.X = settings, table.X  # of this worker's rows
        # numbers of this worker's rows in `self.table`, if that holds the few rows of all workers
        self.local_rows: NDArray[np.int64] | None = None
        self.runs, n_rows = group.row_runs(len(table.X))  # runs of neighbours among the rows of all workers
        if group.is_single or n_rows > GATHERED_ROWS:
            self._make(backend, table, weight)
            return
        # If all workers together have few rows, this process holds all of them, as one run.
        self.local_rows, _ = group.row_numbers(len(table.X))
        self.runs = [(0, n_rows)]
        X, weight = group.allgather_rows(table.X, weight)
        run_without_group(lambda: self._make(backend, Table(X, table.categorical), weight))

    def _make(self, backend: Backend, table: Table, weight: Floats) -> None:
        self.table, self.weight = table, weight  # of all rows that this process fits layers to
        self._base: RidgeBase | None = None
        basis = self.settings.basis
        check_supported(backend, table, self.settings.growth)
        _check_basis(self.settings, is_sparse=isinstance(table.X, Sparse))
        self.Z = bases.expand(basis, table.X)  # what leaf regressions read, (rows, columns)
        # The user's functions may be undefined at category codes, and no leaf reads these columns.
        if basis.has_functions:
            numeric = [j for j in range(table.X.shape[1]) if j not in table.categorical]
            bases.check_finite(basis, table.X, self.Z, numeric)
        if not isinstance(table.X, Sparse):
            try_basis(basis, table.X)
        self._bind(backend)

    def _bind(self, backend: Backend) -> None:
        self.capabilities = capabilities_of(backend)
        with interrupts.deferred():  # a library may read the rows by a Python function, which must not raise
            self.grower: Grower = backend.bind(self.table, self.settings.growth)
        lacks = [name for name in ("grow", "fork") if not callable(getattr(self.grower, name, None))]
        if lacks:
            fault = f"its bind() returned {checks.shown(self.grower)}, which has no method {' and no '.join(lacks)}"
            raise TypeError(f"backend={backend!r}: {fault}: return a grower (boostbp.backends.base.Grower).")

    def with_backend(self, backend: Backend, growth: TreeParams) -> BoundInput:
        """Return the same input, with everything computed from it, bound to another backend."""
        other = self.with_settings(growth=growth)
        if self.local_rows is None:
            other._bind(backend)
        else:
            run_without_group(lambda: other._bind(backend))
        return other

    def with_settings(self, **changes: Any) -> BoundInput:
        """Return the same bound input with other settings, such as rounds or base, that do not change it."""
        other = copy.copy(self)
        other.settings = replace(self.settings, **changes)
        return other

    # Not functools.cached_property: in Python 3.11 all objects share its lock, and `base` waits for other workers.

    @property
    def column_bins(self) -> ColumnBins | None:
        """The bins of a dense input, by which rows are routed, computed on first use."""
        X = self.table.X
        return None if isinstance(X, Sparse) else self.table.once("column bins", lambda: ColumnBins.of(X))

    @property
    def base(self) -> RidgeBase:
        """The ridge regression on all numeric columns, or on smooth functions of them, computed on first use."""
        if self._base is None:
            least, per_feature = self.settings.min_base_lambda, max(self.settings.basis.columns_per_feature, 1)
            columns = np.arange(self.Z.shape[1], dtype=np.int32)
            numeric = columns[~np.isin(columns // per_feature, self.table.categorical)]  # no category codes
            if self.settings.base == "additive":
                degree = self.settings.basis.powers
                self._base = RidgeBase.additive(self.Z, numeric, self.weight, degree=degree, least=least)
            else:
                self._base = RidgeBase.bind(self.Z, numeric, self.weight, least=least)
        return self._base

    @property
    def n_base(self) -> int:
        """Number of trees of the base."""
        return 0 if self.settings.base is None else len(self.base.U.trees)


def _check_basis(settings: LayerSettings, *, is_sparse: bool) -> None:
    """Refuse a base or a sparse input that the basis or the leaves do not support."""
    basis = settings.basis
    if is_sparse and (basis.has_functions or settings.leaves == "native"):
        why = "with leaves='native': the library would hold all numbers once more, dense. Use leaves='refit'"
        if basis.has_functions:
            why = f"with basis={basis!r}: its functions need not be 0 at 0. Use 'linear' or 'quadratic'"
        raise ValueError(f"X is sparse, which is not supported {why}, or pass X.toarray().")
    if basis.has_functions and settings.base == "additive":
        raise ValueError("base='additive' is not supported with functions of your own. Use base='ridge'.")


def run_without_group(work: Callable[[], R]) -> R:
    """Run `work` without the group, in a new thread, as a library's connections to other workers belong to a thread."""

    def work_alone(_: None) -> R:
        with training_in(SINGLE_PROCESS):
            return work()

    with Team(2) as team:
        [result] = team.map(work_alone, [None])
    return result


@dataclass(frozen=True, slots=True)
class SquaredObjective:
    """Half the squared distance to a target, to which hidden layers are fitted (Algorithm 1)."""

    target: Floats  # (rows, outputs)
    weight: Floats  # (rows,)
    separable: ClassVar[bool] = True  # the gradient of an output depends on no other output
    curved: ClassVar[bool] = False  # the hessian is the same for any fit

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.target.shape[1]

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """Return ``weight * (fit - target)`` and ``weight``."""
        # w (f - t)^2 / 2 has the derivatives w (f - t), the r of Algorithm 1, and w.
        hess = np.broadcast_to(self.weight[:, None], fit.shape)
        grad = np.empty_like(fit)
        np.subtract(fit, self.target[:, outputs], out=grad)
        return np.multiply(hess, grad, out=grad), hess

    def check(self, fit: Floats, outputs: slice, grad: Floats, hess: Floats, number: int) -> None:
        """Do nothing: targets are finite."""

    def squared(self, outputs: slice) -> tuple[Floats, Floats]:
        """Return what the fit is added to, and the target, of a squared error, each (outputs, rows)."""
        target = np.ascontiguousarray(self.target[:, outputs].T)
        return np.zeros_like(target), target

    def gathered(self) -> Self:
        """Return the objective of the rows of all workers."""
        target, weight = workers().allgather_rows(self.target, self.weight)
        return replace(self, target=target, weight=weight)


@dataclass(frozen=True, slots=True)
class LossObjective:
    """Objective of an output layer that is boosted on the loss itself.

    The running fit of the layer starts from `baseline`, (outputs,) or (rows, outputs). `y` and `weight` are those of
    `Loss`. Messages name the place in training by `where` and the round, counted from `first_round`.
    """

    loss: CheckedLoss
    y: Floats
    weight: Floats
    baseline: Floats
    where: str = ""
    first_round: int = 0
    separable = cast(bool, property(lambda self: self.loss.separable))
    curved = cast(bool, property(lambda self: self.loss.curved))

    @classmethod
    def of(cls, loss: Loss, y: Floats, weight: Floats, baseline: Floats) -> Self:
        """Return the objective of a loss after a trial of the loss on a few rows."""
        return cls(try_loss(loss, baseline, y).prepared(y, weight), y, weight, baseline)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.baseline.shape[-1]

    @property
    def is_squared(self) -> bool:
        """Whether the loss is the squared error, whose gradient is the residual, and not a subclass of it."""
        return type(self.loss.loss) is SquaredError

    def derivatives(self, fit: Floats) -> tuple[float, Floats, Floats]:
        """Return the weighted sum of the loss, its gradient and hessian."""
        value = np.empty(len(fit))
        grad, hess = (np.empty(fit.shape[::-1]).T for _ in range(2))  # by output, as the running fit is kept
        whole = self.loss.of_rows is not None
        for rows in [slice(0, len(fit))] if whole else row_blocks(0, len(fit), fit.shape[1], LOSS_BLOCK):
            weight = self.weight[rows, None]
            h = fit[rows] + (self.baseline[rows] if self.baseline.ndim > 1 else self.baseline)
            value[rows], of_fit, curvature = self.loss.derivatives(h, self.y[rows])
            np.multiply(weight, of_fit, out=grad[rows])
            np.multiply(weight, curvature, out=hess[rows])
        return float(self.weight @ value), grad, hess

    def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
        """Return the weighted gradient and hessian of the loss, each (rows, outputs)."""
        h, y = fit + self.baseline[..., outputs], self._target_of(outputs)
        weight = self.weight[:, None]
        if self.is_squared:  # once per round, often of few rows
            h -= y
            hessian = weight if h.shape == weight.shape else np.broadcast_to(weight, h.shape)
            return np.multiply(weight, h, out=h), hessian
        if self.loss.of_rows is not None:  # an order of the rows serves both
            _, gradient, hessian = self.loss.derivatives(h, y)
            return weight * gradient, weight * hessian
        return weight * self.loss.gradient(h, y), weight * self.loss.hessian(h, y)

    def squared(self, outputs: slice) -> tuple[Floats, Floats] | None:
        """Return what the fit is added to, and the target, each (outputs, rows); None for another loss."""
        if not self.is_squared:
            return None
        base = np.broadcast_to(self.baseline, self.y.shape)[:, outputs]
        return np.ascontiguousarray(base.T), np.ascontiguousarray(self.y[:, outputs].T)

    def check(self, fit: Floats, outputs: slice, grad: Floats, hess: Floats, number: int) -> None:
        """Refuse derivatives that are not finite, and a hessian that is not above 0, in the round `number`."""
        # Two passes over each array if they are valid. Both comparisons are False for NaN.
        finite = grad.min(initial=0.0) > -np.inf and grad.max(initial=0.0) < np.inf
        if finite and (self.is_squared or (hess.min(initial=1.0) > 0.0 and hess.max(initial=1.0) < np.inf)):
            return
        # A tiny weight may make the product with a valid hessian 0, so derivatives are checked without small weights.
        weight = np.maximum(self.weight, LEAST_WEIGHT)[:, None]
        hess = np.where((hess == 0.0) & (self.weight < LEAST_WEIGHT)[:, None], weight, hess)
        returned, h = {"gradient": grad / weight, "hessian": hess / weight}, fit + self.baseline[..., outputs]
        when = f"in round {self.first_round + number + 1}{self.where} of training"
        self.loss.refuse_unusable(returned, h, self._target_of(outputs), when)

    def _target_of(self, outputs: slice) -> Floats:
        return self.y if self.n_outputs == 1 else self.y[:, outputs]  # one output may have several columns

    def refuse_value(self, fit: Floats) -> None:
        """Refuse a sum of values that is NaN; the error names the first row with one."""
        self.loss.value(fit + self.baseline, self.y)
        raise ValueError(f"loss={self.loss.name!r}: the sum of its values is NaN: let value() return finite numbers.")

    def gathered(self) -> Self:
        """Return the objective of the rows of all workers."""
        baseline = np.broadcast_to(self.baseline, (len(self.y), self.n_outputs))
        y, weight, baseline = workers().allgather_rows(self.y, self.weight, baseline)
        return replace(self, loss=self.loss.prepared(y, weight), y=y, weight=weight, baseline=baseline)


Objective: TypeAlias = SquaredObjective | LossObjective
