"""Settings of candidates: how each differs from the user's network, and when it is tried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from problems import LAYER, problem_of
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor
from boostbp.ensemble.candidate_settings import output_layer
from boostbp.trees.basis import Elementwise

X, Y = make_friedman1(400, n_features=5, random_state=0)
HELD = make_friedman1(200, n_features=5, random_state=1)
FAST = {"hidden": {"n_estimators": 5}, "epochs": 2, "random_state": 0}


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.usefixtures("everything")
def test_of_more_rows_the_first_layer_takes_the_best_thresholds(backend, tune):
    def losses(extra_trees="auto"):
        model = BoostBPRegressor((4,), **parameters(backend=backend, deep=False, extra_trees=extra_trees, **FAST))
        return {one.name: one.loss for one in model.fit(X, Y).history_.choice.candidates}

    few = losses()
    tune(BEST_THRESHOLDS_ROWS=300)
    more, best = losses(), losses(extra_trees=False)
    assert list(few)[4] == list(best)[4] == "single layer, sampled"
    assert more["single layer"] == best["single layer"] != few["single layer"]
    if backend == "lightgbm":
        assert more["single layer, random thresholds"] == few["single layer"]
    else:  # which has best thresholds anyway
        assert list(more) == list(few)


@pytest.mark.parametrize("categories", [None, [0]])
def test_trees_of_the_first_layer_see_all_rows_of_categories(categories, tune):
    rows = np.column_stack([np.floor(4 * X[:, 0]), X[:, 1:]])

    def loss_of_the_first(fewest):
        tune(BEST_THRESHOLDS_ROWS=fewest)
        how = parameters(categorical_features=categories, extra_trees=False, quality=1, basis="quadratic", **FAST)
        return BoostBPRegressor((), **how | {"deep": False}).fit(rows, Y).history_.choice.candidates[0].loss

    assert (loss_of_the_first(300) == loss_of_the_first(1000)) is bool(categories)


@pytest.mark.usefixtures("everything")
def test_units_of_cross_validated_linear_functions_stand_in_for_additive_ones():
    waves = Elementwise([np.sin], [np.cos])
    model = BoostBPRegressor((3,), **parameters(basis=waves, **FAST)).fit(X, Y, eval_set=[HELD])
    networks = [one.name for one in model.history_.choice.candidates if one.network == one.name]
    assert networks == ["linear network", "linear network, cross-validated penalty", "network"]


def test_final_output_layers_start_from_smooth_functions_of_what_they_see_where_they_can(tune):
    ridge = replace(LAYER, base="ridge")
    assert output_layer(problem_of(layer=ridge)).base == "additive"
    assert output_layer(problem_of(layer=ridge, given=frozenset({"base"}))).base == "ridge"
    assert output_layer(problem_of(layer=replace(ridge, basis=Elementwise([np.sin], [np.cos])))).base == "ridge"
    assert output_layer(problem_of(layer=replace(LAYER, base=None))).base is None
    tune(ADDITIVE_MAX_FEATURES=2)
    assert output_layer(problem_of(layer=ridge)).base == "ridge"
