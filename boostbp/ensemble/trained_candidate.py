"""Trained candidates: what may be part of the model, with its output on the held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boostbp.layers import Layer, LayerSettings
from boostbp.network.history import History
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers


@dataclass(frozen=True, slots=True)
class OutputLayerPlan:
    """How an output layer was boosted, to do it again: the settings of a piece, and the pieces, one base for all."""

    settings: LayerSettings
    pieces: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class TrainedCandidate:
    """What may be part of the model.

    Attributes
    ----------
    network : str or None
        Name of the network trained by back-propagation whose hidden layers it has; None: it has none.
    held_out : (held-out rows, outputs) float64
        Its raw output on the held-out rows.
    plan : OutputLayerPlan or None
        How its output layer may be fitted again on more rows.
    history : History or None
        Of a network that was trained by back-propagation.
    """

    name: str
    network: str | None
    model: Network
    held_out: Floats
    plan: OutputLayerPlan | None = None
    history: History | None = None

    @property
    def is_deep(self) -> bool:
        """Whether it has hidden layers."""
        return len(self.model.layers) > 1

    @property
    def on_directions(self) -> bool:
        """Whether its hidden layer is one of directions, which no back-propagation trained."""
        return self.is_deep and self.network is None

    @property
    def interrupt(self) -> KeyboardInterrupt | None:
        """What ended the training before its time; the best epoch is there."""
        return None if self.history is None else self.history.interrupt


def distinct(candidates: Sequence[TrainedCandidate]) -> list[TrainedCandidate]:
    """Leave out candidates that predict the held-out rows exactly as an earlier one does, of networks or of others.

    A backend may not do what tells two of them apart, and native parameters may undo it.
    """
    first: dict[tuple[bool, bytes], int] = {}
    for number, one in enumerate(candidates):
        first.setdefault((one.is_deep, one.held_out.tobytes()), number)
    return [candidates[number] for number in workers().agree(list(first.values()))]
