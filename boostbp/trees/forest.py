"""Forest: the trees and leaf regressions of one layer, or of a part of it such as a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.core import Leaves
from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.trees import basis as bases
from boostbp.trees.basis import Basis
from boostbp.trees.leaves import concat_leaves, take_leaves, zero_leaves
from boostbp.trees.ridge import Ridge
from boostbp.trees.sparse import Matrix, Sparse, dense, row_blocks
from boostbp.trees.tree import Parts, Trees, share_rows

# Bits of a gain: three digits are enough for importances, and make files small.
GAIN_BITS = 10
# Below, building the layout of `boostbp.trees.flat` costs more than it saves.
AT_MOST_ROWS = 8
# Rows of a prediction whose leaf numbers are in memory at the same time. Arbitrary.
CHUNK = 8192


@dataclass(frozen=True, slots=True)
class Run:
    """Successive trees of a forest that were boosted together, and how their leaves were fitted: what a refit needs."""

    n_trees: int
    n_base: int = 0  # those of the base, which come first
    weight: float = 1.0  # factor on the outputs of the trees in the sum that the forest is
    degree: int = 0  # of the leaf regressions; 1 for functions of the user's own
    stage: int = 0  # runs are boosted in parallel, except that those of a later stage begin at the sum of the earlier
    short: bool = False  # whether the numbers of the leaves were rounded
    learning_rate: float = 0.0  # 0: the leaves are not fitted again, because they come from elsewhere
    ridge: Ridge = field(default_factory=Ridge)
    base: str | None = None
    base_lambda: float | None = None
    min_base_lambda: float | None = None


# Fields that mean the same in `LayerSettings`.
RUN_SETTINGS = ("learning_rate", "ridge", "base", "base_lambda", "min_base_lambda")


@dataclass(frozen=True, slots=True)
class Forest:
    """A sum of trees with regressions in their leaves: (rows, features) -> (rows, outputs)."""

    trees: Trees  # structures, by which rows reach leaves
    leaves: Leaves  # regressions in the leaves of all trees
    n_features: int
    n_outputs: int
    basis: Basis
    clip: bool = True  # whether a leaf's inputs are clipped to the range that the leaf saw in training
    n_base: int = 0  # number of trees of the base, which come first
    runs: tuple[Run, ...] = ()  # of all trees, in their order; () if no leaves can be fitted again

    @classmethod
    def concat(cls, parts: Sequence[Forest]) -> Forest:
        """Return the sum of one or more forests on the same features and outputs, with their trees in order.

        Its basis is that of the forests whose leaves read columns. Trees on [1, x] and on [1, x, x^2] can be in one
        forest, as each tree has its own degree; other bases, or different clipping, raise ValueError. Gains are rounded
        to `GAIN_BITS` bits.
        """
        # Forests of constant leaves read no column, so they can join any basis.
        reading = [part for part in parts if len(part.leaves.column)] or [parts[0]]
        first = max(reading, key=lambda forest: forest.basis.powers)
        for forest in reading:
            has_functions = forest.basis.has_functions or first.basis.has_functions
            is_another = forest.basis is not first.basis and forest.basis != first.basis
            if (has_functions and is_another) or forest.clip != first.clip:
                raise ValueError(f"forests on {first.basis!r} and {forest.basis!r} cannot be joined.")
        trees = Trees.concat([part.trees for part in parts])
        mantissa, exponent = np.frexp(trees.gain)
        gain = np.ldexp(np.rint(mantissa * 2.0**GAIN_BITS), exponent - GAIN_BITS)
        leaves = concat_leaves([part.leaves for part in parts])
        known = any(part.runs for part in parts)
        runs = [run for part in parts for run in part.runs or [Run(part.n_trees)] if run.n_trees] if known else []
        return replace(first, trees=replace(trees, gain=gain), leaves=leaves, n_base=0, runs=tuple(runs))

    def take(self, trees: Parts) -> Forest:
        """Return some of the trees, as a forest without base; a slice gives views of the arrays."""
        return replace(self, trees=self.trees.take(trees), leaves=take_leaves(self.leaves, trees), n_base=0, runs=())

    def times(self, share: float) -> Forest:
        """Return the same trees with leaf values multiplied by `share`."""
        return replace(self, leaves=self.leaves._replace(weight=share * self.leaves.weight))

    def zero(self, outputs: Sequence[int]) -> Forest:
        """Return stumps that predict 0 for some outputs of this forest, one each."""
        return replace(self, trees=Trees.stumps(len(outputs)), leaves=zero_leaves(outputs), n_base=0, runs=())

    def placed(
        self, features: NDArray[np.integer], n_features: int, first_output: int, n_outputs: int, weight: float = 1.0
    ) -> Forest:
        """Return the trees as part of another forest, with other features and outputs.

        `features` are the numbers of this forest's features among `n_features`, and `first_output` is the place of its
        first output among `n_outputs`. Outputs are multiplied by `weight`, and gains, which are squares, by its square.
        """
        trees, leaves, per_feature = self.trees, self.leaves, max(self.basis.columns_per_feature, 1)
        # Column j Q + q of the basis is function q of feature j: replace j, keep q.
        feature, function = np.divmod(leaves.column, per_feature)
        trees = replace(trees, feature=features[trees.feature].astype(np.int32), gain=weight**2 * trees.gain)
        served = leaves.tree_output + np.array([first_output, 0])
        column = (features[feature] * per_feature + function).astype(np.int32)
        leaves = leaves._replace(tree_output=served, column=column, weight=weight * leaves.weight)
        runs = tuple(replace(run, weight=weight * run.weight) for run in self.runs)
        return Forest(trees, leaves, n_features, n_outputs, self.basis, self.clip, runs=runs)

    def as_run_of(self, other: Forest) -> Forest:
        """Return the forest with the base and the run of another one, whose trees these are."""
        runs = tuple(replace(run, n_trees=self.n_trees) for run in other.runs)
        return replace(self, n_base=other.n_base, runs=runs)

    @property
    def tree_split(self) -> NDArray[np.int64]:
        """First split of each tree, and the number of all splits, (trees + 1,)."""
        return self.trees.tree_split

    @property
    def nodes(self) -> core.Nodes:
        """The splits of all trees."""
        return self.trees.nodes

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.trees)

    def route(self, X: Matrix, n_threads: int = 1) -> NDArray[Any]:
        """Return the leaf number of each row under each tree, (trees, rows)."""
        return self.trees.route(X, n_threads)

    def evaluate(self, X: Matrix, leaf: NDArray[Any], n_threads: int = 1) -> Floats:
        """Return the outputs of rows whose leaves are known, (rows, outputs)."""
        out = np.zeros((len(X), self.n_outputs))
        if isinstance(X, Sparse):
            self._by_blocks(lambda narrow, rows, part: narrow.evaluate(part, leaf[:, rows].copy()), X, out, n_threads)
            return out
        Z = bases.expand(self.basis, X)
        share_rows(lambda rows: core.evaluate(self.leaves, (leaf, Z), self.clip, *rows, out), len(X), n_threads)
        return out

    def checked(self, X: Matrix) -> Matrix:
        """Return an input as float64, C-contiguous; raise ValueError if its number of features is wrong."""
        X = X if isinstance(X, Sparse) else np.ascontiguousarray(X, np.float64)
        if len(X.shape) != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"H has shape {X.shape}: this layer was fitted to (rows, {self.n_features}).")
        return X

    def predict(self, X: Matrix, n_threads: int = 1) -> Floats:
        """Return the outputs, (rows, outputs), computed by chunks, so memory does not grow with rows times trees."""
        X = self.checked(X)
        out = np.zeros((len(X), self.n_outputs))
        if len(X) <= CHUNK and not isinstance(X, Sparse):
            leaf = np.empty((self.n_trees, len(X)), self.trees.leaf_dtype)
            core.route(self.trees.nodes, self.trees.tree_split, X, 0, len(X), leaf)
            Z = bases.expand(self.basis, X) if self.basis.has_functions else X
            core.evaluate(self.leaves, (leaf, Z), self.clip, 0, len(X), out)
            return out

        def chunk(first: int) -> None:
            out[first : first + CHUNK] = self.predict(X[first : first + CHUNK])

        if isinstance(X, Sparse):
            self._by_blocks(lambda narrow, _, part: narrow.predict(part), X, out, n_threads)
        else:
            threads.parallel_map(chunk, range(0, len(X), CHUNK), n_threads)
        return out

    def _by_blocks(
        self, work: Callable[[Forest, slice, Floats], NDArray[Any]], X: Sparse, out: NDArray[Any], n_threads: int
    ) -> None:
        """Write the results of ``work(forest, rows, X)`` on blocks of a sparse input to `out`, (rows, ...).

        Its forest has only the used features, renumbered, which the dense array has for the rows of a block.
        """
        per_feature = max(1, self.basis.columns_per_feature)
        used = np.union1d(self.trees.feature, self.leaves.column // per_feature)
        narrow = self.placed(np.searchsorted(used, np.arange(self.n_features)), len(used), 0, self.n_outputs)

        def block(rows: slice) -> None:
            out[rows] = work(narrow, rows, X.dense(used, rows))

        threads.parallel_map(block, row_blocks(0, len(X), len(used) * per_feature), n_threads)

    def vjp(
        self, X: Matrix, leaf: NDArray[Any] | None, G: Floats, n_threads: int = 1, unit: Floats | None = None
    ) -> Floats:
        """Return ``J' g`` of each row: the gradient in the inputs, (rows, features), from the gradient in the outputs.

        This is equation (1) of the paper with the Jacobian of section *Gradient of GBDT Layer*. Without `leaf`, rows
        are routed chunk by chunk. With a `unit` of each feature, (features,), it is the gradient in ``X / unit``.
        """
        if leaf is None:
            out = np.empty((len(X), self.n_features))

            def routed(first: int) -> None:
                part = X[first : first + CHUNK]
                out[first : first + CHUNK] = self.vjp(part, self.route(part), G[first : first + CHUNK], unit=unit)

            threads.parallel_map(routed, range(0, len(X), CHUNK), n_threads)
            return out
        X = dense(X)
        # *Gradient of GBDT Layer*: dT/dx is the sum over trees of the slope in the leaf of x. Indicators of leaves are
        # taken as constant. The chain rule through phi comes last.
        Z = bases.expand(self.basis, X)
        G = np.ascontiguousarray(G, np.float64)
        out, units = np.empty_like(Z), self._of_columns(unit)
        share_rows(lambda rows: core.vjp(self.leaves, (leaf, Z), self.clip, G, units, *rows, out), len(X), n_threads)
        return bases.gradient_in_features(self.basis, X, out)

    def jacobian(self, X: Matrix, leaf: NDArray[Any], n_threads: int = 1, unit: Floats | None = None) -> Floats:
        """Return the Jacobian of each row, (rows, outputs, features), in ``X / unit`` with a unit of each feature."""
        X = dense(X)
        Z = bases.expand(self.basis, X)
        out, units = np.zeros((len(X), self.n_outputs, Z.shape[1])), self._of_columns(unit)
        share_rows(lambda rows: core.jacobian(self.leaves, (leaf, Z), self.clip, units, *rows, out), len(X), n_threads)
        return bases.gradient_in_features(self.basis, X, out)

    def _of_columns(self, unit: Floats | None) -> Floats:
        """Return the unit of each column of the basis from those of the features; ones for None."""
        unit = np.ones(self.n_features) if unit is None else unit
        return np.repeat(unit, self.basis.columns_per_feature)

    def changes(
        self, A: Floats, B: Floats, leaf_a: NDArray[Any], leaf_b: NDArray[Any], n_threads: int = 1
    ) -> tuple[Floats, Floats]:
        """Return the changes of outputs from rows `A` to rows `B` by feature: two arrays, (rows, outputs, features).

        The first is the change within leaf regressions, which are sums of functions of single features, the second that
        between leaves, attributed to the feature of the split that separates the rows, whose leaves are from `route`.
        """
        a, b = [(leaf, X, bases.expand(self.basis, X)) for leaf, X in [(leaf_a, A), (leaf_b, B)]]
        smooth = np.zeros((len(A), self.n_outputs, a[2].shape[1]))
        jump = np.zeros((len(A), self.n_outputs, self.n_features))
        of_rows = self.nodes, self.tree_split, self.leaves, self.clip, a, b
        share_rows(lambda rows: core.changes(*of_rows, *rows, smooth, jump), len(A), n_threads)
        return smooth.reshape(*jump.shape, self.basis.columns_per_feature).sum(-1), jump
