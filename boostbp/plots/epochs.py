"""Plots by epoch: training curves, and what back-propagation did to each hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boostbp.floats import usual_floats
from boostbp.plots import axes as panels


def n_curves(history: Any) -> int:
    """Number of panels of `training_curves`."""
    return 1 if history.by_rounds and history.curves else 1 + bool(history[0].metrics)


@usual_floats()
def training_curves(model: Any, axes: Any = None) -> Any:
    """Draw how the leading piece of the model, the one with most weight, was trained.

    Of a network they are the training loss and, if there were evaluation sets, their metric by epoch; of a layer the
    metric by boosting round. A dot marks what was kept. The titles of an average name the piece and its weight.

    Parameters
    ----------
    model : estimator or History
        Fitted.
    axes : array of matplotlib axes, optional
        One, or two of a network with evaluation sets.

    Returns
    -------
    array of axes
    """
    history = getattr(model, "history_", model)
    names, lead, best = list(history.curves), history.lead_in_words, history.best_iteration
    axes = panels.several(axes, n_curves(history))
    if not (history.by_rounds and names):
        _curve(axes[0], range(len(history)), history.loss, history.best_epoch, "training")
        panels.by_epoch(axes[0], "loss", panels.titled("Training loss", lead))
    for name in names:
        _curve(axes[-1], history.iterations, history.curves[name], best, panels.as_text(name))
    if names:
        unit = "rounds" if history.by_rounds else "epoch"
        panels.by_epoch(axes[-1], history.metric, panels.titled("Evaluation", lead), unit)
        axes[-1].legend()
    return axes


def _curve(ax: Any, steps: Sequence[int], values: list[float], best: int, label: str) -> None:
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


@usual_floats()
def layer_health(model: Any, axes: Any = None, *, label: str = "") -> Any:
    """Draw what the history says of each hidden layer by epoch: one panel for each entry of `PANELS`.

    The gap between the lines and the dashed ones of the last panel is the gap between the rows that were
    trained on and those that were not. Of an average the layers are those of the network with most weight, which the
    titles name.

    Parameters
    ----------
    model : estimator or History
        Fitted, with a hidden layer.
    axes : array of 6 matplotlib axes, optional
    label : str
        What the legend says before "layer 0", which is next to the input; several models may share axes.

    Returns
    -------
    array of axes

    Raises
    ------
    ValueError
        If there is no hidden layer.
    """
    axes = panels.several(axes, len(PANELS))
    for ax, name in zip(axes, PANELS, strict=True):
        panel(model, name, ax, label=label)
    return axes


@usual_floats()
def panel(model: Any, name: str, ax: Any = None, *, label: str = "") -> Any:
    """Draw one panel of `layer_health`, by its name in `PANELS`; returns the axes."""
    history = getattr(model, "history_", model)
    hidden = len(history[0].stds)
    if history.network is None:
        raise ValueError("No network is part of the model: there is no layer health to draw. Use deep=True.")
    ax = panels.one(ax)
    title, unit = PANELS[name]
    for layer in range(hidden):
        label_of = f"{label} layer {layer}".strip()
        (line,) = ax.plot(*_by_epoch(history, name, layer), ".-", label=label_of)
        if name == "explained":
            epochs, held_out = _by_epoch(history, "explained_held", layer)
            if np.isfinite(held_out).any():
                ax.plot(epochs, held_out, ".--", color=line.get_color(), label=f"{label_of}, not trained on")
    panels.by_epoch(ax, unit, title if label else panels.titled(title, panels.of_network(history)))
    ax.legend()
    if name == "dead":
        ax.set_ylim(-0.02, 1.02)
    return ax


def _by_epoch(history: Any, name: str, layer: int) -> tuple[list[int], list[float]]:
    """Epochs and values of a layer, NaN if not recorded; nothing has moved or been fitted again at epoch 0."""
    first = 1 if name in ("drift", "r2") else 0
    rows = [(epoch.epoch, getattr(epoch, name)) for epoch in history.epochs[first:]]
    return [epoch for epoch, _ in rows], [row[layer] if layer < len(row) else np.nan for _, row in rows]
