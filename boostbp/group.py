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

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
SAMPLE = 200_000  # rows that bins and units are taken of: quantiles of them are off by a thousandth of the rows


def evenly_spaced(n_rows: int, most: int) -> NDArray[np.int64]:
    """Numbers of at most so many rows, evenly spaced."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.int64)


class Group(ABC):
    """Workers that hold the rows of a table, one block each, in the order of their ranks.

    Attributes
    ----------
    rank : int
        Of this worker, from 0.
    size : int
        Number of workers.
    """

    rank: int
    size: int

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

    def place(self, n_rows: int) -> tuple[int, int]:
        """Number of this worker's first row among all rows, and how many these are."""
        counts = self.gather(n_rows)
        return sum(counts[: self.rank]), sum(counts)

    def spaced(self, n_rows: int, most: int) -> NDArray[np.int64]:
        """Rows of this worker that belong to the sample of at most so many of all rows, evenly spaced."""
        first, total = self.place(n_rows)
        rows = evenly_spaced(total, most) - first
        return rows[(rows >= 0) & (rows < n_rows)]

    def together(self, *arrays: NDArray[Any]) -> Sequence[NDArray[Any]]:
        """Arrays whose rows are those of all workers."""
        parts = self.gather(arrays)
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def sample(self, *arrays: NDArray[Any], most: int = SAMPLE) -> Sequence[NDArray[Any]]:
        """Arrays of the same evenly spaced rows, at most so many of all, on every worker; alone, all rows."""
        rows = self.spaced(len(arrays[0]), most)
        return self.together(*(array[rows] for array in arrays))


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

    def place(self, n_rows: int) -> tuple[int, int]:
        return 0, n_rows

    def spaced(self, n_rows: int, most: int) -> NDArray[np.int64]:
        return evenly_spaced(n_rows, most)

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
