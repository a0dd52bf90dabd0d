"""A layer's input, bound to a library and to the settings of the layer."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, TreeParams
from boostbp.backends.capabilities import capabilities_of, check_supported
from boostbp.runtime import checks, interrupts
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import SINGLE_PROCESS, training_in, workers
from boostbp.runtime.threads import Team
from boostbp.trees import basis as bases
from boostbp.trees.basis import BASES, Basis, try_basis
from boostbp.trees.leaf_rows import ColumnBins
from boostbp.trees.linear import RidgeBase
from boostbp.trees.ridge import Ridge
from boostbp.trees.sparse import Sparse, Table

R = TypeVar("R")
# Up to this number of rows of all workers, each worker fits layers to all of them, without messages. A library sends
# two messages for each split; those of a tree take as long as growing it on some 20,000 rows with one core.
GATHERED_ROWS = 20_000


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
    # smallest penalty that cross-validation may choose, as a share of the sum of squares of a column; None: one for
    # columns with typing errors, see `RidgeBase.bind`
    min_base_lambda: float | None = 0.0
    leaves: Literal["refit", "native"] = "refit"


class BoundInput:
    """A layer's input, binned and decomposed once for any number of fits.

    Attributes
    ----------
    table, weight : Table, (rows, features), and (rows,) float64
        The input and the weights of all rows that this process fits layers to.
    Z : (rows, columns) float64, or Sparse
        The columns of the basis, which leaf regressions read.
    X : (rows, features) float64, or Sparse
        The input of this worker's rows.
    local_rows : (rows,) int or None
        Numbers of this worker's rows in `table`, if the table holds the few rows of all workers; otherwise None.
    runs : list of (int, int)
        Runs of neighbours among the rows of all workers; see `boostbp.runtime.group.Group.row_runs`.
    """

    def __init__(self, backend: Backend, table: Table, settings: LayerSettings, weight: Floats) -> None:
        group = workers()
        self.settings, self.X = settings, table.X
        self.local_rows: NDArray[np.int64] | None = None
        self.runs, n_rows = group.row_runs(len(table.X))
        if group.is_single or n_rows > GATHERED_ROWS:
            self._make(backend, table, weight)
            return
        # If all workers together have few rows, this process holds all of them, as one run.
        self.local_rows, _ = group.row_numbers(len(table.X))
        self.runs = [(0, n_rows)]
        X, weight = group.allgather_rows(table.X, weight)
        run_without_group(lambda: self._make(backend, Table(X, table.categorical), weight))

    def _make(self, backend: Backend, table: Table, weight: Floats) -> None:
        self.table, self.weight = table, weight
        self._base: RidgeBase | None = None
        self._column_bins: ColumnBins | None = None
        basis = self.settings.basis
        check_supported(backend, table, self.settings.growth)
        _check_basis(self.settings, is_sparse=isinstance(table.X, Sparse))
        self.Z = bases.expand(basis, table.X)
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

    @property
    def vector_leaf(self) -> bool:
        """Whether one tree is grown on the gradients of all outputs, which no library does on categories."""
        return self.capabilities.vector_leaf and not self.table.categorical

    # Not functools.cached_property: in Python 3.11 all objects share its lock, and `base` waits for other workers.

    @property
    def column_bins(self) -> ColumnBins | None:
        """The bins of a dense input, by which rows are routed, computed on first use."""
        if self._column_bins is None and not isinstance(self.table.X, Sparse):
            self._column_bins = ColumnBins.of(self.table.X)
        return self._column_bins

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
