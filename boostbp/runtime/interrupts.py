"""Ctrl-C and the stop flag: both end work between its pieces, where all objects are consistent; locks and forks.

Python may run a signal handler between any two bytecodes. If the handler of Ctrl-C raised its exception there, it could
be lost while an object is freed (freeing a booster takes milliseconds), a library could treat it as its own error, and
threads of the interrupted call would continue. So within `deferred` the handler waits for `check`. This applies only to
Ctrl-C (SIGINT); handlers of other signals run as in any Python program.

A fork copies the memory of all threads, but the child has only the forking thread. A lock of another thread would stay
locked in the child forever, so a fork waits until locks are free (`fork_safe`).
"""

from __future__ import annotations

# The functions of `signal` create enums, which takes 20 us, too much for predictions of single rows.
import _signal  # pyright: ignore[reportMissingImports]
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TypeVar

R = TypeVar("R")
L = TypeVar("L", bound="threading.RLock | threading.Condition")  # reentrant locks
# Seconds after which a second press takes effect at once, as the current work may never call `check`. Arbitrary: longer
# than an accidental double press, shorter than a user waits.
PATIENCE = 1.0
POLL = 0.05  # seconds between two checks while other threads work. Arbitrary: users do not notice it


class Stopped(BaseException):
    """Raised by `check` in a thread whose work is no longer needed."""


class _Deferral:
    """A replacement of the user's handler of Ctrl-C, which records the press."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self.handler = handler
        self.pressed_at: float | None = None  # time.monotonic() of the waiting press

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self is _deferral:  # other code may install this handler again after the block
            now = time.monotonic()
            if self.pressed_at is None:
                self.pressed_at = now
            if now - self.pressed_at < PATIENCE:
                return
            self.pressed_at = None
        self.handler(number, frame)

    def run_handler(self) -> None:
        """Run the user's handler if a press is waiting."""
        if self.pressed_at is not None:
            self.pressed_at = None
            self.handler(_signal.SIGINT, sys._getframe(1))

    def end(self) -> None:
        """Restore the user's handler, unless another one was installed meanwhile."""
        if _signal.getsignal(_signal.SIGINT) is self:
            _signal.signal(_signal.SIGINT, self.handler)


_deferral: _Deferral | None = None  # handler of the outermost `deferred` block of the main thread
_stops: ContextVar[tuple[threading.Event, ...]] = ContextVar("stops", default=())  # flags of this context


@contextmanager
def deferred() -> Iterator[None]:
    """Defer Ctrl-C until `check`, or until the outermost such block ends; also a decorator.

    Has no effect outside the main thread, where Python runs no handlers. A handler that is installed inside the block
    is not changed. A second press at least `PATIENCE` seconds after the first takes effect at once.
    """
    global _deferral
    if _deferral is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _signal.getsignal(_signal.SIGINT)
    if isinstance(handler, _Deferral):  # saved inside an earlier block and installed again after it
        handler = handler.handler
    if not callable(handler):  # set by C code, the system's action, or ignored
        yield
        return
    _deferral = deferral = _Deferral(handler)
    _signal.signal(_signal.SIGINT, deferral)
    try:
        yield
    finally:
        _deferral = None
        deferral.end()
        deferral.run_handler()


def check() -> None:
    """Run the handler of a waiting Ctrl-C, and raise Stopped if a stop flag is set; call this between rounds."""
    if _deferral is not None and threading.current_thread() is threading.main_thread():
        _deferral.run_handler()
    if any(stop.is_set() for stop in _stops.get()):
        raise Stopped


def add_stop(stop: threading.Event) -> None:
    """Let `check` end the work in this context once `stop`, or a flag that it already has, is set."""
    _stops.set((*_stops.get(), stop))


def result_of(future: Future[R]) -> R:
    """Return the result of another thread's work; call `check` while waiting for it."""
    while not future.done():
        wait([future], POLL)
        check()
    return future.result()


def fork_safe(lock: L) -> L:
    """Make forks wait until a lock is free; return the lock.

    It must only be held for short times, and never while waiting for another such lock.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def after_fork(function: Callable[[], None]) -> Callable[[], None]:
    """Call a function in each child process after a fork; also a decorator."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


@after_fork
def _end_in_child() -> None:
    """End deferral in a forked child process."""
    global _deferral
    if _deferral is not None:
        _deferral.end()
        _deferral = None
