"""Forks: a child process begins with free locks, and without the threads that only its parent has.

A fork copies the memory of all threads but runs only the one that forked. A lock that another thread held would stay
locked in the child for ever, and GNU OpenMP, on which LightGBM, XGBoost and scikit-learn run their threads, would wait
there for threads that do not exist (LightGBM#1789, xgboost#7044). So forking waits until locks are free, and ends the
OpenMP threads of the thread that forks, which are started again when they are needed, in the parent as in the child.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

_SOFT = 1  # omp_pause_soft of OpenMP 5.0: threads end, settings stay
_left = False  # whether the last fork could not end all threads of OpenMP
_alone = False  # whether this process is the child of such a fork


def through(lock: Any) -> Any:
    """Let forks wait until nobody holds a lock; returns it.

    Parameters
    ----------
    lock : RLock or Condition on one
        Held for moments only, and never while waiting for another such lock.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def in_child(function: Callable[[], None]) -> Callable[[], None]:
    """Call a function in each child process after a fork; also a decorator."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


def native_threads(n_threads: int) -> int:
    """How many of so many threads a library may use here: one, if it would wait for threads of the parent's."""
    return 1 if _alone else n_threads


def _end_openmp() -> None:
    """End the OpenMP threads that work for this thread; versions of GNU OpenMP before 5.0 cannot."""
    global _left
    libraries = [library for library in ThreadpoolController().lib_controllers if library.prefix == "libgomp"]
    pauses = [getattr(library.dynlib, "omp_pause_resource_all", None) for library in libraries]
    _left = any(pause is None or pause(_SOFT) != 0 for pause in pauses)


def _limit_openmp() -> None:
    global _alone
    _alone = _alone or _left
    if _alone:
        threadpool_limits(1, "openmp")  # of libraries that do not ask how many


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_openmp, after_in_child=_limit_openmp)
