"""Evidence: what the pictures of one model in a report show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.network.history import History

# What the libraries call the two losses that a comparison looks at.
_LOSSES = {
    "binary_logloss": "log-loss",
    "multi_logloss": "log-loss",
    "logloss": "log-loss",
    "mlogloss": "log-loss",
    "log_loss": "log-loss",
    "rmse": "RMSE",
    "l2": "RMSE",
}


@dataclass(frozen=True, slots=True)
class Curve:
    """Loss of the validation rows by epoch or round.

    Attributes
    ----------
    loss : str
        "log-loss", "RMSE", or what the library calls it.
    values : (epochs or rounds,) float64
    kept : int
        Where in `values` the model was taken from.
    epochs : bool
        Epochs, which start with 0; or rounds, which start with 1.
    """

    loss: str
    values: NDArray[np.float64]
    kept: int
    epochs: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the pictures of one model show.

    Attributes
    ----------
    observed : (test rows,)
        Class numbers, or numbers.
    predicted : (test rows, classes) or (test rows,)
    curve : Curve or None
    history : History or None
        Of a deep model.
    hidden : mapping of int to (rows, units) float64
        Last hidden layer of the first test rows, before back-propagation (epoch 0) and as kept; empty
        for a single layer.
    labels : tuple of str
        Names of the classes.
    """

    observed: NDArray[Any]
    predicted: NDArray[np.float64]
    curve: Curve | None
    history: History | None
    hidden: Mapping[int, NDArray[np.float64]]
    labels: tuple[str, ...] = ()


def curve_of(model: Any, length: int | None) -> Curve | None:
    """The learning curve that a fitted model recorded; None if it did not.

    Parameters
    ----------
    model : estimator of this package, of LightGBM or of XGBoost
    length : int or None
        Rounds or epochs kept.
    """
    history = getattr(model, "history_", None)
    if history is not None:
        name = next(iter(history[0].metrics))
        return Curve(
            _LOSSES.get(history.metric, history.metric), np.array(history.metrics(name)), history.best_epoch, True
        )
    recorded = getattr(model, "evals_result_", None) or getattr(model, "evals_result", dict)()
    if not recorded or length is None:
        return None
    name, values = next(iter(next(iter(recorded.values())).items()))
    numbers = np.array(values, np.float64)
    return Curve(_LOSSES.get(name, name), np.sqrt(numbers) if name == "l2" else numbers, length - 1, False)
