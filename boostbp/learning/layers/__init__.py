"""One layer: its bound input, the rounds of its fit, its forward and its backward pass."""

from boostbp.learning.layers.bound import BoundInput, LayerSettings
from boostbp.learning.layers.layer import Fit, Layer, Trace, fit
from boostbp.learning.layers.objective import BoostTo, Objective, SquaredTo

__all__ = ["BoostTo", "BoundInput", "Fit", "Layer", "LayerSettings", "Objective", "SquaredTo", "Trace", "fit"]
