"""Plots by epoch show the history."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from studies import history

from boostbp import plots
from boostbp.plots.epochs import PANELS


def line(ax, label):
    """Points of the line with a label, (points, 2)."""
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return np.column_stack(found.get_data())


def test_training_curves_show_the_history():
    sets = ("valid_0", "valid_1")
    shown, axes = history(sets=sets), Figure().subplots(1, 2)
    assert list(plots.training_curves(shown, axes)) == list(axes)
    epochs = np.arange(4)
    np.testing.assert_array_equal(line(axes[0], "training"), np.column_stack([epochs, shown.loss]))
    for name in sets:
        np.testing.assert_array_equal(line(axes[1], name), np.column_stack([epochs, shown.metrics(name)]))
    marks = [drawn.get_xdata().tolist() for ax in axes for drawn in ax.lines if drawn.get_marker() == "o"]
    assert marks == [[shown.best_epoch]] * 3
    assert axes[1].get_ylabel() == "log_loss"


def test_without_evaluation_sets_there_is_the_training_loss(model):
    (ax,) = plots.training_curves(model, Figure().subplots())
    np.testing.assert_array_equal(line(ax, "training")[:, 1], model.history_.loss)


def test_layer_health_shows_the_history():
    shown, axes = history(layers=2), Figure().subplots(2, 3)
    plots.layer_health(shown, axes, label="mine")
    for ax, name in zip(axes.flat, PANELS, strict=True):
        first = int(name in ("drift", "r2"))
        for layer in (0, 1):
            expected = [(e.epoch, getattr(e, name)[layer]) for e in shown.epochs[first:]]
            np.testing.assert_array_equal(line(ax, f"mine layer {layer}"), expected)
    held = line(axes.flat[-1], "mine layer 1, held-out rows")
    np.testing.assert_array_equal(held[:, 1], [e.explained_held[1] for e in shown.epochs])


def test_layer_health_needs_a_hidden_layer():
    with pytest.raises(ValueError, match="No network is part of the model"):
        plots.layer_health(history(layers=0), Figure().subplots(2, 3))
