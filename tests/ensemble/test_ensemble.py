"""Depth is weighed against single layers on held-out rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS, interrupted_fit
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, make_friedman1
from sklearn.metrics import log_loss, root_mean_squared_error

from boostbp import BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.ensemble import average, budget, constants, ensemble
from boostbp.ensemble.output_layers import Boosting
from boostbp.ensemble.trained_candidate import TrainedCandidate, distinct
from boostbp.ensemble.weights import ensemble_weights, greedy_selection, smooth_labels, t_statistic
from boostbp.estimators import base
from boostbp.losses import AbsoluteError, Logistic, Softmax, SquaredError
from boostbp.network import backprop
from boostbp.network.history import CandidateResult, Stop
from boostbp.trees.basis import Elementwise

X, Y = make_friedman1(400, n_features=5, random_state=0)
HELD = make_friedman1(200, n_features=5, random_state=1)
FAST = {"n_estimators": 5, "epochs": 2, "random_state": 0}


def squared(y):
    return lambda raw: np.square(raw - y).sum(axis=1)


def trained(held_out, deep=False):
    return TrainedCandidate("", "network" if deep else None, None, held_out)


def test_greedy_selection_finds_the_mean_that_is_best():
    rng = np.random.default_rng(0)
    y = rng.standard_normal((500, 1))
    noise = rng.standard_normal((2, 500, 1))
    candidates = [trained(y + noise[0]), trained(y - noise[0] + 0.1 * noise[1]), trained(y + 3.0)]
    weights, raw = greedy_selection(candidates, range(3), squared(y), np.ones(500))
    assert weights.sum() == pytest.approx(1.0)
    assert [w > 0 for w in weights] == [True, True, False]
    np.testing.assert_allclose(raw, sum(w * o.held_out for w, o in zip(weights, candidates, strict=True)), rtol=1e-12)
    alone, _ = greedy_selection(candidates, [2], squared(y), np.ones(500))
    assert list(alone) == [0, 0, 1]


def test_gain_and_its_standard_error_are_those_of_the_paired_rows():
    rng = np.random.default_rng(0)
    y, weight = np.zeros((300, 1)), rng.uniform(0.5, 2.0, 300)
    single, deep = trained(rng.standard_normal((300, 1))), trained(0.1 * rng.standard_normal((300, 1)), deep=True)
    weights, gain, error = ensemble_weights([single, deep], squared(y), weight, least_gain=1.0, half_at=0.0)
    difference = (single.held_out**2 - deep.held_out**2).ravel()
    assert weights[1] > 0
    assert gain == pytest.approx(np.average(difference, weights=weight), rel=0.1)
    assert error == pytest.approx(difference.std() / np.sqrt(300), rel=0.2)
    assert list(ensemble_weights([single, deep], squared(y), weight, least_gain=1e9, half_at=0.0)[0]) == [1, 0]


@given(st.integers(0, 2**31), st.floats(0.0, 10.0))
@settings(max_examples=25, deadline=None)
def test_networks_have_half_of_their_weight_at_as_many_standard_errors(seed, half_at):
    rng = np.random.default_rng(seed)
    y, weight = rng.standard_normal((60, 1)), rng.uniform(0.5, 2.0, 60)
    candidates = [trained(y + noise, deep=k > 1) for k, noise in enumerate(rng.standard_normal((4, 60, 1)))]
    deep, gain, error = ensemble_weights(candidates, squared(y), weight, least_gain=0.0, half_at=0.0)
    shallow = ensemble_weights(candidates, squared(y), weight, least_gain=np.inf, half_at=0.0)[0]
    weights, *same = ensemble_weights(candidates, squared(y), weight, least_gain=0.0, half_at=half_at)
    assert same == [gain, error]
    assert weights.sum() == pytest.approx(1.0)
    t = gain / error if gain > 0 else 0.0
    shrink_weight = t**2 / (t**2 + half_at**2) if t else 0.0
    np.testing.assert_allclose(weights, shrink_weight * deep + (1 - shrink_weight) * shallow, atol=1e-12)


@pytest.mark.parametrize("learnt", ["classes", "numbers"])
def test_weights_of_networks_are_shrunk_where_classes_are_learnt(monkeypatch, learnt):
    seen, original = [], average.ensemble_weights

    def spied(*args, **how):
        seen.append(how["half_at"])
        return original(*args, **how)

    monkeypatch.setattr(average, "ensemble_weights", spied)
    model, target = (BoostBPClassifier, Y > 15) if learnt == "classes" else (BoostBPRegressor, Y)
    held = HELD[0], HELD[1] > 15 if learnt == "classes" else HELD[1]
    model = model((3,), **FAST).fit(X, target, eval_set=[held])
    assert seen == [2.0 if learnt == "classes" else 0.0]
    assert sum(one.weight for one in model.history_.choice.candidates) == pytest.approx(1.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_losses_of_the_candidates_are_those_on_the_held_out_rows(backend):
    model = BoostBPRegressor((4,), **parameters(backend=backend, **FAST)).fit(X, Y, eval_set=[HELD])
    alone = BoostBPRegressor((4,), **parameters(backend=backend, deep=True, **FAST)).fit(X, Y, eval_set=[HELD])
    choice = model.history_.choice
    assert alone.history_.choice is None
    singles = [
        f"random thresholds{kind}" for kind in ("", ", shallow trees", ", large leaves, half of the features, no base")
    ]
    if backend == "xgboost":  # it draws no thresholds
        singles = ["large leaves", "shallow trees"]
    singles = ["", *singles, "additive base", "no base"]
    singles += [f"constant leaves{kind}" for kind in ("", ", shallow trees", ", few features per tree")]
    names = [", ".join(["single layer", *filter(None, [kind])]) for kind in singles]
    assert [one.name for one in choice.candidates][: len(names) + 1] == [*names, "network"]
    assert sum(one.weight for one in choice.candidates) == pytest.approx(1.0)
    mse = np.mean(np.square(alone.predict(HELD[0]) - HELD[1])) / model._scale[0] ** 2 / 2
    assert choice.candidates[len(names)].loss == pytest.approx(mse)
    best = min(one.loss for one in choice.candidates)
    chosen = np.mean(np.square(model.predict(HELD[0]) - HELD[1])) / model._scale[0] ** 2 / 2
    assert chosen <= best * (1 + 1e-9) or choice.gain < 0.5 * choice.error


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_average_is_scored_on_each_evaluation_set(backend, tmp_path):
    sets = {"calib": HELD, "late": (HELD[0][::3] + 0.1, HELD[1][::3])}
    model, alone = (
        BoostBPRegressor((4,), **parameters(backend=backend, deep=deep, **FAST)).fit(
            X, Y, eval_set=list(sets.values()), eval_names=list(sets)
        )
        for deep in ("auto", True)
    )
    for one in (model, alone):
        expected = {name: root_mean_squared_error(y, one.predict(rows)) for name, (rows, y) in sets.items()}
        assert one.history_.scores == pytest.approx(expected)
    assert model.history_.scores != model.history_[model.history_.best_epoch].metrics
    late = model.history_.scores["late"]
    assert model.summary().endswith(f", rmse {late:.6g} on late.")
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").history_.scores == model.history_.scores


def test_classifier_is_chosen_by_its_loss():
    X, y = load_breast_cancer(return_X_y=True)
    model = BoostBPClassifier((4,), **parameters(**FAST)).fit(X[:400], y[:400], eval_set=[(X[400:], y[400:])])
    losses = [one.loss for one in model.history_.choice.candidates]
    assert log_loss(y[400:], model.predict_proba(X[400:])) <= min(losses) + 1e-9


def test_smoothed_labels_are_those_of_a_quarter_of_a_row_more_of_another_class():
    y = np.array([[0.0], [1.0], [1.0], [0.0]])
    weight = np.array([1.0, 2.0, 0.5, 0.0])  # three rows count
    np.testing.assert_allclose(smooth_labels(y, weight, Logistic()).ravel(), [0.05, 0.95, 0.95, 0.05])
    one_hot = np.eye(3)
    several = smooth_labels(one_hot, np.ones(3), Softmax())
    np.testing.assert_allclose(several, 0.95 * one_hot + 0.025 * (1 - one_hot))
    np.testing.assert_allclose(several.sum(axis=1), 1.0)
    assert smooth_labels(y, weight, SquaredError()) is y
    # the two losses agree on what a row of probabilities costs
    h, p = np.array([[1.3], [-40.0]]), np.array([[0.3], [0.9]])
    two = np.hstack([1 - p, p])
    np.testing.assert_allclose(Logistic().value(h, p), Softmax().value(np.hstack([np.zeros_like(h), h]), two))


@pytest.mark.slow
@pytest.mark.full_length
def test_classifier_that_tells_few_rows_apart_is_not_sure_without_limit():
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(6).permutation(len(y))
    train, held, test = order[:200], order[200:230], order[230:]
    model = BoostBPClassifier(random_state=0).fit(X[train], y[train], eval_set=[(X[held], y[held])])
    assert log_loss(y[test], model.predict_proba(X[test])) < 0.2  # .27 by the labels themselves


def on_training(monkeypatch, number, event):
    """Let `event(network, history)` stand for what the training of the network with this number gives."""
    original, calls = backprop.train, []

    def train(*args, **options):
        calls.append(1)
        found = original(*args, **options)
        return event(*found) if len(calls) == number else found

    monkeypatch.setattr(backprop, "train", train)


@pytest.mark.parametrize("number", [2, 3])
def test_interrupt_in_a_variant_ends_the_fit_and_keeps_what_is_there(monkeypatch, number):
    def interrupted(network, history):
        history.interrupted(KeyboardInterrupt())  # as a training keeps its best epoch
        return network, history

    on_training(monkeypatch, number, interrupted)
    model = interrupted_fit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y, eval_set=[HELD])
    assert model.history_.stop is Stop.INTERRUPTED
    candidates = model.history_.choice.candidates
    networks = ["network", "linear network", "additive network"][: number - 1]
    kinds = ["", ", final output layer"]
    assert [one.name for one in candidates if one.network] == [name + kind for name in networks for kind in kinds]
    assert len([one for one in candidates if not one.network]) > 5
    assert sum(one.weight for one in candidates) == pytest.approx(1.0)
    mse = np.mean(np.square(model.predict(HELD[0]) - HELD[1])) / model._scale[0] ** 2 / 2
    assert mse <= min(one.loss for one in candidates) * (1 + 1e-9)


def test_interrupt_before_the_first_single_layer_keeps_the_network(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Boosting, "begin", interrupted)
    model = interrupted_fit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y, eval_set=[HELD])
    assert model.history_.stop is Stop.INTERRUPTED
    assert model.history_.choice is None
    alone = BoostBPRegressor((3,), **parameters(deep=True, **FAST)).fit(X, Y, eval_set=[HELD])
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_interrupt_between_single_layers_weighs_the_network_against_those_that_are_there(monkeypatch):
    original, calls = Boosting.begin, []

    def interrupted(*args, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(Boosting, "begin", interrupted)
    model = interrupted_fit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y, eval_set=[HELD])
    assert model.history_.stop is Stop.INTERRUPTED
    assert [one.network for one in model.history_.choice.candidates] == [None, None, "network"]


def test_interrupt_in_the_summary_of_features_loses_nothing(monkeypatch):
    original, calls = base.summary_of, []

    def interrupted(*args, **options):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(base, "summary_of", interrupted)
    model = interrupted_fit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y, eval_set=[HELD])
    assert model.history_.stop is Stop.INTERRUPTED
    whole = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD])
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    np.testing.assert_array_equal(model.feature_importances_, whole.feature_importances_)


def test_next_to_no_time_leaves_one_single_layer_and_the_start_of_the_network(tmp_path):
    model = BoostBPRegressor((3,), **parameters(max_time=1e-9, **FAST)).fit(X, Y, eval_set=[HELD])
    choice = model.history_.choice
    assert [one.name for one in choice.candidates] == ["single layer", "network"]
    assert model.history_.stop is Stop.TIME
    assert choice.hurried
    assert "max_time cut candidates short" in model.summary()
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").history_.choice == choice
    whole = BoostBPRegressor((3,), **parameters(max_time=1e6, **FAST)).fit(X, Y, eval_set=[HELD])
    assert not whole.history_.choice.hurried
    np.testing.assert_array_equal(
        whole.predict(X), BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD]).predict(X)
    )


def test_time_is_shared_out(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(budget.time, "perf_counter", lambda: now[0])
    ten = budget.Budget(10.0, _begun=100.0)
    assert ten.share(0.4) == 4.0
    now[0] = 104.0
    assert ten.share(0.7, left=3) == 1.0
    assert ten.until(0.7, left=3) == 105.0
    assert not ten.over(105.0)
    assert not ten.spent
    now[0] = 105.0
    assert ten.over(105.0)
    assert ten.spent
    assert not ten.over()
    now[0] = 111.0
    assert ten.share(1.0) == 0.0
    assert ten.over()
    endless = budget.Budget(None)
    assert endless.share(0.4) is None
    assert not endless.over(endless.until(0.4))
    assert not endless.over()


def test_candidate_without_a_number_is_never_picked():
    y = np.random.default_rng(0).standard_normal((50, 1))
    candidates = [trained(np.full((50, 1), np.nan)), trained(y + 1.0), trained(y + 0.5, deep=True)]
    weights, gain, _ = ensemble_weights(candidates, squared(y), np.ones(50), least_gain=0.5, half_at=0.0)
    assert list(weights) == [0, 0, 1]
    assert gain == pytest.approx(0.75)
    alone, _ = greedy_selection(candidates, [0], squared(y), np.ones(50))
    assert list(alone) == [1, 0, 0]


def test_health_counts_the_share_of_the_network_it_is_about():
    X, y = load_digits(n_class=3, return_X_y=True)
    model = BoostBPClassifier((4,), **parameters(**FAST)).fit(X, y)
    candidates = tuple(
        replace(one, weight=0.25 if one.name in ("network", "network, final output layer") else 0.0)
        if one.network != "linear network"
        else replace(one, weight=0.1)
        for one in model.history_.choice.candidates
    )
    model.history_.choice = replace(model.history_.choice, candidates=candidates)
    linear = sum(one.network == "linear network" for one in candidates)
    assert linear > 0
    assert model.health().weight == pytest.approx(sum(one.weight for one in candidates) - 0.1 * linear)


@pytest.mark.parametrize("number", [2, 3])
def test_variant_that_explodes_is_left_out(monkeypatch, number):
    def explosion(network, history):
        raise FloatingPointError

    names = [
        one.name
        for one in BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD]).history_.choice.candidates
    ]
    variants = ["linear network", "additive network"]
    assert [name for name in names if name in variants] == variants
    on_training(monkeypatch, number, explosion)
    choice = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD]).history_.choice
    lost = variants.pop(number - 2)
    names = [one.name for one in choice.candidates]
    assert lost not in names
    assert set(variants) < set(names)


def test_units_of_cross_validated_linear_functions_stand_in_for_additive_ones():
    waves = Elementwise([np.sin], [np.cos])
    model = BoostBPRegressor((3,), **parameters(basis=waves, **FAST)).fit(X, Y, eval_set=[HELD])
    variants = [one.name for one in model.history_.choice.candidates if one.network == one.name][1:]
    assert variants == ["linear network", "linear network, cross-validated penalty"]


def _final(**how):
    """The settings of the final output layer of the network, whether or not it is chosen."""
    kept = {}
    train_all = ensemble.train_all

    def spied(candidates, problem, budget, results):
        interrupt = train_all(candidates, problem, budget, results)
        kept.update(results)
        return interrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "train_all", spied)
        BoostBPRegressor((3,), **parameters(**FAST | how)).fit(X, Y, eval_set=[HELD])
    return kept["network, final output layer"].plan.settings


@pytest.mark.parametrize("skip", [False, True])
def test_final_output_layers_start_from_smooth_functions_of_what_they_see(skip):
    assert _final(skip=skip).base == "additive"


def test_final_output_layers_start_from_what_was_asked_for_where_they_cannot(monkeypatch):
    assert _final(basis=Elementwise([np.sin], [np.cos])).base == "ridge"
    assert _final(base="zero").base is None
    monkeypatch.setattr(constants, "ADDITIVE_MAX_FEATURES", 2)  # fewer than units
    assert _final().base == "ridge"


def test_networks_that_add_too_little_are_left_out_and_still_transform(monkeypatch):
    monkeypatch.setattr(constants, "LEAST_GAIN_T", 1e9)
    model = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD])
    assert not any(one.weight for one in model.history_.choice.candidates if one.network)
    assert "no network is part of it" in model.summary()
    assert "of the network, which has no weight in the model: training loss" in model.summary()
    assert model.history_.weight() == model.health().weight == 0.0
    with pytest.warns(UserWarning, match=r"^transform: no network has weight in this model .* Use deep=True"):
        assert model.transform(X).shape == (400, 3)
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
    whole = BoostBPRegressor((3,), **parameters(**FAST | {"epochs": 4})).fit(X, Y)
    half = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, keep_state=True).fit_more(2)
    np.testing.assert_array_equal(half.predict(X), whole.predict(X))
    assert half.history_.choice == whole.history_.choice


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_choice_does_not_depend_on_threads(n_jobs):
    one = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y)
    many = BoostBPRegressor((3,), **parameters(n_jobs=n_jobs, **FAST)).fit(X, Y)
    np.testing.assert_array_equal(many.predict(X), one.predict(X))


def test_summary_says_what_depth_added():
    model = BoostBPRegressor((4,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD])
    text, choice = model.summary(), model.history_.choice
    assert text.startswith("2 epochs in ")
    assert f"Depth lowered it by {choice.gain:.3g}, standard error {choice.error:.3g}" in text
    for one in choice.candidates:
        assert f"  {one.loss:.6g}  {one.name}" in text
    assert "Depth" not in BoostBPRegressor((4,), **parameters(deep=True, **FAST)).fit(X, Y, eval_set=[HELD]).summary()


@pytest.mark.parametrize("rows", [35, 36])
@pytest.mark.parametrize(
    "changes", [{}, {"early_stopping": False}, {"epochs": 0}, {"deep": True}, {"sizes": ()}], ids=str
)
def test_summary_says_where_nothing_was_weighed(rows, changes):
    settings = FAST | {"sizes": (3,), "deep": "auto"} | changes
    model = BoostBPRegressor(settings.pop("sizes"), **parameters(**settings)).fit(X[:rows], Y[:rows])
    asked = settings["deep"] == "auto" and model.hidden_layer_sizes != ()
    compared = rows == 36 and not changes
    assert (model.history_.choice is not None) == compared
    assert ("was not weighed against single layers" in model.summary()) == (asked and not compared)


def test_evidence_is_the_slope_in_its_standard_errors():
    rng = np.random.default_rng(0)
    u, weight, baseline = rng.standard_normal(200), rng.uniform(0.5, 2.0, 200), np.array([3.0])
    y = 0.3 * u + rng.standard_normal(200)
    got = t_statistic(u[:, None] + 3.0, y[:, None] + 3.0, baseline, weight, SquaredError())
    slope = np.sum(weight * u * y) / np.sum(weight * u * u)
    error = np.sqrt(np.sum((weight * u * (y - slope * u)) ** 2)) / np.sum(weight * u * u)  # White (1980)
    assert got == pytest.approx(slope / error, rel=1e-12)
    assert t_statistic(3.0 - u[:, None], y[:, None] + 3.0, baseline, weight, SquaredError()) == 0.0
    for raw, loss in ((u[:, None] + 3.0, AbsoluteError()), (np.full((200, 1), 3.0), SquaredError())):
        assert t_statistic(raw, y[:, None] + 3.0, baseline, weight, loss) == np.inf


@pytest.mark.parametrize("backend", BACKENDS)
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
