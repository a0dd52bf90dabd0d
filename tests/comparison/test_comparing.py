"""`boostbp.compare`: arguments, tasks, order of the work, Ctrl-C."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold

import boostbp
from boostbp.comparison.comparing import default_models, planned
from boostbp.comparison.comparison import run_fold
from boostbp.comparison.measuring import FoldOutcome

pytestmark = pytest.mark.usefixtures("one_process")
X, Y = load_diabetes(return_X_y=True)
FLOWERS, SPECIES = load_iris(return_X_y=True)
RNG = np.random.default_rng(0)
TIME, EVENT = RNG.exponential(size=442), RNG.uniform(size=442) < 0.5
DEFAULTS = {name: p.default for name, p in signature(boostbp.compare).parameters.items() if name not in "Xy"}


def plan_of(X, y, **options):
    return planned(X, y, **{name: options.get(name, value) for name, value in DEFAULTS.items() if name != "watch"})


@pytest.mark.parametrize(
    ("y", "options", "task"),
    [
        (Y, {}, "regression"),
        (np.arange(442) % 3, {}, "classification"),
        (pd.Series(["a", "b"] * 221), {}, "classification"),
        (pd.Series(["a", "b"] * 221).astype("category"), {}, "classification"),
        (np.arange(442) % 2 == 0, {}, "classification"),
        (np.rec.fromarrays([EVENT, TIME], names="event,time"), {}, "survival"),
        (np.column_stack([TIME, np.where(EVENT, TIME, np.inf)]), {}, "survival"),
        (np.where(EVENT, TIME, -TIME), {"task": "survival"}, "survival"),
        (np.arange(442) % 3, {"qid": np.arange(442) // 20}, "ranking"),
    ],
)
def test_the_task_follows_the_target(y, options, task):
    plan = plan_of(X, y, models=[DummyRegressor()], **options)
    assert plan.data.task == task
    if task == "survival":
        np.testing.assert_array_equal(plan.data.y > 0, EVENT)
        np.testing.assert_array_equal(abs(plan.data.y), TIME)
    if task == "classification":
        np.testing.assert_array_equal(plan.data.classes[plan.data.y], np.asarray(y))


def test_rows_of_a_query_are_put_together():
    qid = np.arange(442) % 20
    data = plan_of(X, Y, models=[Ridge()], qid=qid).data
    assert (np.diff(data.groups) >= 0).all()
    order = np.argsort(qid, kind="stable")
    np.testing.assert_array_equal(data.X, X[order])
    np.testing.assert_array_equal(data.y, Y[order])


def test_the_same_seed_gives_the_same_scores_and_tuned_models_a_name():
    models = ["lightgbm", "quality=1"]
    options = {"models": models, "folds": 2, "repeats": 1, "tune": 2, "boostbp_params": {"n_estimators": 3}}
    one, two = (boostbp.compare(X[:120], Y[:120], **options) for _ in range(2))
    np.testing.assert_array_equal(one.scores["rmse"], two.scores["rmse"])
    assert one.models == ("LightGBM tuned", "boostbp quality=1")
    assert one.plan.reference == "LightGBM tuned"


def test_searches_come_last_and_have_the_seconds_of_the_others():
    plan = plan_of(X, Y, models=["lightgbm", "quality=1"], tune=3, folds=2, repeats=1)
    seen = []

    class Processes:
        def run(self, job):
            seen.append((job.contender.label, job.seconds))
            return FoldOutcome("ran", fit_seconds=7.0)

    run_fold(plan, 0, {"LightGBM tuned": [], "boostbp quality=1": []}, Processes())
    assert seen == [("boostbp quality=1", 0.0), ("LightGBM tuned", 7.0)]


def test_default_models_are_those_that_the_task_has():
    assert default_models("regression") == ["lightgbm", "xgboost", "quality=1", "quality=3"]
    assert default_models("survival", [2]) == ["xgboost", "quality=2"]


class Interrupting(DummyRegressor):
    """Ctrl-C comes as it is trained for the third time, the first one being the rehearsal."""

    calls = 0

    def fit(self, X, y):
        Interrupting.calls += 1
        if Interrupting.calls == self.constant:
            raise KeyboardInterrupt
        return super().fit(X, y)


def test_ctrl_c_keeps_the_folds_of_all_models():
    Interrupting.calls = 0
    result = boostbp.compare(X, Y, models=[Ridge(), Interrupting(constant=4)])
    assert "Interrupted: the folds that all models completed are shown." in str(result)
    assert result.interrupted
    assert [len(result.scores_of(model, "rmse")) for model in result.models] == [2, 2]
    assert "2 of 10 folds" in result.facts
    assert result.verdict.startswith(("Keep Ridge", "Interrupting has"))


def test_ctrl_c_before_a_fold_is_complete_goes_on():
    Interrupting.calls = 0
    with pytest.raises(KeyboardInterrupt):
        boostbp.compare(X, Y, models=[Ridge(), Interrupting(constant=2)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, Y[:5]), "inconsistent numbers of samples"),
        ((X, np.where(Y > 300, np.nan, Y)), "y is missing in 14 rows: remove"),
        ((X, np.array(["a", "b"] * 220 + ["c"] * 2)), "smallest with 2 rows"),
    ],
)
def test_wrong_targets_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan_of(*arguments, models=[Ridge()])


def test_queries_are_for_rankings_and_intervals_for_none():
    with pytest.raises(ValueError, match=r"task='ranking' and qid=None"):
        plan_of(X, Y, task="ranking")
    with pytest.raises(ValueError, match="y has intervals of times"):
        plan_of(X, np.column_stack([TIME, TIME + 1]), task="survival")


def test_groups_are_whole_and_every_row_has_one():
    groups = np.repeat(np.arange(50), 3)
    result = boostbp.compare(
        FLOWERS, SPECIES, models=[("a", DummyClassifier()), ("b", DummyClassifier())], groups=groups, folds=3
    )
    assert all(not set(groups[train]) & set(groups[test]) for train, test in result.plan.folds)


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (np.array(["yes", "no", np.nan] * 100 + ["no"] * 142, object), {}),
        (pd.Series(["yes", None] * 221), {}),
        (pd.Series(["yes", "no", None, "no"] * 110 + ["no"] * 2, dtype="category"), {}),
        (np.where(np.arange(442) == 3, np.nan, np.arange(442) % 2), {"task": "classification"}),
    ],
)
def test_missing_labels_are_no_class(y, options):
    with pytest.raises(ValueError, match=r"y is missing in \d+ rows?: remove the rows without a target"):
        plan_of(X, y, **options)


def test_a_target_in_one_column_is_a_target():
    plan = plan_of(X, pd.DataFrame({"y": Y}))
    assert plan.data.task == "regression"
    np.testing.assert_array_equal(plan.data.y, Y)


@pytest.mark.parametrize("models", ["lightgbm", [], ()])
def test_models_are_a_list(models):
    with pytest.raises(ValueError, match="give a list of one model or more"):
        plan_of(X, Y, models=models)


def test_a_splitter_counts_rows_so_queries_must_be_in_order():
    with pytest.raises(ValueError, match="sort the rows by qid first"):
        plan_of(X, Y, qid=np.arange(442) % 40, folds=GroupKFold(3))
    assert len(plan_of(X, Y, qid=np.arange(442) // 12, folds=GroupKFold(3)).folds) == 3
