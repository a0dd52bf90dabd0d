"""Metrics of survival times against scikit-survival and lifelines, a loop over pairs, and repeated rows for weights.

RECORDED holds scikit-survival's values, for where it is not installed; ``python tests/metrics/test_survival.py`` prints
them.
"""

from __future__ import annotations

import tracemalloc
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbp import metrics
from boostbp.metrics.survival_curves import event_and_time

CLOSE = {"rtol": 1e-10, "atol": 1e-10}
# rows, mean time of censoring, and steps of times and risks, where 0 means no ties
MADE = {
    "plain": (150, 2.0, 0.0, 0.0),
    "tied": (150, 2.0, 0.25, 0.5),
    "hardly censored": (80, 50.0, 0.0, 0.1),
    "heavily censored": (200, 0.15, 0.01, 0.0),
}
SHIPPED = ("load_gbsg2", "load_veterans_lung_cancer", "load_whas500", "load_aids", "load_flchain", "load_breast_cancer")

RECORDED = {
    "tied": {
        "censored": [0.7734375, 556.0, 136.0, 76.0, 142.0],
        "far ties": [0.7734375, 556.0, 136.0, 76.0, 142.0],
        "ipcw": [0.7643994948280993, 556.0, 136.0, 76.0, 142.0],
        "ipcw until tau": [0.7776132474311145, 556.0, 136.0, 76.0, 142.0],
        "brier": [0.5, 1.0, 1.5, 0.2709191207010392, 0.2581993691807616, 0.16206194500816917],
        "one brier": [0.5, 0.2709191207010392],
        "integrated brier": 0.23734495101768288,
        "auc": [0.7871840945977278, 0.7323559343233348, 0.7531209640377186, 0.7715943812591447],
        "auc of columns": [0.7871840945977278, 0.7323559343233348, 0.7531209640377186, 0.7715943812591447],
        "auc of one": [0.7871840945977278, 0.7871840945977278],
    },
    "heavily censored": {
        "censored": [0.5487179487179488, 214.0, 176.0, 0.0, 22.0],
        "far ties": [0.55, 208.0, 169.0, 13.0, 22.0],
        "ipcw": [0.7060429455386016, 214.0, 176.0, 0.0, 22.0],
        "ipcw until tau": [0.5153223987411109, 214.0, 174.0, 2.0, 22.0],
        "brier": [0.04, 0.1, 0.21600000000000003, 0.08151956790858028, 0.14209876462567747, 0.24355326444822653],
        "one brier": [0.04, 0.08151956790858028],
        "integrated brier": 0.16520663444496683,
        "auc": [0.3741846323935876, 0.5202870714063882, 0.7471672892420371, 0.6570620522404779],
        "auc of columns": [0.3710889994472084, 0.5202870714063881, 0.751573880741243, 0.6596683801648451],
        "auc of one": [0.3741846323935876, 0.3741846323935876],
    },
}


def made(name):
    """Return risks, times and events."""
    rows, mean, time_step, risk_step = MADE[name]
    rng = np.random.default_rng(rows)
    risk = rng.normal(size=rows)
    time, censoring = rng.exponential(np.exp(-risk)), rng.exponential(mean, size=rows)
    event, time, risk = time <= censoring, np.minimum(time, censoring), risk + rng.normal(size=rows)
    time = np.ceil(time / time_step) * time_step if time_step else time
    return np.round(risk / risk_step) * risk_step if risk_step else risk, time, event


def shipped(name):
    """Return as risks a column of a table of scikit-survival, its times and events."""
    X, y = getattr(pytest.importorskip("sksurv.datasets"), name)()
    event, time = (y[field] for field in y.dtype.names)
    return np.nan_to_num(X.select_dtypes("number").iloc[:, 0].to_numpy(float)), time.astype(float), event


def structured(time, event):
    return np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])


def values(library, risk, time, event):
    """Return the values of all functions that a library has under the same names, with every third row held out."""
    from_start = np.arange(len(time)) % 3 > 0
    from_start |= time == time.max()  # so no test time is beyond the training times
    train, test = (structured(time[rows], event[rows]) for rows in (from_start, ~from_start))
    score = (risk - risk.mean()) / risk.std()
    risk, tested = score[~from_start], time[~from_start]
    times = np.unique(np.quantile(tested[(tested < tested.max()) & (tested > tested.min())], [0.2, 0.5, 0.8]))
    falling = np.exp(-np.outer(np.exp(risk / 2), times / times[-1]))
    tau = np.quantile(tested, 0.7)
    return {
        "censored": library.concordance_index_censored(test["event"], tested, risk),
        "far ties": library.concordance_index_censored(test["event"], tested, risk, 0.1),
        "ipcw": library.concordance_index_ipcw(train, test, risk),
        "ipcw until tau": library.concordance_index_ipcw(train, test, risk, tau, 0.01),
        "brier": np.concatenate(library.brier_score(train, test, falling, times)),
        "one brier": np.concatenate(library.brier_score(train, test, falling[:, 0], times[:1])),
        "integrated brier": library.integrated_brier_score(train, test, falling, times),
        "auc": np.append(*library.cumulative_dynamic_auc(train, test, risk, times)),
        "auc of columns": np.append(*library.cumulative_dynamic_auc(train, test, 1 - falling, times, 0.001)),
        "auc of one": np.append(*library.cumulative_dynamic_auc(train, test, risk, times[:1])),
    }


@pytest.mark.parametrize("name", list(RECORDED))
def test_recorded_values_of_scikit_survival(name):
    computed = values(metrics, *made(name))
    for key, recorded in RECORDED[name].items():
        np.testing.assert_allclose(computed[key], recorded, **CLOSE, err_msg=key)


@pytest.mark.parametrize("name", [*MADE, *SHIPPED])
def test_values_are_those_of_scikit_survival(name):
    library = pytest.importorskip("sksurv.metrics")
    risk, time, event = made(name) if name in MADE else shipped(name)
    computed = values(metrics, risk, time, event)
    for key, value in values(library, risk, time, event).items():
        np.testing.assert_allclose(computed[key], value, **CLOSE, err_msg=key)


@pytest.mark.parametrize("name", [*MADE, *SHIPPED])
def test_curves_are_those_of_scikit_survival(name):
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    risk, time, event = made(name) if name in MADE else shipped(name)
    for reverse in (False, True):
        computed = metrics.kaplan_meier_estimator(event, time, reverse=reverse)
        np.testing.assert_allclose(
            computed, nonparametric.kaplan_meier_estimator(event, time, reverse=reverse), **CLOSE
        )
    risk = risk / np.abs(risk).max()
    theirs = import_module("sksurv.linear_model.coxph").BreslowEstimator().fit(risk, event, time).cum_baseline_hazard_
    hazard = metrics.breslow(risk, time, event)
    points = np.append(theirs.x, np.linspace(0.0, time.max(), 50))
    assert hazard.domain == theirs.domain
    np.testing.assert_allclose(hazard(points), theirs(points), **CLOSE)


def test_breslow_is_the_baseline_of_scikit_survivals_cox_model():
    cox = pytest.importorskip("sksurv.linear_model")
    X, y = import_module("sksurv.datasets").load_whas500()
    model = cox.CoxPHSurvivalAnalysis(ties="breslow").fit(X.astype(float), y)
    hazard = metrics.breslow(model.predict(X.astype(float)), y["lenfol"], y["fstat"])
    np.testing.assert_allclose(hazard.y, model.cum_baseline_hazard_.y, rtol=1e-9)
    np.testing.assert_allclose(np.exp(-hazard.y), model.baseline_survival_.y, **CLOSE)


@pytest.mark.parametrize("table", ["load_rossi", "load_waltons", "load_larynx", "load_lung", "load_gbsg2"])
def test_values_are_those_of_lifelines(table):
    lifelines = pytest.importorskip("lifelines")
    columns = {
        "load_rossi": "week arrest",
        "load_gbsg2": "time cens",
        "load_larynx": "time death",
        "load_lung": "time status",
    }
    rows = getattr(import_module("lifelines.datasets"), table)()
    time, event = (rows[name].to_numpy(float) for name in columns.get(table, "T E").split())
    risk = rows.select_dtypes("number").iloc[:, -1].fillna(0.0).to_numpy(float)
    weight = np.random.default_rng(0).integers(1, 4, size=len(time)).astype(float)
    concordance = import_module("lifelines.utils").concordance_index(time, -risk, event)
    np.testing.assert_allclose(metrics.concordance_index_censored(event, time, risk).cindex, concordance, **CLOSE)
    curve = lifelines.KaplanMeierFitter().fit(time, event, weights=weight).survival_function_["KM_estimate"]
    times, survival = metrics.kaplan_meier_estimator(event, time, sample_weight=weight)
    np.testing.assert_allclose(survival, curve.loc[times], **CLOSE)


@pytest.mark.filterwarnings("ignore:Starting with pandas")
def test_breslow_is_the_baseline_of_lifelines_cox_model_with_weights():
    lifelines = pytest.importorskip("lifelines")
    rows = import_module("lifelines.datasets").load_rossi()
    rows["weight"] = np.random.default_rng(0).integers(1, 4, size=len(rows))
    model = lifelines.CoxPHFitter().fit(rows, "week", "arrest", weights_col="weight", robust=True)
    risk = model.predict_log_partial_hazard(rows)
    hazard = metrics.breslow(risk, rows["week"], rows["arrest"], sample_weight=rows["weight"])
    theirs = model.baseline_cumulative_hazard_.iloc[:, 0]
    np.testing.assert_allclose(hazard(hazard.x), theirs.loc[hazard.x], **CLOSE)


grid = st.integers(0, 6)


@given(st.lists(st.tuples(grid, grid, st.booleans()), min_size=2, max_size=30), st.sampled_from([0.0, 0.1, 0.2, 0.35]))
def test_concordance_counts_pairs(rows, tied_tol):
    risk, time, event = (np.array(column) for column in zip(*rows, strict=True))
    risk = risk * 0.1
    counts, tied_time = np.zeros(3, int), 0
    for i in np.flatnonzero(event):
        comparable = (time > time[i]) | ((time == time[i]) & ~event)
        tied = np.abs(risk - risk[i]) <= tied_tol
        counts += [np.sum(comparable & kind) for kind in (~tied & (risk < risk[i]), ~tied & (risk > risk[i]), tied)]
        tied_time += np.sum((time == time[i]) & ~event)
    if not counts.sum():
        with pytest.raises(ValueError, match="comparable"):
            metrics.concordance_index_censored(event, time, risk, tied_tol)
        return
    concordance = metrics.concordance_index_censored(event, time, risk, tied_tol)
    assert concordance[1:] == (*counts, tied_time)
    np.testing.assert_allclose(concordance.cindex, (counts[0] + counts[2] / 2) / counts.sum(), rtol=1e-14)


@pytest.mark.parametrize("name", MADE)
def test_a_weight_counts_rows_and_weight_zero_leaves_them_out(name):
    risk, time, event = made(name)
    weight = np.random.default_rng(1).integers(0, 4, size=len(time))
    weight[[np.argmin(time), np.argmax(time)]] = 1  # times must be within those of the rows
    often = np.repeat(np.arange(len(time)), weight)
    y, times = np.column_stack([time, event]), np.quantile(time, [0.3, 0.6])
    survival = np.exp(-np.outer(np.exp(risk / 2), times))

    def weighted(rows, sample_weight):
        of = {"sample_weight": sample_weight}
        hazard = metrics.breslow(risk[rows], time[rows], event[rows], **of)
        return {
            "censored": metrics.concordance_index_censored(event[rows], time[rows], risk[rows], **of),
            "ipcw": metrics.concordance_index_ipcw(y, y[rows], risk[rows], times[1], **of),
            "brier": metrics.brier_score(y, y[rows], survival[rows], times, **of)[1],
            "integrated brier": metrics.integrated_brier_score(y, y[rows], survival[rows], times, **of),
            "auc": np.append(*metrics.cumulative_dynamic_auc(y, y[rows], risk[rows], times, **of)),
            "survival": metrics.kaplan_meier_estimator(event[rows], time[rows], **of),
            "censoring": metrics.kaplan_meier_estimator(event[rows], time[rows], reverse=True, **of),
            "hazard": hazard(hazard.x),
        }

    repeated = weighted(often, None)
    for key, value in weighted(np.arange(len(time)), weight).items():
        np.testing.assert_allclose(value, repeated[key], **CLOSE, err_msg=key)


def test_an_event_of_weight_zero_may_be_later_than_all_training_rows():
    train, test, weight = np.array([[1.0, 0], [2.0, 1]]), np.array([[1.0, 1], [2.0, 1], [9.0, 1]]), [1.0, 1.0, 0.0]
    assert metrics.concordance_index_ipcw(train, test, [2, 1, 0], sample_weight=weight).cindex == 1.0
    with pytest.raises(ValueError, match="unknown after 2"):
        metrics.concordance_index_ipcw(train, test, [2, 1, 0])


def test_outcomes_are_structured_arrays_or_columns():
    risk, time, event = made("plain")
    y, times = structured(time, event), np.quantile(time, [0.3, 0.6])
    for other in (np.column_stack([time, event]), [[t, e] for t, e in zip(time, event, strict=True)]):
        assert metrics.concordance_index_ipcw(other, other, risk, 1.0) == metrics.concordance_index_ipcw(
            y, y, risk, 1.0
        )
    shuffled = metrics.cumulative_dynamic_auc(y, y, np.column_stack([risk, -risk]), times[::-1])
    of_each = [metrics.cumulative_dynamic_auc(y, y, sign * risk, t)[1] for sign, t in ((-1, times[0]), (1, times[1]))]
    np.testing.assert_array_equal(shuffled[0], of_each)


def test_concordance_of_many_rows_takes_little_memory():
    rng = np.random.default_rng(0)
    time, event, risk = rng.exponential(size=100_000), rng.random(100_000) < 0.3, rng.normal(size=100_000)
    tracemalloc.start()
    concordance = metrics.concordance_index_censored(event, time, risk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert abs(concordance.cindex - 0.5) < 0.01
    assert peak < 60e6


def test_auc_before_the_first_event_is_unknown_and_has_no_weight_in_the_mean():
    y = np.array([[1, 0], [2, 1], [3, 0], [4, 1], [5, 0]], float)
    auc, mean = metrics.cumulative_dynamic_auc(y, y, [0, 4, 1, 2, 3], [1.5, 2.5, 4.5])
    assert np.isnan(auc[0])
    np.testing.assert_allclose(mean, metrics.cumulative_dynamic_auc(y, y, [0, 4, 1, 2, 3], [2.5, 4.5])[1])
    assert np.isnan(metrics.cumulative_dynamic_auc(y, y, [0, 4, 1, 2, 3], [1.2, 1.5])[1])


def test_step_functions_have_values_between_steps():
    step = metrics.StepFunction(np.array([1.0, 3.0]), np.array([0.5, 0.7]), a=2.0, b=1.0)
    np.testing.assert_allclose(step([0.0, 1.0, 2.9, 3.0]), [2.0, 2.0, 2.0, 2.4])
    assert step(1) == 2.0
    assert step.domain == (0.0, 3.0)
    for x in (-0.1, 3.1, np.nan, [1.0, np.inf]):
        with pytest.raises(ValueError, match="from 0 to 3"):
            step(x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: event_and_time(y[:, 0]), "no survival times: give a structured array"),
        (lambda y: event_and_time(y + 1), "must say for each row whether it has an event"),
        (lambda y: metrics.concordance_index_censored(y[:, 1], y[:, 0], y), "estimate must be a 1D array"),
        (lambda y: metrics.concordance_index_censored([0, 0, 0], y[:, 0], y[:, 0]), "no two rows are comparable"),
        (lambda y: metrics.concordance_index_censored(y[:, 1], y[:, 0], [1, 2]), "inconsistent numbers of samples"),
        (
            lambda y: metrics.concordance_index_censored(y[:, 1], y[:, 0], y[:, 0], sample_weight=[0, 0, 0]),
            "not 0 for all",
        ),
        (lambda y: metrics.concordance_index_ipcw(y[:1], y, y[:, 0]), "unknown after 1: lower tau"),
        (lambda y: metrics.concordance_index_ipcw([[1, 1], [1, 0]], y, y[:, 0]), "no rows as late as some events"),
        (lambda y: metrics.brier_score(y, y, [0.5, 0.5, 0.5], [1, 2]), "a column for each time"),
        (lambda y: metrics.brier_score(y, y, y, [1.5]), "2 columns, and times are 1"),
        (lambda y: metrics.brier_score(y, y, y, [2, 3]), "from 1 to below 3"),
        (lambda y: metrics.integrated_brier_score(y, y, [0.5, 0.5, 0.5], [2]), "use brier_score"),
    ],
)
def test_errors_name_the_cure(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 0.0]]))


if __name__ == "__main__":
    library = import_module("sksurv.metrics")
    print({name: {key: np.asarray(v).tolist() for key, v in values(library, *made(name)).items()} for name in RECORDED})
