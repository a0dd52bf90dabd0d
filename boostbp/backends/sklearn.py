"""Scikit-learn's DecisionTreeRegressor: the paper's own trees, as the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from boostbp.backends.base import TreeParams
from boostbp.backends.capabilities import Capabilities
from boostbp.backends.dialects import Numbering, Ranks, alike_in_float32, largest_not_above, representable
from boostbp.backends.native_params import SKLEARN
from boostbp.runtime.arrays import Floats
from boostbp.trees.sparse import Matrix, Sparse, Table
from boostbp.trees.tree import Tree, Trees, as_trees

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeRegressor
    from sklearn.tree._tree import Tree as FittedTree


@dataclass
class SKLearnGrower:
    """The input in float32, the precision in which scikit-learn grows trees."""

    X: NDArray[np.float32] | sp.csc_matrix
    ranks: Ranks  # encodes the columns of `X` whose values scikit-learn would merge
    growth: TreeParams
    params: dict[str, Any]
    # state: `dataclasses.replace` begins with the defaults
    models: list[DecisionTreeRegressor] = field(default_factory=list, init=False)  # the trees of the last round
    _n_models: int = field(default=0, init=False)  # number of models with random draws

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one round; the weight of a row in one tree for several columns is the mean of its hessians."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            target = np.where(hess > 0, -grad / hess, 0.0)
        columns = grad.shape[1]
        groups = [slice(0, columns)] if self.growth.multi_output else [slice(j, j + 1) for j in range(columns)]
        if not self.growth.allows_split:
            return Trees.stumps(len(groups))
        with np.errstate(over="ignore", invalid="ignore"):  # its check of the input sums large numbers
            self.models = [self._model().fit(self.X, target[:, c], hess[:, c].mean(axis=1)) for c in groups]
        return self.ranks.decode(as_trees([read_tree(model.tree_) for model in self.models]))

    def fork(self, outputs: slice, seed: int) -> SKLearnGrower:
        """Return a grower on the same input."""
        return replace(self, growth=replace(self.growth, random_state=seed))

    def _model(self) -> DecisionTreeRegressor:
        from sklearn.tree import DecisionTreeRegressor  # takes some tenths of a second

        model = DecisionTreeRegressor(**self.params)
        if model.max_features is not None or model.splitter != "best":
            model.set_params(random_state=self.growth.fresh_seed(self._n_models))
            self._n_models += 1
        return model


@dataclass(frozen=True, slots=True)
class SKLearn:
    """The backend ``"sklearn"``: exact splits by squared error, on numeric columns only.

    The paper's criterion ``friedman_mse`` is the same as ``squared_error`` in scikit-learn, which has deprecated the
    former name. A fixed seed decides between splits of equal gain, so growing is a pure function; only sampled features
    or thresholds use `TreeParams.random_state`. A sparse table must not have missing values. Columns of which
    scikit-learn merges many values, in float32 or less than 1e-7 apart, are passed to it as ranks.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        missing=True, sparse=True, vector_leaf=True, extra_trees=True, colsample_bytree="node", deterministic=True,
        params=True,
    )  # fmt: skip

    def bind(self, table: Table, growth: TreeParams) -> SKLearnGrower:
        """Check the settings; see `boostbp.backends.base.Backend`."""
        growth.check_monotone(table)
        params = _native(growth)
        if growth.monotone and not table.any_missing:  # scikit-learn supports no constraints with missing values
            params["monotonic_cst"] = list(growth.monotone)
        ranks = Ranks.of(table, partial(alike_in_float32, within=1e-7))  # scikit-learn's FEATURE_THRESHOLD
        return SKLearnGrower(_float32(ranks.encode(table.X)), ranks, growth, params)


def _float32(X: Matrix) -> NDArray[np.float32] | sp.csc_matrix:
    if not isinstance(X, Sparse):
        return representable(X)
    indptr, indices, data = X.arrays
    return sp.csc_matrix((representable(data), indices, indptr), X.shape)


def read_tree(tree: FittedTree) -> Tree:
    """Return a fitted ``tree_``, which sends ``float32(x) <= threshold`` left; leaves have the order of their nodes."""
    at, _, number = Numbering.of(tree.children_left)
    left, right = tree.children_left[at], tree.children_right[at]
    impurity = tree.impurity * tree.weighted_n_node_samples
    gain = impurity[at] - impurity[left] - impurity[right]
    of_split = tree.feature[at], largest_not_above(tree.threshold[at]), number[left], number[right]
    return Tree.of(*of_split, tree.missing_go_to_left[at] != 0, gain=gain)


def _native(growth: TreeParams) -> dict[str, Any]:
    leafwise = growth.max_leaves is not None or growth.max_depth < 0
    return {
        "max_features": growth.colsample_bytree if growth.colsample_bytree < 1.0 else None,
        **SKLEARN.checked(growth.params),
        "splitter": "random" if growth.extra_trees else "best",
        "criterion": "squared_error",
        "max_depth": growth.max_depth if growth.max_depth >= 0 else None,
        "max_leaf_nodes": growth.leaves if leafwise else None,
        "min_samples_leaf": growth.min_samples_leaf,
        "random_state": 0,
    }


backend = SKLearn()
