"""The columns of an additive base: splines of single features, computed by trees whose splits are the knots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.linalg import eigh

from boostbp.core import CENTER, INV_SCALE, Leaves, term_moments
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.leaves import add_to, concat_leaves, dense_blocks, leaves_of_tree, zero_leaves
from boostbp.trees.sparse import Matrix, column_of
from boostbp.trees.tree import Tree, Trees, as_trees, offsets

# Share of the range below which two knots become one; arbitrary, far above rounding.
CLOSE_SHARE = 1e-9
# The k-th curved function is divided by k^2, and its variance by k^4, as in a smoothing spline.
ROUGHNESS = 2.0
# Intervals between knots. Arbitrary: enough for most functions, and the penalty keeps simple ones smooth.
INTERVALS = 9
# Margin on the bounds of an interval, in units of half its width, so that rounding errors clip no row.
SLACK = 1e-9


class FeatureSplines(NamedTuple):
    """The spline functions of one feature."""

    feature: int
    knots: Floats  # (intervals + 1,), ascending, in the user's units
    # (leaves, terms, functions): weights of each leaf's terms, in units of its ``u``, for each function. The last leaf
    # is for missing values: all functions are 0 there, which is their mean over the training rows.
    terms: Floats


def functions_of(
    x: Floats, weight: Floats, feature: int, degree: int, n_intervals: int, most: int
) -> FeatureSplines | None:
    """Return at most `most` functions of one feature; None if it has fewer than two distinct values."""
    known = ~np.isnan(x)
    x, weight = x[known], weight[known]
    if not weight.sum() > 0:
        return None
    inner = np.quantile(x, np.linspace(0.0, 1.0, n_intervals + 1)[1:-1], weights=weight, method="inverted_cdf")
    knots = np.unique(np.concatenate([[x.min()], inner, [x.max()]]))
    with np.errstate(over="ignore"):
        size = knots[-1] - knots[0]
        apart = np.diff(knots, prepend=-np.inf) > CLOSE_SHARE * size
        knots = knots[apart] if apart[-1] else np.append(knots[apart][:-1], knots[-1])
        if len(knots) < 2 or not np.isfinite(2.0 / np.diff(knots)).all() or not np.isfinite(size):
            return None
    # From here on, values are in units of the range, and weights sum to 1.
    unit, share = (knots - knots[0]) / size, weight / weight.sum()
    t = (x - knots[0]) / size
    if not share @ np.square(t - share @ t) > CLOSE_SHARE**2:  # one value has the whole weight
        return None
    # Each end is a knot degree + 1 times, so that the B-splines span all splines on the range.
    padded = np.concatenate([np.zeros(degree), unit, np.ones(degree)])
    coefficients = _coefficients(t, share, padded, degree)[:, :most]
    ends, middle = unit[:-1], (unit[:-1] + unit[1:]) / 2
    # A quadratic polynomial is determined by its values at the ends and the middle, where u is -1, 1 and 0.
    a, m, b = (BSpline(padded, coefficients, degree)(np.clip(at, 0.0, 1.0)) for at in (ends, middle, unit[1:]))
    # p(u) = m + (b - a) / 2 u + ((a + b) / 2 - m) u^2 has the values a, m and b there.
    powers = [m, (b - a) / 2, (a + b) / 2 - m] if degree == 2 else [(a + b) / 2, (b - a) / 2]
    terms = np.stack(powers, axis=1)
    return FeatureSplines(feature, knots, np.concatenate([terms, np.zeros_like(terms[:1])]))


def _coefficients(t: Floats, share: Floats, padded: Floats, degree: int) -> Floats:
    """Return the B-spline coefficients of the functions, (B-splines, functions); `share` of the rows sums to 1."""
    B = BSpline.design_matrix(np.clip(t, 0.0, 1.0), padded, degree)
    # Covariances of the B-splines: B' W B minus the products of their means.
    mean = share @ B
    gram = (B.T @ B.multiply(share[:, None])).toarray() - np.outer(mean, mean)
    # The Greville abscissae are the coefficients of the identity, the straight line.
    line = np.array([padded[i + 1 : i + 1 + degree].mean() for i in range(len(mean))])
    line -= mean @ line
    along = gram @ line
    variance = float(line @ along)
    largest = max(np.abs(np.array([0.0, 1.0]) - share @ t).max(), np.finfo(float).tiny)
    functions = [line[:, None] / largest]
    values, vectors = eigh(gram - np.outer(along, along) / variance)
    varying = values > CLOSE_SHARE * max(values[-1], variance)
    if varying.any() and len(line) > 2:
        free = vectors[:, varying] / np.sqrt(values[varying])  # of variance 1
        free -= np.outer(line, along @ free) / variance  # uncorrelated with the line
        bent = np.diff(free, 2, axis=0)  # second differences of coefficients measure roughness (P-splines, Eilers 1996)
        _, rotation = eigh(bent.T @ bent)  # from smooth to rough
        rough = free @ rotation
        rough -= mean @ rough
        std = np.sqrt(variance) / largest
        functions.append(std * rough / np.arange(1, rough.shape[1] + 1) ** ROUGHNESS)
    return np.concatenate(functions, axis=1)


@dataclass(frozen=True, slots=True)
class SplineTerms:
    """Spline functions of single features as columns, evaluated by trees and not stored.

    The columns of a feature span the splines of a degree with knots at its quantiles. The first is linear. The others
    are uncorrelated with it and with each other, and rougher functions have smaller variance (Demmler and Reinsch
    1975). A single ridge penalty on all columns therefore prefers smooth functions, and linear ones most.
    """

    X: Matrix  # (rows, features) float64, C-contiguous, or Sparse
    splines: list[FeatureSplines]  # the functions of each feature that has some
    start: NDArray[np.int64]  # (features with functions + 1,): first column of each of these features
    trees: Trees  # one tree per feature, split at the knots; a tree of one leaf if no feature has functions
    leaves: Leaves  # the leaves of these trees, for one output, with weights of 0
    leaf: NDArray[np.integer]  # (trees, rows), smallest integer type

    @classmethod
    def of(cls, X: Matrix, features: NDArray[np.integer], weight: Floats, *, degree: int, most: int) -> SplineTerms:
        """Return the spline functions of some features.

        Functions of degree 1 are piecewise linear, those of degree 2 piecewise quadratic with a continuous slope. A
        constant feature gets no function. There are at most `most` columns: with many features each gets fewer knots,
        in the extreme only the linear function. Raises ValueError if there are more features than `most`.
        """
        if len(features) > most:
            raise ValueError(f"base='additive' is for {most} features at most, not {len(features)}: use base='ridge'.")
        per_feature = most // max(1, len(features))
        sizes = degree, max(1, min(INTERVALS, per_feature + 1 - degree)), per_feature
        candidates = (functions_of(*_sample(X, j, weight), j, *sizes) for j in features.tolist())
        splines = [functions for functions in candidates if functions is not None]
        trees = as_trees([_tree(functions) for functions in splines] or [Tree.stump()])
        leaves = concat_leaves([_regressions(functions, degree) for functions in splines] or [zero_leaves([0])])
        start = offsets([functions.terms.shape[2] for functions in splines])
        return cls(X, splines, start, trees, leaves, trees.route(X))

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.start[-1])

    def block(self, rows: slice, columns: slice = slice(None)) -> Floats:
        """Return some rows and columns of ``U``, (rows, columns)."""
        parts = [np.empty((len(range(*rows.indices(len(self.X)))), 0))]
        for number, (feature, _, terms) in enumerate(self.splines):
            x, leaf = column_of(self.X, feature, rows), self.leaf[number, rows]
            scaling = self.leaves.scaling[self.leaves.tree_leaf[number] + leaf]  # one path column in each leaf
            u = np.where(np.isnan(x), 0.0, (x - scaling[:, CENTER]) * scaling[:, INV_SCALE])
            # Each leaf holds the weights of the terms 1, u, u^2 for each function.
            parts.append(np.einsum("rt,rtf->rf", u[:, None] ** np.arange(terms.shape[1]), terms[leaf]))
        return np.ascontiguousarray(np.concatenate(parts, axis=1)[:, columns])

    def times(self, V: Floats) -> Floats:
        """Return ``U @ V``, (rows, outputs)."""
        out = np.zeros((len(self.X), V.shape[1]))
        add_to(out, self.leaves_for(np.zeros(V.shape[1]), V), self.leaf, self.X)
        return out

    def moment(self, G: Floats) -> Floats:
        """Return ``U' @ G``, (columns, outputs), from the moments of the leaf terms."""
        n_outputs = G.shape[1]
        leaves = self.leaves_for(np.zeros(n_outputs), np.zeros((self.n_columns, n_outputs)))
        G = np.ascontiguousarray(G)
        for narrow, rows, part in dense_blocks(leaves, self.X):
            term_moments(narrow, (self.leaf[:, rows], part), G[rows], leaves.weight)
        out = np.empty((self.n_columns, n_outputs))
        for number, (_, _, terms) in enumerate(self.splines):
            at = slice(*leaves.weight_start[leaves.tree_leaf[number : number + 2]])
            sums = leaves.weight[at].reshape(*terms.shape[:2], n_outputs)
            out[self.start[number] : self.start[number + 1]] = np.einsum("ltf,lto->fo", terms, sums)
        return out

    def leaves_for(self, constant: Floats, V: Floats) -> Leaves:
        """Return leaves of the trees whose values sum to ``constant + U @ V``."""
        n_outputs = V.shape[1]
        parts = [
            np.einsum("ltf,fo->lto", functions.terms, V[self.start[number] : self.start[number + 1]])
            for number, functions in enumerate(self.splines)
        ] or [np.zeros((1, 1, n_outputs))]
        parts[0][:, 0] += constant
        weight = np.concatenate([part.ravel() for part in parts])
        served, start = np.tile(np.array([0, n_outputs]), (len(parts), 1)), n_outputs * self.leaves.weight_start
        return self.leaves._replace(tree_output=served, weight_start=start, weight=weight)


def _sample(X: Matrix, feature: int, weight: Floats) -> tuple[Floats, Floats]:
    """Return the values of a feature and their weights; in a group, a sample of all rows, and the ends of weight 0."""
    # The ends are exact on all workers, as rows beyond the outermost knots would be clipped.
    x, group = column_of(X, feature), workers()
    if group.is_single:
        return x, weight
    ends = group.max(-np.fmin.reduce(x, initial=np.inf), np.fmax.reduce(x, initial=-np.inf))
    lower, upper = (end if np.isfinite(end) else np.nan for end in ends)
    x, weight = group.sample(x, weight)
    return np.append(x, [-lower, upper]), np.append(weight, [0.0, 0.0])


def _tree(functions: FeatureSplines) -> Tree:
    """Return the tree of one feature: a leaf for each interval between knots, and the last for missing values."""
    feature, knots = functions.feature, functions.knots[1:-1]
    threshold, left, right = [np.inf], [0], [~(len(knots) + 1)]

    def below(first: int, last: int) -> int:  # the balanced split of the intervals ``first .. last``, or a leaf
        if first == last:
            return ~first
        split, middle = len(threshold), (first + last) // 2
        threshold.append(float(knots[middle]))
        left.append(0)
        right.append(0)
        left[split], right[split] = below(first, middle), below(middle + 1, last)
        return split

    left[0] = below(0, len(knots))
    zero = np.zeros(len(threshold))
    return Tree.of(zero + feature, threshold, left, right, zero, gain=zero)


def _regressions(functions: FeatureSplines, degree: int) -> Leaves:
    """Return the leaves of the tree of one feature, for one output; in each interval ``u`` runs from -1 to 1."""
    width = np.diff(functions.knots)
    ends = np.full(len(width), 1.0 + SLACK)
    scaling = np.column_stack([functions.knots[:-1] + width / 2, 2.0 / width, -ends, ends])
    scaling = np.concatenate([scaling, np.zeros((1, 4))])
    count = len(scaling)
    column, weight = np.full(count, functions.feature), np.zeros(count * (1 + degree))
    return leaves_of_tree(np.arange(count + 1), column, scaling, weight, degree=degree)
