"""Interrupts: Ctrl-C is held back while compiled code may be at work, and raised where Python is.

What a compiled function returns is made into objects by lines of Python, at which a pending Ctrl-C is raised first;
but no exception can pass there, and the process dies. One that comes while the main thread computes ends there nearly
always. And what is raised while Python frees an object is lost.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["check", "held"]

PATIENCE = 5.0  # seconds after which another press is raised at once, wherever that is

_pressed = threading.Event()
_since = 0.0


def check() -> None:
    """Raise what is held back, in any thread; to be called between pieces of work, such as rounds.

    Raises
    ------
    KeyboardInterrupt
    """
    if _pressed.is_set():
        raise KeyboardInterrupt


@contextmanager
def held() -> Iterator[None]:
    """Hold Ctrl-C back until `check`, or the end of the block; also a decorator.

    Does nothing outside the main thread, which alone is interrupted, nor where Ctrl-C has a handler of the user's.
    Whoever presses again after `PATIENCE` seconds is heard at once: what is at work may never ask.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if _pressed.is_set():
            _pressed.clear()
            raise KeyboardInterrupt


def _press(number: int, frame: FrameType | None) -> None:
    global _since
    now = time.monotonic()
    if not _pressed.is_set():
        _since = now
        _pressed.set()
    elif now - _since > PATIENCE:
        signal.default_int_handler(number, frame)
