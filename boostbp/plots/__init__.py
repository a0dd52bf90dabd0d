"""Plots: training, layers, representations and predictions; each function draws on axes and returns them.

The extra ``plots`` installs matplotlib. No function calls ``show``. Without axes, a function draws on those of pyplot.
"""

from boostbp.plots.epochs import layer_health, training_curves
from boostbp.plots.predictions import calibration, importances, representation, representations, residuals

__all__ = [
    "calibration",
    "importances",
    "layer_health",
    "representation",
    "representations",
    "residuals",
    "training_curves",
]
