"""A backend of one's own: scikit-learn's ExtraTreeRegressor, which draws every threshold, under a network of layers.

python examples/own_backend.py [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.tree import ExtraTreeRegressor

from boostbp import BoostBPRegressor, check_backend
from boostbp.backends import Capabilities, Table, TreeParams
from boostbp.backends.dialects import Numbering, largest_not_above, representable
from boostbp.trees.tree import Tree

Floats = NDArray[np.float64]


class ExtraTrees:
    """Trees that take the best of one random threshold for each feature."""

    capabilities = Capabilities(missing=True, vector_leaf=True, colsample_bytree="node")

    def bind(self, table: Table, growth: TreeParams) -> ExtraTreesGrower:
        """Scikit-learn sees float32; there is nothing to bin."""
        return ExtraTreesGrower(representable(table.X), growth, np.random.RandomState(growth.random_state % 2**32))


@dataclass
class ExtraTreesGrower:
    """The input, and a stream of random numbers."""

    X: NDArray[np.float32]
    growth: TreeParams
    random: np.random.RandomState
    last: list[Any] = field(default_factory=list)  # the trees of the last round, as scikit-learn holds them

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """One tree for each column, or one for all of them."""
        target = np.divide(-grad, hess, out=np.zeros_like(grad), where=hess > 0)
        each = [slice(j, j + 1) for j in range(grad.shape[1])]
        columns = [slice(None)] if self.growth.multi_output else each
        if not self.growth.allows_split:
            return [Tree.stump() for _ in columns]
        self.last = [self._model().fit(self.X, target[:, c], hess[:, c].mean(axis=1)).tree_ for c in columns]
        return [read(tree) for tree in self.last]

    def fork(self, outputs: slice, seed: int) -> ExtraTreesGrower:
        """Another stream on the same input."""
        return ExtraTreesGrower(self.X, self.growth, np.random.RandomState(seed % 2**32))

    def _model(self) -> ExtraTreeRegressor:
        growth = self.growth
        by_gain = growth.max_leaves is not None or growth.max_depth < 0
        return ExtraTreeRegressor(
            max_features=growth.colsample_bytree,
            max_depth=growth.max_depth if growth.max_depth >= 0 else None,
            max_leaf_nodes=growth.leaves if by_gain else None,
            min_samples_leaf=growth.min_samples_leaf,
            random_state=self.random.randint(2**31),  # anew for each tree
        )


def read(tree: Any) -> Tree:
    """A tree of scikit-learn, which sends ``float32(x) <= threshold`` left, as ours."""
    splits, _, number = Numbering.of(tree.children_left)
    return Tree.of(
        tree.feature[splits],
        largest_not_above(tree.threshold[splits]),
        number[tree.children_left[splits]],
        number[tree.children_right[splits]],
        tree.missing_go_to_left[splits] != 0,
    )


def leaf_of(grower: ExtraTreesGrower, rows: Floats) -> NDArray[np.intp]:
    """Scikit-learn's own leaf of each row under the last tree, numbered as in ours."""
    [tree] = grower.last
    return np.searchsorted(Numbering.of(tree.children_left).leaves, tree.apply(representable(rows)))


def main() -> None:
    """Check the backend, then train a network on it, and the same one on LightGBM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer epochs")
    args = parser.parse_args()
    check_backend(ExtraTrees(), leaf_of=leaf_of)
    print("ExtraTrees keeps all duties and can do what it says.")
    X, y = make_friedman1(1500, 8, noise=1.0, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    for backend in (ExtraTrees(), "lightgbm"):
        name = backend if isinstance(backend, str) else type(backend).__name__
        model = BoostBPRegressor((16,), backend=backend, epochs=3 if args.quick else 30, deep=True, random_state=0)
        print(f"{name:<11} R2 {model.fit(X, y).score(X_test, y_test):.3f}")


if __name__ == "__main__":
    main()
