"""Settings of candidates: how each differs from the network that the user asked for, and where it is tried.

Functions of a problem: to the settings of a layer (single layers, output layers), to those of a network, or to whether
a candidate is tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from boostbp.backends.capabilities import capabilities_of
from boostbp.ensemble import constants
from boostbp.ensemble.problem import Problem
from boostbp.layers import LayerSettings
from boostbp.network.settings import Settings
from boostbp.trees.basis import Polynomial
from boostbp.trees.ridge import Ridge
from boostbp.trees.sparse import Sparse

__all__ = [
    "additive_base",
    "additive_units",
    "as_asked",
    "best_thresholds",
    "constant_leaves",
    "constant_leaves_few_features",
    "constant_leaves_shallow",
    "draws_no_thresholds_of_fitted_leaves",
    "draws_thresholds",
    "fits_leaves",
    "grown",
    "has_base",
    "has_directions",
    "has_hidden_trees",
    "has_numeric_columns",
    "large_leaves",
    "linear_units",
    "linear_units_cross_validated",
    "no_base",
    "no_thresholds_drawn",
    "output_layer",
    "random_thresholds",
    "random_thresholds_half_of_features",
    "random_thresholds_shallow",
    "samples_features",
    "shallow_trees",
    "slow",
    "too_many_columns",
    "trees_are_deeper",
]


def grown(layer: LayerSettings, **growth: Any) -> LayerSettings:
    """The layer with trees that are grown otherwise."""
    return replace(layer, growth=replace(layer.growth, **growth))


def _asked_layer(problem: Problem) -> LayerSettings:
    """The output layer that the user asked for, with the shrinkage of layers that are boosted to their end."""
    return replace(problem.settings.layers[-1], learning_rate=problem.shrinkage)


# Whether a candidate is tried.


def fits_leaves(problem: Problem) -> bool:
    """Whether leaves are fitted by us: libraries' own are never constant."""
    return problem.settings.layers[-1].leaves == "refit"


def draws_thresholds(problem: Problem) -> bool:
    """Whether the trees of the output layer draw their thresholds."""
    return problem.settings.layers[-1].growth.extra_trees


def no_thresholds_drawn(problem: Problem) -> bool:
    """Whether they take the best thresholds."""
    return not draws_thresholds(problem)


def draws_no_thresholds_of_fitted_leaves(problem: Problem) -> bool:
    """Whether the layer as it was asked for has best thresholds, or leaves of the library."""
    return not (fits_leaves(problem) and draws_thresholds(problem))


def trees_are_deeper(problem: Problem) -> bool:
    """Whether trees of the output layer are deeper than shallow ones."""
    depth = problem.settings.layers[-1].growth.max_depth
    return depth > constants.SHALLOW_DEPTH or depth < 0


def has_base(problem: Problem) -> bool:
    """Whether the output layer starts from a regression."""
    return problem.settings.layers[-1].base is not None


def samples_features(problem: Problem) -> bool:
    """Whether the backend can show each tree some of the features: if not, the candidate would be another one again."""
    return bool(capabilities_of(problem.backend).colsample_bytree)


def has_numeric_columns(problem: Problem) -> bool:
    """Whether a layer on the table may start from smooth functions of single columns: of all numeric ones, if few."""
    functions = any(layer.basis.has_functions for layer in problem.settings.layers)
    n_numeric = problem.table.X.shape[1] - len(problem.table.categorical)
    return not functions and 0 < n_numeric <= constants.ADDITIVE_MAX_FEATURES


def too_many_columns(problem: Problem) -> bool:
    """Whether it may not, because of too many or no numeric columns or of a basis with functions of one's own."""
    return not has_numeric_columns(problem)


def has_directions(problem: Problem) -> bool:
    """Whether sums of features make sense, and hidden units may stand beside those of the networks in one layer."""
    n_numeric = problem.table.X.shape[1] - len(problem.table.categorical)
    functions = any(layer.basis.has_functions for layer in problem.settings.layers)
    dense = not isinstance(problem.table.X, Sparse)
    return dense and n_numeric > 1 and not functions and len(problem.settings.units) == 1


def has_hidden_trees(problem: Problem) -> bool:
    """Whether there are hidden layers with trees, in place of which others can be tried."""
    return any(layer.n_estimators for layer in problem.settings.layers[:-1])


# Single layers on the features.


def slow(problem: Problem) -> LayerSettings:
    """The output layer as it was asked for, on features, boosted with small steps."""
    layer = _asked_layer(problem)
    return replace(layer, min_base_lambda=None if layer.clip else 0.0)  # features are not alike, as hidden units are


def best_thresholds(problem: Problem) -> LayerSettings:
    """Best thresholds; as it was asked for where the library fits the leaves."""
    return grown(slow(problem), extra_trees=False) if fits_leaves(problem) else slow(problem)


def random_thresholds(problem: Problem) -> LayerSettings:
    """One threshold drawn for each feature of a node."""
    return slow(problem)


def random_thresholds_shallow(problem: Problem) -> LayerSettings:
    """The same with shallow trees: few features act together."""
    return grown(slow(problem), max_depth=constants.SHALLOW_DEPTH)


def random_thresholds_half_of_features(problem: Problem) -> LayerSettings:
    """Linear leaves of many rows without a base, each tree on half of the features."""
    layer = slow(problem)
    linear = replace(layer, basis=Polynomial(1) if layer.basis == Polynomial(2) else layer.basis, base=None)
    rows = constants.LARGE_LEAVES_FACTOR * layer.growth.min_samples_leaf
    return grown(linear, min_samples_leaf=rows, colsample_bytree=constants.HALF_OF_FEATURES)


def large_leaves(problem: Problem) -> LayerSettings:
    """Best thresholds, many rows per leaf."""
    layer = best_thresholds(problem)
    return grown(layer, min_samples_leaf=constants.LARGE_LEAVES_FACTOR * layer.growth.min_samples_leaf)


def shallow_trees(problem: Problem) -> LayerSettings:
    """Best thresholds, shallow trees."""
    return grown(best_thresholds(problem), max_depth=constants.SHALLOW_DEPTH)


def additive_base(problem: Problem) -> LayerSettings:
    """Best thresholds over smooth functions of each feature."""
    return replace(best_thresholds(problem), base="additive")


def no_base(problem: Problem) -> LayerSettings:
    """Best thresholds, nothing below the trees."""
    return replace(best_thresholds(problem), base=None)


def _constant_leaves(problem: Problem) -> LayerSettings:
    """Constant leaves, of which there must be more than of regressions, in deeper trees."""
    size = {"max_depth": constants.CONSTANT_LEAVES_DEPTH, "max_leaves": constants.CONSTANT_LEAVES_MAX_LEAVES}
    ridge = Ridge(constants.CONSTANT_LEAVES_PENALTY, True, True)
    return replace(grown(_asked_layer(problem), **size), basis=Polynomial(0), base=None, ridge=ridge)


def constant_leaves(problem: Problem) -> LayerSettings:
    """Best thresholds, constant leaves: what the library does by itself."""
    return grown(_constant_leaves(problem), extra_trees=False)


def constant_leaves_shallow(problem: Problem) -> LayerSettings:
    """The same with shallow trees."""
    return grown(constant_leaves(problem), max_depth=constants.SHALLOW_DEPTH)


def constant_leaves_few_features(problem: Problem) -> LayerSettings:
    """Constant leaves, each tree on few features; random thresholds if they were asked for."""
    return grown(_constant_leaves(problem), colsample_bytree=constants.FEW_FEATURES)


# Output layers on hidden units.


def output_layer(problem: Problem) -> LayerSettings:
    """The output layer with small steps, over smooth functions of what it sees if it has a base and may."""
    layer = _asked_layer(problem)
    additive = fits_leaves(problem) and layer.base == "ridge" and has_numeric_columns(problem)
    return replace(layer, base="additive") if additive else layer


# Networks.


def as_asked(problem: Problem) -> Settings:
    """The network that the user asked for."""
    return problem.settings


def linear_units(problem: Problem) -> Settings:
    """More hidden units, all linear, under a light penalty: without trees they are cheap."""
    light = (replace(layer, base_lambda=constants.LINEAR_NETWORK_PENALTY) for layer in _without_trees(problem))
    return _with_hidden(problem.settings, light, constants.LINEAR_NETWORK_WIDTH)


def additive_units(problem: Problem) -> Settings:
    """Hidden units that are sums of smooth functions of single features."""
    return _with_hidden(problem.settings, (replace(layer, base="additive") for layer in _without_trees(problem)))


def linear_units_cross_validated(problem: Problem) -> Settings:
    """Linear hidden units under a cross-validated penalty; beside additive ones they add nothing."""
    return _with_hidden(problem.settings, _without_trees(problem))


def _without_trees(problem: Problem) -> list[LayerSettings]:
    return [replace(layer, n_estimators=0, base="ridge") for layer in problem.settings.layers[:-1]]


def _with_hidden(settings: Settings, hidden: Iterable[LayerSettings], width: int = 1) -> Settings:
    units = tuple(width * n for n in settings.units)
    return replace(settings, layers=(*hidden, settings.layers[-1]), units=units)
