"""Plots: training, layers, representations and predictions; each function draws on axes and returns them.

The extra ``plots`` installs matplotlib. No function calls ``show``. Without axes, a function draws on those of pyplot,
which needs no display.
"""

from boostbp.plots.epochs import layer_health, training_curves
from boostbp.plots.predictions import calibration, importances, residuals
from boostbp.plots.representations import representation, representations

__all__ = [
    "calibration",
    "importances",
    "layer_health",
    "representation",
    "representations",
    "residuals",
    "training_curves",
]
