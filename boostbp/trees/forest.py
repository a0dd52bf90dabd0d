"""Forest: the packed trees and leaf regressions of one layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.trees import basis as bases
from boostbp.trees import kernels
from boostbp.trees.basis import Basis
from boostbp.trees.leaves import LeafColumns, LeafModel
from boostbp.trees.leaves import stacked as leaves_stacked
from boostbp.trees.sparse import Matrix, Sparse, dense, row_blocks
from boostbp.trees.tree import Tree, Trees, concat, concat_offsets, stacked

ROWS_OF_A_THREAD = 256  # at least: fewer are done sooner than a thread starts
GAIN_BITS = 10  # three digits are enough for what gains are good for, and make small files
FEW_ROWS = 8  # whose prediction is sooner done than prepared
CHUNK = 8192  # rows whose leaf numbers are kept at once in a prediction


class TreeWithLeaves(NamedTuple):
    """One tree, its leaf regressions, and the first of the outputs that it serves."""

    tree: Tree
    model: LeafModel
    first_output: int


class TreeBatch(NamedTuple):
    """Some trees of a layer, at least one, and their leaf regressions, in flat arrays."""

    trees: Trees
    leaves: kernels.Leaves

    @classmethod
    def of(cls, single: TreeWithLeaves) -> TreeBatch:
        """Return a batch of one tree."""
        return cls(Trees.of([single.tree]), single.model.leaves(single.first_output))

    def times(self, share: float) -> TreeBatch:
        """Return the same trees, with the values of their leaves times `share`."""
        return self._replace(leaves=self.leaves._replace(weight=share * self.leaves.weight))


@dataclass(frozen=True, slots=True)
class Forest:
    """A sum of trees with regressions in their leaves: (rows, features) -> (rows, outputs).

    Attributes
    ----------
    clip : bool
        Whether a leaf's inputs are clipped to the range that the leaf saw in training.
    tree_split : (trees + 1,) int64
        First split of each tree in `nodes`.
    gain : (splits,) float64
        Rounded to `GAIN_BITS` bits.
    n_base : int
        How many of the trees are the base that rounds stand on; they come first.
    """

    n_features: int
    n_outputs: int
    basis: Basis
    clip: bool
    tree_split: NDArray[np.int64]
    nodes: kernels.Nodes
    leaves: kernels.Leaves
    gain: Floats
    n_base: int = 0

    @classmethod
    def of(
        cls,
        parts: Sequence[TreeBatch],
        *,
        n_features: int,
        n_outputs: int,
        basis: Basis,
        clip: bool = True,
        n_base: int = 0,
    ) -> Forest:
        """Return the forest of the trees of all parts, one after the other."""
        trees = [part.trees for part in parts]
        split = concat_offsets([part.split for part in trees])
        nodes, leaves = stacked([part.nodes for part in trees]), leaves_stacked([part.leaves for part in parts])
        mantissa, exponent = np.frexp(concat([part.gain for part in trees], np.float64))
        gain = np.ldexp(np.rint(mantissa * 2.0**GAIN_BITS), exponent - GAIN_BITS)
        return cls(n_features, n_outputs, basis, clip, split, nodes, leaves, gain, n_base)

    @classmethod
    def pack(
        cls, trees: Sequence[TreeWithLeaves], *, n_features: int, n_outputs: int, basis: Basis, clip: bool = True
    ) -> Forest:
        """Return the forest of single trees, one after the other."""
        parts = [TreeBatch.of(tree) for tree in trees]
        return cls.of(parts, n_features=n_features, n_outputs=n_outputs, basis=basis, clip=clip)

    @property
    def trees(self) -> Trees:
        """Return the trees without their leaf regressions."""
        return Trees(self.nodes, self.tree_split, self.gain)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_split) - 1

    @property
    def leaf_dtype(self) -> Any:
        """Return the smallest integer type that holds the leaf numbers of a tree."""
        largest = int(np.diff(self.leaves.tree_leaf).max(initial=1)) - 1
        return np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.int32

    def route(self, X: Matrix, n_threads: int = 1) -> NDArray[Any]:
        """Return the leaf number of each row under each tree, (trees, rows)."""
        leaf = np.empty((self.n_trees, len(X)), self.leaf_dtype)
        if isinstance(X, Sparse):
            self._by_blocks(lambda narrow, _, part: narrow.route(part).T, X, leaf.T, n_threads)
        else:
            _share(lambda rows: kernels.route(self.nodes, self.tree_split, X, *rows, leaf), len(X), n_threads)
        return leaf

    def evaluate(self, X: Matrix, leaf: NDArray[Any], n_threads: int = 1) -> Floats:
        """Return the outputs of rows whose leaves are known, (rows, outputs)."""
        out = np.zeros((len(X), self.n_outputs))
        if isinstance(X, Sparse):

            def values(narrow: Forest, rows: slice, part: Floats) -> Floats:
                return narrow.evaluate(part, np.ascontiguousarray(leaf[:, rows]))

            self._by_blocks(values, X, out, n_threads)
            return out
        Z = bases.expand(self.basis, X)
        _share(lambda rows: kernels.evaluate(self.leaves, leaf, Z, self.clip, *rows, out), len(X), n_threads)
        return out

    def predict(self, X: Matrix, n_threads: int = 1) -> Floats:
        """Return the outputs, (rows, outputs); in chunks of rows, so that memory does not grow with rows x trees."""
        out = np.empty((len(X), self.n_outputs))
        if isinstance(X, Sparse):
            self._by_blocks(lambda narrow, _, part: narrow.predict(part), X, out, n_threads)
            return out

        def chunk(first: int) -> None:
            part = X[first : first + CHUNK]
            out[first : first + CHUNK] = self.evaluate(part, self.route(part))

        threads.parallel_map(chunk, range(0, len(X), CHUNK), n_threads)
        return out

    def _by_blocks(
        self, work: Callable[[Forest, slice, Floats], NDArray[Any]], X: Sparse, out: NDArray[Any], n_threads: int
    ) -> None:
        """Write what `work` makes of blocks of a sparse input to `out`, (rows, ...).

        It is given the forest on the features in use, which rows they are, and these dense, with these features.
        """
        per_feature = max(1, self.basis.columns_per_feature)
        feature, which = np.divmod(self.leaves.column, per_feature)
        used = np.union1d(self.nodes.feature, feature)
        place = np.searchsorted(used, feature) * per_feature + which
        narrow = replace(
            self,
            n_features=len(used),
            nodes=self.nodes._replace(feature=np.searchsorted(used, self.nodes.feature).astype(np.int32)),
            leaves=self.leaves._replace(column=place.astype(np.int32)),
        )

        def block(rows: slice) -> None:
            out[rows] = work(narrow, rows, X.dense(used, rows))

        threads.parallel_map(block, row_blocks(0, len(X), len(used) * per_feature), n_threads)

    def vjp(
        self, X: Matrix, leaf: NDArray[Any] | None, G: Floats, n_threads: int = 1, unit: Floats | None = None
    ) -> Floats:
        """Return ``J' g`` of each row: a gradient in the outputs becomes one in the inputs, (rows, features).

        Equation (1) of the paper with the Jacobian of section *Gradient of GBDT Layer*. Rows whose leaves are not known
        are routed, some at a time. With a `unit` of each feature, (features,), it is the gradient in ``X / unit``.
        """
        if leaf is None:
            out = np.empty((len(X), self.n_features))

            def routed(first: int) -> None:
                part = X[first : first + CHUNK]
                out[first : first + CHUNK] = self.vjp(part, self.route(part), G[first : first + CHUNK], unit=unit)

            threads.parallel_map(routed, range(0, len(X), CHUNK), n_threads)
            return out
        X = dense(X)
        Z = bases.expand(self.basis, X)
        G = np.ascontiguousarray(G, np.float64)
        out, units = np.empty_like(Z), self._of_columns(unit)
        _share(lambda rows: kernels.vjp(self.leaves, leaf, Z, self.clip, G, units, *rows, out), len(X), n_threads)
        return bases.vjp(self.basis, X, out)

    def jacobian(self, X: Matrix, leaf: NDArray[Any], n_threads: int = 1, unit: Floats | None = None) -> Floats:
        """Return the Jacobian of each row, (rows, outputs, features), in ``X / unit`` with a unit of each feature."""
        X = dense(X)
        Z = bases.expand(self.basis, X)
        out, units = np.zeros((len(X), self.n_outputs, Z.shape[1])), self._of_columns(unit)
        _share(lambda rows: kernels.jacobian(self.leaves, leaf, Z, self.clip, units, *rows, out), len(X), n_threads)
        return bases.vjp(self.basis, X, out)

    def _of_columns(self, unit: Floats | None) -> Floats:
        """Return units of features as those of the basis's columns; ones for None."""
        unit = np.ones(self.n_features) if unit is None else unit
        return np.repeat(unit, self.basis.columns_per_feature)

    def changes(
        self, A: Floats, B: Floats, leaf_a: NDArray[Any], leaf_b: NDArray[Any], n_threads: int = 1
    ) -> tuple[Floats, Floats]:
        """Return the change of the outputs from rows `A` to rows `B`, feature by feature.

        Parameters
        ----------
        A, B : (rows, features) float64
        leaf_a, leaf_b : (trees, rows)
            Their leaves, by `route`.

        Returns
        -------
        smooth : (rows, outputs, features) float64
            Along the leaf regressions, which are sums of functions of one feature each.
        jump : (rows, outputs, features) float64
            Between leaves, at the feature of the split where the two rows part. Both together sum to the change.
        """
        ZA, ZB = bases.expand(self.basis, A), bases.expand(self.basis, B)
        smooth = np.zeros((len(A), self.n_outputs, ZA.shape[1]))
        jump = np.zeros((len(A), self.n_outputs, self.n_features))
        of_rows = self.nodes, self.tree_split, self.leaves, self.clip, leaf_a, leaf_b, A, B, ZA, ZB
        _share(lambda rows: kernels.changes(*of_rows, *rows, smooth, jump), len(A), n_threads)
        return smooth.reshape(*jump.shape, self.basis.columns_per_feature).sum(-1), jump

    def tree_with_leaves(self, number: int) -> TreeWithLeaves:
        """Return one tree and its leaf regressions as records of their own."""
        leaves = self.leaves
        begin, end = leaves.tree_leaf[number : number + 2]
        paths = LeafColumns(
            (leaves.start[begin : end + 1] - leaves.start[begin]).astype(np.int32),
            leaves.column[leaves.start[begin] : leaves.start[end]],
            int(leaves.tree_degree[number]),
        )
        first, n_outputs = map(int, leaves.tree_output[number])
        model = LeafModel(
            paths,
            leaves.scaling[leaves.start[begin] : leaves.start[end]],
            leaves.weight[leaves.weight_start[begin] : leaves.weight_start[end]],
            n_outputs,
        )
        return TreeWithLeaves(self.trees[number], model, first)


def _share(work: Callable[[tuple[int, int]], object], n_rows: int, n_threads: int) -> None:
    """Call `work` on a range of rows for each thread; rows do not depend on each other, so ranges change no result."""
    size = max(ROWS_OF_A_THREAD, -(-n_rows // n_threads))
    ranges = [(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
    threads.parallel_map(work, ranges, n_threads)
