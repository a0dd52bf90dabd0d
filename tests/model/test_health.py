"""Layer health: sentences where something is wrong, and none where all is well."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LinearRegression

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.losses import Logistic
from boostbp.model.health import HealthWarning, health_of, warn_if_ill
from boostbp.network.choice import NETWORK, CandidateResult, ModelChoice, weight_in_words
from boostbp.network.trainer import linear_probe_r2
from tests.model.models import CASES, FLOWERS, LIBRARIES, SMALL, SPECIES, fitted, table
from tests.support.studies import weighed_at


@pytest.mark.parametrize(("kind", "backend"), CASES)
def test_report_is_of_the_epoch_that_the_model_is_of(kind, backend):
    model, _ = fitted(kind, backend)
    health, best = model.health(), model.history_[model.history_.best_epoch]
    assert health.epoch == best.epoch
    assert len(health.layers) == len(model.history_[0].stds)
    for number, layer in enumerate(health.layers):
        assert (layer.layer, layer.dead, layer.std) == (number, best.dead[number], best.stds[number])
        assert 0.0 < layer.explained <= 1.0
        assert layer.gap == pytest.approx(best.explained[number] - best.explained_held[number], nan_ok=True)
        assert f"  layer {number}" in str(health)
    json.dumps(health.to_dict(), allow_nan=False)


@pytest.mark.parametrize("backend", LIBRARIES)
def test_no_gradient_is_a_warning_and_a_sentence(backend):
    """An output layer without trees or base is constant: nothing comes back."""
    frame, y = table()
    model = BoostBPRegressor(
        (3,), **parameters(backend=backend, deep=True, base="zero", n_estimators=[4, 0], epochs=2, random_state=0)
    )
    with pytest.warns(HealthWarning, match="dead at hidden layer 0: 100% of the rows.*try base='ridge'"):
        model.fit(frame, y)
    assert any("Back-propagation is dead at hidden layer 0" in sentence for sentence in model.health().warnings)
    with warnings.catch_warnings():  # nothing was to be moved, so nothing is dead
        warnings.simplefilter("error")
        model.set_params(epochs=0).fit(frame, y)


def test_a_gradient_that_the_loss_does_not_have_is_not_missed():
    """Rows without a loss gradient of their own do not count as dead."""
    X = FLOWERS[:100]
    model = BoostBPClassifier((2,), epochs=2, loss=NoHarm(), deep=True, early_stopping=False, random_state=0)
    model.fit(X, SPECIES[:100])
    assert [epoch.dead for epoch in model.history_.epochs] == [(0.0,)] * 3


class NoHarm(Logistic):
    """Logistic loss that looks away from the first class."""

    def gradient(self, raw, y):
        return super().gradient(raw, y) * y


def test_sentences():
    history = fitted("regressor", "lightgbm")[0].history_
    assert not [s for s in health_of(history).warnings if "No epoch" not in s]

    def told(**changes):
        epochs = [*history.epochs[:-1], replace(history[-1], **changes)]
        return health_of(replace(history, epochs=epochs, best_epoch=len(epochs) - 1))

    memorised = "Hidden layer 0 has memorised training rows: a linear regression on it explains 90% of the target there"
    cases = {
        "Back-propagation is dead at hidden layer 1: 95%": {"dead": (0.0, 0.95)},
        "Hidden layer 0 has collapsed: its units have a standard deviation of 1e-05, and had 1": {"stds": (1e-5, 1.0)},
        "Hidden layer 1 does not follow its targets": {"r2": (0.9, -5.0, 0.9)},
        f"{memorised}, and 20% on": {"explained": (0.9, 0.9), "explained_held": (0.2, 0.8)},
    }
    for sentence, changes in cases.items():
        health = told(**changes)
        assert len(health.warnings) == 1, health.warnings
        assert health.warnings[0].startswith(sentence)
        assert "ry " in health.warnings[0]  # the cure
        assert health.warnings[0] in str(health)


def test_a_collapse_is_a_warning():
    history = fitted("regressor", "lightgbm")[0].history_
    gone = [replace(epoch, stds=(1e-9, 1.0)) for epoch in history.epochs[1:]]
    with pytest.warns(HealthWarning, match="Hidden layer 0 has collapsed"):
        warn_if_ill(replace(history, epochs=[history[0], *gone], best_epoch=1))
    constant = [replace(epoch, stds=(0.0, 0.0), dead=(1.0, 1.0)) for epoch in history.epochs]
    with warnings.catch_warnings():  # constant features: there was nothing to learn
        warnings.simplefilter("error")
        warn_if_ill(replace(history, epochs=constant))


@pytest.mark.parametrize("backend", LIBRARIES)
def test_ordinary_fits_do_not_warn(backend):
    frame, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for changes in ({"base": "zero"}, {"output_target": "moved", "refit_order": "downward", "step": "plain"}):
            BoostBPRegressor(**parameters(backend=backend, **(SMALL | changes))).fit(frame, y)


def test_probe_is_a_linear_regression():
    rng = np.random.default_rng(0)
    h, weight = rng.normal(size=(80, 3)), rng.uniform(0.5, 2.0, 80)
    h[:, 2] = h[:, 0]  # repeated columns do no harm
    y = h[:, :2] @ rng.normal(size=(2, 2)) + rng.normal(size=(80, 2))
    line = LinearRegression().fit(h, y, sample_weight=weight)
    rest, std = (weight @ np.square(y - centre) for centre in (line.predict(h), np.average(y, 0, weight)))
    fresh = rng.normal(size=(50, 3))
    fresh[:, 2] = fresh[:, 0]
    target = rng.normal(size=(50, 2)) + fresh[:, :2]
    agreement = np.array([np.corrcoef(line.predict(fresh)[:, k], target[:, k])[0, 1] for k in range(2)])
    for unit in (3.0, -3.0):
        training, held = linear_probe_r2(h, y, weight, (fresh, 7.0 + unit * target, np.ones(50)))
        assert training == pytest.approx(1.0 - rest.sum() / std.sum())
        squared = np.square(np.maximum(np.sign(unit) * agreement, 0.0))
        assert held == pytest.approx(std @ squared / std.sum())
    assert math.isnan(linear_probe_r2(h, np.ones((80, 1)), weight)[0])
    assert math.isnan(linear_probe_r2(h, y, weight)[1])


@pytest.mark.usefixtures("unrounded")  # as an average is, after its network was probed
def test_layers_are_probed_on_training_and_held_out_rows():
    frame, y = table()
    model = BoostBPRegressor(**parameters(**SMALL)).fit(frame[:300], y[:300], eval_set=[(frame[300:], y[300:])])
    best = model.history_[model.history_.best_epoch]
    for layer in range(2):
        h = model.hidden_representation(frame, layer)
        line = LinearRegression().fit(h[:300], y[:300])
        assert best.explained[layer] == pytest.approx(line.score(h[:300], y[:300]))
        assert best.explained_held[layer] == pytest.approx(np.corrcoef(line.predict(h[300:]), y[300:])[0, 1] ** 2)


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
