"""Depth is weighed against single layers on held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import ONE_AT_ONCE, interrupted_fit
from problems import problem_of
from sklearn.datasets import load_breast_cancer, load_digits, make_friedman1
from sklearn.metrics import log_loss, root_mean_squared_error

from boostbp import BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.ensemble.candidate import NetworkTraining
from boostbp.ensemble.ensemble import train_model
from boostbp.ensemble.output_layers import TrainedCandidate, distinct
from boostbp.ensemble.plan import Plan, Way
from boostbp.ensemble.problem import Problem
from boostbp.estimators import training
from boostbp.network.choice import CandidateResult
from boostbp.network.history import Stop
from boostbp.network.network import Network
from boostbp.runtime import clock

X, Y = make_friedman1(400, n_features=5, random_state=0)
HELD = make_friedman1(200, n_features=5, random_state=1)
FAST = {"hidden": {"n_estimators": 5}, "epochs": 2, "random_state": 0}


def trained(held_out, deep=False):
    model = Network((None,) * (1 + deep), np.zeros(1))  # layers that nobody asks
    return TrainedCandidate("", "network" if deep else None, model, held_out)


LAYERS = [
    "single layer, constant leaves",
    "single layer",
    "directions of the single layer",
    "single layer, large constant leaves",
    "single layer, deep trees",
    "single layer, sampled",
    "single layer, large leaves, no base",
    "single layer, additive base",
    "single layer, sampled, no base",
    "directions of directions",
]
NETWORKS = ["linear network", "additive network", "network"]


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
@pytest.mark.usefixtures("everything", "unrounded")
def test_losses_of_the_candidates_are_those_on_the_held_out_rows(backend):
    model = BoostBPRegressor((4,), **parameters(backend=backend, **FAST)).fit(X, Y, eval_set=[HELD])
    alone = BoostBPRegressor((4,), **parameters(backend=backend, deep=True, **FAST)).fit(X, Y, eval_set=[HELD])
    choice = model.history_.choice
    losses = {one.name: one.loss for one in choice.candidates}
    of_alone = {one.name: one.loss for one in alone.history_.choice.candidates}
    assert list(of_alone) == ["single layer", "network, final output layer", "network"]
    assert {name: losses[name] for name in of_alone} == pytest.approx(of_alone)
    on_top = [f"{name}, final output layer" for name in NETWORKS]
    assert [one.name for one in choice.candidates] == [*LAYERS, *on_top, *NETWORKS]
    assert sum(one.weight for one in choice.candidates) == pytest.approx(1.0)
    [rmse] = alone.history_[alone.history_.best_epoch].metrics.values()
    assert losses["network"] == pytest.approx(np.square(rmse / model.model_.targets.scale[0]) / 2)
    chosen = np.mean(np.square(model.predict(HELD[0]) - HELD[1])) / model.model_.targets.scale[0] ** 2 / 2
    assert chosen <= np.mean(list(losses.values()))  # of many sums, that of equal weights is where the search begins
    assert chosen <= min(losses.values()) * 1.1


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_the_average_is_scored_on_each_evaluation_set(backend, tmp_path):
    sets = {"calib": HELD, "late": (HELD[0][::3] + 0.1, HELD[1][::3])}
    model, alone = (
        BoostBPRegressor((4,), **parameters(backend=backend, deep=deep, **FAST)).fit(
            X, Y, eval_set=list(sets.values()), eval_names=list(sets), keep_state=True
        )
        for deep in ("auto", True)
    )
    for one in (model, alone):
        expected = {name: root_mean_squared_error(y, one.predict(rows)) for name, (rows, y) in sets.items()}
        assert one.history_.scores == pytest.approx(expected)
    assert (model.history_.scores != model.history_[model.history_.best_epoch].metrics) == bool(model.history_.network)
    late = model.history_.scores["late"]
    assert model.summary().splitlines()[0].endswith(f", rmse {late:.6g} on late.")
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").history_.scores == model.history_.scores


def test_classifier_is_chosen_by_its_loss():
    X, y = load_breast_cancer(return_X_y=True)
    model = BoostBPClassifier((4,), **parameters(**FAST)).fit(X[:400], y[:400], eval_set=[(X[400:], y[400:])])
    losses = [one.loss for one in model.history_.choice.candidates]
    assert log_loss(y[400:], model.predict_proba(X[400:])) <= min(losses) + 1e-9


@pytest.mark.slow
@pytest.mark.full_length
def test_classifier_that_tells_few_rows_apart_is_not_sure_without_limit():
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(6).permutation(len(y))
    train, held, test = order[:200], order[200:230], order[230:]
    model = BoostBPClassifier(random_state=0).fit(X[train], y[train], eval_set=[(X[held], y[held])])
    assert log_loss(y[test], model.predict_proba(X[test])) < 0.2  # .27 by the labels themselves


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.usefixtures("everything")
def test_interrupt_in_a_network_ends_the_fit_and_keeps_what_is_there(tune, number):
    networks = NETWORKS[:number]
    original = NetworkTraining.advance

    def advance(self, *args):
        original(self, *args)
        if self.name == networks[-1]:
            raise KeyboardInterrupt
        return self

    tune(NetworkTraining, advance=advance)
    model = interrupted_fit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert not model.history_.refitted
    candidates = model.history_.choice.candidates
    assert [one.name for one in candidates if one.network == one.name and "directions" not in one.name] == networks
    assert len([one for one in candidates if not one.network]) > 5
    assert sum(one.weight for one in candidates) == pytest.approx(1.0)


def test_interrupt_while_candidates_are_averaged_loses_nothing(press, before_refit):
    model = BoostBPRegressor((3,), **parameters(**FAST))
    whole = before_refit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y)
    press(Problem, "metrics_of", 1)
    model = interrupted_fit(model, X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert not model.history_.refitted
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_interrupt_in_the_summary_of_features_loses_nothing(press):
    press(training, "summary_of", 1)
    model = interrupted_fit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y, eval_set=[HELD])
    assert model.history_.stop is Stop.INTERRUPTED
    whole = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD])
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    np.testing.assert_array_equal(model.feature_importances_, whole.feature_importances_)


@pytest.mark.usefixtures("everything")
def test_health_counts_the_share_of_the_network_it_is_about(weights_of):
    weights = {"network": 1.0, "network, final output layer": 2.0, "linear network": 1.0, "single layer": 6.0}
    weights_of(lambda one: weights.get(one.name, 0.0))
    model = BoostBPRegressor((4,), **parameters(**FAST)).fit(X, Y)
    assert model.history_.weight() == pytest.approx(0.4)
    assert model.health().weight == pytest.approx(0.3)


@pytest.mark.parametrize("name", ["additive network", "linear network"])
@pytest.mark.usefixtures("everything")
def test_variant_that_diverges_is_left_out(fails, name):
    fails(NetworkTraining, "advance", FloatingPointError("too far"), lambda one, *_: one.name == name)
    choice = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD]).history_.choice
    names = [one.name for one in choice.candidates]
    others = {"network", "additive network", "linear network"} - {name}
    assert set(names) >= others | {f"{other}, final output layer" for other in others}
    assert not {name, f"{name}, final output layer"} & set(names)


def test_networks_that_add_too_little_are_left_out(weights_of):
    weights_of(lambda one: not one.is_deep)
    model = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD], keep_state=True)
    assert any(one.network for one in model.history_.choice.candidates)
    assert not any(one.weight for one in model.history_.choice.candidates if one.network)
    assert "\nNetworks were trained, but none is part of the model. " in model.summary()
    assert "Hidden layers were tried, and none is part of the model." in model.summary()
    assert model.history_.weight() == model.health().weight == 0.0
    with pytest.warns(UserWarning, match=r"^transform returns no columns: .* no hidden layer.* Use deep=True"):
        assert model.transform(X).shape == (400, 0)
    assert np.isfinite(model.jacobian(X)).all()
    network = model.network_
    np.testing.assert_array_equal(network.predict(X), network.forward(X)[0][-1])


def test_chosen_model_and_its_story_survive_a_file(tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    model = BoostBPClassifier((4,), **parameters(**FAST)).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.history_.choice == model.history_.choice
    assert isinstance(again.history_.choice.candidates[0], CandidateResult)


def test_resumed_training_gives_the_same_choice(tmp_path):
    whole = BoostBPRegressor((3,), **parameters(**FAST | {"epochs": 4})).fit(X, Y, keep_state=True)
    half = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, keep_state=True).fit_more(2)
    np.testing.assert_array_equal(half.predict(X), whole.predict(X))
    assert half.history_.choice == whole.history_.choice


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_choice_does_not_depend_on_threads(n_jobs):
    one = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y)
    many = BoostBPRegressor((3,), **parameters(n_jobs=n_jobs, **FAST)).fit(X, Y)
    np.testing.assert_array_equal(many.predict(X), one.predict(X))


def test_summary_says_what_depth_added():
    model = BoostBPRegressor((4,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD], keep_state=True)
    text, choice = model.summary(), model.history_.choice
    if model.history_.network:
        assert "Back-propagation: 2 epochs in " in text
    if model.history_.weight():
        assert f"Hidden layers changed the held-out loss by {-choice.gain:+.3g} ± {choice.error:.2g}: " in text
    for one in choice.candidates:
        assert f"  {one.loss:<12.6g}{one.name}" in text
    layers = BoostBPRegressor((4,), **parameters(deep=False, **FAST)).fit(X, Y, eval_set=[HELD])
    assert "Hidden layers" not in layers.summary()


@pytest.mark.parametrize("rows", [35, 36])
@pytest.mark.parametrize(
    "changes", [{}, {"early_stopping": False}, {"epochs": 0}, {"deep": True}, {"sizes": ()}], ids=str
)
def test_summary_says_where_nothing_was_weighed(rows, changes):
    settings = FAST | {"sizes": (3,), "deep": "auto"} | changes
    model = BoostBPRegressor(settings.pop("sizes"), **parameters(**settings)).fit(X[:rows], Y[:rows])
    asked = settings["deep"] == "auto" and model.hidden_layer_sizes != ()
    compared = rows == 36 and changes in ({}, {"deep": True}, {"epochs": 0})
    assert (model.history_.choice is not None) == compared
    assert ("the model is one layer of n_estimators rounds" in model.summary()) == (asked and not compared)


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_numbers_that_hardly_follow_the_model_stay_near_the_constant(backend, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 6)), 5.0 + rng.standard_normal(300)
    model = BoostBPRegressor((3,), **parameters(backend=backend, **FAST)).fit(X, y)
    candidates = model.history_.choice.candidates
    assert candidates[0].name == "constant"
    assert candidates[0].weight > 0.1
    assert sum(one.weight for one in candidates) == pytest.approx(1.0)
    assert "constant" in str(model.history_.choice)
    fresh = rng.standard_normal((2000, 6))
    assert np.std(model.predict(fresh)) < 0.3  # of the target: 1
    assert np.mean(model.predict(fresh)) == pytest.approx(5.0, abs=0.2)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(fresh), model.predict(fresh))


def test_numbers_that_follow_the_model_are_not_held_back():
    model = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y)
    candidates = model.history_.choice.candidates
    assert "constant" not in {one.name for one in candidates}
    assert sum(one.weight for one in candidates) == pytest.approx(1.0)


def test_candidates_that_predict_the_same_are_one():
    y = np.arange(6.0)[:, None]
    same, other = trained(y), trained(y + 1e-15)
    assert distinct([same, other, trained(y.copy())]) == [same, other]
    network = trained(y, deep=True)
    assert distinct([same, network, trained(y.copy(), deep=True)]) == [same, network]


def test_an_interrupt_while_the_rows_of_another_member_are_drawn_keeps_the_first():
    def interrupted():
        raise KeyboardInterrupt

    problem = problem_of()
    plan = Plan.of(problem, Way.LAYERS, quality=5)
    with clock.counting():
        _, history = train_model(problem, plan, [interrupted])
        assert clock.of_fit().interrupt is not None
    assert history.choice.members == 1
