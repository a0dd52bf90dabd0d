"""Quality levels: the limits of a fit at each quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

DEFAULT_QUALITY = 3


class Effort(NamedTuple):
    """Limits on the work of a fit.

    Attributes
    ----------
    work : float
        Work of a member, as a multiple of the work of its first two candidates, which are boosted while the held-out
        loss falls; at quality 1 there is one candidate.
    members : int
        Number of such models that are averaged, each with held-out rows of its own.
    """

    work: float
    members: int = 1


@dataclass(frozen=True, slots=True)
class QualityLevel:
    """What a fit of one quality does.

    Attributes
    ----------
    layers : Effort
        Limits of a fit of single layers alone.
    networks : Effort or None
        Limits of a fit that trains networks, because leaves with slopes do much better than constant ones
        (`boostbp.ensemble.schedule`). None: no fit does.
    one_layer : bool
        Whether the model is a single layer.
    networks_of_classes : bool
        Whether networks are also trained for three or more classes.
    all_epochs : bool
        Whether a network that is trained alone runs all epochs, even if they promise little.
    refit : bool
        Whether the leaves of the output layers are fitted again on all rows, if the held-out ones are training rows.
    """

    layers: Effort
    networks: Effort | None
    one_layer: bool = False
    networks_of_classes: bool = False
    all_epochs: bool = False
    refit: bool = True

    def effort(self, *, networks: bool) -> Effort:
        """Return the limits of a fit with or without networks."""
        return self.networks if networks and self.networks is not None else self.layers

    @property
    def most_members(self) -> int:
        """Largest number of members, with or without networks."""
        return max(self.effort(networks=networks).members for networks in (False, True))

    def costs(self, *, networks: bool) -> list[float]:
        """Return the work of all members without networks and, if there may be networks, with them; ascending."""
        efforts = [self.effort(networks=trained) for trained in (False, networks)]
        return sorted({effort.work * effort.members for effort in efforts})


# Without networks more work finds nothing, and members find little: journal, "Work or members". Several classes:
# journal, "Where networks are tried".
LEVELS: dict[int, QualityLevel] = {
    1: QualityLevel(Effort(1.0), networks=None, one_layer=True),
    2: QualityLevel(Effort(2.2), networks=Effort(2.2)),
    3: QualityLevel(Effort(3.0), networks=Effort(5.0)),
    4: QualityLevel(Effort(3.0, members=2), networks=Effort(15.0), networks_of_classes=True, all_epochs=True),
    5: QualityLevel(
        Effort(3.0, members=6), networks=Effort(15.0, members=4), networks_of_classes=True, all_epochs=True
    ),
}
