"""Workers that are threads of one process: a group without a network, and a backend that grows on the rows of all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

import numpy as np
from limits import HANGS

from boostbp import backends
from boostbp.backends.capabilities import Capabilities
from boostbp.runtime.group import SINGLE_PROCESS, Group, training_in, workers
from boostbp.trees.sparse import Table

PATIENCE = HANGS  # seconds after which a worker that waits for another one gives up, and fails


class Threads(Group):
    """One of some threads that meet at each question."""

    def __init__(self, rank, size, barrier, answers):
        self.rank, self.size, self.barrier, self.answers = rank, size, barrier, answers
        self.messages = 0

    def gather(self, value):
        self.messages += 1
        self.answers[self.rank] = value
        self.barrier.wait(PATIENCE)
        found = list(self.answers)
        self.barrier.wait(PATIENCE)
        return found

    def sum(self, *arrays):
        return [np.sum(np.stack(parts), axis=0)[()] for parts in zip(*self.gather(arrays), strict=True)]

    def max(self, *arrays):
        return [np.max(np.stack(parts), axis=0)[()] for parts in zip(*self.gather(arrays), strict=True)]

    def agree(self, value):
        return self.gather(value)[0]


def shares(n_rows, size):
    """The rows of each worker, of different numbers."""
    ends = [n_rows * k * (k + 1) // (size * (size + 1)) for k in range(size + 1)]
    return [slice(*ends[k : k + 2]) for k in range(size)]


def in_group(size, work, *arrays, n_parts=None):
    """``work(*arrays)`` of each worker, on its rows of the arrays, by rank; a block of them, or parts."""
    barrier, answers, n_rows = Barrier(size), [None] * size, len(arrays[0])
    part = None if n_parts is None else np.arange(n_rows) * n_parts // n_rows
    held = shares(n_rows, size) if part is None else [np.flatnonzero(7 * part % 5 % size == k) for k in range(size)]

    def run(rank, rows):
        group = Threads(rank, size, barrier, answers)
        group.part = None if part is None else part[rows]
        try:
            with training_in(group):
                return work(*(array[rows] for array in arrays))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(run, rank, rows) for rank, rows in enumerate(held)]
    failures = [future.exception() for future in futures if future.exception() is not None]
    for failure in sorted(failures, key=lambda failure: type(failure).__name__ == "BrokenBarrierError"):
        raise failure
    return [future.result() for future in futures]


@dataclass(frozen=True)
class Everywhere:
    """A backend whose growers gather the rows of all workers, and grow on them what one machine would."""

    name: str = "xgboost"
    capabilities = Capabilities(missing=True, categories=True, deterministic=True)

    def bind(self, table, growth):
        [X] = workers().allgather_rows(table.X)
        with training_in(SINGLE_PROCESS):
            return Gathered(backends.load_backend(self.name).bind(Table(X, table.categorical), growth))


@dataclass
class Gathered:
    grower: object

    def grow(self, grad, hess):
        everything = workers().allgather_rows(np.ascontiguousarray(grad), np.ascontiguousarray(hess))
        with training_in(SINGLE_PROCESS):
            return self.grower.grow(*everything)

    def fork(self, outputs, seed):
        return Gathered(self.grower.fork(outputs, seed))
