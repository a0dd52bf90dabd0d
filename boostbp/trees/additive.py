"""Smooth functions of single columns, as trees whose splits are knots: what an additive base is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.linalg import eigh

from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees import kernels
from boostbp.trees.forest import TreeBatch
from boostbp.trees.kernels.records import CENTER, INV_SCALE
from boostbp.trees.kernels.sums import term_moments
from boostbp.trees.leaves import LeafColumns, LeafModel, add_to, stacked
from boostbp.trees.sparse import Matrix, Sparse, column_of, row_blocks
from boostbp.trees.tree import Tree, Trees, offsets

CLOSE = 1e-9  # share of the range: knots nearer than this are one
ROUGHNESS = 2.0  # the k-th bent function is divided by k^2, its variance by k^4, as in a smoothing spline
INTERVALS = 9  # between knots, for any function: the penalty smooths the simpler ones
SLACK = 1e-9  # beyond the ends of an interval, in units of half its width: rounding clips no row of it


class Functions(NamedTuple):
    """The functions of one feature.

    feature : int
    knots : (intervals + 1,) float64, ascending, in the user's units
    terms : (leaves, terms, functions) float64
        Weights of the terms of each leaf, in units of its ``u``, for each function; the last leaf is for missing
        values, where all functions are 0, as on average over the training rows.
    """

    feature: int
    knots: Floats
    terms: Floats


def functions_of(x: Floats, weight: Floats, feature: int, degree: int, n_intervals: int, most: int) -> Functions | None:
    """Return the functions of one feature, at most `most`; None if it has less than two different values."""
    known = ~np.isnan(x)
    x, weight = x[known], weight[known]
    if not weight.sum() > 0:
        return None
    inner = np.quantile(x, np.linspace(0.0, 1.0, n_intervals + 1)[1:-1], weights=weight, method="inverted_cdf")
    knots = np.unique(np.concatenate([[x.min()], inner, [x.max()]]))
    with np.errstate(over="ignore"):
        size = knots[-1] - knots[0]
        apart = np.diff(knots, prepend=-np.inf) > CLOSE * size
        knots = knots[apart] if apart[-1] else np.append(knots[apart][:-1], knots[-1])
        if len(knots) < 2 or not np.isfinite(2.0 / np.diff(knots)).all() or not np.isfinite(size):
            return None
    unit, share = (knots - knots[0]) / size, weight / weight.sum()
    t = (x - knots[0]) / size
    if not share @ np.square(t - share @ t) > CLOSE**2:  # one value has all the weight
        return None
    padded = np.concatenate([np.zeros(degree), unit, np.ones(degree)])
    coefficients = _coefficients(t, share, padded, degree)[:, :most]
    ends, middle = unit[:-1], (unit[:-1] + unit[1:]) / 2
    # The polynomial of each interval from its values at both ends and the middle, where u = -1, 1 and 0.
    a, m, b = (BSpline(padded, coefficients, degree)(np.clip(at, 0.0, 1.0)) for at in (ends, middle, unit[1:]))
    powers = [m, (b - a) / 2, (a + b) / 2 - m] if degree == 2 else [(a + b) / 2, (b - a) / 2]
    terms = np.stack(powers, axis=1)
    return Functions(feature, knots, np.concatenate([terms, np.zeros_like(terms[:1])]))


def _coefficients(t: Floats, share: Floats, padded: Floats, degree: int) -> Floats:
    """Return the B-spline coefficients of the functions, (B-splines, functions); `share` of the rows sums to 1."""
    B = BSpline.design_matrix(np.clip(t, 0.0, 1.0), padded, degree)
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
    varying = values > CLOSE * max(values[-1], variance)
    if varying.any() and len(line) > 2:
        free = vectors[:, varying] / np.sqrt(values[varying])  # of variance 1
        free -= np.outer(line, along @ free) / variance  # uncorrelated with the line
        bent = np.diff(free, 2, axis=0)  # second differences of coefficients: roughness as in P-splines (Eilers 1996)
        _, rotation = eigh(bent.T @ bent)  # from smooth to rough
        rough = free @ rotation
        rough -= mean @ rough
        std = np.sqrt(variance) / largest
        functions.append(std * rough / np.arange(1, rough.shape[1] + 1) ** ROUGHNESS)
    return np.concatenate(functions, axis=1)


@dataclass(frozen=True, slots=True)
class Smooth:
    """Columns that are smooth functions of single features, evaluated by trees and not stored.

    Those of one feature span the splines of a degree with knots at its quantiles. The first is linear, the others are
    uncorrelated with it and with each other, and their variance falls with their roughness (Demmler and Reinsch 1975):
    one ridge penalty on all then prefers smooth functions, and linear ones where these do.

    Attributes
    ----------
    X : (rows, features) float64, C-contiguous, or Sparse
    feature : (features with functions,) int64
    terms : tuple of (leaves, terms, functions) float64
        Of each of these features: weights of the leaf terms for each function.
    start : (features with functions + 1,) int64
        First column of each of these features.
    trees : Trees
        One for each of these features, whose splits are the knots; a tree of one leaf if there is none.
    leaves : kernels.Leaves
        Of these trees, for one output, with weights of 0.
    leaf : (trees, rows) uint8
    """

    X: Matrix
    feature: NDArray[np.int64]
    terms: tuple[Floats, ...]
    start: NDArray[np.int64]
    trees: Trees
    leaves: kernels.Leaves
    leaf: NDArray[np.uint8]

    @classmethod
    def of(cls, X: Matrix, features: NDArray[np.integer], weight: Floats, *, degree: int, most: int) -> Smooth:
        """Return the functions of some features.

        Parameters
        ----------
        X : (rows, features) float64, C-contiguous, or Sparse
            NaN is missing.
        features : (numeric features,) int
            Those without two different values get no function.
        weight : (rows,) float64
            Row weights: a weight of 2 is a row twice.
        degree : int
            1: piecewise linear. 2: piecewise quadratic, with a continuous slope.
        most : int
            Most columns. With many features each gets fewer knots, at worst only the linear function.

        Raises
        ------
        ValueError
            If there are more features than that.
        """
        if len(features) > most:
            raise ValueError(
                f"base='additive' is not supported with {len(features)} numeric features, more than {most}: use "
                "base='ridge'."
            )
        per_feature = most // max(1, len(features))
        n_intervals = min(INTERVALS, per_feature + 1 - degree)
        n_intervals = max(1, n_intervals)
        candidates = [
            functions_of(*_sample(X, int(j), weight), int(j), degree, n_intervals, per_feature) for j in features
        ]
        splines = [functions for functions in candidates if functions is not None]
        trees = [_tree(functions) for functions in splines] or [Tree.stump()]
        models = [_regressions(functions, degree) for functions in splines] or [LeafModel.zero()]
        leaf = np.array([tree.leaf_of(X) for tree in trees], np.uint8)
        terms = tuple(functions.terms for functions in splines)
        feature = np.array([functions.feature for functions in splines], np.int64)
        start = offsets([part.shape[2] for part in terms])
        return cls(X, feature, terms, start, Trees.of(trees), stacked([model.leaves() for model in models]), leaf)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.trees)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.start[-1])

    def block(self, rows: slice, columns: slice = slice(None)) -> Floats:
        """Return some rows and columns of ``U``, (rows, columns)."""
        parts = [np.empty((len(range(*rows.indices(len(self.X)))), 0))]
        for number, terms in enumerate(self.terms):
            x, leaf = column_of(self.X, int(self.feature[number]), rows), self.leaf[number, rows]
            scaling = self.leaves.scaling[self.leaves.tree_leaf[number] + leaf]  # one path column in each leaf
            u = np.where(np.isnan(x), 0.0, (x - scaling[:, CENTER]) * scaling[:, INV_SCALE])
            powers = u[:, None] ** np.arange(terms.shape[1])
            parts.append(np.einsum("rt,rtf->rf", powers, terms[leaf]))
        return np.ascontiguousarray(np.concatenate(parts, axis=1)[:, columns])

    def times(self, V: Floats) -> Floats:
        """Return ``U @ V``, (rows, outputs)."""
        out = np.zeros((len(self.X), V.shape[1]))
        add_to(out, self._weighted(np.zeros(V.shape[1]), V), self.leaf, self.X)
        return out

    def moment(self, G: Floats) -> Floats:
        """Return ``U' @ G``, (columns, outputs): from moments of the leaf terms, those of the functions."""
        n_outputs = G.shape[1]
        leaves = self._weighted(np.zeros(n_outputs), np.zeros((self.n_columns, n_outputs)))
        self._add_moments(leaves, np.ascontiguousarray(G))
        out = np.empty((self.n_columns, n_outputs))
        for number, terms in enumerate(self.terms):
            at = slice(*leaves.weight_start[leaves.tree_leaf[number : number + 2]])
            sums = leaves.weight[at].reshape(*terms.shape[:2], n_outputs)
            out[self.start[number] : self.start[number + 1]] = np.einsum("ltf,lto->fo", terms, sums)
        return out

    def _add_moments(self, leaves: kernels.Leaves, G: Floats) -> None:
        """Add the moments of all terms to ``leaves.weight``; of a sparse input, some rows at a time are made dense."""
        if not isinstance(self.X, Sparse):
            term_moments(leaves, self.leaf, self.X, G, leaves.weight)
            return
        columns, place = np.unique(leaves.column, return_inverse=True)
        narrow = leaves._replace(column=place.astype(np.int32))
        for rows in row_blocks(0, len(self.X), len(columns)):
            term_moments(narrow, self.leaf[:, rows], self.X.dense(columns, rows), G[rows], leaves.weight)

    def as_trees(self, constant: Floats, V: Floats) -> TreeBatch:
        """Return the trees, with leaves whose values sum to ``constant + U @ V``."""
        return TreeBatch(self.trees, self._weighted(constant, V))

    def _weighted(self, constant: Floats, V: Floats) -> kernels.Leaves:
        """Return the leaves for the outputs that `V` has columns of: weights of functions as weights of leaf terms."""
        n_outputs = V.shape[1]
        parts = [
            np.einsum("ltf,fo->lto", terms, V[self.start[number] : self.start[number + 1]])
            for number, terms in enumerate(self.terms)
        ] or [np.zeros((1, 1, n_outputs))]
        parts[0][:, 0] += constant
        weight = np.concatenate([part.ravel() for part in parts])
        served = np.tile(np.array([0, n_outputs]), (len(parts), 1))
        return self.leaves._replace(
            tree_output=served, weight_start=n_outputs * self.leaves.weight_start, weight=weight
        )


def _sample(X: Matrix, feature: int, weight: Floats) -> tuple[Floats, Floats]:
    """Return one feature of the rows that its functions are found by, and their weights.

    Of the workers of a group, a sample, and the ends of the feature with weight 0.
    """
    x, group = column_of(X, feature), workers()
    if group.is_single:
        return x, weight
    ends = group.max(-np.fmin.reduce(x, initial=np.inf), np.fmax.reduce(x, initial=-np.inf))
    lower, upper = (end if np.isfinite(end) else np.nan for end in ends)
    x, weight = group.sample(x, weight)
    return np.append(x, [-lower, upper]), np.append(weight, [0.0, 0.0])


def _tree(functions: Functions) -> Tree:
    """Return the tree of one feature: a leaf for each interval between knots, and the last for missing values."""
    feature, knots = functions.feature, functions.knots[1:-1]
    threshold, left, right = [np.inf], [0], [~(len(knots) + 1)]

    def below(first: int, last: int) -> int:
        """Return the balanced split of the intervals ``first .. last``, or a leaf."""
        if first == last:
            return ~first
        split, middle = len(threshold), (first + last) // 2
        threshold.append(float(knots[middle]))
        left.append(0)
        right.append(0)
        left[split], right[split] = below(first, middle), below(middle + 1, last)
        return split

    left[0] = below(0, len(knots))
    n_splits = len(threshold)
    return Tree.of(
        np.full(n_splits, feature), threshold, left, right, np.zeros(n_splits, bool), gain=np.zeros(n_splits)
    )


def _regressions(functions: Functions, degree: int) -> LeafModel:
    """Return the leaves of the tree of one feature, for one output, with weights of 0.

    In each interval ``u`` runs from -1 to 1.
    """
    width = np.diff(functions.knots)
    ends = np.full(len(width), 1.0 + SLACK)
    scaling = np.column_stack([functions.knots[:-1] + width / 2, 2.0 / width, -ends, ends])
    scaling = np.concatenate([scaling, np.zeros((1, 4))])
    count = len(scaling)
    paths = LeafColumns(np.arange(count + 1, dtype=np.int32), np.full(count, functions.feature, np.int32), degree)
    return LeafModel(paths, scaling, np.zeros(count * (1 + degree)), 1)
