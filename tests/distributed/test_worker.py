"""Workers in processes end with the model of one machine, or say why not, in time."""

from __future__ import annotations

import importlib.util
import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from process_workers import PATIENCE, failures, fit_together, same_trees, submit
from sklearn.base import clone

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, callbacks
from boostbp.distributed import Address, WorkersLostError, fit_worker
from boostbp.network.steps import Normalised
from boostbp.spark import SparkBoostBPRegressor

pytest.importorskip("xgboost")

HOW = {"deep": True, "backend": "xgboost", "epochs": 3, "n_estimators": 8, "random_state": 0}
NOWHERE = Address("127.0.0.1", 1, 2, 1.0)


class Unknown(Normalised):
    """A step rule of one's own."""

    __slots__ = ()


def table(n_rows, seed):
    """Numbers with missing values, a column of categories, a target and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    city = rng.integers(0, 5, n_rows)
    y = (
        2 * np.sin(X[:, 0])
        + X[:, 1] * X[:, 2]
        + np.array([0.0, 1.0, -1.0, 2.0, 0.0])[city]
        + 0.2 * rng.normal(size=n_rows)
    )
    X[rng.random(X.shape) < 0.05] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["city"] = np.array(["Bonn", "Ulm", "Hof", "Kiel", "Aue"], object)[city]
    frame.loc[rng.random(n_rows) < 0.05, "city"] = None
    return frame, y, rng.integers(1, 4, n_rows).astype(float)


@pytest.mark.parametrize(
    ("sizes", "kind", "units", "changes"),
    [
        ((1, 2), BoostBPRegressor, (4,), {}),
        pytest.param(
            (3,),
            BoostBPRegressor,
            (4, 3),
            {"hidden": {"subsample": 0.8}, "colsample_bytree": 0.5, "backprop": {"structure_samples": 0.6}},
            marks=pytest.mark.slow,
        ),
        pytest.param((4,), BoostBPClassifier, (4,), {"class_weight": "balanced"}, marks=pytest.mark.slow),
        pytest.param((2,), BoostBPClassifier, (4, 3), {"n_jobs": 2}, marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_any_number_of_workers_ends_with_the_model_of_one_machine(pool, sizes, kind, units, changes):
    X, y, weight = table(600, 0)
    X_valid, y_valid, _ = table(200, 1)
    if kind is BoostBPClassifier:
        y, y_valid = (np.array(["low", "mid", "high"])[np.digitize(part, [-1.0, 1.5])] for part in (y, y_valid))
        y = np.where(np.arange(len(y)) < 200, y, np.where(y == "low", "mid", y))  # the last workers see two classes
    model = kind(units, **HOW, **changes)
    one = clone(model).fit(X, y, weight, eval_set=[(X_valid, y_valid)])
    raw = one._raw(X_valid)
    for size in sizes:
        got = fit_together(pool, clone(model), size, X, y, weight, eval_set=[(X_valid, y_valid)])
        assert same_trees(got, one), f"{size} workers have other trees"
        difference = np.abs(got._raw(X_valid) - raw).max()
        assert difference < 1e-9, f"predictions of {size} workers are off by {difference:g} of {raw.std():g}"
        assert (got.predict(X_valid) == one.predict(X_valid)).all() or kind is BoostBPRegressor
        np.testing.assert_allclose(got.feature_importances_, one.feature_importances_, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("deep", [True, "auto"])
def test_workers_train_several_labels_together(pool, deep):
    X, y, weight = table(600, 0)
    labels = pd.DataFrame({"high": y > 1, "low": y < -0.5, "rare": y > 3, "ulm": X["city"] == "Ulm"})
    model = BoostBPClassifier((4,), **HOW | {"deep": deep})
    one, two = (fit_together(pool, clone(model), size, X, labels, weight) for size in (1, 2))
    assert same_trees(two, one)
    assert two.classes_.tolist() == list(labels.columns)
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_bins_of_a_small_sample_and_held_out_rows_are_the_same_for_any_number_of_workers(pool):
    X, y, weight = table(900, 0)
    X.loc[899, "city"] = "Rom"  # a code that no other row, and no sample, has
    model = BoostBPRegressor((4,), **HOW)
    one, *others = [fit_together(pool, clone(model), size, X, y, weight, most=250) for size in (1, 3)]
    plain = clone(model).fit(X, y, weight)
    for other in others:
        assert same_trees(other, one)
        np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=0, atol=1e-9)
        np.testing.assert_allclose(other.history_.metrics("held_out"), one.history_.metrics("held_out"), rtol=1e-9)
    assert not same_trees(one, plain), "the bins were not those of the sample"
    error = [np.mean((fitted.predict(X) - y) ** 2) for fitted in (one, plain)]
    assert error[0] < 1.1 * error[1]


def test_an_error_of_one_worker_ends_all(pool):
    X, y, _ = table(300, 0)
    y[299] = np.nan
    first, second = submit(pool, BoostBPRegressor((3,), **HOW), 2, X, y)
    with pytest.raises(ValueError, match=r"Input y contains NaN: 1 of 150 rows, the first in row 149"):
        second.result(0)
    with pytest.raises(WorkersLostError, match=r"Worker 0 of 2 lost its connection to the others: one of them failed"):
        first.result(0)
    y[299] = 0.0
    first, second = submit(pool, BoostBPRegressor((3,), **HOW), 2, X, y, faults={0: KeyError("in the fifth round")})
    with pytest.raises(KeyError, match="in the fifth round"):
        first.result(0)
    with pytest.raises(WorkersLostError, match="Worker 1 of 2"):
        second.result(0)
    first, second = submit(pool, BoostBPRegressor((3,), **HOW), 2, X, y, faults={1: signal.SIGINT})
    with pytest.raises(KeyboardInterrupt):
        second.result(0)
    with pytest.raises(WorkersLostError, match="Worker 0 of 2"):
        first.result(0)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize(
    ("backend", "fault"), [("xgboost", "SIGKILL"), ("lightgbm", "SIGSTOP"), ("lightgbm", "SIGKILL")]
)
def test_a_worker_that_dies_or_freezes_ends_the_others_within_the_time_limit(backend, fault):
    X, y, _ = table(300, 0)
    limit = 8.0
    model = BoostBPRegressor((3,), **HOW | {"backend": backend})
    errors, seconds = failures(model, X, y, timeout=limit, fault=getattr(signal, fault))
    assert list(errors) == [0], "the broken worker has answered"
    assert "Worker 0 of 2 lost its connection to the others: one of them failed (see its own error)" in errors[0]
    assert f"did not answer for {limit:g} seconds" in errors[0]
    assert seconds < PATIENCE, f"it took {seconds:.0f} s, a time without limit"


@pytest.mark.parametrize(
    "sizes", [(2, 1), *(pytest.param(sizes, marks=pytest.mark.slow) for sizes in ((2, 3), (3, 1)))]
)
def test_another_number_of_workers_goes_on_from_a_checkpoint(pool, tmp_path, sizes):
    X, y, weight = table(300, 0)
    path = tmp_path / "state"
    model, more = BoostBPRegressor((4, 3), **HOW), BoostBPRegressor((4, 3), **HOW | {"epochs": 5})
    fit_together(pool, clone(model), sizes[0], X, y, weight, checkpoint=path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["state", *(f"state.3-{k}" for k in range(sizes[0]))]
    got = fit_together(pool, clone(more), sizes[1], X, y, weight, checkpoint=path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["state", *(f"state.5-{k}" for k in range(sizes[1]))]
    one = more.fit(X, y, weight)
    assert same_trees(got, one)
    np.testing.assert_allclose(got._raw(X), one._raw(X), rtol=0, atol=1e-9)
    assert [epoch.epoch for epoch in got.history_] == list(range(6))


@pytest.mark.slow
def test_checkpoints_of_other_rows_or_without_some_are_refused(pool, tmp_path):
    X, y, weight = table(300, 0)
    path = tmp_path / "state"
    model = BoostBPRegressor((3,), early_stopping=False, **HOW)
    fit_together(pool, clone(model), 2, X, y, weight, checkpoint=path)

    def failure(X, y):
        [_, second] = submit(pool, clone(model), 2, X, y, weight[: len(y)], checkpoint=path)
        with pytest.raises(ValueError) as caught:
            second.result(0)
        return str(caught.value)

    assert "belongs to another fit: it has 300 rows, these are 299" in failure(X[:299], y[:299])
    swapped = np.r_[1, 0, 2:300]
    assert "belongs to another fit: X differs; y differs" in failure(X.iloc[swapped], y[swapped])
    (tmp_path / "state.3-1").unlink()
    assert "is not whole" in failure(X, y)
    (tmp_path / "state.3-1").write_bytes(b"PK")
    assert "state.3-1" in failure(X, y)


def test_workers_of_different_parameters_are_refused(pool):
    X, y, _ = table(300, 0)
    first, second = submit(pool, [BoostBPRegressor((3,), **HOW), BoostBPRegressor((4,), **HOW)], 2, X, y)
    for future in (first, second):
        with pytest.raises(ValueError, match=r"Worker 1 has hidden_layer_sizes=\(4\), worker 0 has \(3\)"):
            future.result(0)


@pytest.mark.parametrize(
    ("changes", "fit", "message"),
    [
        (
            {"backend": "sklearn"},
            {},
            r"backend='sklearn' is not supported on several workers: use backend='lightgbm' or",
        ),
        ({"validation": "last"}, {}, r"validation='last' is not supported .*: use a share"),
        ({"output": {"leaves": "native"}}, {}, r"leaves='native' is not supported .*: use 'refit'"),
        ({"backprop": {"step": Unknown()}}, {}, r"step=.*Unknown.* is not supported .*: use 'normalised' or 'plain'"),
        ({"output": {"extra_trees": True}}, {}, r"extra_trees=True is not supported by backend='xgboost'"),
        ({"calibration": 0.2}, {}, r"calibration=0.2 is not supported .*: leave it None, and call calibrate\(X, y\)"),
        ({}, {"keep_state": True}, r"keep_state=True is not supported"),
        ({}, {"callbacks": [callbacks.checkpoint("here")]}, r"callbacks=.* is not supported .*: pass checkpoint="),
        ({}, {"groups": np.zeros(9)}, r"groups=.* is not supported .*: pass an eval_set"),
    ],
)
def test_what_is_not_supported_is_refused_by_name_before_any_work(changes, fit, message):
    with pytest.raises(ValueError, match=message):
        fit_worker(BoostBPRegressor((3,), **HOW | changes), np.ones((9, 2)), np.ones(9), address=NOWHERE, rank=0, **fit)


def test_estimators_of_spark_say_what_they_need():
    message = "give a Spark data frame" if importlib.util.find_spec("pyspark") else r"pip install 'boostbp\[spark\]'"
    with pytest.raises((ImportError, TypeError), match=message):
        SparkBoostBPRegressor().fit(np.zeros((20, 2)), ["a"], "y")


def test_other_estimators_inputs_and_ranks_are_refused():
    model = BoostBPRegressor((3,), **HOW)
    with pytest.raises(TypeError, match=r"estimator=BoostBPAutoencoder\(\) is not supported on several workers"):
        fit_worker(BoostBPAutoencoder(), np.ones((9, 2)), None, address=NOWHERE, rank=0)
    with pytest.raises(ValueError, match=r"X='a sparse matrix' is not supported on several workers: pass"):
        fit_worker(model, sp.eye_array(9, format="csr"), np.ones(9), address=NOWHERE, rank=0)
    with pytest.raises(ValueError, match=r"parts=\[\(0, 4\), \(2, 4\)\] is not allowed: their rows are not the 9 of X"):
        fit_worker(model, np.ones((9, 2)), np.ones(9), address=NOWHERE, rank=0, parts=[(0, 4), (2, 4)])
    with pytest.raises(ValueError, match=r"parts with checkpoint is not supported"):
        fit_worker(model, np.ones((9, 2)), np.ones(9), address=NOWHERE, rank=0, parts=[(0, 9)], checkpoint="here")
    with pytest.raises(ValueError, match=r"rank=2 is not allowed: give a whole number of at most 1"):
        fit_worker(model, np.ones((9, 2)), np.ones(9), address=NOWHERE, rank=2)
