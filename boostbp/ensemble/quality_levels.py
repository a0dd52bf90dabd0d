"""Ladder: what a fit of each quality may cost, and what it does with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

DEFAULT_QUALITY = 3


class Effort(NamedTuple):
    """What a fit may cost.

    Attributes
    ----------
    work : float
        Most work of a member, as a multiple of that of its first two candidates, boosted while the held-out loss falls;
        at quality 1 there is one.
    members : int
        How many such models are averaged, each with held-out rows of its own.
    """

    work: float
    members: int = 1

    @property
    def of_all(self) -> float:
        """Most work of all members together."""
        return self.work * self.members


@dataclass(frozen=True, slots=True)
class QualityLevel:
    """One quality.

    Attributes
    ----------
    layers : Effort
        Of a fit of single layers alone.
    networks : Effort or None
        Of a fit in which networks are trained, as leaves with slopes do much better than constant ones
        (`boostbp.ensemble.schedule`). None: they never are.
    one_layer : bool
        Whether the model is a single layer.
    networks_of_classes : bool
        Whether they are trained where there are three or more classes, too.
    all_epochs : bool
        Whether a network that is trained alone runs all epochs, also those that promise little.
    refit : bool
        Whether the output layers' leaves are fitted again on all rows, if the held-out ones are training rows.
    """

    layers: Effort
    networks: Effort | None
    one_layer: bool = False
    networks_of_classes: bool = False
    all_epochs: bool = False
    refit: bool = True

    def effort(self, *, networks: bool) -> Effort:
        """What a fit may cost in which networks are trained, or none."""
        return self.networks if networks and self.networks is not None else self.layers

    @property
    def most_members(self) -> int:
        """Of either kind of fit."""
        return max(self.effort(networks=networks).members for networks in (False, True))

    def costs(self, *, networks: bool) -> list[float]:
        """Most work of a fit without networks, and of one with them if there may be such and it differs, ascending."""
        return sorted({self.effort(networks=trained).of_all for trained in (False, networks)})


# Where no networks are trained more work finds nothing, and members find little: journal, "Work or members". Several
# classes: journal, "Where networks are tried".
LEVELS: dict[int, QualityLevel] = {
    1: QualityLevel(Effort(1.0), networks=None, one_layer=True),
    2: QualityLevel(Effort(2.2), networks=Effort(2.2)),
    3: QualityLevel(Effort(3.0), networks=Effort(5.0)),
    4: QualityLevel(Effort(3.0, members=2), networks=Effort(15.0), networks_of_classes=True, all_epochs=True),
    5: QualityLevel(
        Effort(3.0, members=6), networks=Effort(15.0, members=4), networks_of_classes=True, all_epochs=True
    ),
}
