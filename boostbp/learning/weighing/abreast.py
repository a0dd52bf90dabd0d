"""Abreast: candidates trained side by side, and what is there of them after an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import chain, islice
from threading import Event, Lock
from typing import TypeVar

from boostbp.learning.weighing.budget import Budget
from boostbp.trees import interrupts

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
    """Run iterators to their end, so many at a time; the first one where this is called.

    Parameters
    ----------
    pieces : iterable of iterators
        What each gives does not depend on the others.
    n_at_once : int
        The caller is one of the threads.
    budget : Budget
        Ended for all of them where one fails or is interrupted.

    Returns
    -------
    found : list
        All that they gave, in their order.
    interrupted : bool
        Whether Ctrl-C ended them; what they had given by then is there.

    Raises
    ------
    BaseException
        What the first one of those that failed raised.
    """
    interrupted, stopped, lock = Event(), Event(), Lock()
    failed: dict[int, BaseException] = {}
    found: dict[int, list[T]] = {}
    numbered = enumerate(pieces)

    def left() -> Iterator[tuple[int, Iterator[T]]]:
        """What nobody has begun."""
        while not stopped.is_set():
            with lock:
                following = next(numbered, None)
            if following is None:
                return
            yield following

    def work(mine: Iterable[tuple[int, Iterator[T]]]) -> None:
        number = -1
        try:
            for number, piece in mine:
                given = found[number] = []
                for each in piece:
                    given.append(each)
                    if stopped.is_set():
                        return
        except KeyboardInterrupt:
            interrupted.set()
            stop()
        except BaseException as error:
            failed[number] = error
            stop()

    def stop() -> None:
        stopped.set()
        budget.end()

    try:
        with interrupts.held(), ThreadPoolExecutor(max(1, n_at_once - 1)) as others:
            try:
                mine = left()
                first = list(islice(mine, 1))
                working = [others.submit(work, left()) for _ in range(n_at_once - 1)]
                work(chain(first, mine))
                wait(working)
            except BaseException:  # of a handler of the user's, while the caller waits for the others
                stop()
                raise
    except KeyboardInterrupt:
        interrupted.set()
    if failed:
        raise failed[min(failed)]
    return [each for number in sorted(found) for each in found[number]], interrupted.is_set()


def later(work: Callable[[], T]) -> Iterator[T]:
    """One result, worked out when it is asked for."""
    yield work()
