"""A layer's input, bound to a library and to how the layer is fitted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp import checks
from boostbp.backends.base import Backend, Grower, Table, TreeParams
from boostbp.backends.capabilities import capabilities_of, check_supported
from boostbp.floats import Floats
from boostbp.group import ALONE, joined, workers
from boostbp.trees import basis as bases
from boostbp.trees import interrupts
from boostbp.trees.basis import BASES, Basis
from boostbp.trees.basis_trial import try_basis
from boostbp.trees.leaf_rows import ColumnBins
from boostbp.trees.linear import RidgeBase
from boostbp.trees.ridge import Ridge
from boostbp.trees.sparse import Sparse
from boostbp.trees.threads import Team

R = TypeVar("R")
# Rows of all workers, up to which each fits layers to all of them, without a message. A library sends two messages for
# each split that it makes; those of a tree take the time in which one core grows it on some 20,000 rows.
GATHERED_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """How a layer is fitted.

    Fields that `LayerSpec` has too mean what they mean there, and none is left open. The others:

    Attributes
    ----------
    growth : TreeParams
        With ``growth.multi_output``, `n_estimators` counts trees in all, not trees per output.
    ridge : Ridge
        Of the leaf regressions.
    base : {"ridge", "additive", None}
        None: nothing.
    base_lambda : float or None
        None chooses by generalised cross-validation.
    min_base_lambda : float or None
        Least penalty that cross-validation may choose, as a share of the sum of squares of a column; None: one that
        suits typed columns, see `RidgeBase.bind`.
    """

    n_estimators: int = 100
    learning_rate: float = 0.1
    growth: TreeParams = field(default_factory=TreeParams)
    subsample: float = 1.0
    basis: Basis = BASES["quadratic"]
    ridge: Ridge = field(default_factory=Ridge)
    clip: bool = True
    base: Literal["ridge", "additive"] | None = None
    base_lambda: float | None = None
    min_base_lambda: float | None = 0.0
    leaves: Literal["refit", "native"] = "refit"


class BoundInput:
    """A layer's input, binned and decomposed once for any number of fits.

    Parameters
    ----------
    table : Table
        The input, (rows, features).
    weight : (rows,) float64
        Row weights.

    Attributes
    ----------
    own : (rows,) int or None
        Of the rows of several workers that are few in all, those of this worker: all else is of all of them.
    X : (rows, features) float64, or Sparse
        The input as it was given.
    runs : list of (int, int)
        Runs of neighbours among the rows of all workers; see `boostbp.group.Group.runs`.
    """

    def __init__(self, backend: Backend, table: Table, settings: LayerSettings, weight: Floats) -> None:
        self.settings = settings
        self.X = table.X
        self.own: NDArray[np.int64] | None = None
        self.runs, n_rows = workers().runs(len(table.X))
        if are_gathered(n_rows):
            self.own, _ = workers().numbers(len(table.X))
            self.runs = [(0, n_rows)]
            X, weight = workers().together(table.X, weight)
            apart(lambda: self._make(backend, Table(X, table.categorical), weight))
        else:
            self._make(backend, table, weight)

    def _make(self, backend: Backend, table: Table, weight: Floats) -> None:
        self.table = table
        self.weight = weight
        settings = self.settings
        check_supported(backend, table, settings.growth)
        if isinstance(table.X, Sparse):
            _check_sparse(settings)
        self.Z = bases.expand(settings.basis, table.X)
        if settings.basis.has_functions:
            if settings.base == "additive":
                raise ValueError(
                    "base='additive' is not supported with functions of your own: it has functions of its own. Use "
                    "base='ridge', or basis='linear' or 'quadratic'."
                )
            numeric = [j for j in range(table.X.shape[1]) if j not in table.categorical]
            bases.check_finite(settings.basis, table.X, self.Z, numeric)
        if not isinstance(table.X, Sparse):
            try_basis(settings.basis, table.X)
        self._bind(backend)
        self._base: RidgeBase | None = None
        self._column_bins: ColumnBins | None = None
        self._lock = Lock()

    def _bind(self, backend: Backend) -> None:
        self.capabilities = capabilities_of(backend)
        with interrupts.deferred():  # a library may ask Python for the rows, and not survive what is raised there
            self.grower: Grower = backend.bind(self.table, self.settings.growth)
        lacks = [name for name in ("grow", "fork") if not callable(getattr(self.grower, name, None))]
        if lacks:
            raise TypeError(
                f"backend={backend!r}: its bind() returned {checks.shown(self.grower)}, which has no method "
                f"{' and no '.join(lacks)}: return a grower (boostbp.backends.base.Grower)."
            )

    def grown_by(self, backend: Backend, growth: TreeParams) -> BoundInput:
        """The same input, with all that was made of it, under another backend."""
        other = copy.copy(self)
        other.settings = replace(self.settings, growth=growth)
        if self.own is None:
            other._bind(backend)
        else:
            apart(lambda: other._bind(backend))
        return other

    def changed(self, **settings: Any) -> BoundInput:
        """Return the same bound input with other settings on which it does not depend: rounds, or no base."""
        other = copy.copy(self)
        other.settings = replace(self.settings, **settings)
        return other

    @property
    def vector_leaf(self) -> bool:
        """Whether one tree is grown on the gradients of all outputs: no library does so on categories."""
        return self.capabilities.vector_leaf and not self.table.categorical

    @property
    def column_bins(self) -> ColumnBins | None:
        """The bins of a dense input, by which rows are routed, made on first use."""
        if isinstance(self.table.X, Sparse):
            return None
        with self._lock:
            if self._column_bins is None:
                self._column_bins = ColumnBins.of(self.table.X)
            return self._column_bins

    @property
    def base(self) -> RidgeBase:
        """The ridge regression on all numeric columns, or on smooth functions of them, made on first use."""
        if self._base is None:
            numeric, least = self._numeric, self.settings.min_base_lambda
            if self.settings.base == "additive":
                degree = self.settings.basis.powers
                self._base = RidgeBase.additive(self.Z, numeric, self.weight, degree=degree, least=least)
            else:
                self._base = RidgeBase.bind(self.Z, numeric, self.weight, least=least)
        return self._base

    @property
    def _numeric(self) -> NDArray[np.int32]:
        """Columns of `Z` that are no category codes."""
        columns = np.arange(self.Z.shape[1], dtype=np.int32)
        per_feature = max(self.settings.basis.columns_per_feature, 1)
        return columns[~np.isin(columns // per_feature, self.table.categorical)]

    @property
    def n_base(self) -> int:
        """Number of trees of the base."""
        return 0 if self.settings.base is None else len(self.base.U.trees)


def _check_sparse(settings: LayerSettings) -> None:
    why = ""
    if settings.basis.has_functions:
        why = f"with basis={settings.basis!r}: its functions need not be 0 at 0. Use 'linear' or 'quadratic'"
    elif settings.leaves == "native":
        why = "with leaves='native': the library would hold all numbers once more, dense. Use leaves='refit'"
    if why:
        raise ValueError(f"X is sparse, which is not supported {why}, or pass X.toarray().")


def are_gathered(n_rows: int) -> bool:
    """Return whether so many rows of all workers are gathered; those of one machine are all here."""
    return not workers().alone and n_rows <= GATHERED_ROWS


def apart(work: Callable[[], R]) -> R:
    """Do what concerns no other worker: in a thread of its own, as the network of a library is that of a thread."""

    def alone(_: None) -> R:
        with joined(ALONE):
            return work()

    with Team(2) as team:
        [result] = team.map(alone, [None])
    return result
