"""LightGBM's boosters as ONNX models, with the linear terms of leaves, which other converters leave out silently."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from boostbp.backends import _lightgbm_calls
from boostbp.backends.base import LinearLeaves
from boostbp.core import Leaves
from boostbp.export.description import Description, Link
from boostbp.export.onnx_models import model_of
from boostbp.trees.basis import Polynomial
from boostbp.trees.forest import Forest
from boostbp.trees.leaves import concat_leaves, leaves_of_tree, with_missing_leaves
from boostbp.trees.tree import Tree, Trees

if TYPE_CHECKING:
    from onnx import ModelProto

_MISSING_IS_ZERO = 1  # a missing type, bits 2 and 3 of decision_type
_LINKS = {
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), "identity"),
    **dict.fromkeys(("lambdarank", "rank_xendcg", "custom"), "identity"),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "log"),
    **dict.fromkeys(("binary", "multiclassova", "cross_entropy"), "logit"),
    "multiclass": "softmax",
}


def lightgbm_linear_to_onnx(booster: object, *, dtype: Literal["float64", "float32"] = "float64") -> ModelProto:
    """Write a booster of LightGBM, with or without ``linear_tree``, as an ONNX model.

    Parameters
    ----------
    booster : lightgbm.Booster
        Trained or loaded; for an estimator, its ``booster_``. Trees up to the best iteration are used, as in its
        `predict`.
    dtype : {"float64", "float32"}
        Type of the input and of all numbers; see `to_onnx`.

    Returns
    -------
    onnx.ModelProto
        Its input ``X``, (rows, features), has NaN where a value is missing, and codes of categories as in LightGBM. Its
        output ``prediction`` is that of ``booster.predict(X)``, (rows,) or (rows, classes): a row with a missing value
        in a leaf's linear terms gets the leaf's constant. Infinite cells are read as missing.

    Raises
    ------
    ValueError
        If the booster's objective, or a parameter that changes its predictions, is not supported; the error names it.
    TypeError
        If `booster` is not a booster.
    ImportError
        If onnx is not installed.
    """
    if not hasattr(booster, "model_to_string"):
        kind = type(booster).__name__
        cure = "pass its booster_" if hasattr(booster, "booster_") else "train one by lightgbm.train"
        raise TypeError(f"booster is a {kind}, not a lightgbm.Booster: {cure}.")
    text = cast(Any, booster).model_to_string()
    head = text[: text.find("\nTree=")] if "\nTree=" in text else text
    facts = dict(re.findall(r"^(\w+)=(.*)$", head, re.MULTILINE))
    link, slope = _link_of(facts.get("objective", "custom"))
    _check(head, text)
    n_features, n_outputs = int(facts["max_feature_idx"]) + 1, int(facts["num_tree_per_iteration"])
    members = [_with_leaves(part, slope) for part in _lightgbm_calls.linear_leaves(text)]
    trees, leaves = Trees.concat([tree for tree, _ in members]), concat_leaves([leaves for _, leaves in members])
    leaves.tree_output[:, 0] = np.arange(len(members)) % n_outputs
    forest = Forest(trees, leaves, n_features, n_outputs, Polynomial(1), clip=False)
    nodes = forest.nodes
    sets = {int(j): 32 * int(nodes.cat_words[nodes.feature == j].max()) for j in nodes.feature[nodes.cat_start >= 0]}
    model = Description(
        n_features=n_features,
        forests=(forest,),
        skip=False,
        baseline=np.zeros(n_outputs),
        link=Link(link),
        one_dimensional=n_outputs == 1,
        categories={feature: np.arange(float(count)) for feature, count in sets.items()},
        truncated=True,
        facts={"model": "lightgbm.Booster", "features": facts["feature_names"].split(" ")},
    )
    return model_of(model, dtype=dtype)


def _link_of(objective: str) -> tuple[str, float]:
    """Return the name of an objective's link, and the factor of its raw outputs."""
    name, *words = objective.split(" ")
    options = {word.partition(":")[0]: word.partition(":")[2] for word in words}
    if name not in _LINKS or "sqrt" in options:
        known = ", ".join(sorted(_LINKS))
        raise ValueError(f"objective={objective!r} is not supported: use {known}, without reg_sqrt.")
    return _LINKS[name], float(options.get("sigmoid", 1.0)) if _LINKS[name] == "logit" else 1.0


def _check(head: str, text: str) -> None:
    """Refuse boosters whose predictions are not the sums of their trees, or whose trees read zeros as missing."""
    if "\naverage_output" in head:
        raise ValueError("boosting='rf' is not supported: its predictions are averages of trees. Use 'gbdt' or 'dart'.")
    words = " ".join(re.findall(r"^decision_type=(.*)$", text, re.MULTILINE)).split()
    if any(int(word) >> 2 & 3 == _MISSING_IS_ZERO for word in words):
        raise ValueError("zero_as_missing=True is not supported: graphs merge 0 and NaN. Recode zeros as NaN.")


def _with_leaves(linear: LinearLeaves, slope: float) -> tuple[Tree, Leaves]:
    """Return a tree and its leaves, in units of the features, with leaves for rows with missing values."""
    scaling = np.tile([0.0, 1.0, -np.inf, np.inf], (len(linear.features), 1))
    weight = slope * np.insert(linear.coeff, linear.start[:-1], linear.const)
    leaves = leaves_of_tree(linear.start, linear.features, scaling, weight)
    return with_missing_leaves(linear.tree, leaves, slope * linear.missing)
