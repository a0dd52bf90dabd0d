"""Fits in MLflow: what a run tells is what the fit did, and the model that it holds predicts the same."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from flat_parameters import parameters
from joblib import parallel_backend
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival

# What other packages say of each other there is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] * X[:, 1]
TABLE = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=pd.Categorical(RNG.choice(["u", "v"], 120)))
TABLE.loc[::7, "a"] = np.nan
TINY = {"n_estimators": 4, "epochs": 3, "deep": True, "random_state": 0}


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        mlflow = pytest.importorskip("mlflow", reason="needs mlflow: pip install 'boostbp[mlflow]'")
        pytest.importorskip("sqlalchemy", reason="MLflow keeps runs in a database by sqlalchemy")
        folder = tmp_path_factory.mktemp("runs")
        before = mlflow.get_tracking_uri()
        mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
        mlflow.set_experiment(experiment_id=mlflow.create_experiment("boostbp", artifact_location=str(folder)))
        yield mlflow
        mlflow.set_tracking_uri(before)


@pytest.fixture
def logging(mlflow):
    import boostbp.mlflow as logging

    yield logging
    logging.autolog(disable=True)


def runs(mlflow):
    return mlflow.search_runs(output_format="list")


def models_of(mlflow, run):
    found = mlflow.search_logged_models(output_format="list")
    return [model for model in found if model.source_run_id == run.info.run_id]


def by_step(mlflow, run, name):
    return [(one.step, one.value) for one in mlflow.MlflowClient().get_metric_history(run.info.run_id, name)]


@pytest.mark.slow
def test_a_run_tells_what_each_epoch_did(mlflow, logging):
    model = BoostBPRegressor(**parameters(**TINY, max_depth=2)).fit(X[30:], Y[30:], eval_set=[(X[:30], Y[:30])])
    with mlflow.start_run() as run:
        logging.log_fit(model, X, log_models=False)
    run = mlflow.get_run(run.info.run_id)
    epochs = model.history_.epochs
    assert len(epochs) == 4
    assert by_step(mlflow, run, "loss") == [(epoch.epoch, epoch.loss) for epoch in epochs]
    assert by_step(mlflow, run, "valid_0_rmse") == [(epoch.epoch, epoch.metrics["valid_0"]) for epoch in epochs]
    assert by_step(mlflow, run, "drift_0") == [(epoch.epoch, epoch.drift[0]) for epoch in epochs]
    assert run.data.metrics["model/valid_0_rmse"] == model.history_.scores["valid_0"]
    assert run.data.params == {name: str(value) for name, value in model.get_params(deep=False).items()}
    assert run.data.tags["estimator_name"] == "BoostBPRegressor"
    assert models_of(mlflow, run) == []


def test_a_run_tells_what_became_of_each_candidate(mlflow, logging):
    sets = {"eval_set": [(X[:30], Y[:30])], "eval_names": ["late, 5%"]}
    model = BoostBPRegressor(quality=2, random_state=0).fit(X, Y, **sets)
    with mlflow.start_run() as run:
        logging.log_fit(model, log_models=False)
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    candidates = model.history_.choice.candidates
    assert len(candidates) > 2
    for candidate in candidates:
        name = candidate.name.replace(",", "")
        assert metrics[f"candidates/{name}/loss"] == candidate.loss
        assert metrics[f"candidates/{name}/weight"] == candidate.weight
    assert metrics["model/late 5_rmse"] == model.history_.scores["late, 5%"]


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.from_pandas])
def test_logged_model_takes_tables_by_its_signature_and_predicts_the_same(mlflow, logging, as_frame):
    labels = np.where(Y > 0, "high", "low")
    model = BoostBPClassifier(**parameters(**TINY)).fit(as_frame(TABLE), labels)
    with mlflow.start_run():
        logged = logging.log_model(model, X=as_frame(TABLE))
    types = {column.name: str(column.type) for column in logged.signature.inputs}
    assert types == dict.fromkeys("abc", "DataType.double") | {"kind": "DataType.string"}
    served = mlflow.pyfunc.load_model(logged.model_uri).predict(TABLE.astype({"kind": str}))
    np.testing.assert_array_equal(served, model.predict(TABLE))
    again = mlflow.sklearn.load_model(logged.model_uri)
    np.testing.assert_array_equal(again.predict_proba(TABLE), model.predict_proba(TABLE))


def test_mlflow_itself_asks_for_trust_in_the_class_and_in_nothing_else(mlflow):
    model = BoostBPRegressor(**parameters(**TINY)).fit(TABLE, Y)
    name = "boostbp.estimators.regressor.BoostBPRegressor"
    how = {"name": "model", "pip_requirements": ["boostbp"]}
    with mlflow.start_run():
        with pytest.raises(mlflow.MlflowException, match=f"Untrusted types found in the file: ..{name}..[.]$"):
            mlflow.sklearn.log_model(model, **how)
        logged = mlflow.sklearn.log_model(model, skops_trusted_types=[name], **how)
    again = mlflow.sklearn.load_model(logged.model_uri)
    np.testing.assert_array_equal(again.predict(TABLE), model.predict(TABLE))


@pytest.mark.slow
def test_each_fit_is_logged_until_it_is_switched_off_and_gives_the_same_model(mlflow, logging):
    before = len(runs(mlflow))
    makers = {BoostBPRegressor: (Y, {}), BoostBPClassifier: (Y > 0, {}), BoostBPSurvival: (np.exp(Y), {})}
    makers |= {BoostBPRanker: (Y > 0, {"qid": np.arange(len(Y)) // 10})}
    silently = [kind(**parameters(**TINY)).fit(X, y, **other) for kind, (y, other) in makers.items()]
    logging.autolog()
    models = [kind(**parameters(**TINY)).fit(X, y, **other) for kind, (y, other) in makers.items()]
    BoostBPAutoencoder(hidden_layer_sizes=(2,), epochs=1, random_state=0).fit(X=X)
    assert mlflow.active_run() is None
    logged = runs(mlflow)[: len(runs(mlflow)) - before][::-1]  # the latest come first
    named = [*(kind.__name__ for kind in makers), "BoostBPAutoencoder"]
    assert [run.data.tags["estimator_name"] for run in logged] == named
    for silent, model, run in zip(silently, models, logged, strict=False):
        np.testing.assert_array_equal(model.transform(X), silent.transform(X))
        [kept] = models_of(mlflow, run)
        np.testing.assert_array_equal(mlflow.sklearn.load_model(kept.model_uri).predict(X), model.predict(X))
    logging.autolog(disable=True)
    BoostBPRegressor(**parameters(**TINY)).fit(X, Y)
    assert len(runs(mlflow)) == before + len(named)


def test_a_fit_goes_on_where_logging_fails_and_raises_where_it_fails(mlflow, logging, tmp_path):
    logging.autolog(silent=True)
    (tmp_path / "file").touch()  # in which no model can be written
    broken = mlflow.create_experiment("broken", artifact_location=str(tmp_path / "file"))
    with mlflow.start_run(experiment_id=broken) as run:
        model = BoostBPRegressor(**parameters(**TINY)).fit(X, Y)
        with pytest.raises(OSError, match="file"):
            logging.log_model(model)
    assert len(model.history_) == 4
    assert "loss" in mlflow.get_run(run.info.run_id).data.metrics
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        BoostBPRegressor(**parameters(**TINY)).fit(X, Y[:-1])


def test_fits_in_an_active_run_are_logged_there(mlflow, logging):
    logging.autolog(log_models=False)
    before = len(runs(mlflow))
    with mlflow.start_run() as run:
        BoostBPRegressor(**parameters(**TINY)).fit(X, Y)
        assert mlflow.active_run().info.run_id == run.info.run_id
    assert len(runs(mlflow)) == before + 1
    assert "loss" in mlflow.get_run(run.info.run_id).data.metrics


def newest(mlflow, count):
    """The runs that were begun last, the latest first."""
    return runs(mlflow)[:count]


def test_a_pipeline_is_logged_as_a_whole(mlflow, logging):
    before = len(runs(mlflow))
    logging.autolog()
    pipeline = make_pipeline(StandardScaler(), BoostBPRegressor(**parameters(**TINY, max_depth=2))).fit(X, Y)
    assert len(runs(mlflow)) == before + 1
    [run] = newest(mlflow, 1)
    [kept] = models_of(mlflow, run)
    served = mlflow.pyfunc.load_model(kept.model_uri)
    np.testing.assert_array_equal(served.predict(X), pipeline.predict(X))  # of what was never scaled
    assert run.data.params["max_depth"] == "2"
    assert by_step(mlflow, run, "loss") == [(epoch.epoch, epoch.loss) for epoch in pipeline[-1].history_.epochs]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [None, 2])
def test_a_search_is_a_run_of_the_best(mlflow, logging, jobs):
    before = len(runs(mlflow))
    logging.autolog()
    pipeline = make_pipeline(StandardScaler(), BoostBPRegressor(**parameters(**TINY)))
    grid = {"boostbpregressor__max_depth": [1, 2], "boostbpregressor__output__n_estimators": [3]}
    with mlflow.start_run() as run, parallel_backend("threading"):
        search = GridSearchCV(pipeline, grid, cv=2, n_jobs=jobs).fit(X, Y)
    assert len(runs(mlflow)) == before + 1
    of_best = mlflow.get_run(run.info.run_id)
    assert of_best.data.params["max_depth"] == str(search.best_params_["boostbpregressor__max_depth"])
    history = search.best_estimator_[-1].history_
    assert by_step(mlflow, of_best, "loss") == [(epoch.epoch, epoch.loss) for epoch in history.epochs]
    [kept] = models_of(mlflow, of_best)
    np.testing.assert_array_equal(mlflow.pyfunc.load_model(kept.model_uri).predict(X), search.predict(X))


@pytest.mark.slow
def test_mlflow_logs_the_candidates_of_a_search(mlflow, logging):
    logging.autolog()
    before = len(runs(mlflow))
    mlflow.sklearn.autolog()
    try:
        search = GridSearchCV(BoostBPRegressor(**parameters(**TINY)), {"max_depth": [1, 2]}, cv=2).fit(X, Y)
    finally:
        mlflow.sklearn.autolog(disable=True)
    logged = runs(mlflow)[: len(runs(mlflow)) - before]
    [parent] = [run for run in logged if run.data.tags["estimator_name"] == "GridSearchCV"]
    children = [run for run in logged if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(logged) == 1 + len(children) == 3
    assert "boostbp_version" not in parent.data.tags  # nor is the best fit logged again
    scores = {child.data.params["max_depth"]: child.data.metrics["mean_test_score"] for child in children}
    assert scores == dict(zip("12", search.cv_results_["mean_test_score"], strict=True))


def test_a_second_fit_in_a_run_is_a_child_of_it(mlflow, logging):
    logging.autolog(log_models=False)
    with mlflow.start_run() as run:
        for depth in (1, 2):
            BoostBPRegressor(**parameters(**TINY, max_depth=depth)).fit(X, Y)
    child, parent = newest(mlflow, 2)
    assert parent.info.run_id == run.info.run_id == child.data.tags["mlflow.parentRunId"]
    assert (parent.data.params["max_depth"], child.data.params["max_depth"]) == ("1", "2")
    assert len(by_step(mlflow, parent, "loss")) == len(by_step(mlflow, child, "loss")) == 4


def test_a_fit_on_a_file_is_logged_without_a_signature(mlflow, logging, tmp_path):
    TABLE.assign(y=Y).to_parquet(tmp_path / "t.parquet", index=False)
    logging.autolog()
    model = BoostBPRegressor(**parameters(**TINY)).fit(str(tmp_path / "t.parquet"), y="y")
    [run] = newest(mlflow, 1)
    [kept] = models_of(mlflow, run)
    served = mlflow.pyfunc.load_model(kept.model_uri)
    np.testing.assert_array_equal(served.predict(TABLE), model.predict(TABLE))


def test_copies_of_a_fitted_model_hold_nothing_of_the_fit_that_runs():
    """scikit-learn 1.9 keeps the callbacks of a pipeline in its last step while that is fitted."""
    model = BoostBPRegressor(**parameters(**TINY)).fit(X, Y)
    model._parent_callback_ctx = model._callback_fit_ctx = object()
    for state in (model.__getstate__(), model.__reduce_ex__(4)[2], vars(pickle.loads(pickle.dumps(model)))):
        assert not any("_ctx" in name for name in state)
    assert hasattr(model, "_parent_callback_ctx")
