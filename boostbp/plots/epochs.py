"""Plots by epoch: training curves, and what back-propagation did to each hidden layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from boostbp.floats import usual_floats
from boostbp.network.history import NETWORK, weight_in_words
from boostbp.plots import axes as panels


@usual_floats()
def training_curves(model: Any, axes: Any = None) -> Any:
    """Draw the training loss and, if there were evaluation sets, their metric by epoch; a dot marks the kept epoch.

    Of an average they are those of the network that was asked for; the titles say what weight it has in the model.

    Parameters
    ----------
    model : estimator or History
        Fitted.
    axes : array of matplotlib axes, optional
        One, or two if there were evaluation sets.

    Returns
    -------
    array of axes
    """
    history = getattr(model, "history_", model)
    names = list(history[0].metrics)
    axes = panels.several(axes, 1 + bool(names))
    epochs, best = range(len(history)), history.best_epoch
    _curve(axes[0], epochs, history.loss, best, "training")
    words = weight_in_words(history.weight(NETWORK))
    panels.by_epoch(axes[0], "loss", panels.of_network("Training loss", words))
    for name in names:
        _curve(axes[1], epochs, history.metrics(name), best, panels.as_text(name))
    if names:
        panels.by_epoch(axes[1], history.metric, panels.of_network("Evaluation", words))
        axes[1].legend()
    return axes


def _curve(ax: Any, epochs: range, values: list[float], best: int, label: str) -> None:
    (line,) = ax.plot(epochs, values, label=label)
    ax.plot([best], [values[best]], "o", color=line.get_color())


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
    trained on and those that were not. Of an average the layers are those of the network that was asked for; titles, or
    with a `label` the legend, say what weight it has in the model.

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
    if hidden == 0:
        raise ValueError("A single layer has no hidden variables: there is no layer health to draw.")
    ax = panels.one(ax)
    title, unit = PANELS[name]
    words = weight_in_words(history.weight(NETWORK))
    if label and words:
        label = f"{label} ({words})"
    for layer in range(hidden):
        label_of = f"{label} layer {layer}".strip()
        (line,) = ax.plot(*_by_epoch(history, name, layer), ".-", label=label_of)
        if name == "explained":
            epochs, held_out = _by_epoch(history, "explained_held", layer)
            if np.isfinite(held_out).any():
                ax.plot(epochs, held_out, ".--", color=line.get_color(), label=f"{label_of}, not trained on")
    panels.by_epoch(ax, unit, title if label else panels.of_network(title, words))
    ax.legend()
    if name == "dead":
        ax.set_ylim(-0.02, 1.02)
    return ax


def _by_epoch(history: Any, name: str, layer: int) -> tuple[list[int], list[float]]:
    """Epochs and values of a layer, NaN if not recorded; nothing has moved or been fitted again at epoch 0."""
    first = 1 if name in ("drift", "r2") else 0
    rows = [(epoch.epoch, getattr(epoch, name)) for epoch in history.epochs[first:]]
    return [epoch for epoch, _ in rows], [row[layer] if layer < len(row) else np.nan for _, row in rows]
