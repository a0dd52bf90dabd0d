"""Forest: the packed trees and leaf regressions of one layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.trees import kernels, threads
from boostbp.trees.basis import Basis
from boostbp.trees.ridge import LeafModel
from boostbp.trees.tree import Tree, joined

__all__ = ["Forest", "Member"]

Floats = NDArray[np.float64]
CHUNK = 8192  # rows whose leaf numbers are held at once when nobody asks to keep them


class Member(NamedTuple):
    """A tree of a forest, its leaf regressions, and the first of the outputs that it serves."""

    tree: Tree
    model: LeafModel
    first_output: int


@dataclass(frozen=True, slots=True)
class Forest:
    """A sum of trees with regressions in their leaves: (rows, features) -> (rows, outputs).

    Attributes
    ----------
    n_features, n_outputs : int
    basis : Basis
    clip : bool
        Whether a leaf's inputs are clipped to the range that the leaf saw in training.
    tree_split : (trees + 1,) int64
        First split of each tree in `nodes`.
    nodes : kernels.Nodes
    leaves : kernels.Leaves
    gain : (splits,) float64
    """

    n_features: int
    n_outputs: int
    basis: Basis
    clip: bool
    tree_split: NDArray[np.int64]
    nodes: kernels.Nodes
    leaves: kernels.Leaves
    gain: Floats

    @classmethod
    def pack(
        cls, members: Sequence[Member], *, n_features: int, n_outputs: int, basis: Basis, clip: bool = True
    ) -> Forest:
        """Put trees one after the other into flat arrays."""
        trees = [member.tree for member in members]
        models = [member.model for member in members]
        nodes, tree_split = joined(trees)
        leaves = kernels.Leaves(
            _starts([tree.n_leaves for tree in trees]),
            np.array([[m.first_output, m.model.n_outputs] for m in members], np.int64).reshape(-1, 2),
            np.array([model.paths.degree for model in models], np.int64),
            _starts(_join([np.diff(model.paths.start) for model in models], np.int64)),
            _join([model.paths.column for model in models], np.int32),
            _join([model.frame for model in models], np.float64).reshape(-1, 4),
            _starts(_join([model.paths.n_terms * model.n_outputs for model in models], np.int64)),
            _join([model.weight for model in models], np.float64),
            _join([model.fallback for model in models], np.float64),
        )
        gain = _join([tree.gain for tree in trees], np.float64)
        return cls(n_features, n_outputs, basis, clip, tree_split, nodes, leaves, gain)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_split) - 1

    @property
    def leaf_dtype(self) -> Any:
        """Smallest integer type that holds the leaf numbers of a tree."""
        most = int(np.diff(self.leaves.tree_leaf).max(initial=1)) - 1
        return np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.int32

    def route(self, X: Floats, n_threads: int = 1) -> NDArray[Any]:
        """Leaf number of each row under each tree, (trees, rows)."""
        leaf = np.empty((self.n_trees, len(X)), self.leaf_dtype)
        threads.spread(
            lambda rows: kernels.route(self.nodes, self.tree_split, X, *rows, leaf),
            _parts(len(X), n_threads),
            n_threads,
        )
        return leaf

    def evaluate(self, X: Floats, leaf: NDArray[Any], n_threads: int = 1) -> Floats:
        """Outputs of rows whose leaves are known, (rows, outputs)."""
        Z = self.basis.expand(X)
        out = np.zeros((len(X), self.n_outputs))
        threads.spread(
            lambda rows: kernels.evaluate(self.leaves, leaf, Z, self.clip, *rows, out),
            _parts(len(X), n_threads),
            n_threads,
        )
        return out

    def predict(self, X: Floats, n_threads: int = 1) -> Floats:
        """Outputs, (rows, outputs), in chunks: memory does not grow with rows x trees."""
        out = np.empty((len(X), self.n_outputs))

        def chunk(first: int) -> None:
            part = X[first : first + CHUNK]
            out[first : first + CHUNK] = self.evaluate(part, self.route(part))

        threads.spread(chunk, range(0, len(X), CHUNK), n_threads)
        return out

    def vjp(self, X: Floats, leaf: NDArray[Any], G: Floats, n_threads: int = 1) -> Floats:
        """``J' g`` of each row: a gradient in the outputs, (rows, outputs), as one in the inputs, (rows, features).

        Equation (1) of the paper with the Jacobian of section *Gradient of GBDT Layer*.
        """
        Z = self.basis.expand(X)
        G = np.ascontiguousarray(G, np.float64)
        out = np.zeros_like(Z)
        threads.spread(
            lambda rows: kernels.pull_back(self.leaves, leaf, Z, self.clip, G, *rows, out),
            _parts(len(X), n_threads),
            n_threads,
        )
        return self.basis.pull(X, out)

    def jacobian(self, X: Floats, leaf: NDArray[Any], n_threads: int = 1) -> Floats:
        """Jacobian of each row, (rows, outputs, features)."""
        Z = self.basis.expand(X)
        out = np.zeros((len(X), self.n_outputs, Z.shape[1]))
        threads.spread(
            lambda rows: kernels.jacobian(self.leaves, leaf, Z, self.clip, *rows, out),
            _parts(len(X), n_threads),
            n_threads,
        )
        return self.basis.pull(X, out)


def _parts(n_rows: int, n_threads: int) -> list[tuple[int, int]]:
    """One range of rows per thread; rows do not depend on each other, so the split changes no result."""
    size = max(1, -(-n_rows // n_threads))
    return [(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def _join(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.empty(0, dtype)


def _starts(sizes: Any) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
