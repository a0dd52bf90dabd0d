"""Rounds: the leaves of a round of trees, fitted to gradients, and several rounds in one call of the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.core import Leaves
from boostbp.core.binding import CFunction
from boostbp.runtime.arrays import Floats
from boostbp.trees.basis import Basis
from boostbp.trees.leaves import leaves_on_paths
from boostbp.trees.ridge import Prior
from boostbp.trees.tree import SplitRoom, Trees
from boostbp.trees.tree_fits import LeafFits, fit_by_blocks

# Grows a round of trees by gradients and hessians, (trees, rows)
GrowRound = Callable[[NDArray[np.float32], NDArray[np.float32]], Trees]
# Weight of a row that is not sampled. Above 0, so that its target -grad / hess is finite, and too small to change a
# float64 sum with a sampled row in it. So splits that differ only in such rows have exactly the same gain, whatever the
# order of summation.
UNSAMPLED = 1e-20


def fit_round(
    trees: Trees,
    fits: LeafFits,
    grad: Floats,
    hess: Floats,
    *,
    leaf: NDArray[np.integer],
    out: Floats,
    n_threads: int = 1,
    prior: Prior | None = None,
) -> Leaves:
    """Fit the leaves of each tree to ``-grad / hess`` of its outputs, and add its values to the running fit.

    On one thread, a dense input and trees of one output need one call of the core. Otherwise (sparse input, several
    threads, a group of workers, monotone trees) sums are computed block by block, in the same order for any number of
    threads. Both give the same bits.

    Parameters
    ----------
    grad : (outputs, rows) float64, C-contiguous
        The number of outputs is a multiple of the number of trees, each of which serves as many.
    hess : (trees, rows) or, if all are equal, (1, rows) float64, C-contiguous
    leaf : (trees, rows), any integer type
        Output: the leaf of each row.
    out : (outputs, rows) float64, C-contiguous
        Running fit, to which the values are added.
    prior : Prior or None
        Old leaves of the trees.

    Returns
    -------
    Leaves
        Trees serve the outputs in order.
    """
    if len(grad) == len(trees) and fits.in_core(n_threads, prior):
        return boost_rounds(trees, None, fits, Derivatives(grad, hess), leaf=leaf, out=out)[1]
    return fit_by_blocks(trees, fits, grad, hess, leaf=leaf, out=out, n_threads=n_threads, prior=prior)


@dataclass(frozen=True, slots=True)
class Widths:
    """Limits of the size of a tree."""

    splits: int
    columns: int  # path columns of a leaf
    words: int  # of a category set

    @property
    def of_tree(self) -> int:
        """Path columns, or words of sets, of a tree: the larger number."""
        return max((self.splits + 1) * self.columns, self.splits * self.words)


@dataclass(frozen=True, slots=True)
class Derivatives:
    """Derivatives of the loss in the running fit, which the core reads in each round; all float64, C-contiguous."""

    grad: Floats  # (outputs, rows)
    hess: Floats  # (outputs, rows) or, if all are equal, (1, rows)
    # (2, 1, rows): gradient and hessian on which one tree is grown for all outputs; None to grow one for each output
    shared: Floats | None = None
    # base and target, each (outputs, rows), of the squared error of ``base + out``, whose gradient the core computes
    squared: tuple[Floats, Floats] | None = None

    @property
    def arrays(self) -> tuple[Floats, ...]:
        """The same, as the core takes them."""
        none = np.empty((0, self.grad.shape[1]))
        shared = (none, none) if self.shared is None else self.shared
        return self.grad, self.hess, *shared, *(self.squared or (none, none))


def boost_rounds(
    grown_by: tuple[int, ...] | GrowRound | Trees,
    derive: Callable[[int], object] | None,
    fits: LeafFits,
    derivatives: Derivatives,
    *,
    sampled: NDArray[np.bool_] | None = None,
    most: Widths | None = None,
    leaf: NDArray[np.integer],
    out: Floats,
) -> tuple[Trees, Leaves, int]:
    """Boost rounds with one tree for each output in one call of the core: grow them, and fit their leaves.

    Parameters
    ----------
    grown_by : tuple of int, function, or Trees
        Addresses of a library, or a function, see `boostbp.backends.base.CoreCalls`; or the trees of all rounds, which
        are known.
    derive : function or None
        Writes the derivatives for the round of a number, from 1, and may change `out`. An error that it raises ends the
        rounds. None for a single round, or if the core computes gradients.
    derivatives : Derivatives
        Those of the first round.
    sampled : (rounds, rows) bool or None
        Rows on which trees are grown; None for all. The weight of other rows is multiplied by `UNSAMPLED`.
    most : Widths or None
        Limits of trees that are not known.
    leaf : (trees, rows), any integer type
        Output: the leaf of each row. Its length determines the number of rounds.
    out : (outputs, rows)
        Running fit, to which the values are added.

    Returns
    -------
    trees : Trees
        Of the rounds that were boosted.
    leaves : Leaves
    fault : int
        Why no more rounds were boosted, or 0.
    """
    (n_outputs, n_rows), basis, done = out.shape, fits.basis, np.zeros(2, np.int64)
    steps = [CFunction(derive)] if derive else []
    sampled = np.empty((0, n_rows), np.bool_) if sampled is None else sampled
    addresses: tuple[int, ...] = (0,) * 4
    in_float32 = np.empty((2, 0, n_rows), np.float32)
    if isinstance(grown_by, Trees):
        splits, room = SplitRoom.holding(grown_by), leaves_on_paths(grown_by, basis)
        room.tree_output[:, 0] %= n_outputs
        most = Widths(_most(grown_by.tree_split), _most(room.start), 0)
    else:
        assert most
        splits = SplitRoom.of(len(leaf), len(leaf) * most.splits, len(leaf) * most.splits * most.words)
        room = _leaf_room(len(leaf), most, basis)
        in_float32 = np.empty((2, n_outputs if derivatives.shared is None else 1, n_rows), np.float32)
        if not isinstance(grown_by, tuple):
            steps.append(CFunction(partial(_grow, grown_by, n_outputs, in_float32, splits, done)))
            grown_by = 0, steps[-1].address, 0, 0
        addresses = grown_by
    order, values = fits.space.lend(n_rows, most.columns)
    assert fits.bins
    of_leaves = room.start, room.column, room.scaling, room.weight_start, room.weight
    fault = core.boost_rounds(
        (*addresses, steps[0].address if derive else 0, sampled, UNSAMPLED, in_float32),
        fits.bins.with_input(fits.X, fits.Z), derivatives.arrays, fits.of_ridge, (order, values), splits, most.splits,
        (basis.columns_per_feature, basis.powers, *of_leaves), leaf, out, done,
    )  # fmt: skip
    fits.space.take_back(order, values)
    for step in steps:
        step.check()
    if isinstance(grown_by, Trees):
        return grown_by, room, fault
    n_rounds, n_words = done.tolist()
    trees = splits.trees(n_rounds * n_outputs, n_words)
    return trees, _filled(room, trees, n_outputs, basis), fault


def _most(start: NDArray[np.int64]) -> int:
    """Return the length of the longest part."""
    return int((start[1:] - start[:-1]).max())


def _filled(room: Leaves, trees: Trees, n_outputs: int, basis: Basis) -> Leaves:
    """Return the leaves of the first trees, one for each output in each round."""
    n_trees = len(trees)
    number = np.arange(n_trees + 1)
    tree_leaf = trees.tree_split + number  # a tree has one leaf more than splits
    start, weight_start = room.start[: tree_leaf[-1] + 1], room.weight_start[: tree_leaf[-1] + 1]
    output = np.column_stack([number[:-1] % n_outputs, np.ones(n_trees, np.int64)])
    return Leaves(
        tree_leaf, output, np.full(n_trees, basis.powers), start, room.column[: start[-1]], room.scaling[: start[-1]],
        weight_start, room.weight[: weight_start[-1]],
    )  # fmt: skip


def _grow(
    grow: GrowRound,
    n_outputs: int,
    derivatives: NDArray[np.float32],
    splits: SplitRoom,
    done: NDArray[np.int64],
    number: int,
) -> None:
    """Grow a round by a Python function, and write its trees where the core reads them."""
    trees = grow(*derivatives)
    first, word = number * n_outputs, done[1]
    splits.write(trees, splits.tree_split[first], word)
    splits.tree_split[first + 1 : first + 1 + len(trees)] = splits.tree_split[first] + trees.tree_split[1:]
    done[1] += len(trees.categories)


def _leaf_room(n_trees: int, most: Widths, basis: Basis) -> Leaves:
    """Return memory for the leaves of trees that will be grown; the arrays of trees are empty."""
    n_leaves = n_trees * (most.splits + 1)
    n_paths, of_trees = n_leaves * most.columns, np.empty(0, np.int64)
    start, weight_start = np.empty((2, n_leaves + 1), np.int64)
    column, scaling = np.empty(n_paths, np.int32), np.empty((n_paths, 4))
    weight = np.empty(n_leaves + basis.powers * n_paths)
    return Leaves(of_trees, of_trees, of_trees, start, column, scaling, weight_start, weight)
