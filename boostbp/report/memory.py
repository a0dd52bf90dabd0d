"""Peak memory of a piece of work in this process."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from boostbp import freed_memory

_STATUS = Path("/proc/self/status")


class Peak:
    """Peak resident memory since the object was made, above what was resident then.

    On Linux the kernel's high-water mark is reset first, so that what happened before (imports, compiling,
    loading) neither counts nor hides what comes; `ru_maxrss` would do, but a child inherits its parent's.
    Elsewhere the mark cannot be reset, and a peak below an earlier one shows as 0.

    >>> peak = Peak()
    >>> ballast = bytearray(50_000_000)
    >>> peak.bytes()  # doctest: +SKIP
    50003968
    """

    def __init__(self) -> None:
        gc.collect()
        freed_memory.give_back()  # or the next allocations would fill it unseen
        self._linux = _reset()
        self._start = _status("VmRSS") if self._linux else _maxrss()

    def bytes(self) -> int | None:
        """Peak so far in bytes; None where it cannot be known."""
        now = _status("VmHWM") if self._linux else _maxrss()
        return None if now is None or self._start is None else max(0, now - self._start)


def _reset() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return _status("VmHWM") is not None


def _status(key: str) -> int | None:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return None


def _maxrss() -> int | None:
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
