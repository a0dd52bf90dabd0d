"""The fit of a Dask cluster: rows stay on the workers that hold them, each of which calls `fit_worker`."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from boostbp.backends.xgboost_network import Address, WorkersLostError, tracked
from boostbp.distributed.worker import check_supported, fit_worker
from boostbp.extras import require

TICK = 1.0  # seconds between two looks whether all workers are still there
GRACE = 5.0  # seconds for the one that failed to be known, once another has missed it; heartbeats are more frequent
_trackers: dict[str, ExitStack] = {}  # of this process, by the fit


def _dask(module: str) -> Any:
    return require(module, extra="dask", what="training on a Dask cluster")


def is_collection(value: Any) -> bool:
    """Whether it is a Dask array, data frame or series."""
    return hasattr(value, "__dask_graph__") and hasattr(value, "to_delayed")


def parts_of(collection: Any) -> list[Any]:
    """The blocks of rows of a Dask array, or the partitions of a data frame or series, as delayed objects."""
    if hasattr(collection, "rechunk") and collection.ndim > 1 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    # optimised, the partitions of one column of a Parquet file would be fewer than those of all others
    return list(np.ravel(collection.to_delayed(optimize_graph=False)))


def computed(value: Any, compute: Callable[[Any], Any] | None = None) -> Any:
    """A Dask collection as what it is made of; anything else as it is, and what is in lists and tuples."""
    if isinstance(value, list | tuple):
        return type(value)(computed(part, compute) for part in value)
    if not is_collection(value):
        return value
    return value.compute() if compute is None else compute(value)


@dataclass(frozen=True)
class _Cluster:
    """Steps of a fit on a cluster before training; each waits for a frozen worker for a limited time.

    Attributes
    ----------
    frozen : list of str
        Workers that were silent when the fit began: they get no tasks of it.
    """

    client: Any
    timeout: float
    frozen: list[str]

    @classmethod
    def of(cls, client: Any, timeout: float) -> _Cluster:
        return cls(client, timeout, _unheard(client, client.nthreads(), GRACE))

    @property
    def where(self) -> dict[str, Any]:
        """Options for tasks that may run on any worker except frozen ones."""
        if not self.frozen:
            return {}
        return {"workers": [worker for worker in self.client.nthreads() if worker not in self.frozen]}

    def compute(self, collection: Any) -> Any:
        """The value of a collection."""
        future = self.client.compute(collection, **self.where)
        try:
            self.wait([future], collection.__dask_graph__())
            return future.result()
        finally:
            future.cancel()

    def wait(self, futures: Sequence[Any], graph: Iterable[Any] = (), *, on: Sequence[str] = ()) -> None:
        """Wait until some tasks are done.

        Raises WorkersLostError if a worker is silent for `timeout` seconds that has one of them, or one of the `graph`
        that they are made of, or if one is gone `on` which they must run.
        """
        keys = {str(key) for key in graph} | {str(future.key) for future in futures}
        while any(future.status == "pending" for future in futures):
            with suppress(TimeoutError):
                _dask("distributed").wait(futures, timeout=TICK)
            if gone := _gone(self.client, on):
                raise _dead(gone)
            silent = _unheard(self.client, self.client.nthreads(), self.timeout)
            if silent:
                held, processed = self.client.has_what(silent), self.client.processing(silent)
                waited_for = [worker for worker in silent if keys & set(map(str, (*held[worker], *processed[worker])))]
                if waited_for:
                    raise _silent(waited_for, self.timeout)


def fit_cluster(
    estimator: Any, columns: Mapping[str, Any], *, client: Any = None, timeout: float = 60.0, **fit: Any
) -> Any:
    """Fit an estimator on the workers that hold the rows.

    Parameters
    ----------
    estimator : BoostBPRegressor or BoostBPClassifier
        Not changed.
    columns : mapping
        Dask collections ``X``, ``y`` and, unless None, ``sample_weight``, in the same partitions.
    client : distributed.Client, optional
        By default the one that was made last.
    timeout : float
        Seconds that workers wait for one another, and that one may be silent which has rows of the fit.
    **fit :
        Other arguments of `fit`.

    Returns
    -------
    estimator
        A fitted copy.

    Raises
    ------
    ValueError
        If columns are in different partitions, there are no rows, or parameters are not supported.
    WorkersLostError
        If a worker died, or did not answer in time; the message names it. No task is left behind.
    """
    check_supported(estimator, fit=fit)
    distributed = _dask("distributed")
    client = client or distributed.default_client()
    cluster = _Cluster.of(client, timeout)
    fit = {name: computed(value, cluster.compute) for name, value in fit.items()}
    rows = _rows(client, columns, cluster.frozen)
    parts = client.compute(rows, **cluster.where)
    tasks = list(parts)
    try:
        cluster.wait(parts, {key for part in rows for key in part.__dask_graph__()})
        placed = _placed(cluster, parts)
        if fit.get("checkpoint") is not None:
            placed = _in_order(placed)
        with distributed.MultiLock(sorted(placed), client=client):  # fits that wait for each other would wait for ever
            first, token = next(iter(placed)), uuid.uuid4().hex
            tracker = client.submit(_start_tracker, token, len(placed), timeout, **_on(first))
            tasks.append(tracker)
            cluster.wait([tracker], on=[first])  # an earlier fit may still wait for a frozen one there
            address = tracker.result()
            futures = {}
            for rank, (worker, numbers) in enumerate(placed.items()):
                of_worker = {number: parts[number] for number in numbers}
                arguments = estimator, of_worker, list(columns), address, rank, token, fit
                futures[worker] = client.submit(_fit_part, *arguments, **_on(worker))
            tasks += futures.values()
            return _result(client, futures, timeout)
    finally:
        client.cancel(tasks)


def _on(worker: str) -> dict[str, Any]:
    """How a task is submitted that must run on one worker, once."""
    return {"workers": [worker], "allow_other_workers": False, "pure": False, "retries": 0}


def _rows(client: Any, columns: Mapping[str, Any], frozen: Sequence[str]) -> list[Any]:
    """A delayed tuple of the columns for each partition, on the worker that holds its part of `X`, if one does."""
    for name, column in columns.items():
        if not is_collection(column):
            raise TypeError(
                f"{name} is a {type(column).__module__}.{type(column).__name__}: give Dask arrays or data frames, such "
                "as dask.array.from_array(...), or use the estimator without Dask."
            )
    divided = {name: parts_of(column) for name, column in columns.items()}
    counts = {name: len(parts) for name, parts in divided.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise ValueError(f"{found} partitions: divide them alike, as by y.rechunk(...) or y.repartition(...).")
    dask, rows = _dask("dask"), []
    holders = client.sync(client.scheduler.who_has, keys=[part.key for part in divided["X"]])
    for part in zip(*divided.values(), strict=True):
        held = holders.get(part[0].key)  # who holds rows keeps them, even if another one would be free sooner
        where = {"workers": [min(held)], "allow_other_workers": True} if held and not frozen else {}
        with dask.annotate(**where):
            rows.append(dask.delayed(_together, pure=False)(*part))
    return rows


def _together(*part: Any) -> tuple[Any, ...]:
    """The columns of one partition, on one worker; of the same number of rows."""
    lengths = [len(column) for column in part]
    if len(set(lengths)) > 1:
        raise ValueError(f"a partition has {lengths} rows in X, y and sample_weight: divide them alike.")
    return part


def _count(part: tuple[Any, ...]) -> int:
    return len(part[0])


def _placed(cluster: _Cluster, parts: Sequence[Any]) -> dict[str, list[int]]:
    """Worker -> the numbers of the partitions that it holds, in the order of their first ones; empty ones left out."""
    client = cluster.client
    counting = client.map(_count, parts, pure=False, **cluster.where)
    cluster.wait(counting)
    counts = client.gather(counting)
    holders, placed = client.who_has(parts), defaultdict(list)
    for number, (part, count) in enumerate(zip(parts, counts, strict=True)):
        if count:
            placed[min(holders[part.key])].append(number)
    if not placed:
        raise ValueError("X has no rows: give at least one.")
    return dict(placed)


def _in_order(placed: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """As many partitions for each worker, but neighbours: so rows are in one order, wherever they lie."""
    numbers, ends = (
        sorted(number for held in placed.values() for number in held),
        np.cumsum([len(held) for held in placed.values()]),
    )
    return {worker: numbers[end - len(placed[worker]) : end] for worker, end in zip(placed, ends, strict=True)}


def _start_tracker(token: str, n_workers: int, timeout: float) -> Address:
    """Run the tracker on this worker, which the others reach as they reach each other for data."""
    address = _dask("distributed").get_worker().address
    host = "127.0.0.1" if address.startswith("inproc:") else _dask("distributed.comm").get_address_host(address)
    _trackers[token] = stack = ExitStack()
    return stack.enter_context(tracked(n_workers, host=host, timeout=timeout))


def _fit_part(
    estimator: Any,
    parts: Mapping[int, tuple[Any, ...]],
    names: Sequence[str],
    address: Address,
    rank: int,
    token: str,
    fit: Mapping[str, Any],
) -> Any:
    """The fit of one worker on its partitions; rank 0 returns the model, and ends the tracker."""
    estimator = clone(estimator)
    if estimator.n_jobs is None:
        estimator.n_jobs = _dask("distributed").get_worker().state.nthreads
    order = None if fit.get("checkpoint") is not None else [(number, _count(part)) for number, part in parts.items()]
    columns = {name: _concatenated(part) for name, part in zip(names, zip(*parts.values(), strict=True), strict=True)}
    with _trackers.pop(token) if rank == 0 else nullcontext():
        fitted = fit_worker(estimator, **columns, address=address, rank=rank, parts=order, **fit)
    return fitted if rank == 0 else None


def _concatenated(column: Sequence[Any]) -> Any:
    if len(column) == 1 or isinstance(column[0], np.ndarray):
        return column[0] if len(column) == 1 else np.concatenate(column)
    # that of Dask keeps columns categories whose partitions have others
    return _dask("dask.dataframe.dispatch").concat(list(column))


def _result(client: Any, futures: Mapping[str, Any], timeout: float) -> Any:
    """The model of rank 0 once all workers are done."""
    pending = set(futures.values())
    while pending:
        with suppress(TimeoutError):
            pending = _dask("distributed").wait(pending, timeout=TICK, return_when="FIRST_COMPLETED").not_done
        failed = any(future.status != "finished" for future in futures.values() if future not in pending)
        if failed or _gone(client, futures) or _unheard(client, futures, timeout):
            raise _failure(client, futures, timeout)
    return next(iter(futures.values())).result()


def _failure(client: Any, futures: Mapping[str, Any], timeout: float) -> BaseException:
    """What to raise when a worker has failed: its own error, or which one the others have lost."""
    end = time.monotonic() + GRACE
    while True:
        status = {worker: future.status for worker, future in futures.items()}  # at one moment
        errors = {worker: futures[worker].exception() for worker in futures if status[worker] == "error"}
        for worker, error in errors.items():
            if not isinstance(error, WorkersLostError):
                error.add_note(f"On the Dask worker {worker}.")
                return error
        if gone := _gone(client, futures):
            return _dead(gone)
        pending = [worker for worker in futures if status[worker] == "pending"]
        unheard = _unheard(client, pending, min(timeout, GRACE))
        if not pending or unheard or time.monotonic() > end:
            break
        time.sleep(TICK / 10)
    if pending:
        return _silent(unheard or pending, timeout)
    return next(iter(errors.values()), WorkersLostError("The tasks of the fit were cancelled."))


def _dead(workers: Sequence[str]) -> WorkersLostError:
    return WorkersLostError(
        f"The Dask worker {', '.join(workers)} died during the fit; its log may say why, such as a lack of memory."
    )


def _silent(workers: Sequence[str], timeout: float) -> WorkersLostError:
    return WorkersLostError(
        f"The Dask worker {', '.join(workers)} did not answer for {timeout:g} seconds, the time limit (timeout): it is "
        "frozen, or busy with other tasks."
    )


def _gone(client: Any, workers: Iterable[str]) -> list[str]:
    """Those of some workers that the cluster does not have any more."""
    present = client.nthreads()
    return [worker for worker in workers if worker not in present]


def _unheard(client: Any, workers: Iterable[str], seconds: float) -> list[str]:
    """Those of some workers that the scheduler has not heard of for so long, while it has heard of others."""
    last = {worker: facts["last_seen"] for worker, facts in client.scheduler_info(n_workers=-1)["workers"].items()}
    return [worker for worker in workers if worker in last and max(last.values()) - last[worker] > seconds]
