"""Numbers that rate predicted values: ``function(prediction, y, weight) -> float``; shapes as in `metrics`."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from boostbp.floats import Floats
from boostbp.losses import Loss


def by_sklearn(function: str, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Call a regression metric of scikit-learn by its name."""
    from sklearn import metrics

    y = np.broadcast_to(y, prediction.shape)
    return float(getattr(metrics, function)(y, prediction, sample_weight=weight))


def rmse(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Root mean squared error, the mean over the outputs."""
    # A twentieth of scikit-learn's time on few rows: it looks at every input again, which shows when the rounds of
    # an output layer are weighed.
    return float(np.sqrt(np.average(np.square(prediction - y), axis=0, weights=weight)).mean())


def mse(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Mean squared error."""
    return _mean(np.square(prediction - y), weight)


def mae(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Mean absolute error."""
    return _mean(np.abs(prediction - y), weight)


def r2(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Share of the variance of `y` that is explained."""
    if len(y) < 2:
        raise ValueError("eval_metric='r2' needs at least 2 rows, got 1. Use eval_metric='rmse'.")
    return by_sklearn("r2_score", prediction, y, weight)


def rmsle(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Root mean squared error of ``log(1 + y)``; infinite where a prediction is -1 or less."""
    prediction, y, weight = _counted(prediction, y, weight)
    if not (y > -1.0).all():
        raise ValueError("eval_metric='rmsle' needs y above -1: use eval_metric='rmse'.")
    if not (prediction > -1.0).all():
        return float("inf")
    return rmse(np.log1p(prediction), np.log1p(y), weight)


def mean_value(loss: Loss, scale: Floats | float, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Mean of a loss over rows and predictions, which are divided by `scale`, (outputs,), as targets are.

    Predictions are the raw output of a loss without `inverse_link`.
    """
    h = prediction / scale
    inverse_link = getattr(loss, "inverse_link", None)
    if inverse_link is not None:
        h = inverse_link(h)
    return float(np.average(loss.value(h, y / scale), weights=weight) / prediction.shape[1])


def fair(prediction: Floats, y: Floats, weight: Floats) -> float:
    """``|e| - log(1 + |e|)`` of the error `e`: LightGBM's with its ``fair_c=1``."""
    e = np.abs(prediction - y)
    return _mean(e - np.log1p(e), weight)


def pseudo_huber(prediction: Floats, y: Floats, weight: Floats) -> float:
    """``sqrt(1 + e^2) - 1`` of the error `e`: XGBoost's with its ``huber_slope=1``."""
    return _mean(np.hypot(1.0, prediction - y) - 1.0, weight)


def poisson(prediction: Floats, y: Floats, weight: Floats) -> float:
    """``p - y log p``, with LightGBM's least `p`."""
    p = np.maximum(prediction, 1e-10)
    return _mean(p - y * np.log(p), weight)


def poisson_nloglik(prediction: Floats, y: Floats, weight: Floats) -> float:
    """XGBoost's, which has the term in `y` alone too."""
    return poisson(prediction, y, weight) + _mean(gammaln(y + 1.0), weight)


def tweedie(power: float, prediction: Floats, y: Floats, weight: Floats) -> float:
    """``p^(2 - power) / (2 - power) - y p^(1 - power) / (1 - power)``, with LightGBM's least `p`."""
    p = np.maximum(prediction, 1e-10)
    return _mean(p ** (2.0 - power) / (2.0 - power) - y * p ** (1.0 - power) / (1.0 - power), weight)


def gamma(prediction: Floats, y: Floats, weight: Floats) -> float:
    """``y / p + log p``, with XGBoost's least `p`."""
    prediction, y, weight = _counted(prediction, y, weight)
    if not (y > 0.0).all():
        raise ValueError("eval_metric of the gamma distribution needs y above 0: use eval_metric='tweedie'.")
    p = np.maximum(prediction, 1e-6)
    return _mean(y / p + np.log(p), weight)


def gamma_deviance(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Twice what `gamma` is above that of the true `y`; the mean, where LightGBM reports the sum over rows."""
    least = gamma(prediction, y, weight)
    _, y, weight = _counted(prediction, y, weight)
    return 2.0 * (least - _mean(1.0 + np.log(y), weight))


def _counted(prediction: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Rows with weight."""
    counted = weight > 0
    return prediction[counted], y[counted], weight[counted]


def _mean(values: Floats, weight: Floats) -> float:
    return float(np.average(values.mean(axis=1), weights=weight))
