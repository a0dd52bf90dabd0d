"""BoostBPSurvival: forms of targets, curves and quantiles, metrics, and the conventions of scikit-survival."""

from __future__ import annotations

import io
import pickle
import re
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


def forms() -> dict[str, Any]:
    y = surv(Y)
    frame = pd.DataFrame({"time": y["time"], "event": y["event"]})
    return {
        "structured": y,
        "structured, time first": y[["time", "event"]],
        "frame": frame,
        "frame of nullable bools": frame.astype({"event": "boolean"}),
        "frame of events as numbers": frame.astype({"event": float}),
        "frame of bounds": pd.DataFrame(Y, columns=["lower", "upper"]),
        "frame of bounds, upper first": pd.DataFrame(Y[:, ::-1], columns=["label_upper_bound", "label_lower_bound"]),
        "structured bounds": np.rec.fromarrays(Y.T, names="y_lower_bound,y_upper_bound"),
        "list of bounds": Y.tolist(),
        "signed times": np.where(y["event"], y["time"], -y["time"]),
    }


@pytest.mark.parametrize("form", forms())
def test_all_forms_of_a_target_give_the_same_model(form: str) -> None:
    expected = BoostBPSurvival(**QUICK).fit(X, Y, eval_set=[(X_NEW, Y_NEW)])
    model = BoostBPSurvival(**QUICK).fit(X, forms()[form], eval_set=[(X_NEW, surv(Y_NEW))])
    np.testing.assert_array_equal(model.predict(X_NEW), expected.predict(X_NEW))
    assert model.score(X_NEW, surv(Y_NEW)) == expected.score(X_NEW, Y_NEW)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.column_stack([Y[:, 0], np.isfinite(Y[:, 1])]), "which may be a status or a bound"),
        (
            pd.DataFrame({"time": TIME, "event": 2.0}),
            "contains no events: .*'event' is 1 for an event, and otherwise 0",
        ),
        (Y[:, ::-1], "bounds out of order"),
        (np.column_stack([Y, Y]), "holds 4 columns, 0 of them bools: give two columns of bounds, sksurv.util.Surv"),
        (np.where(np.inf == Y, np.nan, Y), "contains NaN"),
        (pd.DataFrame({"a": TIME, "b": ["x"] * 600}), "holds text, such as 'x'"),
        (pd.DataFrame({"time": -TIME, "event": TIME > 1}), "contains times out of range"),
        (TIME > 1, "holds 1 columns, 1 of them bools"),
        (-TIME, "y has no event"),
        (None, "the target y is None"),
        (Y[:-1], "inconsistent numbers of samples"),
    ],
)
def test_other_targets_are_refused_with_a_cure(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoostBPSurvival(**QUICK).fit(X, y)


def test_a_status_is_never_read_as_bounds() -> None:
    rng = np.random.default_rng(0)
    days, visits = rng.integers(10, 1000, 600).astype(float), np.sort(rng.integers(1, 8, (600, 2)), axis=1)
    for status in (rng.integers(0, 2, 600), rng.integers(1, 3, 600), np.ones(600), np.zeros(600), np.full(600, 2)):
        for y in (np.column_stack([status, days]), np.column_stack([days, status]).tolist()):
            with pytest.raises(ValueError, match="may be a status or a bound"):
                BoostBPSurvival(loss="aft", **QUICK).fit(X, y)
    for y in (pd.DataFrame({"status": status, "days": days}), np.rec.fromarrays([status, days], names="status,days")):
        with pytest.raises(ValueError, match="may be a status or a bound"):
            BoostBPSurvival(loss="aft", **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="may be a status or a bound"):
        BoostBPSurvival(loss="aft", **QUICK).fit(X, visits)


@pytest.mark.parametrize("frame", [True, False])
def test_either_cure_of_a_status_works_on_its_input(frame: bool) -> None:
    rng = np.random.default_rng(0)
    status = rng.integers(1, 3, 600).astype(float)
    low = np.where(status == 1.0, 1.0, 2.0)
    y: Any = np.column_stack([low, 1.0 + np.round(X[:, 0] + 3.0)])
    y[:, 1] = np.maximum(y[:, 0], y[:, 1])
    events, bounds = (y[:, 0] == 1.0, y[:, 1]), (y[:, 0], y[:, 1])
    y = pd.DataFrame(y, columns=["status", "days"]) if frame else y
    with pytest.raises(ValueError, match="may be a status or a bound") as refused:
        BoostBPSurvival(loss="aft", **QUICK).fit(X, y)
    cures = re.findall(r"np\.rec\.fromarrays\(.*?'\)", str(refused.value))
    models = [BoostBPSurvival(loss="aft", **QUICK).fit(X, eval(cure, {"np": np, "y": y})) for cure in cures]
    expected = (
        np.rec.fromarrays(events, names="event,time"),
        pd.DataFrame(dict(zip(("lower", "upper"), bounds, strict=True))),
    )
    for model, target in zip(models, expected, strict=True):
        direct = BoostBPSurvival(loss="aft", **QUICK).fit(X, target)
        np.testing.assert_array_equal(model.predict(X_NEW), direct.predict(X_NEW))
    assert not np.array_equal(models[0].predict(X_NEW), models[1].predict(X_NEW))


def test_a_fold_of_events_keeps_the_form_that_names_declare() -> None:
    frame = pd.DataFrame({"time": TIME, "event": 1})
    model = BoostBPSurvival(loss="aft", **QUICK).fit(X, frame)
    np.testing.assert_array_equal(
        model.predict(X_NEW), BoostBPSurvival(loss="aft", **QUICK).fit(X, np.column_stack([TIME, TIME])).predict(X_NEW)
    )


def test_files_declare_whole_bounds_by_their_names(tmp_path: Any) -> None:
    visits = np.sort(np.random.default_rng(0).integers(1, 8, (600, 2)), axis=1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    targets = pd.DataFrame(visits, columns=["lower", "upper"])
    pd.concat([frame, targets], axis=1).to_csv(tmp_path / "rows.csv", index=False)
    model = BoostBPSurvival(loss="aft", **QUICK).fit(tmp_path / "rows.csv", y=["lower", "upper"])
    expected = BoostBPSurvival(loss="aft", **QUICK).fit(frame, targets)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(frame))
    frame.to_csv(tmp_path / "features.csv", index=False)
    beside = BoostBPSurvival(loss="aft", **QUICK).fit(tmp_path / "features.csv", targets)
    np.testing.assert_array_equal(beside.predict(frame), expected.predict(frame))


def test_proportional_hazards_refuse_other_censoring_by_name() -> None:
    with pytest.raises(ValueError, match="Use loss='aft' for left and interval censoring"):
        BoostBPSurvival(**QUICK).fit(X, np.column_stack([TIME, 2 * TIME]))


@BOTH
@pytest.mark.filterwarnings("ignore:No effect on the model")
@pytest.mark.parametrize(("deep", "quality"), [("auto", 2), (True, 3), (False, 2)])
def test_models_rank_and_their_curves_are_survival_functions(loss: str, deep: Any, quality: int) -> None:
    model = BoostBPSurvival((4,), loss=loss, deep=deep, quality=quality, epochs=2, random_state=0)
    model.fit(X, Y)
    assert model.score(X_NEW, Y_NEW) > 0.86
    times = np.linspace(0.0, float(Y[:, 0].max()), 40)
    survival = model.predict_survival_function(X_NEW, times=times)
    assert survival.shape == (2000, 40)
    assert (survival[:, 0] == 1.0).all()
    assert ((survival >= 0) & (survival <= 1)).all()
    assert (np.diff(survival, axis=1) <= 0).all()
    hazard = model.predict_cumulative_hazard_function(X_NEW, times=times)
    np.testing.assert_allclose(np.exp(-hazard), survival, rtol=1e-12)


@BOTH
def test_step_functions_are_those_of_the_array(loss: str) -> None:
    model = BoostBPSurvival(loss=loss, **QUICK).fit(X, Y)
    times = model.unique_times_
    events = np.unique(Y[:, 0][Y[:, 0] == Y[:, 1]])
    assert np.isin(events, times).all()
    for method in (model.predict_survival_function, model.predict_cumulative_hazard_function):
        array, functions = method(X_NEW[:5], return_array=True), method(X_NEW[:5])
        assert array.shape == (5, len(times))
        for row, function in zip(array, functions, strict=True):
            np.testing.assert_array_equal(function(times), row)
    assert functions[0](0.0) == 0.0


@BOTH
def test_quantiles_are_where_the_curves_reach_the_share(loss: str) -> None:
    model = BoostBPSurvival(loss=loss, **QUICK).fit(X, Y)
    shares = [0.1, 0.5, 0.9]
    quantiles = model.predict_quantile(X_NEW[:50], shares)
    assert quantiles.shape == (50, 3)
    np.testing.assert_array_equal(model.predict_quantile(X_NEW[:50]), quantiles[:, 1])
    np.testing.assert_array_equal(model.predict_interval(X_NEW[:50], 0.8), quantiles[:, [0, 2]])
    for row, share in ((row, k) for row in range(50) for k in range(3)):
        if np.isfinite(time := quantiles[row, share]):
            before, after = model.predict_survival_function(X_NEW[[row]], times=[time * (1 - 1e-9), time])[0]
            assert after <= 1 - shares[share] + 1e-9
            assert before >= 1 - shares[share] - 1e-9
        else:
            assert model.predict_survival_function(X_NEW[[row]], return_array=True)[0, -1] > 1 - shares[share]
    with pytest.raises(ValueError, match="q="):
        model.predict_quantile(X_NEW, 1.0)


@pytest.mark.parametrize(("loss", "weibull"), [("cox", True), (AFT("extreme"), True), ("aft", False)])
def test_quantiles_of_a_linear_model_are_recovered(loss: Any, weibull: bool) -> None:
    x, time, limit = rows(4000, weibull=weibull)
    model = BoostBPSurvival(loss=loss, quality=2, deep=False, random_state=0).fit(x, bounds_of(time, limit))
    x_new, time_new, _ = rows(4000, seed=1, weibull=weibull)
    for share in (0.1, 0.25, 0.5, 0.75):
        assert np.mean(time_new <= model.predict_quantile(x_new, share)) == pytest.approx(share, abs=0.035)
    low, high = model.predict_interval(x_new, 0.8).T
    assert np.mean((low <= time_new) & (time_new <= high)) == pytest.approx(0.8, abs=0.035)
    noise = np.log(-np.log(0.5)) if weibull else 0.0
    median = np.exp(x_new[:, 0] + x_new[:, 1] / 2 + 0.5 * noise)
    reached = model.predict_quantile(x_new) < 4.0
    assert np.corrcoef(np.log(model.predict_quantile(x_new)[reached]), np.log(median[reached]))[0, 1] > 0.98


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


def test_the_scale_is_the_users_or_that_of_the_held_out_rows() -> None:
    fixed = BoostBPSurvival(loss=AFT(scale=0.8), **QUICK).fit(X, Y)
    assert fixed.model_.targets.loss == AFT(scale=0.8)
    learned = BoostBPSurvival(loss="aft", **QUICK).fit(X, Y)
    assert learned.model_.targets.loss.scale == pytest.approx(0.5, abs=0.12)
    assert learned.history_.held_out is None
    alone = BoostBPSurvival(loss="aft", early_stopping=False, **QUICK).fit(X, Y)
    assert alone.model_.targets.loss.scale > 1.0  # that of the constant


@BOTH
def test_calibration_rows_determine_the_curves(loss: str) -> None:
    model = BoostBPSurvival(loss=loss, calibration=0.3, **QUICK).fit(X, Y)
    median = model.predict_quantile(X_NEW)
    assert np.mean(median >= TIME_NEW) == pytest.approx(0.5, abs=0.08)
    model.calibrate(X_NEW, Y_NEW)
    assert np.mean(model.predict_quantile(X_NEW) >= TIME_NEW) == pytest.approx(
        0.5, abs=0.09
    )  # hazards are not proportional
    with pytest.raises(ValueError, match="y has no event"):
        model.calibrate(X, -LIMIT)


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


def test_times_without_a_lower_bound_are_refused() -> None:
    left = np.column_stack([np.zeros(600), TIME])
    with pytest.raises(ValueError, match="all rows are censored on the left"):
        BoostBPSurvival(loss="aft", **QUICK).fit(X, pd.DataFrame(left, columns=["lower", "upper"]))
    left[::2, 0] = TIME[::2]
    BoostBPSurvival(loss="aft", **QUICK).fit(X, pd.DataFrame(left, columns=["lower", "upper"]))


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
