"""Training curves: loss and metrics by epoch."""

from __future__ import annotations

from typing import Any

from boostbp.floats import usual_floats
from boostbp.network.history import NETWORK, weight_in_words
from boostbp.plots import axes as panels

__all__ = ["training_curves"]


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
