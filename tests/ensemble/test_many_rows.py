"""Many rows: what the model is made of is chosen on a sample of them, and boosted on all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import ONE_AT_ONCE, interrupted_fit
from problems import problem_of
from sklearn.datasets import make_classification, make_friedman1

from boostbp import BoostBPClassifier, BoostBPRegressor, backends
from boostbp.ensemble import many_rows
from boostbp.ensemble.ensemble import train_model
from boostbp.ensemble.output_layers import Boosted
from boostbp.ensemble.plan import Plan
from boostbp.losses import Logistic
from boostbp.network.choice import CONSTANT_LEAVES
from boostbp.network.history import Stop
from boostbp.network.layers.cheaper_growth import RowSampling

X, Y = make_friedman1(400, n_features=5, random_state=0)
HELD = make_friedman1(150, n_features=5, random_state=1)
FAST = {"hidden": {"n_estimators": 5}, "epochs": 2, "random_state": 0}
SAMPLE, STRUCTURES = 200, 250


@pytest.fixture(autouse=True)
def few_are_many(tune):
    """Three hundred rows count as many."""
    tune(MANY_ROWS=300, MANY_ROWS_SAMPLE=SAMPLE, MIN_STRUCTURE_ROWS=STRUCTURES)


def regressor(sizes=(3,), **changes):
    return BoostBPRegressor(sizes, **parameters(**FAST | changes))


def names_of(model):
    return [one.name for one in model.history_.choice.candidates]


class Watched:
    """A backend that remembers the sizes of the tables that it was given."""

    def __init__(self, name):
        self.backend, self.bound = backends.load_backend(name), []
        self.capabilities = self.backend.capabilities

    def bind(self, table, growth):
        self.bound.append(len(table.X))
        return self.backend.bind(table, growth)


def test_rows_of_weight_0_are_none():
    X, y = np.zeros((310, 1)), np.arange(310.0)[:, None]
    assert problem_of((X, y)).has_many_rows
    assert not problem_of((X, y), weight=np.r_[np.zeros(20), np.ones(290)]).has_many_rows
    some = problem_of((X, y), weight=np.r_[np.zeros(5), np.full(305, 2.0)]).on_some_rows()
    assert len(some.rows) == len(np.unique(some.rows.y)) == SAMPLE
    assert some.rows.y.min() >= 5
    assert (some.rows.weight == 2.0).all()


@pytest.mark.parametrize(("rare", "sampled"), [(200, True), (30, True), (20, False)])
def test_structures_of_rare_classes_are_grown_on_all_rows(tune, rare, sampled):
    tune(MIN_STRUCTURE_CLASS=15)  # of 250 in 400: 24 in all
    y = (np.arange(400.0) < rare)[:, None]
    for target in (y, 1 - y):
        problem = problem_of((X, target * 1.0), (HELD[0], np.ones((150, 1))), loss=Logistic())
        assert isinstance(problem.growing_backend, RowSampling) == sampled
    assert isinstance(problem_of((X, y * 1.0)).growing_backend, RowSampling)


def test_a_further_member_is_trained_on_all_rows_too():
    model = regressor(quality=4, deep=False, n_estimators=10).fit(X, Y)
    assert model.history_.choice.members == 2
    assert model.history_.choice.failed == ()


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_networks_and_trials_see_the_sample_alone(backend):
    watched = Watched(backend)
    model = regressor(backend=watched, quality=4).fit(X, Y, eval_set=[HELD])
    whole = len(X) if watched.capabilities.row_subsets else STRUCTURES
    assert set(watched.bound) == {SAMPLE, whole}
    assert names_of(model)[0].startswith("single layer")
    assert not model.history_.refitted


@pytest.mark.usefixtures("unrounded")
def test_leaves_of_the_chosen_see_all_rows():
    """Ranges of leaves reach the extremes of the table, which one row of many has."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    X[np.arange(3), np.arange(3)] = 1.5
    y = X[:, 0] ** 2 + X[:, 1] * X[:, 2]
    model = regressor(quality=1, base="zero").fit(X, y, eval_set=[(X[:50], y[:50])])
    leaves = model.network_.layers[-1].forest.leaves
    seen = leaves.scaling[:, 0] + leaves.scaling[:, 3] / np.where(
        leaves.scaling[:, 1] > 0, leaves.scaling[:, 1], np.inf
    )
    for feature in np.unique(leaves.column):
        assert seen[leaves.column == feature].max() == pytest.approx(1.5)


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_what_is_chosen_is_boosted_again_and_no_worse(backend):
    model = regressor(backend=backend, quality=4).fit(X, Y)
    choice = {one.name: one for one in model.history_.choice.candidates}
    again = [name for name in choice if f"{name}, some rows" not in choice]
    assert len(again) > 1
    assert sum(one.weight for one in choice.values()) == pytest.approx(1.0)
    first = model.history_.choice.candidates[0].loss
    mse = (model.history_.scores["held_out"] / model.model_.targets.scale[0]) ** 2 / 2
    assert mse <= first * (1 + 1e-12)


@pytest.mark.parametrize("quality", [1, 3])
def test_the_same_model_on_any_threads(quality):
    X, y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=0)
    one, three = (
        BoostBPClassifier((3,), **parameters(quality=quality, n_jobs=n_jobs, **FAST)).fit(X, y) for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(three.predict_proba(X), one.predict_proba(X))
    assert three.history_.choice == one.history_.choice
    assert np.mean(one.predict(X) == y) > 0.7


@pytest.mark.parametrize("quality", [1, 3])
def test_next_to_no_time_leaves_one_round_on_some_rows_and_on_all(quality):
    model = regressor(quality=quality, max_time=1e-9).fit(X, Y, eval_set=[HELD])
    assert set(names_of(model)) == {f"{CONSTANT_LEAVES}, some rows", CONSTANT_LEAVES}
    assert model.history_.choice.cut_by_time


def test_enough_time_changes_nothing():
    model = regressor(max_time=1e6).fit(X, Y, eval_set=[HELD])
    assert not model.history_.choice.cut_by_time
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y, eval_set=[HELD]).predict(X))


def test_an_interrupt_at_any_stage_leaves_a_model(press):
    calls = press(Boosted, "advance", 0)
    whole = regressor(quality=2).fit(X, Y)
    n_pieces = len(calls)
    for at in (2, n_pieces // 2, n_pieces - 1, n_pieces):
        press(Boosted, "advance", at)
        model = interrupted_fit(regressor(quality=2), X, Y)
        assert model.history_.stop is Stop.INTERRUPTED
        assert sum(one.weight for one in model.history_.choice.candidates) == pytest.approx(1.0)
        assert at == 2 or names_of(model)[0] == names_of(whole)[0]  # the first pieces choose on a sample
        assert np.isfinite(model.predict(X)).all()


def test_an_interrupt_between_the_sample_and_all_rows_leaves_the_layers_of_the_sample(press):
    press(many_rows, "_boost", 1)
    model = interrupted_fit(regressor(quality=2), X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert all(name.endswith(", some rows") for name in names_of(model))
    assert np.mean((model.predict(X) - Y) ** 2) < np.var(Y)


@pytest.mark.parametrize("quality", [1, 3])
def test_where_no_layer_on_all_rows_can_be_boosted_the_sample_is_no_model(fails, quality):
    fails(
        Boosted, "advance", FloatingPointError("too many rows"), lambda boosted, **_: len(boosted.problem.rows) > SAMPLE
    )
    if quality == 1:
        with pytest.raises(FloatingPointError, match="too many rows"):
            regressor(quality=1).fit(X, Y)
    else:
        names = names_of(regressor(quality=quality, deep=False).fit(X, Y))
        assert len(set(names)) == len(names)


def test_progress_never_goes_back():
    shares = []
    problem = problem_of((X, (Y[:, None] - 14.4) / 5))
    train_model(replace(problem, report=lambda stage: shares.append(stage.share)), Plan.of(problem))
    assert len(shares) > 5
    assert shares == sorted(shares)


def test_the_network_that_was_asked_for_is_trained_if_it_is_wanted(tmp_path):
    """State that is kept is of it, and so is a checkpoint, whatever cheaper networks promise."""
    model = regressor(quality=2).fit(X, Y, keep_state=True)
    assert "network" in names_of(model)
    model.fit_more(2)
    assert model._training.state.epoch == 2 + 2
    assert "network" in names_of(model)
    model.fit(X, Y, checkpoint=tmp_path / "training.boostbp")
    assert (tmp_path / "training.boostbp").exists()
