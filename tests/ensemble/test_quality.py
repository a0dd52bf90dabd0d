"""Quality: how much a fit may cost; whatever it is, and whenever it ends, a model comes of it."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import ONE_AT_ONCE, interrupted_fit
from sklearn.datasets import load_iris, make_friedman1

from boostbp import BoostBPClassifier, BoostBPRegressor, callbacks, load, save
from boostbp.ensemble import constants, ensemble, schedule
from boostbp.ensemble.budget import LEVELS
from boostbp.ensemble.output_layers import Boosted
from boostbp.ensemble.problem import HeldOutScore
from boostbp.network.choice import CONSTANT_LEAVES
from boostbp.network.history import Stop
from boostbp.network.trainer import Trainer

X, Y = make_friedman1(300, n_features=5, random_state=0)
HELD = make_friedman1(150, n_features=5, random_state=1)
GRID = np.random.default_rng(0).random((1200, 5))
STEPS = np.floor(6 * GRID[:, 0]) % 2 + (GRID[:, 1] > 0.3) * (GRID[:, 2] > 0.6)
FAST = {"n_estimators": 5, "epochs": 2, "random_state": 0}


def names_of(model):
    return [one.name for one in model.history_.choice.candidates]


def regressor(sizes=(3,), **changes):
    return BoostBPRegressor(sizes, **parameters(**FAST | changes))


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_more_quality_tries_all_that_less_does(tune, backend):
    models = {quality: regressor(quality=quality, backend=backend).fit(X, Y) for quality in (2, 4)}
    tune(FIRST_PIECE_LEAD=np.inf)
    models[1] = regressor(quality=1, backend=backend).fit(X, Y)
    assert len(names_of(models[1])) == 1
    assert models[1].history_.choice.candidates[0].weight == 1.0
    assert len(models[1].network_.layers) == 1
    assert set(names_of(models[1])) < set(names_of(models[2])) < set(names_of(models[4]))
    assert all(model.history_.refitted for model in models.values())


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_first_layers_stay_unless_another_is_clearly_better(tune, backend):
    """Constant leaves, leaves with slopes, or both."""
    whole = constants.MAX_PIECES
    tune(MAX_PIECES=1)
    found = regressor(deep=False, quality=2, backend=backend).fit(X, Y).history_.choice.candidates
    tune(MAX_PIECES=whole)
    losses = {one.name: one.loss for one in found if one.name in ("single layer", CONSTANT_LEAVES)}
    assert list(losses) == [CONSTANT_LEAVES, "single layer"]
    tune(FIRST_LAYER_T=0.0)
    [layer] = regressor(deep=False, quality=1, backend=backend).fit(X, Y).history_.choice.candidates
    assert (layer.name, layer.weight) == (min(losses, key=losses.get), 1.0)
    tune(FIRST_LAYER_T=np.inf)
    model = regressor(deep=False, quality=1, backend=backend).fit(X, Y)
    both = {layer.name: layer.weight for layer in model.history_.choice.candidates}
    assert list(both) == list(losses)
    assert sum(both.values()) == pytest.approx(1.0)
    assert len(model.network_.layers) == 1


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_a_layer_on_directions_joins_the_first_ones_if_its_first_piece_leads(tune, backend):
    wave = np.sin(2.0 * GRID[:, :3].sum(axis=1))

    def names(y, **changes):
        return names_of(regressor(n_estimators=None, quality=1, backend=backend, **changes).fit(GRID, y))

    assert "directions of the single layer" in names(wave)
    assert "directions of the single layer" not in names(wave, deep=False)
    assert "directions of the single layer" not in names(GRID[:, 0] + 0.5 * STEPS)
    tune(FIRST_PIECE_LEAD=1.0)
    assert "directions of the single layer" not in names(wave)


def test_one_layer_of_steps_has_constant_leaves():
    how = parameters(quality=1, random_state=0)
    assert names_of(BoostBPRegressor(**how).fit(GRID, STEPS)) == [CONSTANT_LEAVES]
    assert names_of(BoostBPRegressor(**how).fit(X, Y)) == ["single layer"]


@pytest.mark.parametrize(("n_classes", "quality", "networks"), [(2, 3, True), (3, 3, False), (3, 4, True)])
def test_networks_of_several_classes_are_left_to_high_qualities(n_classes, quality, networks, tune):
    tune(SLOPES_LEAD=-np.inf)
    y = np.digitize(Y, np.quantile(Y, np.arange(1, n_classes) / n_classes))
    model = BoostBPClassifier((3,), **parameters(quality=quality, **FAST))
    assert any("network" in name for name in names_of(model.fit(X, y))) is networks
    assert "network" in names_of(model.fit(X, y, callbacks=[lambda progress: None]))


@pytest.mark.parametrize("quality", [1, 3, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 4, 5))])
def test_every_quality_does_the_same_on_any_threads_and_from_a_file(quality, tmp_path):
    flowers, y = load_iris(return_X_y=True)
    model, parallel = (
        BoostBPClassifier((3,), **parameters(quality=quality, n_jobs=n_jobs, **FAST)).fit(flowers, y)
        for n_jobs in (1, 3)
    )
    p = model.predict_proba(flowers)
    np.testing.assert_array_equal(parallel.predict_proba(flowers), p)
    assert parallel.history_.choice == model.history_.choice
    assert np.mean(model.predict(flowers) == y) > 0.9
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.quality == quality
    np.testing.assert_array_equal(again.predict_proba(flowers), p)
    assert again.history_.choice == model.history_.choice


def test_refit_is_a_parameter_no_more():
    with pytest.raises(TypeError, match="BoostBPRegressor has no parameter 'refit'"):
        BoostBPRegressor(refit=False)


def test_a_network_alone_runs_all_epochs_from_quality_4_on():
    """Below it ends where the held-out error has hardly fallen since half of them, at epoch 8, 16, 32, ..."""
    models = {q: regressor(deep=True, quality=q, epochs=40, n_iter_no_change=None).fit(X, Y) for q in (3, 4)}
    assert models[4].n_iter_ == 40
    assert models[3].n_iter_ in (8, 16, 32)
    assert models[3].history_.stop is Stop.QUALITY
    errors = np.minimum.accumulate(models[4].history_.metrics("held_out"))
    falls = [errors[look // 2] - errors[look] < constants.MIN_FALL * errors[look] for look in (8, 16, 32)]
    assert models[3].n_iter_ == (8, 16, 32)[falls.index(True)]


@pytest.mark.slow
def test_networks_are_trained_where_leaves_gain_by_slopes(tune):
    """At the rungs that leave them out elsewhere: where the target is made of steps."""
    tune(NETWORKS_WORK=np.inf)
    x, noise = np.random.default_rng(0).uniform(size=(400, 5)), np.random.default_rng(1).normal(size=400)
    steps = np.floor(4 * x[:, 0]) + 2 * (x[:, 1] > 0.5) * (x[:, 2] > 0.3) + 0.1 * noise
    smooth = 3 * x[:, 0] + np.sin(3 * x[:, 1]) * x[:, 2] + 0.1 * noise

    def trains_networks(target, quality=3, **how):
        model = regressor(quality=quality, n_estimators=None).fit(x, target, **how)
        scores = {one.name: one.loss for one in model.history_.choice.candidates}
        gain = 1.0 - scores["single layer"] / scores["single layer, constant leaves"]
        assert (gain > constants.SLOPES_LEAD) == (target is smooth)
        return any("network" in one.name for one in model.history_.choice.candidates)

    assert trains_networks(smooth)
    assert not trains_networks(steps)
    assert not trains_networks(steps, quality=4)
    assert trains_networks(steps, callbacks=[lambda progress: None])
    assert trains_networks(steps, keep_state=True)


def test_what_keeps_the_training_of_a_network_is_refused_at_quality_1(tmp_path):
    path = tmp_path / "state"
    for how in ({"checkpoint": path}, {"keep_state": True}, {"callbacks": [callbacks.checkpoint(path)]}):
        name = next(iter(how))
        with pytest.raises(ValueError, match=rf"^{name}.* with quality=1 is not supported: .* quality=2 or more"):
            regressor(quality=1).fit(X, Y, **how)
        regressor(quality=1, deep=True).fit(X, Y, **how)
    for quality in (1, 3):
        with pytest.raises(ValueError, match="with deep=False is not supported"):
            regressor(quality=quality, deep=False).fit(X, Y, keep_state=True)


@pytest.mark.parametrize("quality", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_rows_that_the_user_holds_out_are_not_learned_from(quality):
    model = regressor(quality=quality).fit(X, Y, eval_set=[HELD])
    assert not model.history_.refitted
    assert regressor(quality=quality).fit(X, Y).history_.refitted


# Time.


@pytest.mark.parametrize("quality", LEVELS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_next_to_no_time_leaves_a_piece_of_the_first_layer(quality, n_jobs, tmp_path):
    model = regressor(quality=quality, max_time=1e-9, n_jobs=n_jobs).fit(X, Y, eval_set=[HELD])
    choice = model.history_.choice
    assert names_of(model) == [CONSTANT_LEAVES]
    assert sum(one.weight for one in choice.candidates) == pytest.approx(1.0)
    assert choice.cut_by_time
    assert model.history_.stop is Stop.NO_NETWORK
    assert "max_time cut candidates short" in model.summary()
    assert np.corrcoef(model.predict(HELD[0]), HELD[1])[0, 1] > 0.5
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").history_.choice == choice


def test_enough_time_changes_nothing():
    model = regressor(max_time=1e6).fit(X, Y, eval_set=[HELD])
    assert not model.history_.choice.cut_by_time
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y, eval_set=[HELD]).predict(X))


# Interrupts.


def test_an_interrupt_at_any_stage_leaves_a_model(press):
    n_pieces, n_epochs = press(Boosted, "advance", 0), press(Trainer, "step", 0)
    whole = regressor(quality=2, n_estimators=None).fit(X, Y)
    stages = [(Boosted, "advance", number) for number in range(2, len(n_pieces), 2)]
    stages += [(Boosted, "advance", len(n_pieces))]  # the last one is of the refit
    stages += [(Trainer, "step", number) for number in range(1, len(n_epochs) + 1)]
    assert len(stages) >= 9
    for stage in stages:
        press(*stage)
        model = interrupted_fit(regressor(quality=2, n_estimators=None), X, Y)
        assert model.history_.stop is Stop.INTERRUPTED
        assert set(names_of(model)) <= set(names_of(whole))
        assert sum(one.weight for one in model.history_.choice.candidates) == pytest.approx(1.0)
        best = min(one.loss for one in model.history_.choice.candidates)
        mse = (model.history_.scores["held_out"] / model.model_.targets.scale[0]) ** 2 / 2
        assert mse <= best * 1.05
        assert np.isfinite(model.predict(X)).all()


@pytest.mark.slow
def test_a_fit_resumed_from_a_checkpoint_of_any_epoch_is_the_whole_one(tune, tmp_path):
    tune(FIRST_LOOK=2, MAX_PIECES=1)
    whole = regressor(quality=4, epochs=3).fit(X, Y, keep_state=True)
    for epochs in range(3):
        path = tmp_path / f"state {epochs}"

        def press(progress, after=epochs):  # the process ends, once it has written so many epochs
            if progress.epoch.epoch == after + 1:
                raise KeyboardInterrupt

        model = regressor(quality=4, epochs=3)
        interrupted_fit(model, X, Y, checkpoint=path, callbacks=[press])
        assert path.exists()
        resumed = regressor(quality=4, epochs=3).fit(X, Y, checkpoint=path)
        np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
        assert resumed.history_.choice == whole.history_.choice
        assert resumed.history_.loss == whole.history_.loss


def test_the_network_is_trained_where_its_state_is_to_be_kept(tmp_path):
    path = tmp_path / "state"
    kept = BoostBPRegressor((3,), quality=2, **FAST).fit(X, Y, keep_state=True)
    assert len(kept.fit_more(3).history_) > 3
    BoostBPRegressor((3,), quality=2, **FAST).fit(X, Y, checkpoint=path)
    assert path.exists()


def test_a_network_that_time_did_not_reach_cannot_go_on():
    model = regressor(max_time=1e-9).fit(X, Y, keep_state=True)
    with pytest.raises(
        ValueError, match=r"fit_more needs a network, and max_time=1e-09 left none: call fit with a longer max_time"
    ):
        model.fit_more(2)


def test_a_member_that_missed_it_hardly_counts(tune):
    """The second of two is 1,000 too high: its share of the mean is that of its loss."""
    trained, first = ensemble._member_of, regressor(quality=4, deep=False).fit(X, Y)
    members = []

    def missing(driver, n_features):
        member = trained(driver, n_features)
        if members:
            model = replace(member.model, baseline=member.model.baseline + 1e3)
            member = member._replace(model=model, score=HeldOutScore(5e5, 1e3))
        members.append(member)
        return member

    tune(ensemble, _member_of=missing)
    with_missed = regressor(quality=4, deep=False).fit(X, Y)
    assert len(members) == first.history_.choice.members == 2
    share = members[0].score.mean / 5e5
    good, bad = (member.model.predict(HELD[0])[:, 0] for member in members)
    in_units = np.polynomial.Polynomial.fit((good + bad - 1e3) / 2, first.predict(HELD[0]), 1)
    expected = in_units((good + share * bad) / (1.0 + share))
    np.testing.assert_allclose(with_missed.predict(HELD[0]), expected, atol=2e-3 * Y.std())
    assert np.abs(expected - in_units(good)).max() < 0.1 * Y.std()


def test_a_long_fit_says_what_a_lower_quality_takes():
    hint = schedule.cost_hint(LEVELS[3], 100.0, networks=True)
    assert hint.startswith("this fit may take 200 to 500 s, the most where networks gain; lower qualities take less: ")
    assert "quality=1 100 s, quality=2 130 to 220 s" in hint
    assert "quality=3" not in hint
    assert schedule.cost_hint(LEVELS[1], 100.0, networks=False).startswith(
        "this fit may take 100 s. max_time= or Ctrl-C"
    )
    assert schedule.cost_hint(LEVELS[3], 1.0, networks=True) == ""


@pytest.mark.parametrize("deep", ["auto", True, False])
def test_summary_counts_the_seconds_of_all_stages(deep, tmp_path):
    begun = time.perf_counter()
    model = regressor(deep=deep).fit(X, Y)
    took = time.perf_counter() - begun
    seconds = model.history_.choice.seconds
    assert next(iter(seconds)) == "first layers"
    assert list(seconds)[-1] == "all rows"
    assert any("network" in stage for stage in seconds) == (deep is not False)
    assert 0.0 < sum(seconds.values()) <= took
    assert f"Training took {sum(seconds.values()):.1f} s: first layers " in model.summary()
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").history_.choice.seconds == seconds


def test_a_model_of_constant_leaves_says_that_its_derivative_is_0():
    model = BoostBPRegressor(quality=1, random_state=0).fit(GRID, STEPS)
    with pytest.warns(UserWarning, match="jacobian is 0 everywhere, as all leaves of the model are constants"):
        assert not model.jacobian(GRID).any()
    with_slopes = BoostBPRegressor(quality=1, output={"basis": "quadratic"}, random_state=0).fit(GRID, STEPS)
    assert with_slopes.jacobian(GRID).any()
