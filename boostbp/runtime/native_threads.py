"""Threads of native libraries: OpenMP and BLAS, and what a fork leaves of them and of locks.

A fork copies the memory of all threads but runs only the one that forked. A lock that another thread held would stay
locked in the child for ever, and GNU OpenMP, on which LightGBM, XGBoost and scikit-learn run their threads, would wait
there for threads that do not exist (LightGBM#1789, xgboost#7044). So a fork waits until locks are free and ends the
OpenMP threads of the forking thread; parent and child start new ones when they need them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import Protocol, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController, threadpool_limits


class Lock(Protocol):
    """A lock that the thread which holds it may acquire again: an RLock, or a Condition on one."""

    def acquire(self) -> object:
        """Take the lock."""

    def release(self) -> object:
        """Give the lock back."""


L = TypeVar("L", bound=Lock)
_SOFT = 1  # omp_pause_soft of OpenMP 5.0: threads end, settings stay
_openmp_stayed = False  # whether the last fork could not end all threads of OpenMP
_openmp_hangs = False  # whether this process is the child of such a fork


def fork_safe(lock: L) -> L:
    """Let forks wait until nobody holds a lock; return the lock.

    Hold it for moments only, and never while waiting for another such lock.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def after_fork(function: Callable[[], None]) -> Callable[[], None]:
    """Call a function in each child process after a fork; also a decorator."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


def usable_threads(n_threads: int) -> int:
    """Return how many of `n_threads` a library may use: one where it would wait for threads of the parent process."""
    return 1 if _openmp_hangs else n_threads


def _end_openmp() -> None:
    """End the OpenMP threads that work for this thread; versions of GNU OpenMP before 5.0 cannot."""
    global _openmp_stayed
    libraries = [library for library in ThreadpoolController().lib_controllers if library.prefix == "libgomp"]
    pauses = [getattr(library.dynlib, "omp_pause_resource_all", None) for library in libraries]
    _openmp_stayed = any(pause is None or pause(_SOFT) != 0 for pause in pauses)


def _limit_openmp() -> None:
    global _openmp_hangs
    _openmp_hangs = _openmp_hangs or _openmp_stayed
    if _openmp_hangs:
        threadpool_limits(1, "openmp")  # for libraries that do not ask for `usable_threads`


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_openmp, after_in_child=_limit_openmp)

_lock = fork_safe(RLock())
_blas_users: list[int] = []  # threads inside `single_threaded_blas`, each as often as it entered
_blas_limits: threadpool_limits | None = None


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Use one thread for each matrix product, in the whole process; also a decorator.

    With several, the last bits of a product depend on their number, and so would the model. On matrices as small as
    those of a layer most threads would only wait.
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
    """Let any thread set the number of threads: threadpoolctl 3.8 ignores all but the first thread that did."""
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
    """Keep of the threads inside `single_threaded_blas` the one that forked: a child process has no other."""
    n_users = len(_blas_users)
    _blas_users[:] = [thread for thread in _blas_users if thread == get_ident()]
    if n_users and not _blas_users:
        _restore_blas()
