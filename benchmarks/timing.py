"""Timing: several pieces of work in turn, several times, so that a busy machine is unfair to none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

__all__ = ["alternate", "ratio", "seconds"]

Work = Callable[[], object]


def seconds(work: Work) -> float:
    """Wall time of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternate(works: Mapping[str, Work], repeats: int, *, warm: bool = True) -> dict[str, list[float]]:
    """Seconds of each piece of work, in turn, `repeats` times; a first turn is not counted if `warm`."""
    if warm:
        for work in works.values():
            work()
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            found[name].append(seconds(work))
    return found


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Median of the ratios of neighbouring runs."""
    return float(np.median(np.array(ours) / np.array(theirs)))
