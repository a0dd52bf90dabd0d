"""Concordance against other libraries, a loop over pairs, and repeated rows for weights.

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

CLOSE = {"rtol": 1e-10, "atol": 1e-10}
# rows, mean time of censoring, and steps of times and risks, where 0 means no ties
MADE = {
    "plain": (150, 2.0, 0.0, 0.0),
    "tied": (150, 2.0, 0.25, 0.5),
    "hardly censored": (80, 50.0, 0.0, 0.1),
    "heavily censored": (200, 0.15, 0.01, 0.0),
}
SHIPPED = ("load_gbsg2", "load_veterans_lung_cancer", "load_whas500", "load_aids", "load_flchain", "load_breast_cancer")

RECORDED = {"tied": 0.7734375, "heavily censored": 0.5487179487179488}


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


def some_rows(name):
    """Return every third of the risks, times and events."""
    return [values[::3] for values in (made(name) if name in MADE else shipped(name))]


@pytest.mark.parametrize("name", list(RECORDED))
def test_recorded_concordance_of_scikit_survival(name):
    risk, time, event = some_rows(name)
    np.testing.assert_allclose(metrics.concordance_index(event, time, risk), RECORDED[name], **CLOSE)


@pytest.mark.parametrize("name", [*MADE, *SHIPPED])
def test_concordance_is_that_of_scikit_survival(name):
    library = pytest.importorskip("sksurv.metrics")
    risk, time, event = some_rows(name)
    expected = library.concordance_index_censored(event, time, risk)[0]
    np.testing.assert_allclose(metrics.concordance_index(event, time, risk), expected, **CLOSE)


@pytest.mark.parametrize("table", ["load_rossi", "load_waltons", "load_larynx", "load_lung", "load_gbsg2"])
def test_concordance_is_that_of_lifelines(table):
    utils = pytest.importorskip("lifelines.utils")
    columns = {
        "load_rossi": "week arrest",
        "load_gbsg2": "time cens",
        "load_larynx": "time death",
        "load_lung": "time status",
    }
    rows = getattr(import_module("lifelines.datasets"), table)()
    time, event = (rows[name].to_numpy(float) for name in columns.get(table, "T E").split())
    risk = rows.select_dtypes("number").iloc[:, -1].fillna(0.0).to_numpy(float)
    concordance = utils.concordance_index(time, -risk, event)
    np.testing.assert_allclose(metrics.concordance_index(event, time, risk), concordance, **CLOSE)


grid = st.integers(0, 6)


@given(st.lists(st.tuples(grid, grid, st.booleans()), min_size=2, max_size=30), st.sampled_from([1.0, 1e-8, 3e-9]))
def test_concordance_counts_pairs(rows, unit):
    risk, time, event = (np.array(column) for column in zip(*rows, strict=True))
    risk, counts = risk * unit, np.zeros(3, int)
    for i in np.flatnonzero(event):
        comparable = (time > time[i]) | ((time == time[i]) & ~event)
        tied = np.abs(risk - risk[i]) <= 1e-8
        counts += [np.sum(comparable & kind) for kind in (~tied & (risk < risk[i]), ~tied & (risk > risk[i]), tied)]
    if not counts.sum():
        with pytest.raises(ValueError, match="comparable"):
            metrics.concordance_index(event, time, risk)
        return
    expected = (counts[0] + counts[2] / 2) / counts.sum()
    np.testing.assert_allclose(metrics.concordance_index(event, time, risk), expected, rtol=1e-14)


@pytest.mark.parametrize("name", MADE)
def test_a_weight_counts_rows_and_weight_zero_leaves_them_out(name):
    risk, time, event = made(name)
    weight = np.random.default_rng(1).integers(0, 4, size=len(time))
    often = np.repeat(np.arange(len(time)), weight)

    def weighted(rows, sample_weight):
        of = {"sample_weight": sample_weight}
        hazard = metrics.breslow(risk[rows], time[rows], event[rows], **of)
        return {
            "concordance": metrics.concordance_index(event[rows], time[rows], risk[rows], **of),
            "hazard": hazard(hazard.x),
        }

    repeated = weighted(often, None)
    for key, value in weighted(np.arange(len(time)), weight).items():
        np.testing.assert_allclose(value, repeated[key], **CLOSE, err_msg=key)


def test_concordance_of_many_rows_takes_little_memory():
    rng = np.random.default_rng(0)
    time, event, risk = rng.exponential(size=100_000), rng.random(100_000) < 0.3, rng.normal(size=100_000)
    tracemalloc.start()
    concordance = metrics.concordance_index(event, time, risk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert abs(concordance - 0.5) < 0.01
    assert peak < 60e6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: metrics.breslow(y[:, 0], y[:, 0], y[:, 1] + 1), "must say for each row whether it has an event"),
        (lambda y: metrics.concordance_index(y[:, 1], y[:, 0], y), "risk must be a 1D array"),
        (lambda y: metrics.concordance_index([0, 0, 0], y[:, 0], y[:, 0]), "no two rows are comparable"),
        (lambda y: metrics.concordance_index(y[:, 1], y[:, 0], [1, 2]), "inconsistent numbers of samples"),
        (lambda y: metrics.concordance_index(y[:, 1], y[:, 0], y[:, 0], sample_weight=[0, 0, 0]), "not 0 for all"),
    ],
)
def test_errors_name_the_cure(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 0.0]]))


if __name__ == "__main__":
    library = import_module("sksurv.metrics")
    for name in RECORDED:
        risk, time, event = some_rows(name)
        print(name, library.concordance_index_censored(event, time, risk)[0])
