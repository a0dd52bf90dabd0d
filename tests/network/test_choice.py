"""Weights of the parts of a model, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from flat_parameters import parameters
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor
from boostbp.model.health import HealthWarning, health_of, warn_if_ill
from boostbp.network.choice import NETWORK, CandidateResult, ModelChoice, weight_in_words
from tests.model.models import LIBRARIES, fitted
from tests.support.studies import weighed_at


@pytest.mark.parametrize("backend", LIBRARIES)
def test_of_a_weighed_model_it_is_the_network_with_most_weight(backend, weights_of):
    weights_of(lambda one: 1.0)
    X, y = make_friedman1(500, n_features=5, random_state=0)
    settings = {"backend": backend, "hidden": {"n_estimators": 4}, "epochs": 2, "random_state": 0}
    callbacks = [lambda epoch: None]  # which want the network, whatever it promises
    weighed, alone = (
        BoostBPRegressor((3,), **parameters(deep=deep, **settings)).fit(X, y, callbacks=callbacks)
        for deep in ("auto", True)
    )
    health = weighed.health()
    assert 0.0 < health.weight < 1.0
    name, candidates = weighed.history_.network, weighed.history_.choice.candidates
    networks = {one.network for one in candidates} - {None}
    weights = {network: sum(one.weight for one in candidates if one.network == network) for network in networks}
    assert health.weight == pytest.approx(weights[name]) == pytest.approx(max(weights.values()))
    assert f", of a network with {weight_in_words(health.weight)}:" in str(health).splitlines()[0]
    if name == NETWORK:  # its units stand among those of others
        assert health.layers == alone.health().layers
        shown = weighed.hidden_representation(X, -1)
        assert all((shown == unit[:, None]).all(axis=0).any() for unit in alone.transform(X).T)
    assert alone.health().weight == alone.history_.weight(NETWORK)
    plain = BoostBPRegressor((3,), **parameters(deep=True, early_stopping=False, **settings)).fit(X, y)
    assert plain.health().weight == 1.0
    assert str(plain.health()).startswith(f"Hidden layers at epoch {plain.health().epoch}:")


def test_weights_of_networks_add_up():
    history = fitted("regressor", "lightgbm")[0].history_
    assert (history.weight(), history.weight(NETWORK)) == (1.0, 1.0)
    candidates = (
        CandidateResult("single layer", 1.0, 0.2, None),
        CandidateResult("network", 1.0, 0.1, NETWORK),
        CandidateResult("network, final output layer", 1.0, 0.3, NETWORK),
        CandidateResult("linear network", 1.0, 0.4, "linear network"),
    )
    average = replace(history, choice=ModelChoice(candidates, 0.0, 0.1))
    assert average.weight() == pytest.approx(0.8)
    assert average.weight(NETWORK) == pytest.approx(0.4)
    assert average.weight("linear network") == 0.4


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (1.0, ""),
        (1.0 - 1e-16, ""),
        (0.996, "100% of the weight in the model"),
        (0.345, "34% of the weight in the model"),
        (0.001, "less than 1% of the weight in the model"),
        (0.0, "no weight in the model"),
    ],
)
def test_weights_in_words(weight, words):
    assert weight_in_words(weight) == words


def test_what_is_said_of_a_network_without_weight_says_so():
    history = fitted("regressor", "lightgbm")[0].history_
    ill = replace(history, epochs=[history[0], *[replace(e, stds=(1e-9, 1.0)) for e in history.epochs[1:]]])
    ill = replace(ill, best_epoch=1)
    left_out, part = weighed_at(ill, 0.0), weighed_at(ill, 0.25)
    health = health_of(left_out)
    assert health.weight == 0.0
    assert str(health).startswith("Hidden layers at epoch 1, of a network with no weight in the model:")
    assert health.warnings[0].startswith("The network has no weight in the model (history_.choice)")
    assert health.warnings[0] in str(health)
    assert health.warnings[1:] == health_of(ill).warnings == health_of(part).warnings
    assert str(health_of(part)).startswith("Hidden layers at epoch 1, of a network with 25% of the weight in the model")
    for one, words in ((left_out, "no weight in the model"), (part, "25% of the weight in the model")):
        with pytest.warns(HealthWarning, match=f"collapsed: .* The network has {words}"):
            warn_if_ill(one)
