"""Ctrl-C and the stop flag, which end work between its pieces, where nothing is half made; locks and forks.

Python runs a signal handler between any two of its steps. If the handler of Ctrl-C raised there, the exception could be
printed and lost while an object is freed (freeing a booster takes milliseconds), a library could take it for a failure
of its own, and threads that work for the interrupted call would go on. So within `deferred` the handler waits for
`check`. Only Ctrl-C (SIGINT) waits; handlers of other signals run as in any Python program.

A fork copies the memory of all threads but runs only the one that forked. A lock that another thread held would stay
locked in the child for ever, so a fork waits until locks are free (`fork_safe`).
"""

from __future__ import annotations

# The functions of `signal` make enums, which takes 20 us here: predictions of single rows would feel it.
import _signal
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
# Seconds after which a second press is heard at once, as the work at hand may never call `check`. Arbitrary: more than
# a nervous double press takes, less than a user waits.
PATIENCE = 1.0
POLL = 0.05  # seconds between two checks while other threads work; arbitrary, below what a user notices


class Stopped(BaseException):
    """Raised by `check` in a thread whose work is no longer needed."""


class _Deferral:
    """Stands in for the user's handler of Ctrl-C and notes the press."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self.handler = handler
        self.is_active = True  # whoever saved this stand-in may install it again after the block
        self.pressed_at: float | None = None  # time.monotonic() of the press that waits

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.is_active:
            now = time.monotonic()
            if self.pressed_at is None:
                self.pressed_at = now
            if now - self.pressed_at < PATIENCE:
                return
            self.pressed_at = None
        self.handler(number, frame)

    def run_handler(self) -> None:
        """Run the user's handler if a press waits for it."""
        if self.pressed_at is not None:
            self.pressed_at = None
            self.handler(_signal.SIGINT, sys._getframe(1))

    def end(self) -> None:
        """Put the user's handler back, unless another one was installed meanwhile."""
        self.is_active, handler = False, self.handler
        if _signal.getsignal(_signal.SIGINT) is self:
            _signal.signal(_signal.SIGINT, handler)


_deferral: _Deferral | None = None  # of the outermost `deferred` block of the main thread
_stops: ContextVar[tuple[threading.Event, ...]] = ContextVar("stops", default=())  # flags of this thread


@contextmanager
def deferred() -> Iterator[None]:
    """Make Ctrl-C wait until `check`, or until the outermost such block ends; also a decorator.

    Has no effect outside the main thread, where Python runs no handlers. A handler that is installed inside the block
    is left alone. A second press at least `PATIENCE` seconds after the first is heard at once.
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
    """Hear a waiting Ctrl-C and the stop flag; call this between pieces of work, such as rounds.

    Raises Stopped in a thread whose work is no longer needed (`stoppable`), and in the main thread whatever the user's
    handler of Ctrl-C raises.
    """
    if _deferral is not None and threading.current_thread() is threading.main_thread():
        _deferral.run_handler()
    if any(stop.is_set() for stop in _stops.get()):
        raise Stopped


def stoppable(work: Callable[P, R], stop: threading.Event) -> Callable[P, R]:
    """Return the same work for another thread, where `check` ends it once `stop`, or a flag of this thread, is set."""
    stops = (*_stops.get(), stop)

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _stops.set(stops)
        try:
            return work(*args, **kwargs)
        finally:
            _stops.reset(token)

    return run


def result_of(future: Future[R]) -> R:
    """Return the result of another thread's work; call `check` while waiting for it."""
    while not future.done():
        wait([future], POLL)
        check()
    return future.result()


class Lock(Protocol):
    """A lock that the thread which holds it may acquire again: an RLock, or a Condition on one."""

    def acquire(self) -> object:
        """Take the lock."""

    def release(self) -> object:
        """Give the lock back."""


L = TypeVar("L", bound=Lock)


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


@after_fork
def _end_in_child() -> None:
    """Let a forked child process hear Ctrl-C at once."""
    global _deferral
    if _deferral is not None:
        _deferral.end()
        _deferral = None
