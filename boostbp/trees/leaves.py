"""What the leaves of a tree predict: their regressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats
from boostbp.trees import kernels, threads
from boostbp.trees.leaf_rows import LeafColumns, LeafRows
from boostbp.trees.sparse import Matrix, Sparse, row_blocks
from boostbp.trees.tree import concat, concat_offsets


@dataclass(frozen=True, slots=True)
class LeafModel:
    """The regressions of all leaves of one tree.

    Attributes
    ----------
    scaling : (path columns, 4) float64
        See `LeafRanges.scaling`.
    weight : (sum of terms * outputs,) float64
        Per leaf (terms, outputs), in units of ``u``; shrinkage included.
        A row that misses a path column has ``u = 0`` there, the leaf's mean.
    """

    paths: LeafColumns
    scaling: Floats
    weight: Floats
    n_outputs: int

    @classmethod
    def zero(cls) -> LeafModel:
        """Return one leaf that reads nothing, and predicts 0 for one output."""
        return cls(LeafColumns.everywhere(np.empty(0, np.int32)), np.empty((0, 4)), np.zeros(1), 1)

    def leaves(self, first_output: int = 0) -> kernels.Leaves:
        """Return the regressions as those of a forest of one tree, for the kernels."""
        n_leaves = len(self.paths.start) - 1
        weight_start = np.zeros(n_leaves + 1, np.int64)
        np.cumsum(self.paths.n_terms * self.n_outputs, out=weight_start[1:])
        return kernels.Leaves(
            np.array([0, n_leaves]), np.array([[first_output, self.n_outputs]]), np.array([self.paths.degree]),
            self.paths.start.astype(np.int64), self.paths.column, self.scaling, weight_start, self.weight,
        )  # fmt: skip

    def add_rows(self, blocks: Sequence[LeafRows], out: Floats, n_threads: int = 1) -> None:
        """Add the values of training rows, grouped by leaf, to `out`, (outputs, rows)."""

        def add_block(rows: LeafRows) -> None:
            kernels.add_values(
                rows.start, rows.order, rows.first, self.paths.start, rows.values, self.paths.degree, self.scaling,
                self.weight, out,
            )  # fmt: skip

        threads.parallel_map(add_block, blocks, n_threads)

    def coefficients(self, leaf: int) -> Floats:
        """Return the weights of one leaf in the user's units, (terms, outputs): constant, columns, squares of columns.

        With ``u = (z - c) s``, ``w0 + w1 u + w2 u^2`` is
        ``(w0 - w1 c s + w2 c^2 s^2) + (w1 s - 2 w2 c s^2) z + w2 s^2 z^2``.
        """
        begin, end = self.paths.start[leaf], self.paths.start[leaf + 1]
        terms = self.paths.n_terms
        first = int((terms[:leaf] * self.n_outputs).sum())
        w = self.weight[first : first + terms[leaf] * self.n_outputs].reshape(-1, self.n_outputs)
        center, scale = self.scaling[begin:end, 0][:, None], self.scaling[begin:end, 1][:, None]
        k = end - begin
        shift = center * scale
        with np.errstate(over="ignore"):  # a weight may exceed float64 in the user's units
            linear, square = w[1 : 1 + k], w[1 + k :] if self.paths.degree == 2 else np.zeros((k, self.n_outputs))
            constant = w[0] - (linear * shift).sum(0) + (square * shift**2).sum(0)
            parts = [constant[None], (linear - 2 * square * shift) * scale, square * scale * scale]
        return np.concatenate(parts[: 1 + self.paths.degree])


def add_to(out: Floats, leaves: kernels.Leaves, leaf: NDArray[np.integer], Z: Matrix) -> None:
    """Add the values of training rows, whose leaves, (trees, rows), are known, to `out`, (rows, outputs)."""
    if not isinstance(Z, Sparse):
        kernels.evaluate(leaves, leaf, Z, False, 0, len(Z), out)
        return
    columns, place = np.unique(leaves.column, return_inverse=True)
    leaves = leaves._replace(column=place.astype(np.int32))
    for rows in row_blocks(0, len(Z), len(columns)):
        part = Z.dense(columns, rows)
        kernels.evaluate(leaves, leaf[:, rows], part, False, 0, len(part), out[rows])


def stacked(parts: Sequence[kernels.Leaves]) -> kernels.Leaves:
    """Return the leaf regressions of several forests, one after the other."""
    fields = list(zip(*parts, strict=True)) or [()] * len(kernels.Leaves._fields)
    tree_leaf, tree_output, tree_degree, start, column, scaling, weight_start, weight = fields
    return kernels.Leaves(
        concat_offsets(tree_leaf), concat(tree_output, np.int64).reshape(-1, 2), concat(tree_degree, np.int64),
        concat_offsets(start), concat(column, np.int32), concat(scaling, np.float64).reshape(-1, 4),
        concat_offsets(weight_start), concat(weight, np.float64),
    )  # fmt: skip
