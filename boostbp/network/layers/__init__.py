"""One layer: its bound input, the rounds of its fit, its forward and its backward pass."""

from boostbp.network.layers.bound import BoundInput, LayerSettings
from boostbp.network.layers.layer import Fit, Layer, Trace, fit
from boostbp.network.layers.layer_spec import LayerSpec
from boostbp.network.layers.objective import LossObjective, Objective, SquaredObjective

__all__ = [
    "BoundInput",
    "Fit",
    "Layer",
    "LayerSettings",
    "LayerSpec",
    "LossObjective",
    "Objective",
    "SquaredObjective",
    "Trace",
    "fit",
]
