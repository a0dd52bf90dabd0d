"""Hidden units that candidates have without back-propagation: directions of a model, and means of the target.

**Directions** in which a model varies most. ``G`` is the mean of ``J' J`` over rows, where ``J`` is the Jacobian of the
model. Its leading eigenvectors are the directions of the features along which the output varies most (expected gradient
outer product: Trivedi and others 2014; as a way to learn features: Radhakrishnan and others 2024). A tree on the
features splits along single features. A tree that also reads these directions splits along sums of features. Sums and
differences of two important features are added, so that one split can tell which of two numbers is larger.

**Means** of the target for the levels of a category. A library splits the levels of a category into two sets. With many
levels, most have too few rows for a reliable split. The means of the target order the levels, so trees split them like
numbers, and leaves have slopes in them (target statistics: Micci-Barreca 2001). A training row sees means of other rows
only: one with its own target would reveal it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.ensemble import constants
from boostbp.ensemble.problem import Problem
from boostbp.network import layers
from boostbp.network.layers import BoundInput, Layer, SquaredObjective
from boostbp.network.network import Network, short_hidden
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.basis import BASES
from boostbp.trees.forest import Forest
from boostbp.trees.leaves import leaves_on_paths
from boostbp.trees.linear import Standardised
from boostbp.trees.sparse import row_blocks
from boostbp.trees.tree import Tree, Trees


def directions_layer(problem: Problem, model: Network) -> Layer:
    """Return a hidden layer of linear units: the standardised numeric features along directions of the model."""
    table, weight = problem.rows.table, problem.rows.weight
    numeric = np.setdiff1d(np.arange(table.X.shape[1]), table.categorical)
    sizes, leading = sizes_and_directions(problem, model, numeric)
    directions = workers().agree(np.hstack([leading, paired_directions(sizes)]))
    units = Standardised.of(np.ascontiguousarray(table.X[:, numeric]), weight).project(directions)
    linear = replace(problem.settings.layers[0], n_estimators=0, base="ridge", base_lambda=None, min_base_lambda=0.0)
    linear = replace(linear, clip=True)  # whatever the hidden layers of a network do
    bound = BoundInput(problem.growing_backend, table, linear, weight)
    fitted = layers.fit(bound, SquaredObjective(units, weight), n_threads=problem.settings.n_threads)
    return short_hidden(fitted.layer)


def sizes_and_directions(problem: Problem, model: Network, numeric: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return the diagonal of G, (numeric features,), and its leading eigenvectors, (numeric features, directions).

    Features are in standard deviations. With many of them, G = A' A is never formed: the eigenvectors u of the smaller
    A A' give those of G as A' u. Raises FloatingPointError if a number overflows.
    """
    wide = len(numeric) > constants.DIRECTIONS_COLUMNS
    parts = weighted_slopes(problem, model, numeric, keeps=wide)
    slopes = np.vstack(parts) if wide else sum(parts, np.zeros((len(numeric),) * 2))
    sizes = np.square(slopes).sum(axis=0) if wide else np.diag(slopes)
    if not np.isfinite(sizes).all():
        raise FloatingPointError(f"slopes along the columns {numeric[~np.isfinite(sizes)].tolist()} are beyond float64")
    return sizes, leading_directions(slopes, of_rows=wide)


def weighted_slopes(problem: Problem, model: Network, numeric: NDArray[np.intp], *, keeps: bool) -> list[Floats]:
    """Return the parts of G over blocks of rows, for features in standard deviations; or if `keeps`, those of A."""
    group, n_outputs = workers(), len(problem.baseline)
    most = max(constants.DIRECTIONS_COLUMNS // n_outputs, 1) if keeps else constants.DIRECTIONS_ROWS
    rows = group.sampled_rows(len(problem.rows), min(most, constants.DIRECTIONS_ROWS))
    X, weight = group.select_rows(rows).allgather_rows(problem.rows.X[rows], problem.rows.weight[rows])
    known = X[:, numeric]
    # Scale first: squares near the limits of float64 overflow.
    size = np.nan_to_num(np.fmax.reduce(np.abs(known), axis=0, initial=0.0))
    known = known / np.where(size > 0, size, 1.0)
    observed = np.isfinite(known)
    count = np.maximum(observed.sum(0), 1)  # a column without observed values gets a standard deviation of 0
    centred = np.where(observed, known - np.where(observed, known, 0.0).sum(0) / count, 0.0)
    std, parts = size * np.sqrt(np.square(centred).sum(0) / count), []
    for block in row_blocks(0, len(X), X.shape[1] * n_outputs):
        J = model.jacobian(X[block], n_jobs=problem.settings.n_threads)[:, :, numeric]
        with np.errstate(over="ignore", invalid="ignore"):
            J *= std
            if keeps:
                J *= np.sqrt(weight[block])[:, None, None]
                parts.append(J.reshape(-1, len(numeric)))
            else:
                parts.append(np.einsum("rki,r,rkj->ij", J, weight[block], J, optimize=True))
    return parts


def leading_directions(G: Floats, *, of_rows: bool = False) -> Floats:
    """Return the leading eigenvectors of G, (numeric features, directions); `of_rows`, A stands in the place of G."""
    values, vectors = np.linalg.eigh(G @ G.T if of_rows else G)
    leading = vectors[:, ::-1][:, : constants.LEADING_DIRECTIONS]
    if of_rows:  # the others are rounding errors
        leading = G.T @ leading[:, values[::-1][: constants.LEADING_DIRECTIONS] > 1e-12 * values[-1]]
        leading /= np.linalg.norm(leading, axis=0)
    # eigh may return either sign: the largest coefficient of each direction becomes positive.
    signs = np.sign(leading[np.abs(leading).argmax(0), np.arange(leading.shape[1])])
    return np.asarray(leading * signs)


def paired_directions(sizes: Floats) -> Floats:
    """Return normalised sums and differences of the pairs of important features, (numeric features, pairs)."""
    important = np.argsort(-sizes, kind="stable")[: constants.DIRECTIONS_PAIRED]
    a, b = np.triu_indices(len(important), 1)
    pair = np.arange(len(a))
    sums = np.zeros((len(sizes), len(a)))
    sums[important[a], pair] = sums[important[b], pair] = np.sqrt(0.5)
    differences = sums.copy()
    differences[important[b], pair] *= -1.0
    return np.hstack([sums, differences])


def encoded_columns(problem: Problem) -> list[tuple[int, int]]:
    """Return the categorical columns of many levels, each with the number of its codes."""
    columns = list(problem.rows.table.categorical)
    if not columns:
        return []
    [codes] = workers().max(np.nanmax(problem.rows.X[:, columns], axis=0, initial=-1.0))
    return [(j, int(n) + 1) for j, n in zip(columns, codes, strict=True) if n >= constants.ENCODED_MIN_LEVELS]


def encodings_layer(problem: Problem) -> tuple[Layer, Floats]:
    """Return a hidden layer of the means of levels, and its units for the training rows, (rows, units).

    There is a unit for each column of many levels and each output: the mean of the negative gradient of the loss at the
    baseline, which for squared errors is the mean of the target minus the baseline. The units of a training row are
    means over the rows of the other folds.
    """
    rows = problem.rows
    target = -problem.loss.prepared(rows.y, rows.weight).gradient(problem.start, rows.y)
    numbers, total = workers().row_numbers(len(rows))
    fold = np.random.default_rng(problem.settings.seed).permutation(total)[numbers] % constants.ENCODING_FOLDS
    found, units = [], []
    for column, n_codes in encoded_columns(problem):
        code = np.where(np.isnan(rows.X[:, column]), n_codes, rows.X[:, column]).astype(np.int64)
        for k in range(target.shape[1]):
            sums = LevelSums.of(code, fold, target[:, k], rows.weight, n_codes + 1)
            strength = sums.prior_strength()
            units.append(sums.means(strength, of_other_folds=True)[fold, code])
            found.append(_tree_of(column, sums.means(strength)[0], sums.weight.sum(0)))
    trees, values = zip(*found, strict=True)
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
        return cls(*(scale * totals for totals in sums))

    def prior_strength(self) -> float:
        """Return the number of rows of the mean of all levels in the shrunken mean of each level.

        It is the variance within levels over that of their means, both estimated as in an analysis of variance with
        random effects. It is infinite if the means of the levels differ no more than by chance.
        """
        weight, first = self.weight.sum(0), self.first.sum(0)
        occurs = weight > 0
        weight, mean = weight[occurs], first[occurs] / weight[occurs]
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
        return np.asarray((first + strength * prior) / np.maximum(weight + strength, np.finfo(float).tiny))


def _tree_of(column: int, means: Floats, weight: Floats) -> tuple[Tree, Floats]:
    """Return a tree that separates the levels of a column by their means, and the values of its leaves.

    With more than `ENCODED_LEAVES` levels, those with similar means share a leaf. The last level is the missing value.
    The last leaf is for codes that training did not see, and has the mean of all levels.
    """
    occurring = np.flatnonzero(weight > 0)
    by_mean = occurring[np.argsort(means[occurring], kind="stable")]
    groups = np.array_split(by_mean, min(constants.ENCODED_LEAVES, len(by_mean)))
    values = [np.average(means[group], weights=weight[group]) for group in groups]
    missing = len(weight) - 1
    n_words = (missing + 31) // 32
    splits: list[list[Any]] = []  # left and right child, whether missing values go left, set of codes

    def split(begin: int, middle: int, end: int) -> int:
        """Add a split of the groups before `middle` from the others, and return its number."""
        number, codes, words = len(splits), np.concatenate(groups[begin:middle]), np.zeros(n_words, np.uint32)
        known = codes[codes < missing]
        np.bitwise_or.at(words, known // 32, np.uint32(1) << (known % 32).astype(np.uint32))
        splits.append([0, 0, missing in codes, words])
        splits[number][:2] = below(begin, middle), below(middle, end)
        return number

    def below(begin: int, end: int) -> int:
        """Return the child for some groups: a leaf for one of them."""
        return ~begin if end - begin == 1 else split(begin, (begin + end) // 2, end)

    # The additional group has no level: codes that training did not see go there.
    groups.append(occurring[:0])
    split(0, len(groups) - 1, len(groups))
    left, right, missing_left, sets = map(list, zip(*splits, strict=True))
    start, size = n_words * np.arange(len(left)), np.full(len(left), n_words)
    nodes = (np.full(len(left), column), np.full(len(left), np.nan), left, right, missing_left)
    tree = Tree.of(*nodes, cat_start=start, cat_words=size, categories=np.concatenate(sets))
    return tree, np.array([*values, np.average(means, weights=weight)])
