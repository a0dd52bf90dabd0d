"""Parallel candidates: trained side by side, and what is there of them after an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from threading import Event, Lock
from typing import TypeVar

from boostbp.ensemble.budget import Budget
from boostbp.trees import interrupts

__all__ = ["at_once", "lazily", "run_parallel", "waves_left"]

T = TypeVar("T")
# Few rows keep few threads busy, for much of a fit is Python; for the same reason more than three candidates at a time
# would wait for each other. With many rows one uses all threads by itself, and takes less memory alone.
MOST_AT_ONCE, MOST_ROWS = 3, 20_000


def at_once(n_rows: int, n_threads: int) -> int:
    """How many candidates are best trained at a time."""
    return min(n_threads, MOST_AT_ONCE) if n_rows < MOST_ROWS else 1


def waves_left(n_pieces: int, number: int, n_at_once: int) -> int:
    """How many turns there are from the piece with this number on, if so many run at a time."""
    return -(-(n_pieces - number) // n_at_once)


def run_parallel(
    pieces: Iterable[Iterator[T]], n_at_once: int, budget: Budget
) -> tuple[list[T], KeyboardInterrupt | None]:
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
    interrupt : KeyboardInterrupt or None
        What ended them, if that is Ctrl-C; what they had given by then is there.

    Raises
    ------
    BaseException
        What the first one of those that failed raised.
    """
    stopped, lock = Event(), Lock()
    came: list[KeyboardInterrupt] = []
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
                    interrupts.check()
                    if stopped.is_set():
                        return
        except interrupts.Stopped:
            pass
        except KeyboardInterrupt as interrupt:
            came.append(interrupt)
            stop()
        except BaseException as error:
            failed[number] = error
            stop()

    def stop() -> None:
        stopped.set()
        budget.end()

    try:
        with interrupts.deferred(), ThreadPoolExecutor(max(1, n_at_once - 1)) as others:
            try:
                mine = left()
                first = list(islice(mine, 1))
                other = interrupts.stoppable(work, stopped)
                working = [others.submit(other, left()) for _ in range(n_at_once - 1)]
                work(chain(first, mine))
                for each in working:
                    interrupts.result_of(each)
            except BaseException:  # of a signal's handler, while the caller waits for the others
                stop()
                raise
    except KeyboardInterrupt as interrupt:
        came.append(interrupt)
    if failed:
        raise failed[min(failed)]
    return [each for number in sorted(found) for each in found[number]], came[0] if came else None


def lazily(work: Callable[[], T]) -> Iterator[T]:
    """One result, worked out when it is asked for."""
    yield work()
