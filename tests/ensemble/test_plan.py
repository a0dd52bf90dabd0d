"""Plan: everything that a fit decides is decided once, in one value that can be printed."""

from __future__ import annotations

import dataclasses

import pytest
from sklearn.datasets import make_classification, make_friedman1

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, ensemble, load, save
from boostbp.ensemble.ensemble import SCHEDULES
from boostbp.ensemble.plan import Schedule, Way

X, Y = make_friedman1(200, n_features=9, random_state=0)
CLASSES = make_classification(200, 9, n_informative=5, n_classes=3, random_state=0)[1]
FIRST = "single layer, constant leaves", "single layer", "directions of the single layer"
QUICK = {"random_state": 0, "n_jobs": 1, "max_time": 1e-9}
STAGES = "the first two layers, trials of the others, then what promises most"
FIRST_LAYERS = "the first layers, without those that are clearly worse in a trial"


class PlannedError(Exception):
    """Ends a fit when its plan is made."""


@pytest.fixture
def plan_of(monkeypatch):
    """Return the plan of a fit: ``plan_of(model, y=Y, **options of fit)``."""

    def stop(problem, plan, others=()):
        raise PlannedError(plan)

    monkeypatch.setattr(ensemble.ensemble, "train_model", stop)

    def plan_of(model, y=Y, **how):
        with pytest.raises(PlannedError) as planned:
            model.fit(X, y, **how) if y is not None else model.fit(X)
        return planned.value.args[0]

    return plan_of


FITS = {
    "default": (
        BoostBPRegressor(),
        {},
        Way.AVERAGE,
        f"{STAGES}; 10 layers, 3 networks; at most 2 times the work of the first layers (5 with networks)",
    ),
    "quality=1": (
        BoostBPRegressor(quality=1),
        {},
        Way.ONE_LAYER,
        f"{FIRST_LAYERS}; 3 layers; features that gain nothing may be left out",
    ),
    "quality=2": (
        BoostBPRegressor(quality=2),
        {},
        Way.AVERAGE,
        f"{STAGES}; 10 layers, 3 networks; at most 1.3 times the work of the first layers (2.2 with networks)",
    ),
    "quality=5": (
        BoostBPRegressor(quality=5),
        {},
        Way.AVERAGE,
        f"{STAGES}; 10 layers, 3 networks; at most 3 times the "
        "work of the first layers (15 with networks); up to 6 times, with other held-out rows each time",
    ),
    "three classes": (
        BoostBPClassifier(),
        {"y": CLASSES},
        Way.AVERAGE,
        f"{STAGES}; 10 layers; at most 2 times the work of the first layers",
    ),
    "quantiles": (
        BoostBPRegressor(loss="quantile", alpha=[0.1, 0.9]),
        {},
        Way.AVERAGE,
        f"{STAGES}; 13 layers, 3 networks; at most 2 times the work of the first layers (5 with networks)",
    ),
    "deep=False": (
        BoostBPRegressor(deep=False, max_time=60),
        {},
        Way.LAYERS,
        f"{STAGES}; 8 layers; at most 2 times the work of the first layers; at most 60 s",
    ),
    "deep=True": (
        BoostBPRegressor(deep=True),
        {},
        Way.NETWORK,
        "layers on the features, the network, and output layers on it; 1 layer, 1 network",
    ),
    "one layer": (BoostBPRegressor(()), {}, Way.FIXED_LAYER, "one model alone, by back-propagation or boosting"),
    "no held-out rows": (
        BoostBPRegressor(early_stopping=False),
        {},
        Way.FIXED_LAYER,
        "the first layer with a fixed number of rounds",
    ),
    "monotone": (
        BoostBPRegressor(quality=1, output={"monotone_constraints": [1] + 8 * [0]}),
        {},
        Way.LAYERS,
        f"{FIRST_LAYERS}; 2 layers",
    ),
    "auto-encoder": (BoostBPAutoencoder((2,)), {"y": None}, Way.NETWORK, "the network alone, for its hidden units"),
}


@pytest.mark.parametrize("name", FITS)
def test_the_plans_of_twelve_typical_fits(plan_of, name):
    model, how, way, words = FITS[name]
    plan = plan_of(model, **how)
    assert plan.in_words(model.max_time) == f"Plan: {words}."
    assert plan.way is way


def test_many_rows_are_planned_on_a_sample(plan_of, tune):
    tune(MANY_ROWS=100)
    plan = plan_of(BoostBPRegressor())
    assert plan.schedule is Schedule.SAMPLE
    assert not plan.refit
    assert "at most 1.6 times the work of the first layer (4 with networks)" in plan.in_words()
    words = "Plan: the first layer that a sample of the rows chose, on all rows; 2 layers."
    assert plan_of(BoostBPRegressor(quality=1)).in_words() == words


def test_what_needs_the_network_changes_the_plan(plan_of):
    without, needed = plan_of(BoostBPClassifier(), CLASSES), plan_of(BoostBPClassifier(), CLASSES, keep_state=True)
    assert [candidate.name for candidate in needed.candidates][: len(without.candidates)] == [
        candidate.name for candidate in without.candidates
    ]
    assert len(needed.candidates) > len(without.candidates)
    alone = plan_of(BoostBPRegressor(early_stopping=False), callbacks=[lambda progress: None])
    assert (alone.way, alone.schedule) == (Way.NETWORK, Schedule.ALONE)


def test_only_rows_of_the_training_are_learnt_in_the_end(plan_of):
    assert plan_of(BoostBPRegressor()).refit
    assert not plan_of(BoostBPRegressor(), eval_set=[(X, Y)]).refit
    assert not plan_of(BoostBPRegressor(deep=True, backprop={"output_target": "moved"})).refit


def test_a_plan_is_a_value(plan_of):
    plan = plan_of(BoostBPRegressor(quality=1))
    assert tuple(candidate.name for candidate in plan.candidates) == FIRST
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.refit = False
    assert plan_of(BoostBPRegressor(quality=1)) == plan


def test_each_schedule_is_trained_by_one_function():
    assert set(SCHEDULES) == set(Schedule)


def test_reports_and_files_show_the_plan(tmp_path):
    model = BoostBPRegressor(quality=1, **QUICK).fit(X, Y)
    assert model.history_.plan == f"Plan: {FITS['quality=1'][-1]}; at most 1e-09 s."
    assert model.history_.plan in model.summary().splitlines()
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").history_.plan == model.history_.plan
