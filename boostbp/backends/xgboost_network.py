"""XGBoost's network, which connects the workers of a group; its float64 sums have the same bits on all workers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from boostbp.runtime.group import Group
from boostbp.runtime.messages import require

T = TypeVar("T")


class WorkersLostError(RuntimeError):
    """The other workers of a group are lost: one failed, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where workers find each other."""

    host: str
    port: int
    n_workers: int
    timeout: float  # seconds that workers wait for each other


def _library(module: str) -> ModuleType:
    return require(f"xgboost.{module}", extra="xgboost", what="training on several workers")


@contextmanager
def tracked(n_workers: int, *, host: str = "127.0.0.1", timeout: float = 60.0) -> Iterator[Address]:
    """Run the tracker through which workers find each other, at an address `host` of this machine."""
    seconds, failure = math.ceil(timeout), _library("core").XGBoostError
    tracker = _library("tracker").RabitTracker(host_ip=host, n_workers=n_workers, sortby="task", timeout=seconds)
    tracker.start()
    arguments = tracker.worker_args()
    try:
        yield Address(str(arguments["dmlc_tracker_uri"]), int(arguments["dmlc_tracker_port"]), n_workers, timeout)
        with suppress(failure):
            tracker.wait_for(seconds)  # until workers have disconnected
    finally:
        with suppress(failure):  # failed workers have raised their own errors
            tracker.free()


@contextmanager
def connected(address: Address, rank: int) -> Iterator[Group]:
    """Make this thread a worker of a group; raise WorkersLostError if others failed, or take too long."""
    library = _library("collective")
    context = library.CommunicatorContext(
        dmlc_communicator="rabit",
        dmlc_tracker_uri=address.host,
        dmlc_tracker_port=address.port,
        dmlc_task_id=f"{rank:06}",  # leading zeros, as the tracker sorts workers by text
        dmlc_timeout=math.ceil(address.timeout),
        dmlc_retry=1,
    )
    with _naming_worker(address, rank):
        context.__enter__()
        try:
            yield _Network(library, rank, address.n_workers)
        finally:  # a failure to disconnect is ignored, as the work is done or its error is raised
            with suppress(_library("core").XGBoostError):
                context.__exit__(None, None, None)


@contextmanager
def _naming_worker(address: Address, rank: int) -> Iterator[None]:
    """Convert XGBoost's error of a broken network to WorkersLostError."""
    try:
        yield
    except _library("core").XGBoostError as error:
        lost = f"Worker {rank} of {address.n_workers} lost its connection to the others"
        cause = f"failed (see its own error), did not start, or did not answer for {address.timeout:g} seconds"
        raise WorkersLostError(f"{lost}: one of them {cause}, the time limit.") from error


class _Network(Group):
    """The group of XGBoost's communicator in this thread."""

    def __init__(self, library: ModuleType, rank: int, size: int) -> None:
        self.rank, self.size, self._library = rank, size, library

    def sum(self, *arrays: ArrayLike) -> Sequence[Any]:
        return self._reduced(arrays, self._library.Op.SUM)

    def max(self, *arrays: ArrayLike) -> Sequence[Any]:
        # without this, the maximum of a number and NaN depends on their order
        return self._reduced([np.where(np.isnan(array), np.inf, array) for array in arrays], self._library.Op.MAX)

    def gather(self, value: T) -> list[T]:
        return [self._broadcast(value, root) for root in range(self.size)]

    def agree(self, value: T) -> T:
        return self._broadcast(value, 0)

    def _broadcast(self, value: T, root: int) -> T:
        # in a tuple, as XGBoost cannot send None
        return self._library.broadcast((value,) if self.rank == root else None, root)[0]

    def _reduced(self, values: Sequence[ArrayLike], operation: int) -> list[Any]:
        arrays = [np.asarray(value, np.float64) for value in values]
        if not arrays:
            return []
        flat = self._library.allreduce(np.concatenate([array.ravel() for array in arrays]), operation).ravel()
        parts = np.split(flat, np.cumsum([array.size for array in arrays[:-1]], dtype=int))
        return [part.reshape(array.shape)[()] for part, array in zip(parts, arrays, strict=True)]
