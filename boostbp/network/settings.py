"""Settings: how a network is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from boostbp.layers import LayerSettings
from boostbp.network.starts import Start, projection
from boostbp.network.steps import Normalised, Step


@dataclass(frozen=True, slots=True)
class Settings:
    """How a network is trained.

    Attributes
    ----------
    layers : tuple of LayerSettings
        One for each T_i, i = 0 .. L-1.
    units : tuple of int
        Size of each hidden layer, L-1 numbers.
    epochs : int
    step : Step
        How hidden variables move (alpha and mu).
    start : Start
    refit_order : {"upward", "downward"}
        Downward as in Algorithm 1: from the output layer to the input, each layer on its old input.
        Upward: from the input to the output, each layer on the new output of the one below.
    output_target : {"loss", "moved"}
        Fit the output layer by boosting on the loss itself, or, as in Algorithm 1, to ``h_L - alpha g_L``.
    n_iter_no_change : int or None
        Stop when the metric of the first evaluation set has not improved for so many epochs.
    skip : bool
        Layers above the first see the input beside the hidden layer below them.
    structure_epochs : int
        Epochs for which tree structures are kept, while leaves are fitted again every epoch; 1: grown every epoch.
    structure_samples : int or None
        Grow tree structures on so many rows, drawn once, and fit leaves on all; None: on all rows.
    max_time : float or None
        Seconds after which no new epoch begins.
    n_threads : int
    seed : int
    """

    layers: tuple[LayerSettings, ...]
    units: tuple[int, ...]
    epochs: int = 30
    step: Step = field(default_factory=Normalised)
    start: Start = projection
    refit_order: Literal["upward", "downward"] = "upward"
    output_target: Literal["loss", "moved"] = "loss"
    n_iter_no_change: int | None = None
    skip: bool = False
    structure_epochs: int = 1
    structure_samples: int | None = None
    max_time: float | None = None
    n_threads: int = 1
    seed: int = 0
