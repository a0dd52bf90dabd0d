"""Clock of a fit: when it began, which time limits count from, and the Ctrl-C that ended its training early."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from boostbp.runtime.group import workers

R = TypeVar("R")


@dataclass
class Clock:
    """The begin of a fit, and the Ctrl-C that ended its training, if one came.

    A KeyboardInterrupt rises as any exception to the code that holds what was trained so far. There `ending_early`
    records it. The fit completes its model, asks for the `interrupt`, and raises it at the end.
    """

    begun: float = field(default_factory=lambda: time.perf_counter())  # in seconds of `time.perf_counter`
    interrupt: KeyboardInterrupt | None = None

    @contextmanager
    def ending_early(self) -> Iterator[None]:
        """Let Ctrl-C end this block alone, whose results so far the caller keeps.

        On several workers it ends the fit, as the others could not know that this one completes its model so far.
        """
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if not workers().is_single:
                raise
            self.interrupt = interrupt

    def completed(self, work: Callable[[], R]) -> R:
        """Return the result of short work, which begins again if Ctrl-C comes, so that what was trained is kept."""
        with self.ending_early():
            return work()
        return work()


_clock: ContextVar[Clock] = ContextVar("_clock")


@contextmanager
def counting() -> Iterator[None]:
    """Let the time of a fit count from now on; also a decorator."""
    token = _clock.set(Clock())
    try:
        yield
    finally:
        _clock.reset(token)


def of_fit() -> Clock:
    """Return the clock of the fit of this thread; a new one outside of a fit."""
    return _clock.get(None) or Clock()
