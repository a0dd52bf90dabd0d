"""Means of the target for the levels of a category, as hidden units.

A library splits the levels of a category into two sets. With many levels, most have too few rows for a reliable split.
The means of the target order the levels, so trees split them like numbers, and leaves have slopes in them (target
statistics: Micci-Barreca 2001). A training row sees means of other rows only: one with its own target would reveal it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.ensemble import constants
from boostbp.ensemble.problem import Problem
from boostbp.network.layers import Layer
from boostbp.network.network import short_hidden
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.basis import BASES
from boostbp.trees.forest import Forest
from boostbp.trees.leaves import leaves_on_paths
from boostbp.trees.tree import Tree, Trees


def encoded_columns(problem: Problem) -> list[tuple[int, int]]:
    """Return the categorical columns of many levels, each with the number of its codes."""
    columns = list(problem.rows.table.categorical)
    if not columns:
        return []
    codes = np.nanmax(problem.rows.X[:, columns], axis=0, initial=-1.0)
    [codes] = workers().max(codes)
    return [(j, int(n) + 1) for j, n in zip(columns, codes, strict=True) if n >= constants.ENCODED_MIN_LEVELS]


def encodings_layer(problem: Problem) -> tuple[Layer, Floats]:
    """Return a hidden layer of the means of levels, and its units for the training rows, (rows, units).

    There is a unit for each column of many levels and each output: the mean of the negative gradient of the loss at the
    baseline, which for squared errors is the mean of the target minus the baseline. The units of a training row are
    means over the rows of the other folds.
    """
    rows = problem.rows
    target = -problem.loss.gradient(problem.start, rows.y)
    numbers, total = workers().row_numbers(len(rows))
    fold = np.random.default_rng(problem.settings.seed).permutation(total)[numbers] % constants.ENCODING_FOLDS
    trees, values, units = [], [], []
    for column, n_codes in encoded_columns(problem):
        code = np.where(np.isnan(rows.X[:, column]), n_codes, rows.X[:, column]).astype(np.int64)
        for k in range(target.shape[1]):
            sums = LevelSums.of(code, fold, target[:, k], rows.weight, n_codes + 1)
            strength = sums.prior_strength()
            units.append(sums.means(strength, of_other_folds=True)[fold, code])
            tree, leaf_values = _tree_of(column, sums.means(strength)[0], sums.weight.sum(0))
            trees.append(tree)
            values.append(leaf_values)
    structures = Trees.concat(trees)
    leaves = leaves_on_paths(structures, BASES["constant"])._replace(weight=np.concatenate(values))
    forest = Forest(structures, leaves, rows.X.shape[1], len(trees), BASES["constant"])
    return short_hidden(Layer(forest)), np.column_stack(units)


class LevelSums(NamedTuple):
    """Sums over the rows of each fold and level, each (folds, levels): weights, weighted targets, weighted squares."""

    weight: Floats
    first: Floats
    second: Floats

    @classmethod
    def of(
        cls, code: NDArray[np.int64], fold: NDArray[np.int64], target: Floats, weight: Floats, n_levels: int
    ) -> LevelSums:
        """Return the sums over the rows of all workers, with weights of mean 1."""
        place, folds = fold * n_levels + code, constants.ENCODING_FOLDS
        parts = (weight, weight * target, weight * target**2)
        sums = [np.bincount(place, part, folds * n_levels).reshape(folds, n_levels) for part in parts]
        *sums, count = workers().sum(*sums, np.count_nonzero(weight))
        scale = count / sums[0].sum()
        return cls(*(scale * one for one in sums))

    def prior_strength(self) -> float:
        """Return the number of rows of the mean of all levels in the shrunken mean of each level.

        It is the variance within levels over that of their means, both estimated as in an analysis of variance with
        random effects. It is infinite if the means of the levels differ no more than by chance.
        """
        weight, first = self.weight.sum(0), self.first.sum(0)
        seen = weight > 0
        weight, mean = weight[seen], first[seen] / weight[seen]
        total = weight.sum()
        within = self.second.sum() - weight @ mean**2
        between = weight @ (mean - first.sum() / total) ** 2
        variance = within / max(total - len(weight), 1.0)
        of_means = (between - (len(weight) - 1) * variance) / max(total - weight @ weight / total, 1.0)
        return float(variance / of_means) if of_means > 0 and total > len(weight) else np.inf

    def means(self, strength: float, *, of_other_folds: bool = False) -> Floats:
        """Return the shrunken means over all rows, (1, levels), or over the rows outside each fold, (folds, levels)."""
        weight, first = self.weight.sum(0, keepdims=True), self.first.sum(0, keepdims=True)
        if of_other_folds:
            weight, first = weight - self.weight, first - self.first
        prior = first.sum(1, keepdims=True) / weight.sum(1, keepdims=True)
        if not np.isfinite(strength):
            return np.broadcast_to(prior, weight.shape)
        means: Floats = (first + strength * prior) / np.maximum(weight + strength, np.finfo(float).tiny)
        return means


def _tree_of(column: int, means: Floats, weight: Floats) -> tuple[Tree, Floats]:
    """Return a tree that separates the levels of a column by their means, and the values of its leaves.

    With more than `ENCODED_LEAVES` levels, those with similar means share a leaf. The last level is the missing value.
    The last leaf is for codes that training did not see, and has the mean of all levels.
    """
    seen = np.flatnonzero(weight > 0)
    by_mean = seen[np.argsort(means[seen], kind="stable")]
    groups = np.array_split(by_mean, min(constants.ENCODED_LEAVES, len(by_mean)))
    values = [np.average(means[group], weights=weight[group]) for group in groups]
    missing = len(weight) - 1
    n_words = (missing + 31) // 32
    left: list[int] = []
    right: list[int] = []
    missing_left: list[bool] = []
    sets: list[NDArray[np.uint32]] = []

    def split(begin: int, middle: int, end: int) -> int:
        """Add a split of the groups before `middle` from the others, and return its number."""
        number = len(left)
        codes = np.concatenate(groups[begin:middle])
        words = np.zeros(n_words, np.uint32)
        known = codes[codes < missing]
        np.bitwise_or.at(words, known // 32, np.uint32(1) << (known % 32).astype(np.uint32))
        left.append(0)
        right.append(0)
        missing_left.append(missing in codes)
        sets.append(words)
        left[number], right[number] = below(begin, middle), below(middle, end)
        return number

    def below(begin: int, end: int) -> int:
        """Return the child for some groups: a leaf for one of them."""
        return ~begin if end - begin == 1 else split(begin, (begin + end) // 2, end)

    # The additional group has no level: codes that training did not see go there.
    groups.append(seen[:0])
    split(0, len(groups) - 1, len(groups))
    start = n_words * np.arange(len(left))
    tree = Tree.of(
        np.full(len(left), column),
        np.full(len(left), np.nan),
        left,
        right,
        missing_left,
        cat_start=start,
        cat_words=np.full(len(left), n_words),
        categories=np.concatenate(sets),
    )
    return tree, np.array([*values, np.average(means, weights=weight)])
