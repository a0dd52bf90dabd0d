"""The model of AutoGluon: what AutoGluon hands it reaches the estimator, and nothing else is held out."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.ensemble import ensemble
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.output_layers import Boosted

tabular = pytest.importorskip("autogluon.tabular", reason="needs AutoGluon: pip install 'boostbp[autogluon]'")
from autogluon.core.utils.exceptions import TimeLimitExceeded  # noqa: E402

from boostbp.interop.autogluon import BoostBPModel  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what other packages say of each other there is theirs
# Bytes of a fit above what the process had with the table, and the estimate; the kernel forgets the peak before.
MEMORY = """
import json, sys, tempfile
import numpy as np, pandas as pd
from boostbp.interop.autogluon import BoostBPModel

def resident(name):
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith(name))

rows, columns, classes = (int(argument) for argument in sys.argv[1:4])
hyperparameters = json.loads(sys.argv[4])
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(rows + 500, columns)))
signal = X[0] + np.sin(2 * X[1]) * X[2] + 0.5 * rng.normal(size=len(X))
y = pd.qcut(signal, classes, labels=False) if classes else signal
kind = {0: "regression", 2: "binary"}.get(classes, "multiclass")
with tempfile.TemporaryDirectory() as folder:
    model = BoostBPModel(folder, "model", problem_type=kind, hyperparameters=hyperparameters)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = resident("VmRSS")
    model.fit(X=X[500:], y=y[500:], X_val=X[:500], y_val=y[:500], num_cpus=1, num_gpus=0)
    estimate = model.estimate_memory_usage(X=X[500:], y=y[500:])
print(json.dumps([estimate, resident("VmHWM") - before]))
"""
RNG = np.random.default_rng(0)
QUICK = {"quality": 1, "epochs": 2}


def table(load, *, label="target"):
    """A real table with a column of categories, missing values, and weights."""
    found = load(as_frame=True).frame.rename(columns={"target": label})
    first = found.columns[0]
    found["kind"] = pd.cut(found[first], 4, labels=["a", "b", "c", "d"]).astype("category")
    found.loc[::9, found.columns[1]] = np.nan
    return found.sample(frac=1.0, random_state=0, ignore_index=True)


def halves(load):
    found = table(load)
    y = found.pop("target")
    half = len(found) // 2
    return found[:half], y[:half], found[half:], y[half:]


def model_of(folder, problem_type, **hyperparameters):
    return BoostBPModel(path=str(folder), name="model", problem_type=problem_type, hyperparameters=hyperparameters)


@pytest.mark.parametrize(
    ("load", "metric", "least"),
    [(load_breast_cancer, "roc_auc", 0.95), (load_wine, "accuracy", 0.9), (load_diabetes, "r2", 0.3)],
    ids=["binary", "multiclass", "regression"],
)
def test_predictor_fits_real_tables(tmp_path, load, metric, least):
    found = table(load)
    train, test = found[: len(found) * 2 // 3], found[len(found) * 2 // 3 :]
    predictor = tabular.TabularPredictor(label="target", path=str(tmp_path), eval_metric=metric, verbosity=0)
    predictor.fit(train, hyperparameters={BoostBPModel: {}}, raise_on_model_failure=True)
    assert predictor.model_names()[0] == "BoostBP"
    assert predictor.evaluate(test)[metric] > least
    unseen = test.assign(kind="never seen", **{test.columns[0]: np.nan})
    assert np.isfinite(predictor.predict(unseen).to_numpy(float)).all()
    again = tabular.TabularPredictor.load(str(tmp_path), verbosity=0)
    np.testing.assert_array_equal(again.predict(test), predictor.predict(test))


@pytest.mark.usefixtures("here")
def test_autogluon_finds_nothing_wrong_with_it():
    """AutoGluon's own check of a model: all problem types, seeds, folds, refits, predictions of single rows."""
    from autogluon.tabular.testing import FitHelper

    FitHelper.verify_model(model_cls=BoostBPModel, model_hyperparameters=QUICK)


@pytest.mark.parametrize("load", [load_breast_cancer, load_diabetes], ids=["binary", "regression"])
def test_rows_threads_seed_and_weights_reach_the_estimator(tmp_path, load):
    X, y, X_valid, y_valid = halves(load)
    kind, problem_type = (
        (BoostBPClassifier, "binary") if load is load_breast_cancer else (BoostBPRegressor, "regression")
    )
    weight = pd.Series(RNG.uniform(0.5, 2.0, len(y)), y.index)
    weight_valid = pd.Series(RNG.uniform(0.5, 2.0, len(y_valid)), y_valid.index)
    data = {"X": X, "y": y, "X_val": X_valid, "y_val": y_valid}
    weights = {"sample_weight": weight, "sample_weight_val": weight_valid}
    model = model_of(tmp_path, problem_type, **QUICK, hidden__max_depth=2).fit(
        **data, **weights, num_cpus=2, num_gpus=0
    )
    alone = kind(**QUICK, hidden={"max_depth": 2}, random_state=0, n_jobs=2)
    alone.fit(X, y, weight, eval_set=[(X_valid, y_valid, weight_valid)])
    expected = alone.predict(X_valid) if kind is BoostBPRegressor else alone.predict_proba(X_valid)[:, 1]
    np.testing.assert_array_equal(model.predict_proba(X_valid), expected.astype(np.float32))
    assert list(model.model.history_.scores) == ["valid_0"]  # of AutoGluon's rows; none were held out
    assert model.model.n_jobs == 2
    assert model.model.max_time is None


def test_without_rows_to_choose_by_the_estimator_holds_some_out(tmp_path):
    X, y, *_ = halves(load_diabetes)
    model = model_of(tmp_path, "regression", **QUICK).fit(X=X, y=y, num_cpus=1, num_gpus=0)
    assert list(model.model.history_.scores) == ["held_out"]


def test_a_class_without_rows_has_a_column(tmp_path):
    X, y, X_valid, y_valid = halves(load_wine)
    few = y < 2
    model = model_of(tmp_path, "multiclass", **QUICK)
    model.fit(X=X[few], y=y[few], X_val=X_valid, y_val=y_valid, num_classes=3, num_cpus=1, num_gpus=0)
    probabilities = model.predict_proba(X_valid)
    assert probabilities.shape == (len(X_valid), 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)
    assert (probabilities[:, 2] < 1e-3).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_infinite_cells_are_read_as_missing_in_fits_and_predictions(tmp_path, dtype):
    X, y, X_valid, y_valid = halves(load_diabetes)
    column = X.columns[2]
    tables = {}
    for name, cell in (("infinite", np.inf), ("negative", -np.inf), ("missing", np.nan)):
        tables[name] = [part.astype({column: dtype}) for part in (X, X_valid)]
        for part in tables[name]:
            part.loc[part.index[::7], column] = cell
    before = [part.copy() for part in tables["infinite"]]
    models = {
        name: model_of(tmp_path / name, "regression", **QUICK).fit(
            X=train, y=y, X_val=valid, y_val=y_valid, num_cpus=1, num_gpus=0
        )
        for name, (train, valid) in tables.items()
    }
    expected = models["missing"].predict_proba(tables["missing"][1])
    assert np.isfinite(expected).all()
    for name in ("infinite", "negative"):
        np.testing.assert_array_equal(models[name].predict_proba(tables[name][1]), expected)
        np.testing.assert_array_equal(models["missing"].predict_proba(tables[name][1]), expected)
    for part, same in zip(tables["infinite"], before, strict=True):
        pd.testing.assert_frame_equal(part, same)


def test_a_predictor_survives_an_infinite_cell(tmp_path):
    found = table(load_diabetes)
    found.loc[3, "bmi"] = np.inf
    train, test = found[:300], found[300:].copy()
    test.loc[test.index[0], "bmi"] = -np.inf
    predictor = tabular.TabularPredictor(label="target", path=str(tmp_path), verbosity=0)
    predictor.fit(train, hyperparameters={BoostBPModel: QUICK}, raise_on_model_failure=True)
    assert predictor.model_names()[0] == "BoostBP"
    assert np.isfinite(predictor.predict(test)).all()


def test_time_limit_leaves_some_of_it_for_what_follows_the_rounds(tmp_path):
    X, y, X_valid, y_valid = halves(load_diabetes)
    data = {"X": X, "y": y, "X_val": X_valid, "y_val": y_valid, "num_cpus": 1, "num_gpus": 0}
    assert 0 < model_of(tmp_path / "a", "regression", **QUICK).fit(**data, time_limit=1000).model.max_time <= 700
    own = model_of(tmp_path / "b", "regression", **QUICK, max_time=5.0).fit(**data, time_limit=1000)
    assert own.model.max_time == 5.0
    with pytest.raises(TimeLimitExceeded):
        model_of(tmp_path / "c", "regression", **QUICK).fit(**data, time_limit=1e-3)


def test_no_rounds_begin_after_seven_tenths_of_the_time_limit(tmp_path, monkeypatch):
    """On a clock that counts 4 seconds for a piece of rounds, and 1.5 for the preprocessing of a table."""
    now, advance, preprocess = [0.0], Boosted.advance, BoostBPModel.preprocess

    def after(seconds, function, *args, **options):
        now[0] += seconds
        return function(*args, **options)

    for owner, name, value in (
        (time, "monotonic", lambda: now[0]),
        (time, "perf_counter", lambda: now[0]),
        (ensemble, "Budget", lambda seconds: Budget(seconds, _begun=now[0])),
        (Boosted, "advance", lambda *args, **options: after(4.0, advance, *args, **options)),
        (BoostBPModel, "preprocess", lambda *args, **options: after(1.5, preprocess, *args, **options)),
    ):
        monkeypatch.setattr(owner, name, value)
    X, y, X_valid, y_valid = halves(load_diabetes)
    for limit in (20, 40, 60):
        now[0] = 0.0
        model = model_of(tmp_path / str(limit), "regression", deep=False)
        model.fit(X=X, y=y, X_val=X_valid, y_val=y_valid, num_cpus=1, num_gpus=0, time_limit=limit)
        assert model.model.history_.choice.cut_by_time
        assert 0.7 * limit <= now[0] < 0.7 * limit + 4.0


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of the process from /proc")
@pytest.mark.parametrize(
    ("rows", "columns", "classes", "hyperparameters"),
    [
        (1000, 5, 2, {}),
        (2000, 20, 0, {}),
        (1000, 100, 0, {}),
        (1500, 20, 5, {}),
        (10_000, 5, 2, {}),
        (4000, 20, 5, {"deep": True, "epochs": 10}),
    ],
)
def test_memory_of_a_fit_is_estimated_within_a_factor_of_two(rows, columns, classes, hyperparameters):
    arguments = [str(rows), str(columns), str(classes), json.dumps(hyperparameters)]
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", MEMORY, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    estimate, peak = json.loads(done.stdout.splitlines()[-1])
    assert peak / 2 < estimate < 2 * peak, f"estimate {estimate / 1e6:.0f} MB, peak {peak / 1e6:.0f} MB"


def test_estimate_of_memory_knows_the_time_limit(tmp_path, monkeypatch):
    estimate, limits = BoostBPModel._estimate_memory_usage_static, []
    X, y = pd.DataFrame(RNG.normal(size=(10_000, 20))), pd.Series(RNG.normal(size=10_000))
    whole = estimate(X=X)
    assert estimate(X=X, time_limit=3600) == estimate(X=X, hyperparameters={"max_time": 3600.0}) == whole
    two = estimate(X=X, time_limit=2, hyperparameters={"max_time": 9})
    assert two == estimate(X=X, time_limit=9, hyperparameters={"max_time": 2}) < estimate(X=X, time_limit=3) < whole

    def noted(**options):
        limits.append(options["time_limit"])
        return estimate(**options)

    monkeypatch.setattr(BoostBPModel, "_estimate_memory_usage_static", noted)
    data = {"X": X[:200], "y": y[:200], "num_cpus": 1, "num_gpus": 0}
    model_of(tmp_path, "regression", **QUICK).fit(**data, time_limit=1000)
    assert limits == [1000]


@pytest.mark.parametrize(
    ("metric", "expected"), [("mean_absolute_error", "mean_absolute_error"), ("root_mean_squared_error", None)]
)
def test_rounds_are_chosen_by_the_metric_of_numbers(tmp_path, metric, expected):
    X, y, X_valid, y_valid = halves(load_diabetes)
    model = BoostBPModel(str(tmp_path), "model", problem_type="regression", eval_metric=metric, hyperparameters=QUICK)
    model.fit(X=X, y=y, X_val=X_valid, y_val=y_valid, num_cpus=1, num_gpus=0)
    assert model.model.eval_metric == expected
