"""Protocols of the backends that grow trees, and the values that they exchange with a layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats
from boostbp.trees.rounds import GrowRound
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Tree, Trees

FEW_ROWS = 2000  # up to this number of rows, a round is mostly Python code, where threads wait for each other
OUTPUTS_PER_CALL = 8  # with few rows, one call for several outputs is faster than a call for each
MAX_THREADS = 1024  # starting many more may end the process. Arbitrary
# A booster keeps every tree that it grew, and a grower may live as long as the training data. Arbitrary: this number of
# trees takes a few megabytes, and a new booster after that costs little.
TREES_PER_BOOSTER = 2048

Gradient = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True)
class TreeParams:
    """Parameters of the trees of a layer, with the same names for every library.

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
        Seed of the random draws of the library.
    multi_output : bool
        Grow one tree for all columns of the gradient, if the library can.
    colsample_bytree : float
        Share of the features on which a tree may split, drawn anew for each tree, or for each node.
    extra_trees : bool
        Draw one random threshold for each feature of a node instead of the best one.
    is_whole_model : bool
        Whether the layer is the whole model. Then the columns of the table are the user's features, and native
        parameters that name features by number have a meaning.
    monotone : tuple of int
        For each feature, 1 if the layer must rise in it, -1 if it must fall, 0 without a constraint; () without any.
        Leaves that boostbp fits always satisfy the constraints. A library that knows them chooses better splits.
    params : mapping
        Native parameters, which the backend checks; they take precedence over `colsample_bytree`.

    Every backend must respect the sizes of a tree (`max_depth`, `max_leaves`, `min_samples_leaf`). A backend that does
    not bin ignores `max_bins`, and one without threads `n_threads`. A backend receives `multi_output` with several
    columns of a gradient, and values of `colsample_bytree`, `extra_trees` and `params` other than the defaults, only if
    its capabilities declare them.

    Raises
    ------
    ValueError
        If a value is out of bounds. Libraries may overflow, take all memory or end the process with such values.
    """

    max_depth: int = 6
    max_leaves: int | None = None
    min_samples_leaf: int = 20
    max_bins: int = 255
    n_threads: int = 1
    random_state: int = 0
    multi_output: bool = False
    colsample_bytree: float = 1.0
    extra_trees: bool = False
    is_whole_model: bool = True
    monotone: tuple[int, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        object.__setattr__(self, "params", checks.named("backend_params", self.params))

    @property
    def leaves(self) -> int:
        """Largest number of leaves, never None."""
        if self.max_leaves is not None:
            return self.max_leaves
        return 2 ** min(self.max_depth, 17) if self.max_depth >= 0 else 31

    @property
    def allows_split(self) -> bool:
        """Whether a tree may have more than one leaf."""
        return self.max_depth != 0 and self.leaves > 1

    def fresh_seed(self, count: int) -> int:
        """Return the seed of a library's next call, after `count` calls; with the same seed, its draws would repeat."""
        return (self.random_state + 7919 * count) % 2**31  # a prime, so that forks with similar seeds rarely share one

    def check_monotone(self, table: Table) -> None:
        """Refuse signs that do not fit a table: a library may read beyond their end, or end the process."""
        if len(self.monotone) not in (0, table.X.shape[1]):
            raise ValueError(f"monotone={self.monotone!r} must hold {table.X.shape[1]} signs, one for each column.")
        if any(self.monotone[j] for j in table.categorical if self.monotone):
            raise ValueError(f"monotone={self.monotone!r} has signs for categories, {table.categorical}: use 0.")


CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "max_depth": partial(checks.whole, least=-1, most=checks.LARGEST_INT),
    # Users may not request a single leaf, but a backend must be able to grow it.
    "max_leaves": checks.or_else(None, partial(checks.whole, least=1, most=checks.MOST_LEAVES)),
    "min_samples_leaf": partial(checks.whole, least=1, most=checks.LARGEST_INT),
    "max_bins": partial(checks.whole, least=2, most=checks.LARGEST_INT),
    "n_threads": partial(checks.whole, least=1, most=MAX_THREADS),
    "random_state": partial(checks.whole, least=0),
    "colsample_bytree": checks.share,
    "monotone": checks.signs,
    **dict.fromkeys(("multi_output", "extra_trees", "is_whole_model"), partial(checks.one_of, allowed=(True, False))),
}


class LinearLeaves(NamedTuple):
    """A tree with the library's own linear leaves, in the units of the input.

    Leaf ``l`` predicts ``const[l] + sum(coeff[start[l]:start[l+1]] * x[features[start[l]:start[l+1]]])``, and
    ``missing[l]`` for a row in which one of these features is missing. Shrinkage is included.
    """

    tree: Tree
    const: Floats
    start: NDArray[np.int32]
    features: NDArray[np.int32]
    coeff: Floats
    missing: Floats


class Grower(Protocol):
    """A library bound to one binned input.

    The trees of a round depend on the bound input, on `grad` and `hess`, and on the grower's own random numbers. The
    caller keeps the running prediction, because it fits other leaves than the library.
    """

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one round.

        Parameters
        ----------
        grad, hess : (rows, outputs) float64
            Gradient and hessian of the loss in the current prediction, per row, not divided by the number of rows. A
            tree fits ``-grad / hess`` by squared error with weights `hess`. Do not write to them.

        Returns
        -------
        sequence of Tree
            One tree for each output, in their order; with `TreeParams.multi_output`, a single one for all outputs.
        """
        ...

    def fork(self, outputs: slice, seed: int) -> Grower:
        """Return a grower on the same bins with a state of its own, for use in another thread.

        Parameters
        ----------
        outputs : slice
            Outputs of the layer: `grow` will be given their columns, in every round from the first one on.
        seed : int
            Seed of the fork's random numbers. Forks with the same seed grow the same trees from the same gradients.
        """
        ...


@dataclass(frozen=True, slots=True)
class KnownTrees:
    """Trees of an earlier fit, which need not be grown."""

    of_rounds: Callable[[int, int], Trees]  # those of the rounds from one on and before another, round by round


@dataclass(frozen=True, slots=True)
class CoreCalls:
    """What the core needs to boost rounds itself."""

    # addresses of a booster and functions, the first arguments of `boostbp.core.boost_rounds`; or a function that grows
    # a round; or known trees
    grown_by: tuple[int, ...] | GrowRound | KnownTrees
    n_rounds: int = TREES_PER_BOOSTER  # the largest number
    # of code between rounds, for its own calls of the library
    pause: Callable[[], AbstractContextManager[object]] = nullcontext
    # raises the error of a fault of the core: of the library, or of derivatives, (trees, rows), beyond its range
    refuse: Callable[[int, Floats, Floats], object] = lambda *_: None
    # turns gradients and hessians, (rows, outputs), into those on which one tree is grown for all outputs, (rows, 1)
    along: Callable[[Floats, Floats], tuple[Floats, Floats]] | None = None


class CoreGrower(Grower, Protocol):
    """A grower whose rounds the core can boost itself, by calls of a library or with known trees."""

    def core_calls(self, columns: int) -> AbstractContextManager[CoreCalls | None]:
        """Return a context in which the core may boost rounds of so many trees, with what it needs.

        None if the core cannot: `Grower.grow` grows the rounds.
        """
        ...


def core_calls_of(grower: Grower, columns: int) -> AbstractContextManager[CoreCalls | None]:
    """Return the context of `CoreGrower.core_calls`; None is in that of a grower without it."""
    core_calls = getattr(grower, "core_calls", None)
    return core_calls(columns) if core_calls else nullcontext()


class NativeGrower(Grower, Protocol):
    """A grower whose library fits linear leaves itself (``Capabilities.native_leaves``)."""

    def boost(self, gradient: Gradient, n_rounds: int, learning_rate: float, reg_lambda: float) -> list[LinearLeaves]:
        """Train `n_rounds` trees of one output natively, and return them.

        `gradient` maps the library's running prediction, (rows,), to gradient and hessian, (rows,). It is called once
        per round.
        """
        ...


class SubsetGrower(Grower, Protocol):
    """A grower that can share its bins with a grower on some of the rows (``Capabilities.row_subsets``)."""

    def take(self, rows: NDArray[np.intp]) -> Grower:
        """Return a grower on some of the rows, given by ascending numbers, with the bins of all rows."""
        ...


class Backend(Protocol):
    """A library that grows trees: one file in this folder, or an object of the user's own.

    The work has two steps, because binning depends on the input alone: `bind` bins once, and `Grower.grow` grows the
    trees of every round.

    >>> import numpy as np
    >>> from boostbp.backends import Table, TreeParams, load_backend
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> grower = load_backend("sklearn").bind(Table(X), TreeParams(max_depth=3))
    >>> prediction = np.zeros(200)
    >>> for _ in range(30):
    ...     grad = (prediction - y)[:, np.newaxis]  # of the squared error, whose hessian is 1
    ...     [tree] = grower.grow(grad, np.ones_like(grad))
    ...     leaf = tree.leaf_of(X)
    ...     mean = np.bincount(leaf, grad[:, 0]) / np.bincount(leaf)
    ...     prediction -= 0.5 * mean[leaf]
    >>> bool(np.var(prediction - y) < 0.1 * np.var(y))
    True

    A backend declares further abilities by an attribute ``capabilities``, a
    `boostbp.backends.capabilities.Capabilities`; without it, the backend has none. `boostbp.check_backend` checks
    duties and abilities.
    """

    def bind(self, table: Table, growth: TreeParams) -> Grower:
        """Bin the input, and return a grower on it; several threads may call this at the same time.

        Raises
        ------
        ValueError
            If a native parameter would break the method, or clashes with a parameter of boostbp.
        """
        ...
