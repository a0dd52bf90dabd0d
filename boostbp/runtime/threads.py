"""Threads for independent pieces of work, with results in the order of the pieces, and threads of native libraries.

After a fork, GNU OpenMP (LightGBM, XGBoost, scikit-learn) would wait in the child for threads that do not exist
(LightGBM#1789, xgboost#7044). So a fork ends those of the forking thread; both processes start new ones on demand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from threading import Event, RLock, get_ident
from typing import TypeVar

import joblib
from threadpoolctl import OpenBLASController, ThreadpoolController, threadpool_limits

from boostbp.runtime import checks, interrupts
from boostbp.runtime.interrupts import after_fork, fork_safe

T = TypeVar("T")
R = TypeVar("R")


def count(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None is 1, and negative numbers count from all cores (-1: all).

    Cores are counted as in scikit-learn: those that the affinity of the process, the quota of its container and
    ``LOKY_MAX_CPU_COUNT`` allow.
    """
    if n_jobs is None:
        return 1
    if type(n_jobs) is int and n_jobs > 0:  # the usual case is fast, as each prediction of a single row calls this
        return n_jobs
    if not checks.is_whole(n_jobs) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} is not a number of threads: give 1 or more, or -1 for all cores.")
    return int(n_jobs) if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + int(n_jobs))


def parallel_map(work: Callable[[T], R], pieces: Iterable[T], n_threads: int) -> list[R]:
    """Return the results of `work` for each piece, `n_threads` at a time."""
    pieces = list(pieces)
    n_threads = min(n_threads, len(pieces))
    if n_threads <= 1:
        return [work(piece) for piece in pieces]
    with interrupts.deferred(), Team(n_threads) as team:
        return team.map(work, pieces)


class Team:
    """Threads for several rounds of work, as starting them takes time. A team of one thread is the caller itself."""

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        self._stop = Event()

    def map(self, work: Callable[[T], R], pieces: Iterable[T]) -> list[R]:
        """Return the results of `work` for each piece, as many at a time as there are threads."""
        if self._pool is None:
            return [work(piece) for piece in pieces]
        context = copy_context()  # of the caller: the group, the clock, large arrays on disk
        context.run(interrupts.add_stop, self._stop)
        futures = [self._pool.submit(context.copy().run, work, piece) for piece in pieces]
        return [interrupts.result_of(future) for future in futures]

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


def run_tasks(tasks: Sequence[Callable[[], object]], n_at_once: int) -> None:
    """Run independent tasks in order, `n_at_once` at a time.

    If a task fails or Ctrl-C comes, the others end at their next `interrupts.check`. Raises the error of the first
    task, in order, that failed, or the KeyboardInterrupt.
    """
    if n_at_once <= 1 or len(tasks) <= 1:
        with interrupts.deferred():
            for task in tasks:
                task()
                interrupts.check()
        return
    received: list[KeyboardInterrupt] = []
    failed: dict[int, BaseException] = {}
    team = Team(min(n_at_once, len(tasks)))

    def run(number: int) -> None:
        if failed or received:
            return
        try:
            tasks[number]()
            interrupts.check()
        except interrupts.Stopped:
            return
        except KeyboardInterrupt as interrupt:
            received.append(interrupt)
        except BaseException as error:
            failed[number] = error
        else:
            return
        team.stop()

    try:
        with interrupts.deferred(), team:
            team.map(run, range(len(tasks)))
            if not failed:  # a flag of this thread may have ended the tasks, rather than that of the team
                interrupts.check()
    except KeyboardInterrupt as interrupt:  # came while this thread waited
        received.append(interrupt)
    if failed:
        raise failed[min(failed)]
    if received:
        raise received[0]


_SOFT = 1  # omp_pause_soft of OpenMP 5.0: threads end, settings stay
_openmp_stayed = False  # whether the last fork could not end all threads of OpenMP
_openmp_hangs = False  # whether this process is the child of such a fork


def usable_threads(n_threads: int) -> int:
    """Return how many of `n_threads` a library may use: one if it would wait for threads of the parent process."""
    return 1 if _openmp_hangs else n_threads


def _end_openmp() -> None:
    """End the OpenMP threads of this thread, which GNU OpenMP supports from version 5.0 on."""
    global _openmp_stayed
    libraries = [library for library in ThreadpoolController().lib_controllers if library.prefix == "libgomp"]
    pauses = [getattr(library.dynlib, "omp_pause_resource_all", None) for library in libraries]
    _openmp_stayed = any(pause is None or pause(_SOFT) != 0 for pause in pauses)


def _limit_openmp() -> None:
    global _openmp_hangs
    _openmp_hangs = _openmp_hangs or _openmp_stayed
    if _openmp_hangs:
        threadpool_limits(1, "openmp")  # for libraries that do not call `usable_threads`


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_openmp, after_in_child=_limit_openmp)

_lock = fork_safe(RLock())
_blas_users: list[int] = []  # threads inside `single_threaded_blas`, once for each entry
_blas_limits: threadpool_limits | None = None


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Use one thread for each matrix product, in the whole process; also a decorator.

    With several threads, which are no faster for small matrices, the last bits of a model would depend on their number.
    """
    global _blas_limits
    with _lock:
        if not _blas_users:
            _control_blas()
            _blas_limits = threadpool_limits(1, "blas")
        _blas_users.append(get_ident())
    try:
        yield
    finally:
        with _lock:
            _blas_users.remove(get_ident())
            if not _blas_users:
                _restore_blas()


def _control_blas() -> None:
    """Let any thread set the number of threads, as threadpoolctl 3.8 ignores all but the first thread that did."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def _restore_blas() -> None:
    assert _blas_limits is not None
    _control_blas()
    _blas_limits.restore_original_limits()
    _control_blas()  # for the next thread that sets it


@after_fork
def _forget_other_users() -> None:
    """Remove other threads than the forking one from the users of `single_threaded_blas` in a child process."""
    n_users = len(_blas_users)
    _blas_users[:] = [thread for thread in _blas_users if thread == get_ident()]
    if n_users and not _blas_users:
        _restore_blas()
