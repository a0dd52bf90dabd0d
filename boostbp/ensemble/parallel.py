"""Parallel tasks, and what is there of them after an interrupt."""

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
    """Return how many candidates are best trained at a time."""
    return min(n_threads, constants.MAX_PARALLEL) if n_rows < constants.MAX_PARALLEL_ROWS else 1


def run_tasks(
    tasks: Mapping[str, Callable[[], T]],
    n_at_once: int,
    budget: Budget,
    results: dict[str, T],
    *,
    interrupt_of: Callable[[T], KeyboardInterrupt | None] = lambda result: None,
) -> KeyboardInterrupt | None:
    """Run tasks, so many at a time, in their order; the first one in the thread that calls this.

    Parameters
    ----------
    tasks : dict of str to callable
        ``task() -> result``; none depends on another.
    n_at_once : int
        The caller is one of the threads.
    budget : Budget
        Ended for all of them where one fails or is interrupted.
    results : dict
        Each task adds its result by its name, also before an interrupt.
    interrupt_of : callable
        What ended the work of a result before its time.

    Returns
    -------
    KeyboardInterrupt or None
        What ended the tasks, if that is Ctrl-C.

    Raises
    ------
    BaseException
        What the first one of those that failed raised.
    """
    waiting, lock, stopped = list(tasks), Lock(), Event()
    came: list[KeyboardInterrupt] = []
    failed: dict[int, BaseException] = {}

    def take() -> str | None:
        """Name of the next task; None if there is none."""
        with lock:
            return waiting.pop(0) if waiting and not stopped.is_set() else None

    def work(name: str | None) -> None:
        """Do a task, and others until nothing is left to begin."""
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
            came.append(interrupt)
            stop()
        except BaseException as error:
            failed[len(tasks) if name is None else list(tasks).index(name)] = error
            stop()

    def stop() -> None:
        stopped.set()
        budget.end()

    try:
        with interrupts.deferred(), ThreadPoolExecutor(max(1, n_at_once - 1)) as others:
            try:
                first = take()
                other = interrupts.stoppable(work, stopped)
                working = [others.submit(other, take()) for _ in range(n_at_once - 1)]
                work(first)
                for each in working:
                    interrupts.result_of(each)
            except BaseException:  # of a signal's handler, while the caller waits for the others
                stop()
                raise
    except KeyboardInterrupt as interrupt:
        came.append(interrupt)
    if failed:
        raise failed[min(failed)]
    return came[0] if came else None
