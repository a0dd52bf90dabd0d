"""Fits on a Dask cluster: rows stay on the workers that hold them, and each worker calls `fit_worker`."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import numpy as np
from sklearn.base import clone

from boostbp.backends.xgboost_network import Address, WorkersLostError, tracked
from boostbp.distributed.worker import E, fit_worker, refuse_unsupported
from boostbp.runtime.messages import require

if TYPE_CHECKING:
    from dask.array import Array
    from dask.dataframe import DataFrame, Series
    from dask.delayed import Delayed
    from distributed import Client, Future

Collection: TypeAlias = "Array | DataFrame | Series"

TICK = 1.0  # seconds between two checks of the workers; arbitrary
GRACE = 5.0  # seconds to find out which worker failed after another one lost it. Dask's heartbeats are more frequent
_trackers: dict[str, ExitStack] = {}  # running trackers of this process, by the token of the fit


def _dask(module: str) -> Any:
    return require(module, extra="dask", what="training on a Dask cluster")


def is_collection(value: object) -> TypeGuard[Collection]:
    """Return whether a value is a Dask array, data frame or series."""
    return hasattr(value, "__dask_graph__") and hasattr(value, "to_delayed")


def parts_of(collection: Collection) -> list[Delayed]:
    """Return the blocks of rows of a Dask array, or the partitions of a data frame or series, as delayed objects."""
    if hasattr(collection, "rechunk") and collection.ndim > 1 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    # without optimisation, so that all columns of a Parquet file have the same partitions
    return list(np.ravel(collection.to_delayed(optimize_graph=False)))


def computed(value: object, compute: Callable[[Collection], object] = methodcaller("compute")) -> Any:
    """Return the values of Dask collections, also in lists and tuples; other objects are unchanged."""
    if isinstance(value, list | tuple):
        return type(value)(computed(part, compute) for part in value)
    return compute(value) if is_collection(value) else value


@dataclass(frozen=True)
class _Cluster:
    """A cluster on which no call waits longer than `timeout` seconds for a frozen worker."""

    client: Client
    timeout: float
    frozen: list[str]  # silent workers at the start of the fit, which get no tasks

    @property
    def where(self) -> dict[str, Any]:
        """Options of tasks that may run on any worker except frozen ones."""
        if not self.frozen:
            return {}
        return {"workers": [worker for worker in self.client.nthreads() if worker not in self.frozen]}

    def compute(self, collection: Collection) -> Any:
        """Return the value of a collection."""
        future = self.client.compute(collection, **self.where)
        try:
            self.wait([future], collection.__dask_graph__())
            return future.result()
        finally:
            future.cancel()

    def wait(self, futures: Sequence[Future], graph: Iterable[object] = (), *, on: Sequence[str] = ()) -> None:
        """Wait until tasks are done.

        Raises WorkersLostError if a worker with one of them, or with a task of their `graph`, is silent for too long,
        or if a worker in `on`, where they must run, is lost.
        """
        keys = {str(key) for key in graph} | {str(future.key) for future in futures}
        while any(future.status == "pending" for future in futures):
            with suppress(TimeoutError):
                _dask("distributed").wait(futures, timeout=TICK)
            if gone := _gone(self.client, on):
                raise _lost(gone)
            silent = _unheard(self.client, self.client.nthreads(), self.timeout)
            if silent:
                held, processed = self.client.has_what(silent), self.client.processing(silent)
                waited_for = [worker for worker in silent if keys & set(map(str, (*held[worker], *processed[worker])))]
                if waited_for:
                    raise _lost(waited_for, self.timeout)


def fit_cluster(
    estimator: E, columns: Mapping[str, object], *, client: Client | None, timeout: float, **fit: object
) -> E:
    """Fit a copy of an estimator on the workers that hold the rows, as `boostbp.dask` says; no task is left behind.

    `columns` are Dask collections ``X``, ``y`` and, if there are weights, ``sample_weight``, with the same partitions.
    """
    refuse_unsupported(estimator, fit=fit)
    distributed = _dask("distributed")
    client = client or distributed.default_client()
    cluster = _Cluster(client, timeout, _unheard(client, client.nthreads(), GRACE))
    fit = {name: computed(value, cluster.compute) for name, value in fit.items()}
    rows = _rows(client, columns, cluster.frozen)
    parts = client.compute(rows, **cluster.where)
    tasks = list(parts)
    try:
        cluster.wait(parts, {key for part in rows for key in part.__dask_graph__()})
        placed = _placement(cluster, parts)
        if fit.get("checkpoint") is not None:
            successive = iter(sorted(number for numbers in placed.values() for number in numbers))
            placed = {worker: list(islice(successive, len(numbers))) for worker, numbers in placed.items()}
        with distributed.MultiLock(sorted(placed), client=client):  # two fits must not wait for each other
            first, token = next(iter(placed)), uuid.uuid4().hex
            tracker = client.submit(_start_tracker, token, len(placed), timeout, **_on(first))
            tasks.append(tracker)
            cluster.wait([tracker], on=[first])  # an earlier fit may still wait there for a frozen worker
            address = tracker.result()
            futures = {}
            for rank, (worker, numbers) in enumerate(placed.items()):
                of_worker = {number: parts[number] for number in numbers}
                how = list(columns), address, rank, token, fit
                futures[worker] = client.submit(_fit_part, estimator, of_worker, *how, **_on(worker))
            tasks += futures.values()
            return _result(client, futures, timeout)
    finally:
        client.cancel(tasks)


def _on(worker: str) -> dict[str, object]:
    """Return the options of a task that must run once, on one worker."""
    return {"workers": [worker], "allow_other_workers": False, "pure": False, "retries": 0}


def _rows(client: Client, columns: Mapping[str, object], frozen: Sequence[str]) -> list[Delayed]:
    """Return a delayed tuple of the columns of each partition, on the worker that has its part of `X`."""
    divided, scheduler = {}, cast(Any, client.scheduler)
    for name, column in columns.items():
        if not is_collection(column):
            raise TypeError(f"{name} is a {type(column).__name__}: give a Dask array or data frame.")
        divided[name] = parts_of(column)
    counts = {name: len(parts) for name, parts in divided.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise ValueError(f"{listed} partitions: divide them alike, as by y.rechunk(...) or y.repartition(...).")
    dask, rows = _dask("dask"), []
    holders = client.sync(scheduler.who_has, keys=[part.key for part in divided["X"]])
    for part in zip(*divided.values(), strict=True):
        held = holders.get(part[0].key)  # rows are not moved, even if another worker is free sooner
        where = {"workers": [min(held)], "allow_other_workers": True} if held and not frozen else {}
        with dask.annotate(**where):
            rows.append(dask.delayed(_columns_of, pure=False)(*part))
    return rows


def _columns_of(*part: Sized) -> tuple[Sized, ...]:
    """Return the columns of one partition, which must have the same number of rows."""
    lengths = [len(column) for column in part]
    if len(set(lengths)) > 1:
        raise ValueError(f"a partition has {lengths} rows in X, y and sample_weight: divide them alike.")
    return part


def _placement(cluster: _Cluster, parts: Sequence[Future]) -> dict[str, list[int]]:
    """Return the numbers of the non-empty partitions that each worker holds, in the order of their first ones."""
    client = cluster.client
    counting = client.map(lambda part: len(part[0]), parts, pure=False, **cluster.where)
    cluster.wait(counting)
    counts = client.gather(counting)
    holders, placed = client.who_has(parts), defaultdict(list)
    for number, (part, count) in enumerate(zip(parts, counts, strict=True)):
        if count:
            placed[min(holders[part.key])].append(number)
    if not placed:
        raise ValueError("X has no rows: give at least one.")
    return dict(placed)


def _start_tracker(token: str, n_workers: int, timeout: float) -> Address:
    """Run the tracker on this worker, at the address that other workers use for data."""
    address = _dask("distributed").get_worker().address
    host = "127.0.0.1" if address.startswith("inproc:") else _dask("distributed.comm").get_address_host(address)
    _trackers[token] = stack = ExitStack()
    return stack.enter_context(tracked(n_workers, host=host, timeout=timeout))


def _fit_part(
    estimator: E,
    parts: Mapping[int, tuple[Sized, ...]],
    names: Sequence[str],
    address: Address,
    rank: int,
    token: str,
    fit: Mapping[str, Any],
) -> E | None:
    """Fit on the partitions of one worker; rank 0 returns the model and ends the tracker."""
    estimator = clone(estimator)
    if estimator.n_jobs is None:
        estimator.n_jobs = _dask("distributed").get_worker().state.nthreads
    order = None if fit.get("checkpoint") is not None else [(number, len(part[0])) for number, part in parts.items()]
    of_names = zip(names, zip(*parts.values(), strict=True), strict=True)
    columns: dict[str, Any] = {name: _concatenated(column) for name, column in of_names}
    with _trackers.pop(token) if rank == 0 else nullcontext():
        fitted = fit_worker(estimator, **columns, address=address, rank=rank, parts=order, **fit)
    return fitted if rank == 0 else None


def _concatenated(column: Sequence[Any]) -> Sized:
    if len(column) == 1 or isinstance(column[0], np.ndarray):
        return column[0] if len(column) == 1 else np.concatenate(column)
    # unlike that of pandas, it keeps categorical columns if partitions have different categories
    return _dask("dask.dataframe.dispatch").concat(list(column))


def _result(client: Client, futures: Mapping[str, Future], timeout: float) -> Any:
    """Return the model of rank 0 once all workers are done."""
    pending = set(futures.values())
    while pending:
        with suppress(TimeoutError):
            pending = _dask("distributed").wait(pending, timeout=TICK, return_when="FIRST_COMPLETED").not_done
        failed = any(future.status != "finished" for future in futures.values() if future not in pending)
        if failed or _gone(client, futures) or _unheard(client, futures, timeout):
            raise _failure(client, futures, timeout)
    return next(iter(futures.values())).result()


def _failure(client: Client, futures: Mapping[str, Future], timeout: float) -> BaseException:
    """Return the error of a failed worker, or one with the name of the worker that others have lost."""
    end = time.monotonic() + GRACE
    while True:
        status = {worker: future.status for worker, future in futures.items()}  # all at the same time
        errors = {worker: futures[worker].exception() for worker in futures if status[worker] == "error"}
        for worker, error in errors.items():
            if not isinstance(error, WorkersLostError):
                error.add_note(f"On the Dask worker {worker}.")
                return error
        if gone := _gone(client, futures):
            return _lost(gone)
        pending = [worker for worker in futures if status[worker] == "pending"]
        unheard = _unheard(client, pending, min(timeout, GRACE))
        if unheard or (pending and time.monotonic() > end):
            return _lost(unheard or pending, timeout)
        if not pending:
            return next(iter(errors.values()), WorkersLostError("The tasks of the fit were cancelled."))
        time.sleep(TICK / 10)


def _lost(workers: Sequence[str], silent_for: float | None = None) -> WorkersLostError:
    """Return the error of workers that died, or that were silent for some seconds."""
    reason = "died during the fit; its log may say why, such as a lack of memory."
    if silent_for is not None:
        limit = f"{silent_for:g} seconds, the time limit (timeout)"
        reason = f"did not answer for {limit}: it hangs, or is busy with other tasks."
    return WorkersLostError(f"The Dask worker {', '.join(workers)} {reason}")


def _gone(client: Client, workers: Iterable[str]) -> list[str]:
    """Return which of some workers the cluster has lost."""
    present = client.nthreads()
    return [worker for worker in workers if worker not in present]


def _unheard(client: Client, workers: Iterable[str], seconds: float) -> list[str]:
    """Return the workers that have been silent for `seconds`, if the scheduler has heard of others."""
    last = {worker: facts["last_seen"] for worker, facts in client.scheduler_info(n_workers=-1)["workers"].items()}
    return [worker for worker in workers if worker in last and max(last.values()) - last[worker] > seconds]
