"""Threads over independent pieces of work, with results in the order of the pieces."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["count", "spread"]

T = TypeVar("T")
R = TypeVar("R")


def count(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` asks for: None is 1, negative counts back from all cores (-1: all)."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs=0 is not a number of threads: give 1 or more, or -1 for all cores.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def spread(work: Callable[[T], R], pieces: Iterable[T], n_threads: int) -> list[R]:
    """Do `work` on each piece, `n_threads` at a time."""
    pieces = list(pieces)
    if n_threads <= 1 or len(pieces) <= 1:
        return [work(piece) for piece in pieces]
    with ThreadPoolExecutor(min(n_threads, len(pieces))) as pool:
        return list(pool.map(work, pieces))
