"""Interrupts: Ctrl-C is held back while compiled code may be at work, and raised where Python is.

What a compiled function returns is made into objects by lines of Python, at which a pending Ctrl-C is raised first;
but no exception can pass there, and the process dies. One that comes while the main thread computes ends there nearly
always.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["check", "held"]

_pressed = threading.Event()


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
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: _pressed.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if _pressed.is_set():
            _pressed.clear()
            raise KeyboardInterrupt
