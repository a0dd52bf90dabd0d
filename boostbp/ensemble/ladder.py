"""Ladder: what a fit of each quality may cost, and what it does with it."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_QUALITY = 3


@dataclass(frozen=True, slots=True)
class Rung:
    """One quality.

    Attributes
    ----------
    work : float
        Most work of a fit, as a multiple of that of its first two candidates, boosted while the held-out loss falls; at
        quality 1 there is one.
    networks : bool
        Whether networks are trained.
    if_bent : bool
        Whether they are trained only if leaves with slopes do much better than constant ones; see
        `boostbp.ensemble.schedule`.
    all_epochs : bool
        Whether a network that is trained alone runs all epochs, also those that promise little.
    refit : bool
        Whether the output layers' leaves are fitted again on all rows, if the held-out ones are training rows.
    members : int
        How many such models are averaged, each with held-out rows of its own.
    """

    work: float
    networks: bool = True
    if_bent: bool = True
    all_epochs: bool = False
    refit: bool = True
    members: int = 1


RUNGS: dict[int, Rung] = {
    1: Rung(work=1.0, networks=False),
    2: Rung(work=2.2),
    3: Rung(work=5.0),
    4: Rung(work=15.0, if_bent=False, all_epochs=True),
    5: Rung(work=15.0, if_bent=False, all_epochs=True, members=4),
}
