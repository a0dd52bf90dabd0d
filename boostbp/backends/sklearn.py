"""Scikit-learn's DecisionTreeRegressor: the paper's own trees, as the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from boostbp import checks
from boostbp.backends.base import Table, TreeParams
from boostbp.backends.capabilities import Capabilities
from boostbp.backends.dialects import Numbering, largest_not_above, representable
from boostbp.backends.native_params import AMOUNT, COUNT, MONOTONE, SHARE, Check, Natives
from boostbp.backends.ranks import Ranks
from boostbp.extras import require
from boostbp.floats import Floats
from boostbp.trees.sparse import Matrix, Sparse
from boostbp.trees.tree import Tree


def _features(name: str, value: Any) -> Any:
    """Of `max_features`: a number, a share or a word."""
    if value is None or isinstance(value, str):
        return checks.one_of(name, value, ("sqrt", "log2", None))
    return SHARE(name, value) if isinstance(value, float | np.floating) else COUNT(name, value)


def _least_rows(name: str, value: Any) -> Any:
    """Of `min_samples_split`: a number or a share."""
    if isinstance(value, float | np.floating) and value <= 1:
        return SHARE(name, value)
    return checks.whole(name, value, 2, checks.LARGEST_INT)


# What values may be, by scikit-learn's documentation.
_TAKES: dict[str, Check] = {
    "ccp_alpha": AMOUNT,
    "max_features": _features,
    "min_impurity_decrease": AMOUNT,
    "min_samples_split": _least_rows,
    "min_weight_fraction_leaf": partial(checks.at_least, least=0, most=0.5),
}
_REPLACED_BY = {
    "max_depth": "max_depth",
    "max_leaf_nodes": "max_leaves",
    "min_samples_leaf": "min_samples_leaf",
    "random_state": "random_state",
    "splitter": "extra_trees",
}
_REASONS = {
    "criterion": "a tree fits -grad / hess by weighted squared error. Leave it out.",
    "monotonic_cst": MONOTONE,
}
_SQUARED_ERROR = ("squared_error", "friedman_mse")  # one criterion under two names; the second is deprecated
_NATIVES = Natives(
    "scikit-learn's DecisionTreeRegressor",
    takes=_TAKES,
    reasons=_REASONS,
    replaced_by=_REPLACED_BY,
    harmless={"criterion": _SQUARED_ERROR},
)


@dataclass
class SKLearnGrower:
    """The input in float32, in which scikit-learn grows trees."""

    X: Any
    ranks: Ranks  # encodes the columns of `X` whose values scikit-learn would merge
    growth: TreeParams
    params: dict[str, Any]
    models: list[Any] = field(default_factory=list)  # the trees of the last round, as scikit-learn holds them
    _spent: int = 0

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one round; see `boostbp.backends.base.Grower`.

        One tree for several columns weighs a row by the mean of its hessians.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            target = np.where(hess > 0, -grad / hess, 0.0)
        columns = grad.shape[1]
        together = [slice(0, columns)] if self.growth.shared else [slice(j, j + 1) for j in range(columns)]
        if not self.growth.allows_split:
            return [Tree.stump() for _ in together]
        with np.errstate(over="ignore", invalid="ignore"):  # its check of the input sums large numbers
            self.models = [self._model().fit(self.X, target[:, c], hess[:, c].mean(axis=1)) for c in together]
        return [self.ranks.decode_one(read(model.tree_)) for model in self.models]

    def fork(self, outputs: slice, seed: int) -> SKLearnGrower:
        """A sibling on the same input."""
        return replace(self, growth=replace(self.growth, random_state=seed), models=[], _spent=0)

    def _model(self) -> Any:
        model = _library().DecisionTreeRegressor(**self.params)
        if model.max_features is not None or model.splitter != "best":
            # Another seed for each tree, or sampling would repeat itself.
            model.set_params(random_state=(self.growth.random_state + 7919 * self._spent) % 2**31)
            self._spent += 1
        return model


@dataclass(frozen=True, slots=True)
class SKLearn:
    """The backend ``"sklearn"``: exact splits by squared error, on numeric columns only.

    The paper's criterion ``friedman_mse`` is the same as ``squared_error`` in scikit-learn, which has
    deprecated the former name. Equal gains are told apart by a fixed seed, so that growing is a pure
    function; only sampled features or thresholds use `TreeParams.random_state`. A sparse table has no missing values.
    Columns of which scikit-learn merges many values, in float32 or less than 1e-7 apart, are given to it as ranks.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        missing=True,
        sparse=True,
        vector_leaf=True,
        extra_trees=True,
        colsample_bytree="node",
        deterministic=True,
        params=True,
    )

    def bind(self, table: Table, growth: TreeParams) -> SKLearnGrower:
        """Check the settings; see `boostbp.backends.base.Backend`."""
        params, signs = _native(growth), growth.monotone_on(table)
        if signs and not table.any_missing:  # with missing values scikit-learn takes no constraints
            params["monotonic_cst"] = signs
        ranks = Ranks.of(table, _alike)
        return SKLearnGrower(_float32(ranks.encode(table.X)), ranks, growth, params)


def _alike(values: Floats) -> NDArray[np.bool_]:
    """Return whether scikit-learn merges each of ascending values, (..., n), with the next: ``FEATURE_THRESHOLD``."""
    single = representable(values)
    return np.asarray(single[..., 1:] <= single[..., :-1] + np.float32(1e-7))


def _float32(X: Matrix) -> Any:
    if not isinstance(X, Sparse):
        return representable(X)
    indptr, indices, data = X.arrays
    return sp.csc_matrix((representable(data), indices, indptr), X.shape)


def read(tree: Any) -> Tree:
    """A fitted ``tree_`` of scikit-learn as `Tree`; leaves are numbered in the order of their nodes.

    Scikit-learn sends ``float32(x) <= threshold`` left, with a threshold in float64.
    """
    at, _, number = Numbering.of(tree.children_left)
    left, right = tree.children_left[at], tree.children_right[at]
    weight = tree.weighted_n_node_samples
    impurity = tree.impurity * weight
    return Tree.of(
        tree.feature[at],
        largest_not_above(tree.threshold[at]),
        number[left],
        number[right],
        tree.missing_go_to_left[at] != 0,
        gain=impurity[at] - impurity[left] - impurity[right],
    )


def _library() -> Any:
    require("sklearn", extra="all", what="backend='sklearn'")
    return require("sklearn.tree", extra="all", what="backend='sklearn'")


def _native(growth: TreeParams) -> dict[str, Any]:
    native = _NATIVES.checked(growth.params, {name: name for name in _library().DecisionTreeRegressor().get_params()})
    leafwise = growth.max_leaves is not None or growth.max_depth < 0
    return {
        "max_features": growth.colsample_bytree if growth.colsample_bytree < 1.0 else None,
        **native,
        "splitter": "random" if growth.extra_trees else "best",
        "criterion": "squared_error",
        "max_depth": growth.max_depth if growth.max_depth >= 0 else None,
        "max_leaf_nodes": growth.leaves if leafwise else None,
        "min_samples_leaf": growth.min_samples_leaf,
        "random_state": 0,
    }


backend = SKLearn()
requires = ("sklearn",)
