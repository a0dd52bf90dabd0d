"""Smooth functions of single columns, as trees whose splits are knots: what an additive base is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.trees import kernels
from boostbp.trees.forest import TreeBatch
from boostbp.trees.kernels.records import CENTER, INV_SCALE
from boostbp.trees.kernels.sums import term_moments
from boostbp.trees.leaf_rows import LeafColumns
from boostbp.trees.leaves import LeafModel, add_to, stacked
from boostbp.trees.sparse import Matrix, Sparse, row_blocks
from boostbp.trees.splines import Functions, functions_of
from boostbp.trees.tree import Tree, Trees, offsets

INTERVALS = 9  # between knots, for any function: the penalty smooths the simpler ones
SLACK = 1e-9  # beyond the ends of an interval, in units of half its width: rounding clips no row of it


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
        models = [_regressions(functions, degree) for functions in splines] or [_constant()]
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
            x, leaf = _column(self.X, int(self.feature[number]), rows), self.leaf[number, rows]
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


def _column(X: Matrix, feature: int, rows: slice) -> Floats:
    """Return some rows of one feature, (rows,)."""
    if isinstance(X, Sparse):
        return X.dense(np.array([feature]), rows)[:, 0]
    return X[rows, feature]


def _sample(X: Matrix, feature: int, weight: Floats) -> tuple[Floats, Floats]:
    """Return one feature of the rows that its functions are found by, and their weights.

    Of the workers of a group, a sample, and the ends of the feature with weight 0.
    """
    x, group = _column(X, feature, slice(0, len(X))), workers()
    if group.alone:
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


def _constant() -> LeafModel:
    """Return one leaf that reads nothing."""
    return LeafModel(LeafColumns.everywhere(np.empty(0, np.int32)), np.empty((0, 4)), np.zeros(1), 1)
