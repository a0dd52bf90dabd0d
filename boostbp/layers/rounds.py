"""Rounds of a fitted layer: its prediction after some of them, and the layer cut to the first ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boostbp.layers.bound import LayerSettings
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

# Share of its target that a hidden layer can reach in one refit. With less, hidden variables shrink epoch by epoch.
KEPT = 0.95
# Shares of the rounds after which a layer is looked at: dense at first, where a prediction changes most.
SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def rate_of(n_rounds: int) -> float:
    """Shrinkage by which so many rounds can cover the share `KEPT` of a target."""
    # n rounds with shrinkage beta leave the share (1 - beta)^n of a target, which is to be 1 - KEPT.
    return float(1.0 - (1.0 - KEPT) ** (1.0 / max(n_rounds, 1)))


def stages(n_rounds: int) -> list[int]:
    """Numbers of rounds to look at, ascending, the last one all of them."""
    return sorted({int(np.ceil(share * n_rounds)) for share in SHARES})


def round_of(forest: Forest) -> NDArray[np.int64]:
    """Round in which each tree was grown, from 0, (trees,); -1 for the base, which comes first."""
    outputs, rounds = forest.leaves.tree_output[forest.n_base :], np.full(forest.n_trees, -1)
    if (outputs[:, 1] > 1).any() and (outputs[:, 1] < forest.n_outputs).any():  # a tree waits for all that it serves
        latest = np.full(forest.n_outputs, -1)
        for tree, (first, served) in enumerate(outputs.tolist(), forest.n_base):
            rounds[tree] = latest[first : first + served].max() + 1
            latest[first : first + served] = rounds[tree]
        return rounds
    # Otherwise all trees serve one output each, or all of them: the k-th tree of an output is that of round k.
    for output in np.unique(outputs[:, 0]):
        trees = np.flatnonzero(outputs[:, 0] == output) + forest.n_base
        rounds[trees] = np.arange(len(trees))
    return rounds


def rounds_of(forest: Forest) -> int:
    """How many rounds it has, without the base."""
    return 1 + int(round_of(forest).max(initial=-1))


def structure_of_another(forest: Forest, settings: LayerSettings) -> str:
    """What shows that a forest was not fitted with some settings, in words; "" if it may have been.

    Whoever keeps its structures takes them in the order of the rounds, each with a leaf regression of the basis.
    """
    leaves, native = forest.leaves, settings.leaves == "native"
    if forest.basis != settings.basis or forest.clip != settings.clip:
        return f"trees on the basis {forest.basis!r} with clip={forest.clip}"
    # A ridge base is one tree of one leaf, an additive base a tree for each feature that has functions.
    fewest, most = {None: (0, 0), "ridge": (1, 1), "additive": (1, forest.n_features)}[settings.base]
    if not fewest <= forest.n_base <= most:
        return f"a base of {forest.n_base} trees"
    served = [[0, forest.n_outputs]] if settings.growth.multi_output else [[j, 1] for j in range(forest.n_outputs)]
    by_rounds = np.tile(served, (settings.n_estimators, 1))
    if settings.n_estimators and not native and not np.array_equal(leaves.tree_output[forest.n_base :], by_rounds):
        return "trees in another order than that of the rounds"
    if not (leaves.tree_degree[forest.n_base :] == (1 if native else settings.basis.powers)).all():
        return "leaf regressions of another degree"
    most = int(np.diff(forest.tree_split)[forest.n_base :].max(initial=0)) + 1
    return f"trees of {most} leaves" if most > settings.growth.leaves and not native else ""


def first_rounds(forest: Forest, n_rounds: int) -> Forest:
    """The forest of the base and the first rounds."""
    return replace(forest.take(np.flatnonzero(round_of(forest) < n_rounds)), n_base=forest.n_base)


def staged(forest: Forest, X: Floats, numbers: Sequence[int], *, n_threads: int = 1) -> Iterator[tuple[int, Floats]]:
    """Outputs after each number of rounds, ascending: pairs of it and (rows, outputs)."""
    rounds = round_of(forest)
    # Round -1 is the base, which the first prediction includes.
    total, previous = np.zeros((len(X), forest.n_outputs)), -1
    for number in numbers:
        part = forest.take(np.flatnonzero((rounds >= previous) & (rounds < number)))
        total = total + part.predict(X, n_threads)
        yield number, total
        previous = number
