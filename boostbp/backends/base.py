"""The door to the libraries that grow trees: protocols and the settings they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from boostbp import checks
from boostbp.floats import Floats
from boostbp.trees.sparse import Matrix, Sparse
from boostbp.trees.tree import Tree

FEW_ROWS = 2000  # up to which a round of trees is mostly Python, where threads wait for each other
TOGETHER = 8  # outputs that are best grown by one call then
MOST_THREADS = 1024  # starting more may end the process

Gradient = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True)
class Table:
    """What a layer sees: numbers, and which columns hold category codes.

    Attributes
    ----------
    X : (rows, features) float64, C-contiguous, or Sparse
        NaN is missing. No infinities.
    categorical : tuple of int
        Columns that hold category codes (0, 1, 2, ... or NaN).
    """

    X: Matrix
    categorical: tuple[int, ...] = ()

    @property
    def numeric(self) -> Matrix:
        """The input without its categorical columns."""
        columns = list(self.categorical)
        return self.X.without(columns) if isinstance(self.X, Sparse) else np.delete(self.X, columns, axis=1)

    @property
    def any_missing(self) -> bool:
        """Whether any value is missing."""
        return bool(np.isnan(self.X.entries.data if isinstance(self.X, Sparse) else self.X).any())

    def take(self, rows: NDArray[Any]) -> Table:
        """Some of the rows, by number or by mask."""
        return Table(self.X[rows], self.categorical)


@dataclass(frozen=True, slots=True)
class TreeParams:
    """Parameters by which the trees of a layer are grown; the same words for every library.

    Attributes
    ----------
    max_depth : int
        Largest depth; -1 means no limit.
    max_leaves : int or None
        Largest number of leaves; None means ``2 ** max_depth`` (31 without a depth limit).
    min_samples_leaf : int
        Smallest number of training rows in a leaf.
    max_bins : int
        Bins per feature, for libraries that bin.
    n_threads : int
        Native threads of the library.
    random_state : int
        Seed of whatever the library draws.
    shared : bool
        One tree for all columns of the gradient, where the library can grow one.
    colsample_bytree : float
        Share of the features on which a tree may split, drawn anew for each tree, or for each node.
    extra_trees : bool
        One threshold of each feature is drawn at random for a node, in place of the best one.
    alone : bool
        Whether the layer is the whole model. Then the columns of the table are the features, and native parameters
        that speak of features by number have a meaning.
    monotone : tuple of int
        Of each feature: 1 if the layer must rise in it, -1 if it must fall, 0 if it may do either; () if it may in all.
        Leaves keep to it in any case: a library that knows such constraints chooses splits that suit.
    params : mapping
        Native parameters, which the backend checks; they win over `colsample_bytree`.

    A backend is given `shared` with several columns of a gradient, and values other than the defaults of
    `colsample_bytree`, `extra_trees` and `params`, only if its capabilities say that it can. The sizes of a tree
    (`max_depth`, `max_leaves`, `min_samples_leaf`) are duties of every backend; one that does not bin ignores
    `max_bins`, and one without threads `n_threads`.

    Raises
    ------
    ValueError
        If a value is out of bounds. Compiled code may wrap round, take all memory or end the process there.
    """

    max_depth: int = 6
    max_leaves: int | None = None
    min_samples_leaf: int = 20
    max_bins: int = 255
    n_threads: int = 1
    random_state: int = 0
    shared: bool = False
    colsample_bytree: float = 1.0
    extra_trees: bool = False
    alone: bool = True
    monotone: tuple[int, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        object.__setattr__(self, "params", checks.named("backend_params", self.params))

    @property
    def leaves(self) -> int:
        """Largest number of leaves, as a number."""
        if self.max_leaves is not None:
            return self.max_leaves
        return 2 ** min(self.max_depth, 17) if self.max_depth >= 0 else 31

    def monotone_on(self, table: Table) -> list[int]:
        """`monotone` for a library, which may read beyond its end, or end the process: [], or a sign for each column.

        Raises
        ------
        ValueError
            If there are others than columns, or one for a column of categories.
        """
        if len(self.monotone) not in (0, table.X.shape[1]):
            raise ValueError(
                f"monotone={self.monotone!r} has not a sign for each of {table.X.shape[1]} columns: give as many."
            )
        if any(self.monotone[j] for j in table.categorical if self.monotone):
            raise ValueError(
                f"monotone={self.monotone!r} has signs for some of the columns {table.categorical}, whose categories "
                "have no order: use 0 there."
            )
        return list(self.monotone)

    @property
    def allows_split(self) -> bool:
        """Whether a tree may have more than one leaf."""
        return self.max_depth != 0 and self.leaves > 1


CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "max_depth": partial(checks.whole, least=-1, most=checks.LARGEST_INT),
    # One leaf is no tree for users, but what a backend must be able to grow.
    "max_leaves": checks.or_else(None, partial(checks.whole, least=1, most=checks.MOST_LEAVES)),
    "min_samples_leaf": partial(checks.whole, least=1, most=checks.LARGEST_INT),
    "max_bins": partial(checks.whole, least=2, most=checks.LARGEST_INT),
    "n_threads": partial(checks.whole, least=1, most=MOST_THREADS),
    "random_state": partial(checks.whole, least=0),
    "colsample_bytree": checks.share,
    "monotone": checks.signs,
    **dict.fromkeys(("shared", "extra_trees", "alone"), partial(checks.one_of, allowed=(True, False))),
}


class LinearLeaves(NamedTuple):
    """A tree with the library's own linear leaves, in the units of the input.

    Leaf ``l`` predicts ``const[l] + sum(coeff[start[l]:start[l+1]] * x[features[start[l]:start[l+1]]])``,
    and ``missing[l]`` for a row with NaN in one of these features.
    Shrinkage is included.
    """

    tree: Tree
    const: Floats
    start: NDArray[np.int32]
    features: NDArray[np.int32]
    coeff: Floats
    missing: Floats


class Grower(Protocol):
    """A library bound to one binned input.

    Growing is a function of the bound input, `grad` and `hess`, and of the grower's own random numbers: the running
    prediction is kept by the caller, whose leaves differ from the library's.
    """

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one round.

        Parameters
        ----------
        grad, hess : (rows, outputs) float64
            Gradient and hessian of the loss in the current prediction, per row, not divided by
            the number of rows. A tree fits ``-grad / hess`` with weights `hess`.

        Returns
        -------
        sequence of Tree
            One for each output, or a single one that serves all outputs (``TreeParams.shared``).
        """
        ...

    def fork(self, outputs: slice, seed: int) -> Grower:
        """A sibling on the same bins, with a state of its own, for use in another thread.

        Parameters
        ----------
        outputs : slice
            The outputs of the layer whose columns `grow` will be given, round after round from the first on.
        seed : int
            Of the random numbers of this fork. Two forks with the same seed grow the same trees of the same gradients.
        """
        ...


class NativeGrower(Grower, Protocol):
    """A grower whose library fits linear leaves itself (``Capabilities.native_leaves``)."""

    def boost(self, gradient: Gradient, n_rounds: int, learning_rate: float, reg_lambda: float) -> list[LinearLeaves]:
        """Train `n_rounds` trees of one output natively.

        `gradient` maps the library's running prediction, (rows,), to gradient and hessian, (rows,).
        """
        ...


class SubsetGrower(Grower, Protocol):
    """A grower that can give some of its rows away (``Capabilities.row_subsets``)."""

    def take(self, rows: NDArray[np.intp]) -> Grower:
        """A sibling on some of the rows, ascending numbers, with the bins of all of them, which costs no binning."""
        ...


class Backend(Protocol):
    """A library that grows trees: one file in this folder, or an object of the user's own.

    Two steps, because half of the work depends on less: binning depends on the input alone and is
    done once, growing is done every round.

    >>> grower = backend.bind(Table(X), TreeParams(max_depth=3))  # bins X        # doctest: +SKIP
    >>> fit = np.zeros((len(X), 1))
    >>> for _ in range(10):                                   # one round each
    ...     [tree] = grower.grow(fit - y, np.ones_like(fit))
    ...     leaf = tree.leaf_of(X)                            # refit leaves, update fit

    What it can do beside that it declares by an attribute ``capabilities``, a
    `boostbp.backends.capabilities.Capabilities`; without one it can do nothing else. `boostbp.check_backend` tells
    whether all of it is true.
    """

    def bind(self, table: Table, growth: TreeParams) -> Grower:
        """Bin the input; several threads may do so at a time.

        Raises
        ------
        ValueError
            If a native parameter would break the method, or clashes with one of ours.
        """
        ...
