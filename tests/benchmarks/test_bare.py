"""The speed suites measure the libraries alone on the trees that our layer has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import bare
from benchmarks.cases import CASES, bound, data, objective
from boostbp.backends import _lightgbm_calls, _xgboost_ubj
from boostbp.network import layers


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_bare_library_grows_the_trees_of_our_layer(backend):
    pytest.importorskip(backend)
    case = replace(CASES["small"], rounds=6, outputs=3)
    X, Y = data(case)
    inputs, goal = bound(case, X, backend), objective(Y)
    ours = layers.fit(inputs, goal).layer.forest
    booster = bare.GROW[backend](inputs, bare.gradients_of(inputs, goal), 1)
    trees = (
        _lightgbm_calls.trees_in_text(booster.model_to_string(num_iteration=-1))
        if backend == "lightgbm"
        else _xgboost_ubj.trees_in_ubj(booster.save_raw("ubj"))
    )
    assert len(trees) == ours.n_trees == 18
    np.testing.assert_array_equal(np.concatenate([tree.threshold for tree in trees]), ours.nodes.threshold)
