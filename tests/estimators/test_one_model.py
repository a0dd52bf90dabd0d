"""Summary, health, hidden units, plots, files and LightGBM's names describe one and the same model."""

from __future__ import annotations

import re
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS
from matplotlib.figure import Figure
from sklearn.metrics import root_mean_squared_error

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, load, plots, save
from boostbp.cli.inspect import description_of
from boostbp.ensemble import average, ensemble
from boostbp.network.choice import CandidateResult, ModelChoice, weight_in_words
from boostbp.network.layers.layer import rounds_of
from boostbp.runtime import plain

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (300, 4))
Y = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.05 * RNG.standard_normal(300)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-0.4, 0.4])]
FAST = {"n_estimators": 6, "epochs": 3, "random_state": 0}


def regressor(sizes=(3,), **changes):
    return BoostBPRegressor(sizes, **parameters(**(FAST | changes)))


# What is fitted; the weights that candidates get by name, None for those that held-out rows choose; arguments of `fit`.
KINDS = {
    "quality 1": (lambda: regressor(quality=1), None, {}),
    "quality 2": (lambda: regressor(quality=2), None, {}),
    "default": (lambda: regressor(), None, {}),
    "default, layers lead a network": (lambda: regressor(), {"single layer": 3.0, "network": 1.0}, {}),
    "default, a network leads": (lambda: regressor(), {"single layer": 1.0, "network": 3.0}, {}),
    "default, a variant leads": (lambda: regressor(), {"single layer": 1.0, "linear network": 3.0, "network": 1.0}, {}),
    "default, networks left out": (lambda: regressor(), {"single layer": 1.0}, {"keep_state": True}),
    "default, directions alone": (lambda: regressor(), {"directions of the single layer": 1.0}, {}),
    "deep": (lambda: regressor(deep=True), None, {}),
    "deep, left out": (lambda: regressor(deep=True), {"single layer": 1.0}, {}),
    "deep, not weighed": (lambda: regressor(deep=True, early_stopping=False), None, {}),
    "layers": (lambda: regressor(deep=False), None, {}),
    "single layer": (lambda: regressor(()), None, {}),
    "single layer, not weighed": (lambda: regressor((), early_stopping=False), None, {}),
    "no time": (lambda: regressor(max_time=1e-9), None, {}),
    "classes": (lambda: BoostBPClassifier((3,), **parameters(**FAST)), None, {}),
    "autoencoder": (lambda: BoostBPAutoencoder((2,), **parameters(**FAST)), None, {}),
}
if "xgboost" in BACKENDS:
    KINDS["xgboost"] = (lambda: regressor(backend="xgboost"), None, {})


@pytest.fixture
def fitted(request, tune, weights_of):
    """Fit a model of a kind; those that are given weights have all candidates trained."""

    def fit(kind):
        make, weights, how = KINDS[kind]
        if weights is not None:
            request.getfixturevalue("everything")
            tune(MAX_PIECES=2)
            weights_of(lambda one: weights.get(one.name, 0.0))
        model = make()
        y = {"classes": LABELS, "autoencoder": None}.get(kind, Y)
        return model.fit(X, y, **how)

    return fit


@pytest.mark.parametrize("kind", KINDS)
def test_all_views_are_of_one_model(kind, fitted, tmp_path):
    model = fitted(kind)
    history, layers = model.history_, model.network_.layers
    asked, hidden = model.deep is True and model.hidden_layer_sizes != (), len(layers) > 1
    # What the model is made of, by its own layers.
    assert hidden == (history.weight() > 0.0 or asked)
    assert (history.network is not None) == bool(history[0].stds)
    assert model.n_iter_ == (len(history) - 1 if history.network else 0)
    if history.choice is not None:
        weights = [one.weight for one in history.choice.candidates]
        assert sum(weights) == pytest.approx(1.0)
        named = {one.network for one in history.choice.candidates if one.weight} - {None}
        assert history.network in named or (not named and history.network == ("network" if asked else None))
    # Hidden units.
    left_out = model.deep == "auto" and model.hidden_layer_sizes != () and not hidden
    with pytest.warns(UserWarning, match="no hidden layer") if left_out else nullcontext():
        if hidden or left_out:
            units = layers[-2].forest.n_outputs if hidden else 0
            assert model.transform(X).shape == (300, units) == (300, len(model.get_feature_names_out()))
    # Health and summary.
    health, text = model.health(), model.summary()
    assert len(health.layers) == len(history[0].stds)
    assert health.weight == (history.weight(history.network) if history.network else history.weight())
    assert ("no hidden layers" in str(health)) == (not hidden)
    assert ("Back-propagation: " in text) == (history.network is not None)
    assert ("The model is a single layer" in text) == (history.choice is None and not hidden)
    if history.network and history.choice is not None and history.network_in_words:
        assert f"of the {history.network}, which has {history.network_in_words}" in text
        assert f"of a network with {history.network_in_words}" in str(health)
    check_names_of_lightgbm(model)
    check_pictures(model, hidden)
    if history.choice is not None:
        for part in history.choice.parts:
            assert re.search(rf"(\d%|<1%)  \S+ +{re.escape(part.name)}\n", text)
    # Files.
    facts = description_of(model)
    assert (facts["training"]["network"], facts["training"]["weight_of_hidden_layers"]) == (
        history.network,
        history.weight(),
    )
    assert facts["training"]["best_iteration"] == model.best_iteration_
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert plain.encode(again.history_, records=True) == plain.encode(history, records=True)
    assert (again.summary(), str(again.health())) == (text, str(health))
    assert (again.best_iteration_, again.evals_result_) == (model.best_iteration_, model.evals_result_)


def check_names_of_lightgbm(model):
    """Iterations are those of the leading piece: rounds of a layer, or epochs of a network."""
    history = model.history_
    assert model.best_iteration_ in history.iterations
    assert history.iterations[0] == 0
    for name, metrics in model.evals_result_.items():
        [curve] = metrics.values()
        assert len(curve) == len(history.iterations)
        assert name in model.best_score_
    if history.by_rounds:
        assert model.best_iteration_ > 0
        lead = None if history.choice is None else history.choice.lead
        alone = len(model.network_.layers) == 1
        if lead is None or (alone and history.choice.parts[0].weight == pytest.approx(1.0)):  # the model is that layer
            assert model.best_iteration_ == rounds_of(model.network_.layers[-1].forest)
            for name, metrics in model.evals_result_.items():
                [(metric, curve)] = metrics.items()
                assert curve[-1] == pytest.approx(model.best_score_[name][metric], rel=1e-2)  # weights are rounded
    else:
        assert model.best_iteration_ == history.best_epoch
        assert history.iterations == list(range(model.n_iter_ + 1))


def check_pictures(model, hidden):
    history = model.history_
    axes = plots.training_curves(model, Figure().subplots(1, plots.epochs.n_curves(history), squeeze=False))
    marks = {x for ax in axes for line in ax.lines if line.get_marker() == "o" for x in line.get_xdata()}
    assert marks == {model.best_iteration_ if history.curves else history.best_epoch}
    if history.choice is not None:
        title = " ".join(axes[-1].get_title().split())
        assert title == f"Evaluation of {history.lead_in_words}"
    six = Figure().subplots(2, 3)
    with pytest.raises(ValueError, match="No network is part") if history.network is None else nullcontext():
        plots.layer_health(model, six)
        title = " ".join(six.flat[0].get_title().split())
        assert history.network_in_words in title
        assert bool(history.network_in_words) == ("network" in title)
    if hidden:
        (ax,) = plots.representations(model, X, None, [Figure().subplots()])
        assert weight_in_words(history.weight()) in " ".join(ax.get_title().split())


@pytest.mark.parametrize("quality", [1, 3])
def test_the_curve_of_a_layer_is_that_of_its_rounds(quality):
    """The scores that the first rounds of the model itself have on each evaluation set."""
    sets = {"a": (X[:60], Y[:60]), "b": (X[60:100], Y[60:100])}
    model = regressor(quality=quality, deep=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(average, "_weights", lambda raws, *_: (np.eye(len(raws))[0], 0.0, 0.0))
        patch.setattr(ensemble, "_rounded", lambda network, problem: network)
        model.fit(X[100:], Y[100:], eval_set=list(sets.values()), eval_names=list(sets))
    assert model.history_.by_rounds
    assert len(model.history_.iterations) > 1
    for name, (rows, target) in sets.items():
        grown = list(model.staged_predict(rows))
        expected = [root_mean_squared_error(target, grown[n - 1]) for n in model.history_.iterations[1:]]
        assert model.evals_result_[name]["rmse"][1:] == pytest.approx(expected)
        assert model.best_score_[name]["rmse"] == pytest.approx(expected[-1])
    assert model.best_iteration_ == len(grown)


def test_names_that_are_no_evaluation_set_are_refused_by_name():
    model = regressor(quality=1).fit(X, Y)
    with pytest.raises(KeyError, match=r"name='valid' is not an evaluation set of this fit. Its sets are 'held_out'"):
        model.history_.metrics("valid")


def test_reprs_are_one_line():
    model = regressor(deep=True).fit(X, Y)
    assert repr(model.network_).startswith("Network(features=4, outputs of layers=[3, 1], trees of layers=[")
    assert "\n" not in repr(model.network_)
    assert repr(model.history_).startswith(f"History(epochs={model.n_iter_}, ")


@pytest.mark.parametrize(
    ("gain", "error", "words"),
    [
        (-0.00101, 0.002, "by +0.00101 ± 0.002: no measurable effect"),
        (0.3, 0.1, "by -0.3 ± 0.1: they helped"),
        (-0.3, 0.1, "by +0.3 ± 0.1: they did harm"),
    ],
)
def test_what_hidden_layers_did_is_said_with_its_sign(gain, error, words):
    parts = CandidateResult("single layer", 1.0, 0.5, None), CandidateResult("network", 1.0, 0.5, "network")
    text = str(ModelChoice(parts, gain, error))
    assert f"Hidden layers changed the held-out loss {words} (optimistic: these rows chose the model)." in text


def test_no_warning_where_a_network_has_weight(fitted):
    model = fitted("default, a network leads")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.transform(X).shape[1] > 0
