"""BoostBPSurvival: forms of targets, curves and quantiles, metrics, and the conventions of scikit-survival."""

from __future__ import annotations

import io
import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score

import boostbp
from boostbp import BoostBPSurvival
from boostbp.losses import AFT, Cox

Floats = NDArray[np.float64]
QUICK: dict[str, Any] = {"quality": 1, "n_estimators": 60, "random_state": 0}
BOTH = pytest.mark.parametrize("loss", ["cox", "aft"])


def rows(n_rows: int, *, seed: int = 0, scale: float = 0.5, weibull: bool = False) -> tuple[Floats, Floats, Floats]:
    """X, times, and times of censoring: ``log t = x_0 + x_1 / 2`` plus noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    noise = np.log(rng.exponential(size=n_rows)) if weibull else rng.normal(size=n_rows)
    return X, np.exp(X[:, 0] + X[:, 1] / 2 + scale * noise), rng.exponential(5.0, n_rows)


def bounds_of(time: Floats, limit: Floats) -> Floats:
    return np.column_stack([np.minimum(time, limit), np.where(time <= limit, time, np.inf)])


def surv(bounds: Floats) -> NDArray[Any]:
    """The structured array that ``sksurv.util.Surv.from_arrays`` makes."""
    y = np.empty(len(bounds), [("event", bool), ("time", float)])
    y["event"], y["time"] = bounds[:, 0] == bounds[:, 1], bounds[:, 0]
    return y


X, TIME, LIMIT = rows(600)
Y = bounds_of(TIME, LIMIT)
X_NEW, TIME_NEW, LIMIT_NEW = rows(2000, seed=1)
Y_NEW = bounds_of(TIME_NEW, LIMIT_NEW)


def test_proportional_hazards_refuse_other_censoring_by_name() -> None:
    with pytest.raises(ValueError, match="Use loss='aft' for left and interval censoring"):
        BoostBPSurvival(**QUICK).fit(X, np.column_stack([TIME, 2 * TIME]))


def test_interval_censored_times_are_learned() -> None:
    x, time, _ = rows(2000)
    grid = np.array([0.0, 0.3, 0.8, 1.5, 3.0, np.inf])  # visits between which the event is noticed
    place = np.searchsorted(grid, time)
    model = BoostBPSurvival(loss="aft", **QUICK).fit(x, np.column_stack([grid[place - 1], grid[place]]))
    assert model.model_.targets.loss.scale == pytest.approx(0.5, abs=0.1)
    x_new, time_new, _ = rows(2000, seed=1)
    assert np.corrcoef(np.log(model.predict(x_new)), np.log(time_new))[0, 1] > 0.85
    assert np.mean(time_new <= model.predict(x_new)) == pytest.approx(0.5, abs=0.05)
    with pytest.raises(ValueError, match="concordance takes right-censored rows"):
        model.score(x, np.column_stack([grid[place - 1], grid[place]]))


@BOTH
def test_weights_are_repeated_rows_and_offsets_are_known_parts(loss: str) -> None:
    weight = np.random.default_rng(0).integers(1, 3, 600)
    repeated = np.repeat(np.arange(600), weight)
    sets = {"eval_set": [(X_NEW, Y_NEW)]}
    params = QUICK | {"loss": AFT(scale=0.5) if loss == "aft" else loss, "min_samples_leaf": 1, "quality": 1}
    by_weight = BoostBPSurvival(**params).fit(X, Y, sample_weight=weight, **sets)
    by_rows = BoostBPSurvival(**params).fit(X[repeated], Y[repeated], **sets)
    # the library draws its bins from rows, not from weights
    assert np.corrcoef(by_weight.predict(X_NEW), by_rows.predict(X_NEW))[0, 1] > 0.98
    sign = 1.0 if loss == "aft" else -2.0
    known = sign * X[:, 0]
    model = BoostBPSurvival(loss=loss, **QUICK).fit(X, Y, offset=known)
    assert model.score(X_NEW, Y_NEW, offset=sign * X_NEW[:, 0]) > 0.84
    assert model.score(X_NEW, Y_NEW, offset=0) < 0.75
    with pytest.raises(ValueError, match="score needs the offset"):
        model.score(X_NEW, Y_NEW)


@BOTH
def test_files_and_pickles_hold_the_curves(loss: str) -> None:
    model = BoostBPSurvival(loss=loss, **QUICK).fit(X, Y)
    file = io.BytesIO()
    boostbp.save(model, file)
    loaded = boostbp.load(io.BytesIO(file.getvalue()))
    for copied in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copied.unique_times_, model.unique_times_)
        np.testing.assert_array_equal(
            copied.predict_survival_function(X_NEW, return_array=True),
            model.predict_survival_function(X_NEW, return_array=True),
        )
        np.testing.assert_array_equal(copied.predict_quantile(X_NEW, 0.3), model.predict_quantile(X_NEW, 0.3))


@pytest.mark.parametrize(
    ("loss", "metric"),
    [
        ("cox", "cox-nloglik"),
        ("cox", "concordance"),
        ("aft", "aft-nloglik"),
        ("aft", "concordance"),
        ("aft", "interval-regression-accuracy"),
    ],
)
def test_metrics_of_survival_times_choose_the_rounds(loss: str, metric: str) -> None:
    model = BoostBPSurvival(loss=loss, eval_metric=metric, **QUICK).fit(X, Y, eval_set=[(X_NEW, Y_NEW)])
    [score] = model.best_score_["valid_0"].values()
    if metric == "concordance":
        assert score == pytest.approx(model.score(X_NEW, Y_NEW), abs=1e-3)
    event = Y_NEW[:, 0] == Y_NEW[:, 1]
    if metric == "cox-nloglik":
        losses = Cox().value(model.predict(X_NEW)[:, None], Y_NEW)
        assert score == pytest.approx(losses.sum() / event.sum(), rel=1e-3)


@pytest.mark.parametrize(
    ("loss", "metric", "message"),
    [
        ("cox", "rmse", "'rmse' is not of survival times: use one of concordance, "),
        ("cox", "aft-nloglik", "'aft-nloglik' is not of loss='cox': use 'cox-nloglik' or 'concordance'"),
        ("aft", "cox-nloglik", "'cox-nloglik' is not of loss='aft'"),
    ],
)
def test_other_metrics_are_refused(loss: str, metric: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoostBPSurvival(loss=loss, eval_metric=metric, **QUICK).fit(X, Y)


def test_other_estimators_refuse_metrics_of_survival() -> None:
    with pytest.raises(ValueError, match="'concordance' is for survival times: use BoostBPSurvival"):
        boostbp.BoostBPRegressor(eval_metric="concordance", **QUICK).fit(X, TIME)


@pytest.mark.slow
@BOTH
def test_a_fit_continues_from_a_model_and_in_more_epochs(loss: str) -> None:
    first = BoostBPSurvival(loss=loss, **QUICK).fit(X, Y)
    second = BoostBPSurvival(loss=loss, **QUICK).fit(X_NEW[:600], Y_NEW[:600], init_model=first)
    assert second.score(X_NEW[600:], Y_NEW[600:]) > 0.86
    for rate in (0.0, 0.5):
        again = first.refit(X_NEW[:600], Y_NEW[:600], decay_rate=rate)
        assert again.score(X_NEW[600:], Y_NEW[600:]) > 0.86
        assert again.predict_quantile(X_NEW[:3]).shape == (3,)
        assert np.isin(Y_NEW[:600, 0][Y_NEW[:600, 0] == Y_NEW[:600, 1]], again.unique_times_).all()
    network = BoostBPSurvival((3,), loss=loss, deep=True, epochs=2, random_state=0).fit(X, Y, keep_state=True)
    network.fit_more(1)
    assert network.predict_survival_function(X_NEW[:3], times=[1.0]).shape == (3, 1)


@pytest.mark.parametrize("loss", [AFT(scale=0.5), "cox"])
def test_held_out_rows_keep_the_share_of_events(loss: Any) -> None:
    few = np.where(np.arange(600) % 12 == 0, Y[:, 0], np.inf)  # 50 events
    model = BoostBPSurvival(loss=loss, **QUICK).fit(X, np.column_stack([Y[:, 0], few]))
    assert np.isfinite(model.predict(X_NEW)).all()
    splitter = StratifiedKFold(5)
    BoostBPSurvival(loss=loss, validation=splitter, **QUICK).fit(X, np.column_stack([Y[:, 0], few]))


@BOTH
@pytest.mark.parametrize("n_events", [1, 2, 3])
def test_few_events_do_not_let_the_likelihood_rise_without_an_end(loss: str, n_events: int) -> None:
    time = np.minimum(TIME, LIMIT)[:300]
    has_event = np.isin(np.arange(300), np.random.default_rng(n_events).choice(300, n_events, replace=False))
    y = np.rec.fromarrays([has_event, time], names="event,time")
    held: list[Any] = []
    metric = ("kept", lambda y, predicted: held.append(y) or 0.0, True)
    BoostBPSurvival(loss=loss, quality=1, random_state=0, eval_metric=metric).fit(X[:300], y)
    assert {int(np.isfinite(bounds[:, 1]).sum()) for bounds in held} == ({1} if n_events > 1 else set())
    model = BoostBPSurvival(loss=loss, quality=1, random_state=0).fit(X[:300], y)
    assert sum(layer.forest.n_trees for layer in model.network_.layers) < 1000
    if n_events == 1:
        with pytest.raises(ValueError, match=r"^validation=0.1, training or held-out rows: y has no event"):
            BoostBPSurvival(loss=loss, quality=1, early_stopping=True).fit(X[:300], y)
    by_event = np.flatnonzero(has_event), np.flatnonzero(~has_event)
    with pytest.raises(ValueError, match=r"^validation=\(rows, rows\), training or held-out rows: y has no event"):
        BoostBPSurvival(loss=loss, quality=1, validation=by_event).fit(X[:300], y)


@BOTH
def test_curves_are_the_same_for_any_threads(loss: str) -> None:
    first, second = (BoostBPSurvival(loss=loss, n_jobs=n, quality=2, random_state=0).fit(X, Y) for n in (1, 2))
    np.testing.assert_array_equal(
        first.predict_survival_function(X_NEW, return_array=True),
        second.predict_survival_function(X_NEW, return_array=True),
    )


def test_searches_and_copies_work() -> None:
    model = clone(BoostBPSurvival(**QUICK))
    assert cross_val_score(model, X, surv(Y), cv=3).mean() > 0.85
    assert BoostBPSurvival()._predict_risk_score
    assert not BoostBPSurvival(loss="survival:aft")._predict_risk_score


def test_monotone_risks_categories_and_missing_values() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["e"] = pd.Categorical(np.where(X[:, 3] > 0, "x", "y"))
    frame.loc[::7, "b"] = np.nan
    model = BoostBPSurvival(output={"monotone_constraints": {"a": -1}}, **QUICK).fit(frame, Y)
    line = frame.iloc[[0] * 30].assign(a=np.linspace(-3, 3, 30))
    assert (np.diff(model.predict(line)) <= 1e-12).all()
    assert np.isfinite(model.attributions(frame).values).all()


def test_predictions_are_what_scikit_survivals_metrics_take() -> None:
    metrics = pytest.importorskip("sksurv.metrics")
    times = np.quantile(TIME_NEW, [0.2, 0.4, 0.6])
    model = BoostBPSurvival(**QUICK).fit(X, Y)
    survival = model.predict_survival_function(X_NEW, times=times)
    truth = surv(Y_NEW)
    known = metrics.concordance_index_censored(truth["event"], truth["time"], model.predict(X_NEW))[0]
    np.testing.assert_allclose(model.score(X_NEW, Y_NEW), known, rtol=1e-12)
    of_model = metrics.integrated_brier_score(surv(Y), truth[truth["time"] < 12], survival[truth["time"] < 12], times)
    of_constant = metrics.integrated_brier_score(
        surv(Y), truth[truth["time"] < 12], np.full_like(survival, 0.5)[truth["time"] < 12], times
    )
    assert of_model < 0.6 * of_constant


@pytest.mark.slow
def test_tools_of_scikit_survival_work() -> None:
    sksurv_metrics = pytest.importorskip("sksurv.metrics")
    from sklearn.model_selection import GridSearchCV

    y = surv(bounds_of(TIME, np.minimum(LIMIT, 4.0)))
    grid = {"estimator__learning_rate": [0.1, 0.3]}
    options = {"concordance_index_ipcw": {"tau": 3.0}, "cumulative_dynamic_auc": {"times": [0.5, 1.0]}}
    options["integrated_brier_score"] = {"times": [0.5, 1.0]}
    for name, scored in options.items():
        wrapper = getattr(sksurv_metrics, f"as_{name}_scorer")
        for loss in ("cox", "aft") if "brier" in name else ("cox",):  # the others take predictions for risks
            search = GridSearchCV(wrapper(BoostBPSurvival(loss=loss, **QUICK), **scored), grid, cv=2).fit(X, y)
            assert search.best_score_ > (-0.15 if "brier" in name else 0.8)


@pytest.mark.slow
@BOTH
def test_files_and_blocks_give_the_model_of_arrays(loss: str, tmp_path: Any) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abcd"))
    y = surv(Y)
    expected = BoostBPSurvival(loss=loss, **QUICK).fit(frame, Y).predict(frame)
    frame.assign(time=y["time"], event=y["event"]).to_parquet(tmp_path / "rows.parquet")
    frame.assign(lower=Y[:, 0], upper=Y[:, 1]).to_csv(tmp_path / "rows.csv", index=False)
    for name, columns in (("rows.parquet", ["time", "event"]), ("rows.csv", ["lower", "upper"])):
        model = BoostBPSurvival(loss=loss, **QUICK).fit(tmp_path / name, y=columns)
        np.testing.assert_array_equal(model.predict(frame), expected)
    blocks = ((frame[first : first + 200], y[first : first + 200]) for first in range(0, 600, 200))
    model = BoostBPSurvival(loss=loss, **QUICK).fit(blocks)
    np.testing.assert_array_equal(model.predict(frame), expected)


@BOTH
def test_exports_have_the_prediction(loss: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = BoostBPSurvival(loss=loss, **QUICK).fit(X, Y)
    session = onnxruntime.InferenceSession(boostbp.to_onnx(model).SerializeToString())
    [predicted] = session.run(["prediction"], {session.get_inputs()[0].name: X_NEW})
    np.testing.assert_allclose(predicted.ravel(), model.predict(X_NEW), rtol=1e-12)
    assert ("exp(" in boostbp.to_c(model)) == (loss == "aft")


@pytest.mark.slow
@BOTH
def test_a_checkpoint_continues_the_same_training(loss: str, tmp_path: Any) -> None:
    how: dict[str, Any] = {"hidden_layer_sizes": (3,), "loss": loss, "deep": True, "random_state": 0}
    straight = BoostBPSurvival(epochs=3, **how).fit(X, Y)
    BoostBPSurvival(epochs=1, **how).fit(X, Y, checkpoint=tmp_path / "state")
    resumed = BoostBPSurvival(epochs=3, **how).fit(X, Y, checkpoint=tmp_path / "state")
    np.testing.assert_array_equal(
        resumed.predict_survival_function(X_NEW, return_array=True),
        straight.predict_survival_function(X_NEW, return_array=True),
    )


@BOTH
@pytest.mark.parametrize("backend", ["xgboost", "sklearn"])
def test_other_libraries_grow_the_trees(loss: str, backend: str) -> None:
    if backend != "sklearn":
        pytest.importorskip(backend)
    model = BoostBPSurvival(loss=loss, backend=backend, **QUICK).fit(X, Y)
    assert model.score(X_NEW, Y_NEW) > 0.85


@BOTH
def test_max_time_ends_a_fit_with_a_model(loss: str) -> None:
    model = BoostBPSurvival(loss=loss, max_time=0.05, random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(X_NEW)).all()
    assert model.predict_survival_function(X_NEW[:2], times=[1.0]).shape == (2, 1)


@pytest.mark.parametrize(("table", "least"), [("load_gbsg2", 0.64), ("load_whas500", 0.72)])
@BOTH
def test_real_patients_are_ranked_and_their_survival_is_calibrated(loss: str, table: str, least: float) -> None:
    sksurv_metrics = pytest.importorskip("sksurv.metrics")
    frame, y = getattr(import_module("sksurv.datasets"), table)()
    event, time = y.dtype.names
    test = np.arange(len(y)) % 3 == 0
    model = BoostBPSurvival(loss=loss, quality=2, deep=False, random_state=0).fit(frame[~test], y[~test])
    assert model.score(frame[test], y[test]) > least
    times = np.quantile(y[time][y[event]], [0.25, 0.5, 0.75])
    survival = model.predict_survival_function(frame[test], times=times)
    by_table = import_module("sksurv.nonparametric").kaplan_meier_estimator(y[event], y[time])
    observed = by_table[1][np.searchsorted(by_table[0], times, side="right") - 1]
    np.testing.assert_allclose(survival.mean(axis=0), observed, atol=0.06)
    known = np.broadcast_to(observed, survival.shape)
    errors = [sksurv_metrics.integrated_brier_score(y[~test], y[test], curves, times) for curves in (survival, known)]
    assert errors[0] < 0.95 * errors[1]
