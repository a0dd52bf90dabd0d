"""State: all that training needs to go on as if it had never stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boostbp.floats import Floats
from boostbp.network.history import History
from boostbp.network.network import Network

LowestLoss = tuple[float, Network | None, int]


@dataclass(frozen=True, slots=True)
class State:
    """Training after an epoch; its arrays are those of training, not copies.

    Attributes
    ----------
    h, g : tuple of (rows, units) float64
        Hidden variables h_1 .. h_L and the gradients of the loss in them.
    m : tuple of (rows, units) float64
        Momentum of each.
    random : mapping
        State of the random generator.
    network : Network
        As it stands.
    best : Network
        Of the best epoch.
    lowest_loss : tuple of float, Network or None, int
        The epoch of the least training loss, if no metric chooses the best one: loss, network, number.
    elapsed : float
        Seconds of training so far.
    fingerprint : mapping of str to str
        What was trained on, and how; see `fingerprint`.
    since : int
        Epoch at which more epochs were asked for; patience counts from there.
    origin : str
        Where the state comes from, as the user wrote it, for errors.
    rows : tuple of int
        How many rows each of several workers wrote to a file of its own; empty if `h`, `g` and `m` are here.
    """

    epoch: int
    h: tuple[Floats, ...]
    g: tuple[Floats, ...]
    m: tuple[Floats, ...]
    drift: tuple[float, ...]
    r2: tuple[float, ...]
    random: Mapping[str, Any]
    network: Network
    best: Network
    best_score: float
    lowest_loss: LowestLoss
    history: History
    elapsed: float
    fingerprint: Mapping[str, str]
    since: int = -1
    origin: str = ""
    rows: tuple[int, ...] = ()
