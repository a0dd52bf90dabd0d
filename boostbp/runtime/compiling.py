"""Compiling: tell listeners when a loop is compiled, and stop the clock meanwhile.

A loop is compiled when it is first called, once on a machine for each release of the package. This is not part of the
work of a fit: time limits and estimates read `working_time`, so a model does not depend on what was compiled before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from boostbp.runtime.native_threads import after_fork, fork_safe

_lock = fork_safe(threading.RLock())
_depth = 0  # compilations that run, or wait for another one
_since = 0.0  # start of the first of them, by time.perf_counter
_seconds = 0.0  # taken by all finished ones
_listeners: list[Callable[[str], object]] = []


def working_time() -> float:
    """Return the seconds of `time.perf_counter` in which this process compiled nothing."""
    with _lock:
        return (_since if _depth else time.perf_counter()) - _seconds


@contextmanager
def compiling() -> Iterator[None]:
    """Count the time of this block as time in which a loop is compiled or loaded."""
    global _depth, _since, _seconds
    with _lock:
        if not _depth:
            _since = time.perf_counter()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                _seconds += time.perf_counter() - _since


def begins(name: str) -> None:
    """Tell all listeners that a loop is being compiled, because no cache holds it."""
    for listener in tuple(_listeners):
        listener(name)


@contextmanager
def on_compile(listener: Callable[[str], object]) -> Iterator[None]:
    """Call a function with the name of each loop that any thread compiles within this block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@after_fork
def _forget() -> None:
    """Reset the clock in a forked child, where only the forking thread goes on."""
    global _depth, _seconds
    if _depth:
        _seconds += time.perf_counter() - _since
    _depth = 0
    _listeners.clear()
