"""One layer: its bound input, the rounds of its fit, its forward and its backward pass."""

from boostbp.layers.bound import BoundInput, LayerSettings
from boostbp.layers.layer import Fit, Layer, Trace, fit
from boostbp.layers.layer_spec import LayerSpec
from boostbp.layers.objective import LossObjective, Objective, SquaredObjective

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
