"""A weighted sum of networks is a network."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters
from helpers import BACKENDS
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor, Elementwise
from boostbp.ensemble.weighted_sum import weighted_sum

X, Y = make_friedman1(250, n_features=5, random_state=0)
ROWS = make_friedman1(80, n_features=5, random_state=1)[0]
SHARED = {"n_estimators": 5, "epochs": 1, "random_state": 0, "deep": True, "early_stopping": False}


def network(sizes, X=X, **changes):
    return BoostBPRegressor(sizes, **parameters(**SHARED | changes)).fit(X, Y).network_


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "kinds",
    [
        [((3,), {}), ((2,), {"start": "noise"})],
        [((3,), {}), ((), {}), ((), {"basis": "constant", "base": "zero"})],
        [((3,), {"skip": True}), ((2,), {}), ((), {})],
        [((3, 2), {}), ((2, 2), {"skip": True}), ((), {})],
        [((), {}), ((), {"max_depth": 2})],
        [((), {"basis": "linear"}), ((), {}), ((3,), {"basis": "linear"})],
    ],
    ids=["deep", "deep and single", "skip", "two hidden layers", "single", "two bases"],
)
def test_sum_is_the_weighted_sum(backend, kinds):
    networks = [network(sizes, backend=backend, **changes) for sizes, changes in kinds]
    weights = [0.5, -1.25, 0.75][: len(networks)]
    whole = weighted_sum(networks, weights)
    expected = sum(weight * one.predict(ROWS) for weight, one in zip(weights, networks, strict=True))
    np.testing.assert_allclose(whole.predict(ROWS), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    J = sum(weight * one.jacobian(ROWS) for weight, one in zip(weights, networks, strict=True))
    np.testing.assert_allclose(whole.jacobian(ROWS), J, rtol=0, atol=1e-12 * np.abs(J).max())


def test_categories_of_all_networks_are_kept():
    table = pd.DataFrame(X[:, :3], columns=list("abc"))
    table["group"] = pd.Categorical(np.digitize(X[:, 3], [0.2, 0.4, 0.6, 0.8]))
    y = Y + 9 * (np.abs(X[:, 3] - 0.5) > 0.3)
    params = {"skip": True, "backend_params": {"min_data_per_group": 5, "cat_smooth": 1.0}}
    models = [BoostBPRegressor(sizes, **parameters(**SHARED | params)).fit(table, y) for sizes in ((3,), (2,), ())]
    codes = models[0]._read(table).X
    networks = [model.network_ for model in models]
    assert sum((layer.forest.nodes.cat_start >= 0).any() for one in networks for layer in one.layers) > 1
    expected = sum(one.predict(codes) for one in networks) / 3
    np.testing.assert_allclose(weighted_sum(networks, [1 / 3] * 3).predict(codes), expected, rtol=1e-10)


def test_shared_hidden_layers_stand_in_the_sum_once():
    below = network((3,))
    above = type(below)((below.layers[0], network((3,), start="noise").layers[1]), below.baseline)
    whole = weighted_sum([below, above], [0.5, 0.5])
    assert whole.layers[0].forest.n_outputs == 3
    expected = (below.predict(ROWS) + above.predict(ROWS)) / 2
    np.testing.assert_allclose(whole.predict(ROWS), expected, rtol=1e-10)


def test_network_of_weight_zero_gives_its_hidden_layer_only():
    single, deep = network(()), network((3,))
    whole = weighted_sum([single, deep], [1.0, 0.0])
    np.testing.assert_array_equal(whole.predict(ROWS), whole.forward(ROWS)[0][-1])
    np.testing.assert_allclose(whole.predict(ROWS), single.predict(ROWS), rtol=1e-12)
    np.testing.assert_array_equal(whole.representation(ROWS, 1), deep.representation(ROWS, 1))
    assert whole.layers[1].forest.n_trees == single.layers[0].forest.n_trees


def test_networks_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="different depth"):
        weighted_sum([network((3,)), network((3, 2))], [0.5, 0.5])
    with pytest.raises(ValueError, match="cannot be joined"):
        weighted_sum([network((3,)), network((3,), basis=Elementwise([np.sin], [np.cos]))], [0.5, 0.5])
    with pytest.raises(ValueError, match="cannot be joined"):
        weighted_sum([network((3,)), network((3,), clip=False)], [0.5, 0.5])
