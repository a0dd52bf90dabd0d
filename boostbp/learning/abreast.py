"""Abreast: candidates trained side by side, and what is there of them after an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import TypeVar

from boostbp.learning.budget import Budget
from boostbp.trees import interrupts
from boostbp.trees.threads import Team

__all__ = ["abreast", "at_once", "later", "turns_left"]

T = TypeVar("T")
# Few rows keep few threads busy, for much of a fit is Python; for the same reason more than three candidates at a time
# would wait for each other. With many rows one uses all threads by itself, and takes less memory alone.
MOST_AT_ONCE, MOST_ROWS = 3, 20_000


def at_once(n_rows: int, n_threads: int) -> int:
    """How many candidates are best trained at a time."""
    return min(n_threads, MOST_AT_ONCE) if n_rows < MOST_ROWS else 1


def turns_left(n_pieces: int, number: int, n_at_once: int) -> int:
    """How many turns there are from the piece with this number on, if so many run at a time."""
    return -(-(n_pieces - number) // n_at_once)


def abreast(pieces: Iterable[Iterator[T]], n_at_once: int, budget: Budget) -> tuple[list[T], bool]:
    """Run iterators to their end, so many at a time.

    Parameters
    ----------
    pieces : iterable of iterators
        What each gives does not depend on the others.
    n_at_once : int
    budget : Budget
        Ended for all of them where one fails.

    Returns
    -------
    found : list
        All that they gave, in their order.
    interrupted : bool
        Whether Ctrl-C ended them; what they had given by then is there.

    Raises
    ------
    BaseException
        What the first one to fail raised.
    """
    interrupted, failed = Event(), []
    found: dict[int, list[T]] = {}

    def run(numbered: tuple[int, Iterator[T]]) -> None:
        number, piece = numbered
        given = found[number] = []
        try:
            while not interrupted.is_set():
                given.append(next(piece))
        except StopIteration:
            pass
        except KeyboardInterrupt:
            interrupted.set()
        except BaseException as error:
            failed.append(error)
            stop()

    def stop() -> None:
        interrupted.set()
        budget.end()

    try:
        with interrupts.held(), Team(n_at_once) as team:
            try:
                team.spread(run, enumerate(pieces))
            except BaseException:  # raised here by a handler of the user's: let those stop that the team waits for
                stop()
                raise
    except KeyboardInterrupt:
        interrupted.set()
    if failed:
        raise failed[0]
    return [each for number in sorted(found) for each in found[number]], interrupted.is_set()


def later(work: Callable[[], T]) -> Iterator[T]:
    """One result, worked out when it is asked for."""
    yield work()
