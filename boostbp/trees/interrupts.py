"""Interrupts: signal handlers are put off while a model is made, and run at places where what they raise is not lost.

A handler may raise: that of Ctrl-C does, and so do those of time limits (SIGALRM) and of orderly ends (SIGTERM). Python
runs it between any two of its steps. What it raises while an object is freed (a booster takes milliseconds) is printed
and lost, a library that is asked for something may take it for a failure of its own, and threads that work for a call
that has ended would go on.
"""

from __future__ import annotations

# its functions make no enums, which takes those of `signal` nearly all of their time
import _signal
import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from boostbp.trees import forks

R = TypeVar("R")
Handler = Callable[[int, FrameType | None], Any]
PATIENCE = 5.0  # seconds after which a handler runs wherever Python is: what is at work may never ask
TICK = 0.5  # seconds between two looks for handlers that have waited so long
POLL = 0.05  # seconds between two looks while other threads work

_SIGNALS = sorted(signal.valid_signals())
_stand_ins: dict[int, _StandIn] = {}  # by signal; those of the last block where there is none
_came: dict[int, float] = {}  # signals whose handlers have not run, and when they came first
_depth = 0  # blocks of `deferred` that the main thread is in
_reminding = False  # whether a thread looks for handlers that have waited
_lock = forks.through(threading.RLock())  # so that none of these runs twice; never taken in a handler
_thread_local = threading.local()


class Stopped(BaseException):
    """Raised by `check` in a thread whose work is not wanted any more."""


@contextmanager
def deferred() -> Iterator[None]:
    """Put off all signal handlers until `check`, or the end of the outermost such block; also a decorator.

    Does nothing outside the main thread, in which alone Python runs handlers. One that is not asked for runs after
    `PATIENCE` seconds, as soon as Python can run it. A handler that is set inside the block is left alone.
    """
    global _depth
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outer = _depth
    if not outer:
        _replace()
    _depth = outer + 1
    try:
        yield
    finally:
        if not outer:
            _restore()
        _depth = outer
        if not outer:
            _run_handlers()


def check() -> None:
    """Run the handlers of signals that came, in the main thread; to be called between pieces of work, such as rounds.

    Raises
    ------
    Stopped
        In a thread that works for another one (`stoppable`), if that wants no more of it.
    BaseException
        Whatever a handler raises.
    """
    if _came and threading.current_thread() is threading.main_thread():
        _run_handlers()
    if any(stop.is_set() for stop in _stops()):
        raise Stopped


def stoppable(work: Callable[..., R], stop: threading.Event) -> Callable[..., R]:
    """The same work for other threads, ended by `check` there once `stop` is set, or what ends the calling thread."""
    stops = (*_stops(), stop)

    def run(*args: Any) -> R:
        before, _thread_local.stops = _stops(), stops
        try:
            return work(*args)
        finally:
            _thread_local.stops = before

    return run


def result_of(future: Future[R]) -> R:
    """The result of another thread's work; `check` is called while it is awaited."""
    while not future.done():
        wait([future], POLL)
        check()
    return future.result()


def _stops() -> tuple[threading.Event, ...]:
    return getattr(_thread_local, "stops", ())


class _StandIn:
    """What stands in the place of a handler of the user's, and notes that its signal came."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        global _reminding
        if _depth and _stand_ins.get(number) is self:
            now = time.monotonic()
            if now - _came.setdefault(number, now) < PATIENCE:
                if not _reminding:
                    _reminding = True
                    _thread.start_new_thread(_remind, ())  # `threading` has locks, which this thread may be holding
                return
            del _came[number]
        self.handler(number, frame)


def _replace() -> None:
    for number, handler in zip(_SIGNALS, map(_signal.getsignal, _SIGNALS), strict=True):
        if handler is None or handler.__class__ is int:  # of C, the system's, or to be ignored
            continue
        if isinstance(handler, _StandIn):  # whoever found it in a block put it back after that
            handler = handler.handler
        _stand_ins[number] = _StandIn(handler)
        _signal.signal(number, _stand_ins[number])


def _restore() -> None:
    for number, stand_in in _stand_ins.items():
        if _signal.getsignal(number) is stand_in:
            _signal.signal(number, stand_in.handler)


def _remind() -> None:
    """Send signals once more whose handlers have waited for `PATIENCE` seconds; in a thread of its own."""
    global _reminding
    while _came:
        time.sleep(TICK)
        with _lock:
            for number, since in list(_came.items()):
                if _depth and time.monotonic() - since >= PATIENCE:
                    _send(number)
    _reminding = False


def _send(number: int) -> None:
    if hasattr(signal, "pthread_kill"):  # wakes the main thread where it waits for the system
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


def _run_handlers() -> None:
    try:
        while _came:
            with _lock:
                number = next(iter(_came))
                del _came[number]
            _stand_ins[number].handler(number, sys._getframe(1))
    finally:
        if _came and not _depth:  # nobody will ask for those behind one that raised
            _run_handlers()


def _forget() -> None:
    """In a forked child, which is to end by a signal at once."""
    global _depth, _reminding
    _depth, _reminding = 0, False
    _came.clear()
    _restore()


forks.in_child(_forget)
