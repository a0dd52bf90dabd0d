"""Threads over independent pieces of work, with results in the order of the pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from numbers import Integral
from threading import Event, RLock, get_ident
from typing import Any, TypeVar

import joblib
from threadpoolctl import OpenBLASController, threadpool_limits

from boostbp.trees import forks, interrupts
from boostbp.trees.disk_arrays import carried

T = TypeVar("T")
R = TypeVar("R")


def count(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` asks for: None is 1, negative counts back from all cores (-1: all).

    The cores are those that this process may use, as scikit-learn counts them: the affinity of the process, the quota
    of its container and ``LOKY_MAX_CPU_COUNT`` bound them.
    """
    if n_jobs is None:
        return 1
    if type(n_jobs) is int and n_jobs > 0:  # which is asked for each row
        return n_jobs
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} is not a number of threads: give 1 or more, or -1 for all cores.")
    return int(n_jobs) if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + int(n_jobs))


def parallel_map(work: Callable[[T], R], pieces: Iterable[T], n_threads: int) -> list[R]:
    """Do `work` on each piece, `n_threads` at a time."""
    pieces = list(pieces)
    n_threads = min(n_threads, len(pieces))
    if n_threads <= 1:
        return [work(piece) for piece in pieces]
    with interrupts.deferred(), Team(n_threads) as team:
        return team.map(work, pieces)


class Team:
    """Threads for several rounds of work, where starting them anew for each would show; one is none but the caller."""

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        self._stop = Event()

    def map(self, work: Callable[[T], R], pieces: Iterable[T]) -> list[R]:
        """Do `work` on each piece, as many at a time as there are threads."""
        if self._pool is None:
            return [work(piece) for piece in pieces]
        work = carried(interrupts.stoppable(work, self._stop))
        return list(map(interrupts.result_of, [self._pool.submit(work, piece) for piece in pieces]))

    def __enter__(self) -> Team:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._pool:
            if kind is not None:
                self._stop.set()
            self._pool.shutdown(cancel_futures=kind is not None)


_lock = forks.through(RLock())
_inside: list[int] = []  # threads that want one thread in BLAS, as often as they asked
_limits: Any = None


def _take_blas() -> None:
    """Let this thread set the number: threadpoolctl 3.8 hears the first one that asked, and no other in silence."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Matrix products on one thread each, for all of the process; also a decorator.

    On several their last bits depend on the number of threads, and with it the model; and on matrices as small as those
    of a layer most threads just wait.
    """
    global _limits
    with _lock:
        if not _inside:
            _take_blas()
            _limits = threadpool_limits(1, "blas")
        _inside.append(get_ident())
    try:
        yield
    finally:
        with _lock:
            _inside.remove(get_ident())
            if not _inside:
                _restore_blas()


def _restore_blas() -> None:
    _take_blas()
    _limits.restore_original_limits()
    _take_blas()  # for whoever asks next


@forks.in_child
def _forget_others() -> None:
    """Of the threads that were inside, a child process has the one that forked."""
    before = len(_inside)
    _inside[:] = [thread for thread in _inside if thread == get_ident()]
    if before and not _inside:
        _restore_blas()
