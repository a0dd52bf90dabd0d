"""Estimators on Spark: the model of one machine, columns of predictions, faults with an error that names them."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys

import numpy as np
import pandas as pd
import pytest
from cluster_rows import frame, numbers
from process_workers import same_trees

from boostbp import BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.distributed import WorkersLostError
from boostbp.spark import SparkBoostBPClassifier, SparkBoostBPRegressor, _task

pyspark = pytest.importorskip("pyspark", reason="needs Spark: pip install 'boostbp[spark]'")
from pyspark import cloudpickle  # noqa: E402
from pyspark.sql import SparkSession, functions  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.skipif(
        "JAVA_HOME" not in os.environ and shutil.which("java") is None,
        reason="needs Java: apt-get install default-jre-headless",
    ),
]
HOW = {"deep": True, "backend": "xgboost", "epochs": 2, "n_estimators": 8, "random_state": 0}
SEVERAL = 21_000  # from 20,001 rows on, workers grow trees together


@pytest.fixture(scope="module")
def session():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def die(progress):
    os.kill(os.getpid(), signal.SIGKILL)


def die_later(progress):
    if progress.epoch is not None and progress.epoch.epoch == 2:
        die(progress)


def array(df, column):
    return np.array([row[0] for row in df.select(column).collect()])


def test_the_model_of_one_machine_loads_anywhere(session, tmp_path):
    rows = frame(SEVERAL).drop(columns="declared").rename(columns={"b": "b.b"})
    rows["flag"], rows["weight"] = rows["a"] > 0.5, rows["a"].isna() + 1.0
    features = ["a", "b.b", "c", "d", "e", "text", "flag"]
    one = BoostBPRegressor((4,), early_stopping=False, **HOW).fit(rows[features], rows["y"], rows["weight"])
    df = session.createDataFrame(rows).withColumn("id", functions.monotonically_increasing_id())
    model = SparkBoostBPRegressor((4,), early_stopping=False, **HOW).fit(df, features, "y", "weight", timeout=300.0)
    assert model.get_params() == one.get_params()
    assert model.feature_names_in_.tolist() == features
    assert same_trees(model, one)
    predicted = model.predict(df)
    assert predicted.columns == [*df.columns, "prediction"]
    expected = one.predict(rows[features])
    np.testing.assert_allclose(array(predicted, "prediction"), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(array(model.transform(df), "units"), one.transform(rows[features]), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.predict(rows[features]), expected, rtol=0, atol=1e-9)  # a table of this process
    save(model.to_local(), tmp_path / "model")
    assert type(load(tmp_path / "model")) is BoostBPRegressor
    np.testing.assert_array_equal(load(tmp_path / "model").predict(rows[features]), model.predict(rows[features]))
    with pytest.raises(TypeError, match=r"cannot be stored: store the local estimator, .*to_local\(\)"):
        save(model, tmp_path / "other")


@pytest.mark.parametrize("labels", [["low", "mid", "high"], [3, 5, 4]])
def test_classes_are_those_of_the_label(session, labels):
    rows = frame().drop(columns="declared")
    rows["label"] = np.array(labels)[np.digitize(rows.pop("y"), [-1.0, 1.5])]
    features = list(rows.columns[:-1])
    one = BoostBPClassifier((4,), **HOW).fit(rows[features], rows["label"])
    df = session.createDataFrame(rows)
    model = SparkBoostBPClassifier((4,), **HOW).fit(df, features, "label", n_workers=2, timeout=300.0)
    assert model.classes_.tolist() == sorted(labels)
    np.testing.assert_allclose(
        array(model.predict_proba(df), "probability"), one.predict_proba(rows[features]), rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(
        array(model.decision_function(df), "decision"), one.decision_function(rows[features]), atol=1e-8
    )
    assert (array(model.predict(df), "prediction") == one.predict(rows[features])).all()
    model.calibrate(rows[features], rows["label"])
    np.testing.assert_array_equal(array(model.predict_set(df), "set"), model.to_local().predict_set(rows[features]))


def test_a_column_of_vectors_and_two_outputs(session):
    from pyspark.ml.feature import VectorAssembler

    X, y, _ = numbers(400)
    rows = pd.DataFrame(np.nan_to_num(X), columns=list("abcde")).assign(y=y, z=-y)
    df = VectorAssembler(inputCols=list("abcde"), outputCol="together").transform(session.createDataFrame(rows))
    one = BoostBPRegressor((4,), **HOW).fit(np.nan_to_num(X), rows[["y", "z"]].to_numpy())
    model = SparkBoostBPRegressor((4,), **HOW).fit(df, "together", ["y", "z"], timeout=300.0)
    predicted = model.predict(df.withColumn("together", functions.array(*"abcde")))
    np.testing.assert_allclose(array(predicted, "prediction"), one.predict(np.nan_to_num(X)), rtol=0, atol=1e-9)
    model.fit(df, "together", "y", timeout=300.0).calibrate(np.nan_to_num(X), y)
    intervals = model.to_local().predict_interval(np.nan_to_num(X), 0.8)
    np.testing.assert_array_equal(array(model.predict_interval(df, 0.8), "interval"), intervals)


def test_tasks_without_rows_take_no_part(session):
    X, y, _ = numbers(400)
    rows = pd.DataFrame(X, columns=list("abcde")).assign(y=y, order=0)
    df = session.createDataFrame(rows).coalesce(1).repartition(2, functions.lit(1))
    model = BoostBPRegressor((4,), **HOW)
    (result,) = df.mapInPandas(
        _task(model, list("abcde"), 1, False, 300.0, {}), "result binary", barrier=True
    ).collect()
    expected = model.fit(rows[list("abcde")], y).predict(rows[list("abcde")])
    np.testing.assert_allclose(pickle.loads(result[0]).predict(rows[list("abcde")]), expected, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="df has no rows"):
        SparkBoostBPRegressor().fit(df.where("y > 1e9"), ["a", "b"], "y")


def test_errors_are_those_of_the_worker_and_name_it(session):
    X, y, _ = numbers(400)
    y[350] = np.nan
    df = session.createDataFrame(pd.DataFrame(X, columns=list("abcde")).assign(y=y))
    with pytest.raises(ValueError, match="NaN") as raised:
        SparkBoostBPRegressor((4,), **HOW).fit(df, list("abcde"), "y", timeout=300.0)
    assert raised.value.__notes__ == ["In the barrier task 1 of Spark."]
    with pytest.raises(ValueError, match=r"calibration=0.2 is not supported on several workers"):
        SparkBoostBPRegressor(calibration=0.2).fit(df, list("abcde"), "y")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_fit_that_lost_a_worker_says_so_and_goes_on_from_its_checkpoint(session, tmp_path):
    X, y, _ = numbers(400)
    df = session.createDataFrame(pd.DataFrame(X, columns=list("abcde")).assign(y=y))
    how = {"early_stopping": False, "output": {"subsample": 0.8}} | HOW
    one, model = BoostBPRegressor((3,), **how).fit(X, y), SparkBoostBPRegressor((3,), **how)
    kept = {"checkpoint": str(tmp_path / "state"), "timeout": 300.0}
    with pytest.raises(WorkersLostError, match="A barrier task ended without an answer") as raised:
        model.fit(df, list("abcde"), "y", callbacks=[die_later], **kept)
    assert "Python worker exited unexpectedly" in str(raised.value.__cause__)
    assert (tmp_path / "state").exists()
    model.fit(df, list("abcde"), "y", **kept)
    np.testing.assert_allclose(array(model.predict(df), "prediction"), one.predict(X), rtol=0, atol=1e-9)
