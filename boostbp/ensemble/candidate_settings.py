"""Settings of candidates: how each differs from the user's network, and when it is tried.

Each function takes a problem. It returns the settings of a layer (single layers, output layers), the settings of a
network, or whether a candidate is tried.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from boostbp.backends.capabilities import capabilities_of
from boostbp.ensemble import constants
from boostbp.ensemble.hidden_units import encoded_columns
from boostbp.ensemble.problem import Problem
from boostbp.losses import traits_of
from boostbp.network.layers import LayerSettings
from boostbp.network.settings import Settings
from boostbp.trees.basis import Polynomial
from boostbp.trees.sparse import Sparse


def varied(problem: Problem, layer: LayerSettings, **changes: Any) -> LayerSettings:
    """Return the layer with other values of fields of `LayerSpec`; fields that the user set stay."""
    free = {name: value for name, value in changes.items() if name not in problem.settings.given}
    parts = {}
    for part in ("growth", "ridge"):
        known = getattr(layer, part)
        parts[part] = replace(known, **{f.name: free.pop(f.name) for f in fields(known) if f.name in free})
    return replace(layer, **free, **parts)


def most_rounds(problem: Problem) -> int:
    """Return the limit on the rounds of a layer that is boosted while the held-out loss falls."""
    if "n_estimators" in problem.settings.given:
        return problem.settings.layers[-1].n_estimators
    return constants.MAX_PIECES * constants.PIECE_ROUNDS


def _asked_layer(problem: Problem) -> LayerSettings:
    """Return the user's output layer, with rounds and shrinkage for a layer that is boosted to its end."""
    layer = replace(problem.settings.layers[-1], n_estimators=most_rounds(problem))
    return varied(problem, layer, learning_rate=constants.SHRINKAGE)


# Conditions: whether a candidate is tried.


def fits_leaves(problem: Problem) -> bool:
    """Return whether this package fits the leaves; those of the library (``leaves="native"``) are never constant."""
    return problem.settings.layers[-1].leaves == "refit"


def trees_may_be_deeper(problem: Problem) -> bool:
    """Return whether the trees of the output layer have a depth limit that the user did not set."""
    return problem.settings.layers[-1].growth.max_depth > 0 and "max_depth" not in problem.settings.given


def may_be_constant(problem: Problem) -> bool:
    """Return whether leaves may be constants: this package fits them, and the user set no other basis."""
    layer = problem.settings.layers[-1]
    return fits_leaves(problem) and ("basis" not in problem.settings.given or layer.basis == Polynomial(0))


def may_change_base(problem: Problem) -> bool:
    """Return whether this package fits the leaves, and the user did not set the base below the trees."""
    return fits_leaves(problem) and "base" not in problem.settings.given


def has_copies(problem: Problem) -> bool:
    """Return whether the outputs are several quantiles of one target."""
    return traits_of(problem.loss).copies is not None


def has_no_copies(problem: Problem) -> bool:
    """Return whether the outputs are not several quantiles of one target, which constant leaves learn slowly."""
    return not has_copies(problem)


def has_base(problem: Problem) -> bool:
    """Return whether the output layer starts from a regression."""
    return problem.settings.layers[-1].base is not None


def is_free(problem: Problem) -> bool:
    """Return whether there are no monotone constraints."""
    return not problem.settings.layers[-1].growth.monotone


def has_numeric_columns(problem: Problem) -> bool:
    """Return whether the numeric columns are few enough for a layer that starts from smooth functions of them."""
    return not _has_functions(problem) and 0 < _n_numeric(problem) <= constants.ADDITIVE_MAX_FEATURES


def has_no_additive_units(problem: Problem) -> bool:
    """Return whether there is no additive network, because `has_numeric_columns` is False."""
    return not has_numeric_columns(problem)


def has_directions(problem: Problem) -> bool:
    """Return whether sums of features make sense, and networks have one hidden layer, which such units can join."""
    dense = not isinstance(problem.rows.X, Sparse)
    free = is_free(problem) and not _has_functions(problem)
    return dense and free and _n_numeric(problem) > 1 and len(problem.settings.units) == 1


def has_many_levels(problem: Problem) -> bool:
    """Return whether a category has many levels, and networks have one hidden layer, which their means can join."""
    one_layer = len(problem.settings.units) == 1 and not isinstance(problem.rows.X, Sparse)
    return one_layer and is_free(problem) and bool(encoded_columns(problem))


def _n_numeric(problem: Problem) -> int:
    return problem.rows.X.shape[1] - len(problem.rows.table.categorical)


def _has_functions(problem: Problem) -> bool:
    """Return whether a layer has a basis of the user's own functions."""
    return any(layer.basis.has_functions for layer in problem.settings.layers)


def has_rows_for_best_thresholds(problem: Problem) -> bool:
    """Return whether there are enough rows for best thresholds to beat random ones on most tables."""
    return fits_leaves(problem) and problem.n_rows >= constants.BEST_THRESHOLDS_ROWS


def has_thresholds_left_out(problem: Problem) -> bool:
    """Return whether the first layer takes the best thresholds although random ones were asked for."""
    drawn = problem.settings.layers[-1].growth.extra_trees and "extra_trees" not in problem.settings.given
    return drawn and has_rows_for_best_thresholds(problem)


def has_thresholds_as_asked(problem: Problem) -> bool:
    """Return whether the first layer has the thresholds that were asked for."""
    return fits_leaves(problem) and not has_thresholds_left_out(problem)


def has_hidden_trees(problem: Problem) -> bool:
    """Return whether there are hidden layers with trees, which a cheaper network could replace."""
    return any(layer.n_estimators for layer in problem.settings.layers[:-1])


# Single layers on the features.


def layer_as_asked(problem: Problem) -> LayerSettings:
    """Return the user's output layer on the features, boosted with small steps."""
    layer = _asked_layer(problem)
    # Unlike hidden units, features differ in scale and meaning: the smallest penalty of the base depends on the column.
    return replace(layer, min_base_lambda=None if layer.clip else 0.0)


def first_layer(problem: Problem) -> LayerSettings:
    """Return `layer_as_asked`; with many rows, best thresholds and, if there are no categories, sampled rows."""
    layer = layer_as_asked(problem)
    if has_rows_for_best_thresholds(problem):
        rows = {} if problem.rows.table.categorical else {"subsample": constants.SAMPLED_ROWS}
        layer = varied(problem, layer, extra_trees=False, **rows)
    return layer


def deep_trees(problem: Problem) -> LayerSettings:
    """Return a layer of deeper trees with best thresholds and smaller leaves, each grown on some of the rows."""
    layer = layer_as_asked(problem)
    depth, leaf = layer.growth.max_depth + constants.DEEPER_BY, _half_of_the_rows_per_leaf(layer)
    rows = {"min_samples_leaf": leaf, "subsample": constants.SAMPLED_ROWS}
    return varied(problem, layer, extra_trees=False, max_depth=depth, **rows)


def sampled(problem: Problem) -> LayerSettings:
    """Return a layer with best thresholds and smaller leaves; each tree is grown on some of the rows and features."""
    layer = layer_as_asked(problem)
    rows = {"min_samples_leaf": _half_of_the_rows_per_leaf(layer), "subsample": constants.SAMPLED_ROWS}
    return _on_some_features(varied(problem, layer, extra_trees=False, **rows), problem)


def sampled_without_base(problem: Problem) -> LayerSettings:
    """Return `sampled` without a base."""
    return replace(sampled(problem), base=None)


def large_leaves_without_base(problem: Problem) -> LayerSettings:
    """Return a layer of linear leaves of many rows without a base, each tree grown on some of the features."""
    layer = layer_as_asked(problem)
    basis = Polynomial(1) if layer.basis == Polynomial(2) else layer.basis
    rows = constants.LARGE_LEAVES_FACTOR * layer.growth.min_samples_leaf
    return _on_some_features(varied(problem, layer, basis=basis, base=None, min_samples_leaf=rows), problem)


def additive_base(problem: Problem) -> LayerSettings:
    """Return the first layer over a base of smooth functions of each feature."""
    return replace(first_layer(problem), base="additive")


def constant_leaves(problem: Problem) -> LayerSettings:
    """Return a layer of deeper trees with constant leaves of one row or more, each grown on some of the rows.

    Each tree sees all features: sampling half of them ruins the model where every tree needs a certain one or two.
    """
    layer = replace(_asked_layer(problem), basis=Polynomial(0), base=None)
    size = {"max_depth": constants.CONSTANT_LEAVES_DEPTH, "max_leaves": constants.CONSTANT_LEAVES_MAX_LEAVES}
    ridge = {"reg_lambda": constants.CONSTANT_LEAVES_PENALTY, "penalize_constant": True, "standardize": True}
    rows = {"min_samples_leaf": 1, "subsample": constants.SAMPLED_ROWS}
    return varied(problem, layer, extra_trees=False, **size, **ridge, **rows)


def large_constant_leaves(problem: Problem) -> LayerSettings:
    """Return a layer of trees as large as LightGBM's and scikit-learn's defaults, each grown on some of the rows."""
    size = {"max_leaves": constants.LIBRARY_MAX_LEAVES, "min_samples_leaf": constants.LIBRARY_MIN_SAMPLES_LEAF}
    return varied(problem, constant_leaves(problem), max_depth=-1, reg_lambda=0.0, **size)


def _half_of_the_rows_per_leaf(layer: LayerSettings) -> int:
    return max(layer.growth.min_samples_leaf // 2, 1)


def _on_some_features(layer: LayerSettings, problem: Problem) -> LayerSettings:
    """Return the layer with trees on some of the features, if there are many and the backend can sample them."""
    can = capabilities_of(problem.backend).colsample_bytree
    if not can or problem.rows.X.shape[1] < constants.MIN_FEATURES_SAMPLED:
        return layer
    return varied(problem, layer, colsample_bytree=constants.SAMPLED_FEATURES)


# Output layers on hidden units.


def output_layer(problem: Problem) -> LayerSettings:
    """Return the output layer with small steps, and with smooth functions of its inputs as base if the base is free."""
    layer = _asked_layer(problem)
    additive = may_change_base(problem) and layer.base == "ridge" and has_numeric_columns(problem)
    return replace(layer, base="additive") if additive else layer


# Networks.


def as_asked(problem: Problem) -> Settings:
    """Return the settings of the user's network."""
    return problem.settings


def linear_units(problem: Problem) -> Settings:
    """Return a network with more hidden units, which are linear under a light penalty. Without trees they are cheap."""
    return _without_trees(problem, constants.LINEAR_NETWORK_WIDTH, base_lambda=constants.LINEAR_NETWORK_PENALTY)


def additive_units(problem: Problem) -> Settings:
    """Return a network whose hidden units are sums of smooth functions of single features."""
    return _without_trees(problem, base="additive")


def linear_units_cross_validated(problem: Problem) -> Settings:
    """Return a network of linear units with a cross-validated penalty, which gains nothing beside an additive one."""
    return _without_trees(problem)


def _without_trees(problem: Problem, width: int = 1, **changes: Any) -> Settings:
    """Return a network whose hidden layers are bases without trees, with `width` times as many units."""
    changes = {"n_estimators": 0, "base": "ridge", **changes}
    *hidden, output = problem.settings.layers
    units = tuple(width * n for n in problem.settings.units)
    return replace(problem.settings, layers=(*(replace(layer, **changes) for layer in hidden), output), units=units)
