"""Trained candidates, with their output on the held-out rows."""

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
    """How an output layer was boosted, for boosting it again: the settings of a piece, and the pieces over one base."""

    settings: LayerSettings
    pieces: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class TrainedCandidate:
    """A trained model that may be part of the ensemble.

    Attributes
    ----------
    network : str or None
        Name of the network trained by back-propagation whose hidden layers the model has, or None.
    held_out : (held-out rows, outputs) float64
        Raw output on the held-out rows.
    plan : OutputLayerPlan or None
        How the output layer is fitted again on more rows, if it may be.
    history : History or None
        History of the training, if it was by back-propagation.
    """

    name: str
    network: str | None
    model: Network
    held_out: Floats
    plan: OutputLayerPlan | None = None
    history: History | None = None

    @property
    def is_deep(self) -> bool:
        """Whether the model has hidden layers."""
        return len(self.model.layers) > 1

    @property
    def on_directions(self) -> bool:
        """Whether the hidden layer consists of directions, without back-propagation."""
        return self.is_deep and self.network is None


def distinct(candidates: Sequence[TrainedCandidate]) -> list[TrainedCandidate]:
    """Return the candidates without those that predict the held-out rows exactly as an earlier one of their kind.

    The kinds are with and without hidden layers. Equal candidates occur if a backend lacks a setting by which they
    differ, or if native parameters override it.
    """
    first: dict[tuple[bool, bytes], int] = {}
    for number, candidate in enumerate(candidates):
        first.setdefault((candidate.is_deep, candidate.held_out.tobytes()), number)
    return [candidates[number] for number in workers().agree(list(first.values()))]
