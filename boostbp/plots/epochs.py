"""Plots by epoch: training curves, and the effect of back-propagation on each hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boostbp.network.history import History
from boostbp.plots import axes as panels
from boostbp.runtime.arrays import numpy_errstate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from boostbp.estimators.base import BaseBoostBP


def n_curves(history: History) -> int:
    """Return the number of panels of `training_curves`."""
    return 1 if history.by_rounds and history.curves else 1 + bool(history[0].metrics)


@numpy_errstate()
def training_curves(model: BaseBoostBP | History, axes: panels.AxesLike | None = None) -> NDArray[np.object_]:
    """Draw the training of the part of the model with most weight.

    For a network, these are the training loss and the metric of evaluation sets by epoch, for a layer the metric by
    boosting round. A dot marks the kept epoch or round. The titles of an average state the part and its weight.

    Parameters
    ----------
    model : estimator or History
        Fitted.
    axes : array of matplotlib axes, optional
        One, or two axes for a network with evaluation sets.

    Returns
    -------
    array of axes
    """
    history = model if isinstance(model, History) else model.history_
    axes = panels.panel_axes(axes, n_curves(history))
    if not (history.by_rounds and history.curves):
        _curve(axes[0], range(len(history)), history.loss, history.best_epoch, "training")
        panels.by_epoch(axes[0], "loss", panels.titled("Training loss", history.lead_in_words))
    for name, values in history.curves.items():
        _curve(axes[-1], history.iterations, values, history.best_iteration, panels.as_text(name))
    if history.curves:
        step = "rounds" if history.by_rounds else "epoch"
        panels.by_epoch(axes[-1], history.metric, panels.titled("Evaluation", history.lead_in_words), step)
        axes[-1].legend()
    return axes


def _curve(ax: Axes, steps: Sequence[int], values: list[float], best: int, label: str) -> None:
    (line,) = ax.plot(steps, values, label=label)
    ax.plot([best], [values[list(steps).index(best)]], "o", color=line.get_color())


# Field of `Epoch` -> title and unit.
PANELS = {
    "dead": ("Rows without gradient", "share of rows"),
    "gradient_norms": ("Gradient", "root mean square"),
    "drift": ("Movement in an epoch", "share of the standard deviation"),
    "stds": ("Standard deviation of the units", "in their unit"),
    "r2": ("Fit of a layer to its target", "R²"),
    "explained": ("Target explained by the layer", "R² of a linear regression"),
}


@numpy_errstate()
def layer_health(
    model: BaseBoostBP | History, axes: panels.AxesLike | None = None, *, label: str = ""
) -> NDArray[np.object_]:
    """Draw the records of each hidden layer by epoch, with a panel for each entry of `PANELS`.

    In the last panel, solid lines are training rows and dashed lines are held-out rows. For an average, the layers are
    those of the network with most weight, which the titles state.

    Parameters
    ----------
    model : estimator or History
        Fitted, with a hidden layer.
    axes : array of 6 matplotlib axes, optional
    label : str
        Prefix of "layer 0" (next to the input) in the legend, for several models on the same axes.

    Returns
    -------
    array of axes

    Raises
    ------
    ValueError
        If there is no hidden layer.
    """
    axes = panels.panel_axes(axes, len(PANELS))
    for ax, name in zip(axes, PANELS, strict=True):
        panel(model, name, ax, label=label)
    return axes


@numpy_errstate()
def panel(model: BaseBoostBP | History, name: str, ax: Axes | None = None, *, label: str = "") -> Axes:
    """Draw one panel of `layer_health`, by its name in `PANELS`, and return its axes."""
    history = model if isinstance(model, History) else model.history_
    if history.network is None:
        raise ValueError("No network is part of the model: there is no layer health to draw. Use deep=True.")
    ax = panels.current_axes(ax)
    title, unit = PANELS[name]
    for layer in range(len(history[0].stds)):
        label_of_layer = f"{label} layer {layer}".strip()
        (line,) = ax.plot(*_by_epoch(history, name, layer), ".-", label=label_of_layer)
        if name == "explained":
            epochs, held_out = _by_epoch(history, "explained_held", layer)
            if np.isfinite(held_out).any():
                ax.plot(epochs, held_out, ".--", color=line.get_color(), label=f"{label_of_layer}, held-out rows")
    panels.by_epoch(ax, unit, title if label else panels.titled(title, panels.of_network(history)))
    ax.legend()
    if name == "dead":
        ax.set_ylim(-0.02, 1.02)
    return ax


def _by_epoch(history: History, name: str, layer: int) -> tuple[list[int], list[float]]:
    """Return the epochs and the values of a layer, NaN if none was recorded."""
    first = 1 if name in ("drift", "r2") else 0  # which begin with the first epoch
    rows = [(epoch.epoch, getattr(epoch, name)) for epoch in history.epochs[first:]]
    return [epoch for epoch, _ in rows], [row[layer] if layer < len(row) else np.nan for _, row in rows]
