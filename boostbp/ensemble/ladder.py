"""Ladder: what a fit of each quality may cost, and what it does with it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_QUALITY", "RUNGS", "Rung"]

DEFAULT_QUALITY = 3


@dataclass(frozen=True, slots=True)
class Rung:
    """One quality.

    Attributes
    ----------
    work : float
        Most work of a fit, as a multiple of that of its first candidate: one layer, boosted while the held-out loss
        falls.
    learning_rate : float
        Shrinkage of layers that are boosted to their end.
    networks : bool
        Whether networks are trained.
    asked_for : bool
        Whether the network that was asked for is trained until its first look, whatever the work: `transform` shows it.
    refit : bool
        Whether the output layers of the model are grown again on all rows, if the held-out ones are training rows.
    members : int
        How many such models are averaged, each with held-out rows of its own.
    """

    work: float
    learning_rate: float = 0.1
    networks: bool = True
    asked_for: bool = True
    refit: bool = True
    members: int = 1


RUNGS: dict[int, Rung] = {
    1: Rung(work=1.0, networks=False, asked_for=False, refit=False),
    2: Rung(work=4.0, asked_for=False),
    3: Rung(work=9.0),
    4: Rung(work=30.0),
    5: Rung(work=30.0, members=4),
}
