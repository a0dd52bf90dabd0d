"""Estimators on a Dask cluster of processes: the model of one machine, lazy predictions, faults that end in time."""

from __future__ import annotations

import os
import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from cluster_rows import frame, numbers
from limits import HANGS
from process_workers import broken, same_trees

from boostbp import BoostBPClassifier, BoostBPRanker, BoostBPRegressor, load, save
from boostbp.backends.xgboost import XGBoostGrower
from boostbp.dask import DaskBoostBPClassifier, DaskBoostBPRanker, DaskBoostBPRegressor, DaskBoostBPSurvival
from boostbp.distributed import WorkersLostError
from boostbp.network.layers import bound

pytest.importorskip("dask")
pytest.importorskip("xgboost")
distributed = pytest.importorskip("distributed")
import dask  # noqa: E402
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

pytestmark = pytest.mark.slow  # a cluster of processes; tests/runtime/test_group.py has workers in one process
HOW = {"deep": True, "backend": "xgboost", "epochs": 2, "n_estimators": 8, "random_state": 0}
GROW = XGBoostGrower._round
SIGKILL, SIGSTOP = (getattr(signal, name, None) for name in ("SIGKILL", "SIGSTOP"))
needs_signals = pytest.mark.skipif(SIGKILL is None, reason="this system has no SIGKILL")


@pytest.fixture(scope="module")
def client():
    how = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),  # so that rows are moved by nobody but us
        distributed.LocalCluster(**how, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def two_workers_and_no_task_left(request):
    """A worker that a test has killed is back before the next one begins."""
    client = request.getfixturevalue("client") if "client" in request.fixturenames else None
    if client is not None:
        client.wait_for_workers(2, timeout=HANGS)
    yield
    if client is not None:
        deadline = time.monotonic() + HANGS
        while (tasks := client.run_on_scheduler(tasks_of)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert tasks == {}


@pytest.fixture
def rows_apart(client):
    """Rows are not gathered, however few: trees are grown by the workers together."""
    client.run(gather, 0)
    yield
    client.run(gather, bound.GATHERED_ROWS)


def placed(client, rows, place):
    """An array with a partition for each number of `place`, held by the worker of that number, and its parts."""
    workers, parts = sorted(client.scheduler_info()["workers"]), np.array_split(rows, len(place))
    held = [
        client.submit(np.copy, part, workers=[workers[at]], pure=False) for part, at in zip(parts, place, strict=True)
    ]
    distributed.wait(held)
    arrays = [da.from_delayed(lazy, part.shape, rows.dtype) for lazy, part in zip(held, parts, strict=True)]
    return da.concatenate(arrays), held


def gather(most):
    bound.GATHERED_ROWS = most


def tasks_of(dask_scheduler):
    names = ("_count", "_fit_part", "_start_tracker", "_together")
    return {key: task.state for key, task in dask_scheduler.tasks.items() if str(key).startswith(names)}


@pytest.mark.full_length
def test_arrays_give_the_model_of_one_machine_and_stay_where_they_are(client, rows_apart):
    (X, y, weight), (X_valid, y_valid, _) = numbers(), numbers(200, 1)
    one = BoostBPRegressor((4,), **HOW).fit(X, y, weight, eval_set=[(X_valid, y_valid)])
    parts = client.persist(da.from_array(X, chunks=(150, 2)).rechunk({1: -1}))
    distributed.wait(parts)
    before = client.who_has(parts)
    model = DaskBoostBPRegressor((4,), **HOW).fit(
        parts,
        da.from_array(y, chunks=150),
        da.from_array(weight, chunks=150),
        eval_set=[(da.from_array(X_valid, chunks=(70, 5)), da.from_array(y_valid, chunks=70))],
        client=client,
    )
    assert client.who_has(parts) == before
    assert same_trees(model, one)
    predicted = model.predict(parts)
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == (parts.chunks[0],)
    np.testing.assert_allclose(predicted.compute(), one.predict(X), rtol=0, atol=1e-9)
    assert model.history_.metrics("valid_0") == pytest.approx(one.history_.metrics("valid_0"), rel=1e-9)
    units = model.transform(parts)
    assert units.shape == (800, 4)
    np.testing.assert_allclose(units.compute(), one.transform(X), rtol=0, atol=1e-9)
    assert model.score(parts, da.from_array(y, chunks=150)) == pytest.approx(one.score(X, y), rel=1e-9)
    assert model.get_params() == one.get_params()
    intervals = model.calibrate(X_valid, y_valid).predict_interval(parts, 0.8)
    np.testing.assert_array_equal(intervals.compute(), model.to_local().predict_interval(X, 0.8))
    refused = DaskBoostBPRegressor((4,), calibration=0.2, **HOW)
    with pytest.raises(ValueError, match=r"calibration=0.2 is not supported on several workers"):
        refused.fit(parts, da.from_array(y, chunks=150), client=client)


def test_frames_with_categories_gaps_and_empty_partitions_give_the_model_of_one_machine(client, rows_apart):
    rows = frame()
    rows["label"] = np.array(["low", "mid", "high"])[np.digitize(rows["y"], [-1.0, 1.5])]
    columns = [*"abcde", "text", "declared"]
    one = BoostBPClassifier((4,), early_stopping=False, **HOW).fit(rows[columns], rows["label"])
    parts = dd.from_pandas(rows, npartitions=5, sort=False)
    empty = parts[parts["a"] > 1e9]
    parts = dd.concat([empty, parts, empty], interleave_partitions=True)
    model = DaskBoostBPClassifier((4,), early_stopping=False, **HOW)
    model.fit(parts[columns], parts["label"], client=client)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert same_trees(model, one)
    share = model.predict_proba(parts[columns])
    assert share.shape[1] == 3
    np.testing.assert_allclose(share.compute(), one.predict_proba(rows[columns]), rtol=0, atol=1e-9)
    assert (model.predict(parts[columns]).compute() == one.predict(rows[columns])).all()
    np.testing.assert_allclose(model.decision_function(parts[columns]), one.decision_function(rows[columns]), atol=1e-8)
    assert model.score(parts[columns], parts["label"]) == one.score(rows[columns], rows["label"])


def test_several_labels_give_the_model_of_one_machine(client, rows_apart):
    rows = frame()
    labels, columns = rows[["y"]].assign(one=rows["y"] > 0, two=rows["a"] > 0)[["one", "two"]], [*"abcde", "text"]
    one = BoostBPClassifier((4,), **HOW).fit(rows[columns], labels)
    X, y = dd.from_pandas(rows[columns], npartitions=4, sort=False), dd.from_pandas(labels, npartitions=4, sort=False)
    model = DaskBoostBPClassifier((4,), **HOW).fit(X, y, client=client)
    assert same_trees(model, one)
    assert model.classes_.tolist() == ["one", "two"]
    np.testing.assert_allclose(model.predict_proba(X).compute(), one.predict_proba(rows[columns]), rtol=0, atol=1e-9)
    assert (model.predict(X).compute() == one.predict(rows[columns])).all()
    assert model.score(X, y) == one.score(rows[columns], labels)


def test_columns_of_one_folder_of_parquet_files_go_together(client, tmp_path):
    rows = frame(400)
    for number in range(4):
        rows[100 * number : 100 * number + 100].to_parquet(tmp_path / f"part{number}.parquet")
    parts = dd.read_parquet(tmp_path)
    model = DaskBoostBPRegressor((3,), early_stopping=False, **HOW)
    model.fit(parts.drop(columns="y"), parts["y"], parts["a"].isna() + 1.0, client=client)
    one = BoostBPRegressor((3,), early_stopping=False, **HOW)
    one.fit(rows.drop(columns="y"), rows["y"], rows["a"].isna() + 1.0)
    predicted = model.predict(parts.drop(columns="y"))
    assert predicted.numblocks == (4,)
    np.testing.assert_allclose(predicted.compute(), one.predict(rows.drop(columns="y")), rtol=0, atol=1e-9)


@pytest.mark.full_length
@pytest.mark.parametrize("place", [[1, 0, 0, 1], [0, 1, 0, 1], [1, 1, 1, 1]], ids=str)
def test_the_default_model_is_that_of_one_machine_wherever_partitions_lie(client, rows_apart, place):
    X, y, weight = numbers(400)
    how = HOW | {"deep": "auto", "quality": 1, "output": {"subsample": 0.7}}
    one = BoostBPRegressor((3,), **how).fit(X, y, weight)
    model = DaskBoostBPRegressor((3,), **how)
    columns = [da.from_array(part, chunks=100) for part in (X, y, weight)]
    workers = sorted(client.scheduler_info()["workers"])
    columns[0], held = placed(client, X, place)
    model.fit(*columns, client=client)
    assert [client.who_has(part)[part.key] for part in held] == [(workers[at],) for at in place]
    assert model.history_.choice.candidates
    np.testing.assert_allclose(model.predict(X), one.predict(X), rtol=0, atol=1e-9)


def test_the_default_backend_is_as_good_as_on_one_machine(client):
    (X, y, _), (X_new, y_new, _) = numbers(600), numbers(600, 1)
    model = DaskBoostBPRegressor(quality=1, random_state=0)
    model.fit(da.from_array(X, chunks=(200, 5)), da.from_array(y, chunks=200), client=client)
    one = BoostBPRegressor(quality=1, random_state=0).fit(X, y)
    assert model.score(X_new, y_new) == pytest.approx(one.score(X_new, y_new), abs=0.1)


def test_held_out_rows_several_outputs_and_the_client_made_last(client):
    X, y, _ = numbers()
    Y = np.column_stack([y, X[:, 3], np.nan_to_num(X[:, 0])])
    Y = np.nan_to_num(Y)
    model = DaskBoostBPRegressor((4,), **HOW).fit(da.from_array(X, chunks=(300, 5)), da.from_array(Y, chunks=(300, 3)))
    assert model.history_.metrics("held_out")
    predicted = model.predict(da.from_array(X, chunks=(300, 5)))
    assert predicted.shape == (800, 3)
    assert 1.0 - np.var(predicted.compute() - Y) / np.var(Y) > 0.5


def test_quantiles_are_scored_and_a_fit_forgets_the_calibration_of_the_one_before(client):
    X, y, _ = numbers(300)
    rows, targets = da.from_array(X, chunks=(150, 5)), da.from_array(y, chunks=150)
    how = HOW | {"deep": False, "early_stopping": False, "loss": "quantile"}
    model = DaskBoostBPRegressor(alpha=[0.1, 0.9], **how).fit(rows, targets).calibrate(X, y)
    assert model.score(rows, targets) == model.to_local().score(X, y) > 0.0
    assert model.predict_interval(rows).compute().shape == (300, 2)
    model.fit(rows, 100.0 * targets)
    with pytest.raises(ValueError, match="calibrate was not called since"):
        model.predict_interval(X)


def test_a_model_is_copied_and_stored_without_a_client(client, tmp_path):
    X, y, _ = numbers(300)
    model = DaskBoostBPRegressor((3,), early_stopping=False, **HOW)
    model.fit(da.from_array(X, chunks=(150, 5)), da.from_array(y, chunks=150), client=client)
    local = model.to_local()
    assert type(local) is BoostBPRegressor
    expected = model.predict(X)  # of an array in memory: no graph
    assert isinstance(expected, np.ndarray)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
    save(local, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), expected)


def test_two_fits_at_once_wait_for_each_other(client):
    X, y, _ = numbers(300)
    parts, target = da.from_array(X, chunks=(100, 5)), da.from_array(y, chunks=100)

    def fitted(seed):
        how = HOW | {"random_state": seed}
        return DaskBoostBPRegressor((3,), early_stopping=False, **how).fit(parts, target, client=client)

    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(fitted, (0, 1)))
    for seed, model in enumerate(models):
        one = BoostBPRegressor((3,), early_stopping=False, **HOW | {"random_state": seed}).fit(X, y)
        np.testing.assert_allclose(model.predict(X), one.predict(X), rtol=0, atol=1e-9)


def test_what_cannot_be_used_is_refused_by_name(client):
    X, y, _ = numbers(300)
    parts, target = da.from_array(X, chunks=(100, 5)), da.from_array(y, chunks=100)
    model = DaskBoostBPRegressor((3,), **HOW)
    with pytest.raises(ValueError, match=r"backend='sklearn' is not supported on several workers: "):
        DaskBoostBPRegressor((3,), backend="sklearn").fit(parts, target)
    with pytest.raises(TypeError, match=r"y is a ndarray: give a Dask array or data frame"):
        model.fit(parts, y, client=client)
    with pytest.raises(ValueError, match=r"X has 3 partitions, y has 2 partitions|X has 3, y has 2 partitions"):
        model.fit(parts, target.rechunk(200), client=client)
    with pytest.raises(ValueError, match=r"a partition has \[100, (150|50)\] rows in X, y and sample_weight"):
        model.fit(parts[:200], target.rechunk((150, 50, 100))[:200], client=client)
    nothing = dd.from_pandas(frame(50), npartitions=2)
    with pytest.raises(ValueError, match=r"X has no rows"):
        model.fit(nothing[nothing["a"] > 1e9][list("ab")], nothing[nothing["a"] > 1e9]["y"], client=client)
    assert not hasattr(model, "network_")


def arm(fault, at=5):
    """Let a worker break in the fifth round, or another, or be whole again."""
    XGBoostGrower._round = GROW if fault is None else broken(GROW, fault, at)


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (KeyError("in the fifth round"), KeyError, "in the fifth round"),
        pytest.param(SIGKILL, WorkersLostError, "The Dask worker {} died during the fit", marks=needs_signals),
        pytest.param(
            SIGSTOP,
            WorkersLostError,
            "The Dask worker {} did not answer for 6 seconds, the time limit",
            marks=needs_signals,
        ),
    ],
    ids=["raises", "dies", "freezes"],
)
def test_a_broken_worker_ends_the_fit_in_time_and_is_named(client, fault, kind, message):
    X, y, _ = numbers(400)
    parts, target = da.from_array(X, chunks=(50, 5)), da.from_array(y, chunks=50)
    model = DaskBoostBPRegressor((3,), early_stopping=False, **HOW)
    model.fit(parts, target, client=client)  # imports
    worker, process = next(iter(client.run(os.getpid).items()))
    client.run(arm, fault, workers=[worker])
    begun = time.monotonic()
    with pytest.raises(kind) as caught:
        model.fit(parts, target, client=client, timeout=6.0)
    seconds = time.monotonic() - begun
    if fault is SIGSTOP:
        os.kill(process, signal.SIGCONT)
    if fault is not SIGKILL:
        client.run(arm, None, workers=[worker])
    assert message.format(worker) in str(caught.value)
    assert kind is not KeyError or caught.value.__notes__ == [f"On the Dask worker {worker}."]
    assert seconds < HANGS, f"it took {seconds:.0f} s, a time without limit"
    client.wait_for_workers(2, timeout=HANGS)
    model.fit(parts, target, client=client)  # the cluster is usable


@contextmanager
def frozen(client):
    """Stop the process of a worker for a while; its address."""
    worker, process = min(client.run(os.getpid).items())
    os.kill(process, SIGSTOP)
    try:
        yield worker
    finally:
        os.kill(process, signal.SIGCONT)


def lost(fit, worker, seconds=40):
    """Check that a fit with a time limit of 6 seconds ends in time, and names the worker."""
    begun = time.monotonic()
    with pytest.raises(WorkersLostError, match=f"{worker} did not answer for 6 seconds, the time limit"):
        fit(timeout=6.0)
    assert time.monotonic() - begun < seconds


@needs_signals
def test_a_worker_that_is_frozen_before_a_fit_ends_it_in_time_and_gets_no_task_of_the_next(client):
    X, y, _ = numbers(400, 7)
    parts, target = da.from_array(X, chunks=(50, 5)), da.from_array(y, chunks=50)
    model = DaskBoostBPRegressor((3,), early_stopping=False, **HOW)
    fit = partial(model.fit, parts, target, client=client)
    fit()  # imports
    expected = model.predict(X)
    with frozen(client) as worker:
        lost(fit, worker)
        fit()
        np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-9)
        fit(eval_set=[(parts[:100], target[:100])])  # which is computed without it, too
    fit()
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-9)


@needs_signals
def test_rows_that_a_frozen_worker_holds_end_a_fit_in_time(client):
    X, y, _ = numbers(400, 8)
    (parts, held), target = placed(client, X, [0, 1] * 4), da.from_array(y, chunks=50)
    model = DaskBoostBPRegressor((3,), early_stopping=False, **HOW)
    fit = partial(model.fit, parts, target, client=client)
    with frozen(client) as worker:
        assert {worker} in map(set, client.who_has(held).values())
        lost(fit, worker)
        lost(fit, worker)
    fit()


@needs_signals
def test_after_a_worker_froze_in_a_fit_the_next_one_works_without_it(client, rows_apart):
    X, y, _ = numbers(400, 9)
    parts, target = da.from_array(X, chunks=(50, 5)), da.from_array(y, chunks=50)
    model = DaskBoostBPRegressor((3,), early_stopping=False, **HOW)
    fit = partial(model.fit, parts, target, client=client)
    worker, process = min(client.run(os.getpid).items())
    client.run(arm, SIGSTOP, workers=[worker])
    try:
        lost(fit, worker)
        fit()
    finally:
        os.kill(process, signal.SIGCONT)
    client.run(arm, None, workers=[worker])
    one = BoostBPRegressor((3,), early_stopping=False, **HOW).fit(X, y)
    np.testing.assert_allclose(model.predict(X), one.predict(X), rtol=0, atol=1e-9)
    fit()


@needs_signals
def test_a_fit_that_lost_a_worker_goes_on_from_its_checkpoint_with_those_that_are_left(client, tmp_path):
    X, y, _ = numbers(400)
    parts, target = da.from_array(X, chunks=(50, 5)), da.from_array(y, chunks=50)
    model = DaskBoostBPRegressor((3,), early_stopping=False, output={"subsample": 0.8}, **HOW)
    worker = min(client.run(os.getpid))
    client.run(arm, SIGKILL, 40, workers=[worker])  # after the first epoch
    with pytest.raises(WorkersLostError):
        model.fit(parts, target, checkpoint=tmp_path / "state", client=client, timeout=20.0)
    assert (tmp_path / "state").exists()
    model.fit(parts, target, checkpoint=tmp_path / "state", client=client)
    one = BoostBPRegressor((3,), early_stopping=False, output={"subsample": 0.8}, **HOW).fit(X, y)
    np.testing.assert_allclose(model.predict(X), one.predict(X), rtol=0, atol=1e-9)


def test_survival_times_on_a_cluster(client):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    times = np.exp(x[:, 0] + 0.3 * rng.normal(size=400))
    bounds = np.column_stack([times, np.where(np.arange(400) % 4, times, np.inf)])
    X, y = (da.from_array(values, chunks=(200, -1)) for values in (x, bounds))
    how = {"backend": "xgboost", "quality": 1, "random_state": 0}
    model = DaskBoostBPSurvival(loss="aft", **how).fit(X, y, client=client)
    local = model.to_local()
    np.testing.assert_allclose(model.predict(X).compute(), local.predict(x))
    np.testing.assert_allclose(
        model.predict_survival_function(X).compute(), local.predict_survival_function(x, return_array=True)
    )
    np.testing.assert_allclose(model.predict_quantile(X, 0.2).compute(), local.predict_quantile(x, 0.2))
    assert model.score(X, y) == pytest.approx(local.score(x, bounds))
    with pytest.raises(ValueError, match="train in one process"):
        DaskBoostBPSurvival(**how).fit(X, y, client=client)


def test_queries_that_lie_on_one_worker_are_ranked(client, rows_apart):
    rng = np.random.default_rng(0)
    X, qid = rng.standard_normal((600, 4)), np.arange(600) // 10
    y = np.clip(np.round(X[:, 0] + X[:, 1] ** 2), 0, 4)
    one = BoostBPRanker((4,), early_stopping=False, **HOW).fit(X, y, qid=qid)
    columns = [da.from_array(column, chunks=150) for column in (X, y, qid)]
    columns[0], _held = placed(client, X, [0, 1, 1, 0])
    model = DaskBoostBPRanker((4,), early_stopping=False, **HOW).fit(*columns[:2], qid=columns[2], client=client)
    np.testing.assert_allclose(model.predict(columns[0]).compute(), one.predict(X), rtol=0, atol=1e-6)
    assert model.score(*columns[:2], qid=columns[2]) == pytest.approx(one.score(X, y, qid=qid), abs=1e-6)
    with pytest.raises(ValueError, match=r"query \d+ has rows on 2 workers: keep all of its rows on one worker"):
        model.fit(*columns[:2], qid=columns[2] % 20, client=client)
