"""Clock of a fit: time limits count from the call of `fit`, so that they include the reading of the rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_fit_begun: ContextVar[float] = ContextVar("_fit_begun")


@contextmanager
def counting() -> Iterator[None]:
    """Let the time of a fit count from now on; also a decorator."""
    token = _fit_begun.set(time.perf_counter())
    try:
        yield
    finally:
        _fit_begun.reset(token)


def begun() -> float:
    """Return when the fit of this thread began, in seconds of `time.perf_counter`; now outside of a fit."""
    return _fit_begun.get(time.perf_counter())
