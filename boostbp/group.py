"""Group: the workers that train one model together, each on rows of its own.

Whatever depends on all rows of a training goes through this one door: ``workers().sum(...)`` and its like. By default a
process is alone, and the door gives back what it is given: a training then is what it would be without it. Within
``joined(group)`` the same code trains on the rows of all workers. The group is found and not passed down, because those
who need it are at the bottom (sums of leaves) or are called through protocols of the user's (steps, losses), while all
that lies between would only hand it on.

Two kinds of numbers go through it. What the model is made of (trees, regressions, gradients, losses) are sums over all
rows. What only sets units, bins and starting points is taken of a sample of the rows that all workers hold alike, by
the code that takes it of a whole table; so it is the same for any number of workers, and that of one machine where the
sample is all rows.

Every worker must ask for the same, in the same order and in the thread that joined: who skips a sum lets the others
wait. So a decision that depends on the rows of one worker, on a clock or on the user's code is made by `agree`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
SAMPLE = 200_000  # rows that bins and units are taken of: quantiles of them are off by a thousandth of the rows


def evenly_spaced(n_rows: int, most: int) -> NDArray[np.int64]:
    """Numbers of at most so many rows, evenly spaced."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.int64)


class Group(ABC):
    """Workers that share out the rows of a table.

    Rows are in one order, whoever holds them: that of the parts that the table was made of, or of the ranks.
    """

    rank: int  # of this worker, from 0
    size: int  # number of workers
    # (rows,): number of the part, ascending, in which each row of this worker lies; None if a worker has one part, that
    # of its rank. The same for all workers: None or not.
    part: NDArray[np.int64] | None = None

    @abstractmethod
    def sum(self, *arrays: Any) -> Sequence[Any]:
        """Sums over the workers of some numbers and arrays of float64, the same bits on each; one message for all."""

    @abstractmethod
    def max(self, *arrays: Any) -> Sequence[Any]:
        """Largest values over the workers, as in `sum`; infinite where one is NaN. The smallest are ``-max(-a)``."""

    @abstractmethod
    def gather(self, value: T) -> list[T]:
        """The values of all workers, by rank: anything that pickle can write."""

    @abstractmethod
    def agree(self, value: T) -> T:
        """The value of rank 0."""

    @property
    def alone(self) -> bool:
        """Whether there is no group: the process trains as it would without one."""
        return False

    def of(self, rows: NDArray[Any]) -> Self:
        """The same workers with some of their rows, by ascending numbers or masks."""
        if self.part is None:
            return self
        group = copy.copy(self)
        group.part = self.part[rows]
        return group

    def with_last(self, n_rows: int) -> Self:
        """The same workers with so many rows more, behind those of all workers, on the last one."""
        if self.part is None:
            return self
        group = copy.copy(self)
        group.part = np.append(self.part, np.full(n_rows, np.iinfo(np.int64).max))
        return group

    def runs(self, n_rows: int) -> tuple[list[tuple[int, int]], int]:
        """Runs of neighbours among this worker's rows, and the number of all rows.

        A run is the number of its first row among all rows, and how many it has.
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

    def numbers(self, n_rows: int) -> tuple[NDArray[np.int64], int]:
        """Numbers of this worker's rows among all rows, ascending, and how many these are."""
        runs, total = self.runs(n_rows)
        return np.concatenate([np.arange(0), *(np.arange(first, first + count) for first, count in runs)]), total

    def chosen(self, n_rows: int, choose: Callable[[int], NDArray[np.integer]]) -> NDArray[np.int64]:
        """Rows of this worker among those that ``choose(number of all rows)`` gives, ascending numbers."""
        runs, total = self.runs(n_rows)
        rows, before = choose(total), 0
        found: list[NDArray[Any]] = [np.arange(0)]
        for first, count in runs:
            found.append(rows[slice(*np.searchsorted(rows, (first, first + count)))] - first + before)
            before += count
        return np.concatenate(found)

    def spaced(self, n_rows: int, most: int) -> NDArray[np.int64]:
        """Rows of this worker that belong to the sample of at most so many of all rows, evenly spaced."""
        return self.chosen(n_rows, lambda total: evenly_spaced(total, most))

    def together(self, *arrays: NDArray[Any]) -> Sequence[NDArray[Any]]:
        """Arrays of this worker's rows as arrays of the rows of all workers, in their order."""
        numbers = () if self.part is None else (self.numbers(len(arrays[0]))[0],)
        arrays = tuple(map(np.concatenate, zip(*self.gather((*arrays, *numbers)), strict=True)))
        if self.part is None:
            return arrays
        order = np.argsort(arrays[-1])
        return [array[order] for array in arrays[:-1]]

    def sample(self, *arrays: NDArray[Any], most: int = SAMPLE) -> Sequence[NDArray[Any]]:
        """Arrays of the same evenly spaced rows, at most so many of all, on every worker; alone, all rows."""
        rows = self.spaced(len(arrays[0]), most)
        return self.of(rows).together(*(array[rows] for array in arrays))


class _Alone(Group):
    """One process with all rows."""

    rank = 0
    size = 1

    def sum(self, *arrays: Any) -> Sequence[Any]:
        return arrays

    max = sum

    def gather(self, value: T) -> list[T]:
        return [value]

    def agree(self, value: T) -> T:
        return value

    @property
    def alone(self) -> bool:
        return True

    def runs(self, n_rows: int) -> tuple[list[tuple[int, int]], int]:
        return [(0, n_rows)], n_rows

    def together(self, *arrays: NDArray[Any]) -> Sequence[NDArray[Any]]:
        return arrays

    def sample(self, *arrays: NDArray[Any], most: int = SAMPLE) -> Sequence[NDArray[Any]]:
        return arrays


ALONE = _Alone()
_current: ContextVar[Group] = ContextVar("group", default=ALONE)


def workers() -> Group:
    """The group that this thread trains in; `ALONE` unless it has joined one."""
    return _current.get()


@contextmanager
def joined(group: Group) -> Iterator[Group]:
    """Train in a group, in this thread."""
    token = _current.set(group)
    try:
        yield group
    finally:
        _current.reset(token)
