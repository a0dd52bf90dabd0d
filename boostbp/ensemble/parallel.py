"""Parallel tasks, whose results survive an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import TypeVar

from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget
from boostbp.trees import interrupts

T = TypeVar("T")


def n_parallel(n_rows: int, n_threads: int) -> int:
    """Return how many candidates to train at a time."""
    return min(n_threads, constants.MAX_PARALLEL) if n_rows < constants.MAX_PARALLEL_ROWS else 1


def run_tasks(
    tasks: Mapping[str, Callable[[], T]],
    n_at_once: int,
    budget: Budget,
    results: dict[str, T],
    *,
    interrupt_of: Callable[[T], KeyboardInterrupt | None] = lambda result: None,
) -> KeyboardInterrupt | None:
    """Run tasks in their order, several at a time; the first one runs in the calling thread.

    Parameters
    ----------
    tasks : dict of str to callable
        ``task() -> result``; none depends on another.
    n_at_once : int
        Number of threads, the caller's included.
    budget : Budget
        Ended for all tasks when one fails or is interrupted.
    results : dict
        Receives the result of each task by name, also of those that ended before an interrupt.
    interrupt_of : callable
        Returns the interrupt that cut a result short, or None.

    Returns
    -------
    KeyboardInterrupt or None
        The interrupt that ended the tasks, if one came.

    Raises
    ------
    BaseException
        The error of the first task, in their order, that failed.
    """
    waiting, lock, stopped = list(tasks), Lock(), Event()
    interrupted: list[KeyboardInterrupt] = []
    failed: dict[int, BaseException] = {}

    def take() -> str | None:
        """Return the name of the next task, or None."""
        with lock:
            return waiting.pop(0) if waiting and not stopped.is_set() else None

    def work(name: str | None) -> None:
        """Do a task, and others until none is waiting."""
        try:
            while name is not None:
                result = results[name] = tasks[name]()
                interrupt = interrupt_of(result)
                if interrupt is not None:
                    raise interrupt
                interrupts.check()
                name = take()
        except interrupts.Stopped:
            pass
        except KeyboardInterrupt as interrupt:
            interrupted.append(interrupt)
            stop()
        except BaseException as error:
            failed[len(tasks) if name is None else list(tasks).index(name)] = error
            stop()

    def stop() -> None:
        stopped.set()
        budget.ended = True

    try:
        with interrupts.deferred(), ThreadPoolExecutor(max(1, n_at_once - 1)) as others:
            try:
                first = take()
                other = interrupts.stoppable(work, stopped)
                futures = [others.submit(other, take()) for _ in range(n_at_once - 1)]
                work(first)
                for future in futures:
                    interrupts.result_of(future)
            except BaseException:  # raised by a signal's handler while the caller waits
                stop()
                raise
    except KeyboardInterrupt as interrupt:
        interrupted.append(interrupt)
    if failed:
        raise failed[min(failed)]
    return interrupted[0] if interrupted else None
