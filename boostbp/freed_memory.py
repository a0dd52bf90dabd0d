"""Freed memory, given back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Let the C library return what was freed: glibc keeps, of what reading a model took, half as much as it holds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
