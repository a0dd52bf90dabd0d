"""Group: the workers that train one model together, each on its own rows.

All numbers that depend on all rows of a training go through the group, such as ``workers().sum(...)``. By default the
group is a single process, which returns its input. Within ``training_in(group)`` the same code trains on the rows of
all workers. The group is looked up with `workers`, not passed as an argument: code that needs it is at the bottom (sums
of leaves) or behind protocols of the user (steps, losses), and all code between would only pass it on.

Two kinds of numbers go through the group. The parts of the model (trees, regressions, gradients, losses) depend on sums
over all rows. Units, bins and starting points are computed from a sample of the rows, which is the same on all workers.
So they are the same for any number of workers, and equal those of one machine if the sample is all rows.

All workers must make the same calls, in the same order and in the thread that trains: if a worker skips a sum, the
others wait. So a decision that depends on the rows of one worker, on a clock or on the user's code must go through
`agree`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")
# Size of the sample for bins and units. The standard error of its quantiles is a thousandth of the rows.
SAMPLE = 200_000


def evenly_spaced(n_rows: int, most: int) -> NDArray[np.int64]:
    """Return the numbers of at most `most` rows, evenly spaced."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.int64)


class Group(ABC):
    """Workers, each with some rows of a table, whose order is that of its parts, or of the ranks."""

    rank: int  # number of this worker, from 0
    size: int  # number of workers
    is_single: ClassVar[bool] = False  # whether the process trains alone
    # (rows,): number of the part of each row of this worker, ascending; None, on all workers, if each worker has one
    # part, with its rank as number
    part: NDArray[np.int64] | None = None

    @abstractmethod
    def sum(self, *arrays: ArrayLike) -> Sequence[Any]:
        """Return sums over the workers of numbers and float64 arrays, in one message, with the same bits on each."""

    @abstractmethod
    def max(self, *arrays: ArrayLike) -> Sequence[Any]:
        """Return the largest values over the workers, infinite if one is NaN; the smallest are ``-max(-a)``."""

    @abstractmethod
    def gather(self, value: T) -> list[T]:
        """Return the values of all workers by rank; they may be any objects that can be pickled."""

    @abstractmethod
    def agree(self, value: T) -> T:
        """Return the value of rank 0."""

    def select_rows(self, rows: NDArray[Any]) -> Self:
        """Return the same workers with some of their rows, given by ascending numbers or a mask."""
        return self if self.part is None else self._with(self.part[rows])

    def append_rows(self, n_rows: int) -> Self:
        """Return the same workers with `n_rows` more rows at the end of this one; it is 0 except on the last worker."""
        last = np.full(n_rows, np.iinfo(np.int64).max)
        return self if self.part is None else self._with(np.append(self.part, last))

    def _with(self, part: NDArray[np.int64]) -> Self:
        group = copy.copy(self)
        group.part = part
        return group

    def row_runs(self, n_rows: int) -> tuple[list[tuple[int, int]], int]:
        """Return the runs of successive rows of this worker, and the number of all rows.

        A run is given by the number of its first row among all rows, and its length.
        """
        if self.part is None:
            counts = self.gather(n_rows)
            return [(sum(counts[: self.rank]), n_rows)], sum(counts)
        assert len(self.part) == n_rows, f"{n_rows} rows in parts of {len(self.part)}"
        parts, sizes = (numbers.tolist() for numbers in np.unique(self.part, return_counts=True))
        held = list(zip(parts, sizes, strict=True))
        first, total = {}, 0
        for part, size in sorted(pair for pairs in self.gather(held) for pair in pairs):
            first[part] = total
            total += size
        return [(first[part], size) for part, size in held], total

    def row_numbers(self, n_rows: int) -> tuple[NDArray[np.int64], int]:
        """Return the numbers of this worker's rows among all rows, ascending, and the number of all rows."""
        runs, total = self.row_runs(n_rows)
        return np.concatenate([np.arange(0), *(np.arange(first, first + count) for first, count in runs)]), total

    def choose_rows(self, n_rows: int, choose: Callable[[int], NDArray[np.integer]]) -> NDArray[np.int64]:
        """Return the rows of this worker among the ascending numbers ``choose(number of all rows)``."""
        runs, total = self.row_runs(n_rows)
        rows, before = choose(total), 0
        chosen: list[NDArray[Any]] = [np.arange(0)]
        for first, count in runs:
            chosen.append(rows[slice(*np.searchsorted(rows, (first, first + count)))] - first + before)
            before += count
        return np.concatenate(chosen)

    def sampled_rows(self, n_rows: int, most: int) -> NDArray[np.int64]:
        """Return the rows of this worker in an evenly spaced sample of at most `most` of all rows."""
        return self.choose_rows(n_rows, lambda total: evenly_spaced(total, most))

    def allgather_rows(self, *arrays: NDArray[Any]) -> Sequence[NDArray[Any]]:
        """Return the concatenation of arrays of all workers' rows, in the order of all rows."""
        numbers = () if self.part is None else (self.row_numbers(len(arrays[0]))[0],)
        arrays = tuple(map(np.concatenate, zip(*self.gather((*arrays, *numbers)), strict=True)))
        if self.part is None:
            return arrays
        order = np.argsort(arrays[-1])
        return [array[order] for array in arrays[:-1]]

    def sample(self, *arrays: NDArray[Any], most: int = SAMPLE) -> Sequence[NDArray[Any]]:
        """Return arrays of at most `most` evenly spaced rows, the same on all workers; all rows of a single process."""
        rows = self.sampled_rows(len(arrays[0]), most)
        return self.select_rows(rows).allgather_rows(*(array[rows] for array in arrays))


class _SingleProcess(Group):
    """A process with all rows."""

    rank = 0
    size = 1
    is_single = True

    def sum(self, *arrays: ArrayLike) -> Sequence[Any]:
        return arrays

    max = sum

    def gather(self, value: T) -> list[T]:
        return [value]

    def agree(self, value: T) -> T:
        return value

    def allgather_rows(self, *arrays: NDArray[Any]) -> Sequence[NDArray[Any]]:
        return arrays

    def sample(self, *arrays: NDArray[Any], most: int = SAMPLE) -> Sequence[NDArray[Any]]:
        return arrays


SINGLE_PROCESS = _SingleProcess()
_current: ContextVar[Group] = ContextVar("group", default=SINGLE_PROCESS)


def workers() -> Group:
    """Return the group of this thread; by default `SINGLE_PROCESS`."""
    return _current.get()


@contextmanager
def training_in(group: Group) -> Iterator[Group]:
    """Set the group of this thread within the block."""
    token = _current.set(group)
    try:
        yield group
    finally:
        _current.reset(token)
