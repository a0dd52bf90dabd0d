"""Threads over independent pieces of work, with results in the order of the pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from threading import Event
from typing import TypeVar

import joblib

from boostbp.runtime import interrupts
from boostbp.runtime.disk_arrays import with_disk_arrays

T = TypeVar("T")
R = TypeVar("R")


def count(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` asks for: None is 1, negative counts back from all cores (-1: all).

    The cores are those that this process may use, as scikit-learn counts them: the affinity of the process, the quota
    of its container and ``LOKY_MAX_CPU_COUNT`` bound them.
    """
    if n_jobs is None:
        return 1
    if type(n_jobs) is int and n_jobs > 0:  # the usual case first: predictions of single rows ask each time
        return n_jobs
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} is not a number of threads: give 1 or more, or -1 for all cores.")
    return int(n_jobs) if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + int(n_jobs))


def parallel_map(work: Callable[[T], R], pieces: Iterable[T], n_threads: int) -> list[R]:
    """Do `work` on each piece, `n_threads` at a time."""
    pieces = list(pieces)
    n_threads = min(n_threads, len(pieces))
    if n_threads <= 1:
        return list(map(work, pieces))
    with interrupts.deferred(), Team(n_threads) as team:
        return team.map(work, pieces)


class Team:
    """Threads that last for several rounds of work, as starting them costs time; a team of one is the caller."""

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        self._stop = Event()

    def map(self, work: Callable[[T], R], pieces: Iterable[T]) -> list[R]:
        """Do `work` on each piece, as many at a time as there are threads."""
        if self._pool is None:
            return [work(piece) for piece in pieces]
        work = with_disk_arrays(interrupts.stoppable(work, self._stop))
        return list(map(interrupts.result_of, [self._pool.submit(work, piece) for piece in pieces]))

    def stop(self) -> None:
        """End the work of all threads at their next `interrupts.check`."""
        self._stop.set()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._pool:
            if kind is not None:
                self.stop()
            self._pool.shutdown(cancel_futures=kind is not None)


def run_tasks(
    tasks: Mapping[str, Callable[[], T]],
    n_at_once: int,
    results: dict[str, T],
    *,
    on_stop: Callable[[], object],
    interrupt_of: Callable[[T], KeyboardInterrupt | None] = lambda result: None,
) -> KeyboardInterrupt | None:
    """Run independent tasks in their order, `n_at_once` at a time; keep the results that are there after Ctrl-C.

    Each task adds its result under its name, also before an interrupt. `on_stop` is called when a task fails or is
    interrupted, to end the others sooner. `interrupt_of` returns what ended the work of a result before its time; None
    if it is complete. Returns the Ctrl-C that ended the tasks, if one did, and raises the error of the first task, in
    their order, that failed.
    """
    stopped = Event()
    received: list[KeyboardInterrupt] = []
    failed: dict[str, BaseException] = {}
    team = Team(n_at_once)

    def stop() -> None:
        stopped.set()
        team.stop()
        on_stop()

    def run(name: str) -> None:
        if stopped.is_set():
            return
        try:
            result = results[name] = tasks[name]()
            interrupt = interrupt_of(result)
            if interrupt is not None:
                raise interrupt
            interrupts.check()
        except interrupts.Stopped:
            pass
        except KeyboardInterrupt as interrupt:
            received.append(interrupt)
            stop()
        except BaseException as error:
            failed[name] = error
            stop()

    try:
        with interrupts.deferred(), team:
            try:
                team.map(run, tasks)
            except BaseException:  # from the handler of Ctrl-C, while this thread waits for the others
                stop()
                raise
    except KeyboardInterrupt as interrupt:
        received.append(interrupt)
    for name in tasks:
        if name in failed:
            raise failed[name]
    return received[0] if received else None
