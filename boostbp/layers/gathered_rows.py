"""Gathered rows: where workers have few rows in all, each fits layers to the rows of all, without a message.

A library sends two messages for each split that it makes. Those of a tree take the time in which one core grows it on
some 20,000 rows; with fewer, workers that share the growing are slower than one that does all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from boostbp.group import ALONE, joined, workers
from boostbp.trees.threads import Team

R = TypeVar("R")
GATHERED_ROWS = 20_000  # of all workers, up to which they are gathered


def are_gathered(n_rows: int) -> bool:
    """Return whether so many rows of all workers are gathered; those of one machine are all here."""
    return not workers().alone and n_rows <= GATHERED_ROWS


def apart(work: Callable[[], R]) -> R:
    """Do what concerns no other worker: in a thread of its own, as the network of a library is that of a thread."""

    def alone(_: None) -> R:
        with joined(ALONE):
            return work()

    with Team(2) as team:
        [result] = team.map(alone, [None])
    return result
