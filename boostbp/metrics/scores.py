"""Numbers that rate predicted values: ``function(prediction, y, weight) -> float``; shapes as in `metrics`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from boostbp.floats import Floats
from boostbp.losses import Loss

_LEAST = np.finfo(np.float64).eps  # of a probability under a logarithm, as in scikit-learn


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


def labels(columns: Floats) -> NDArray[np.int64]:
    """Class of each row, of targets as of probabilities."""
    if columns.shape[1] == 1:
        return np.asarray(columns[:, 0] > 0.5, np.int64)
    return np.argmax(columns, axis=1)


def logloss(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Negative log-likelihood of the true class."""
    # 30 times faster than scikit-learn's, which encodes the labels first.
    if y.shape[1] == 1:
        p = np.where(y > 0.5, prediction, 1.0 - prediction)[:, 0]
    else:
        p = np.take_along_axis(prediction, labels(y)[:, None], axis=1)[:, 0]
    return float(np.average(-np.log(np.clip(p, _LEAST, 1.0 - _LEAST)), weights=weight))


def accuracy(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Share of rows with the right class."""
    return float(np.average(labels(prediction) == labels(y), weights=weight))


def error(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Share of rows with a wrong class."""
    return float(np.average(labels(prediction) != labels(y), weights=weight))


def error_at(threshold: float, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Share of rows with a wrong class of two, where class 1 is said above a threshold."""
    if prediction.shape[1] != 1:  # of one's own loss; of softmax it is refused before training
        raise ValueError("eval_metric='error@...' is for two classes: use 'multi_error', or 'multi_error@2'.")
    return float(np.average((prediction[:, 0] > threshold) != (y[:, 0] > 0.5), weights=weight))


def error_of_top(k: float, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Share of rows whose class is not among the `k` most probable; ties count against it, as in LightGBM."""
    p, true = _columns(prediction), labels(y)[:, None]
    as_probable = (p >= np.take_along_axis(p, true, axis=1)).sum(axis=1)
    return float(np.average(as_probable > k, weights=weight))


def auc(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Area under the ROC curve; of several classes each against the rest, by the weight of the class."""
    from sklearn.metrics import roc_auc_score

    return _against_the_rest("auc", roc_auc_score, prediction, y, weight)


def average_precision(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Precision averaged over recall; of several classes each against the rest, by the weight of the class."""
    from sklearn.metrics import average_precision_score

    return _against_the_rest("average_precision", average_precision_score, prediction, y, weight)


def aucpr(prediction: Floats, y: Floats, weight: Floats) -> float:
    """XGBoost's area under precision over recall; of several classes each against the rest, all alike."""
    return _against_the_rest("aucpr", _precision_recall_area, prediction, y, weight, alike=True)


def auc_mu(prediction: Floats, y: Floats, weight: Floats) -> float:
    """AUC of each pair of classes by the ratio of their probabilities, averaged over pairs [1]_.

    References
    ----------
    .. [1] Kleiman, Page: AUC-mu, a performance metric for multi-class machine learning models. ICML 2019.
    """
    from sklearn.metrics import roc_auc_score

    score, true, counted = np.log(np.maximum(_columns(prediction), np.finfo(float).tiny)), labels(y), weight > 0
    present = np.unique(true[counted])
    if len(present) < 2:
        raise _one_class("auc_mu")
    areas = []
    for first, second in combinations(present, 2):
        rows = counted & ((true == first) | (true == second))
        ratio = np.round(score[rows, first] - score[rows, second], 12)  # ties survive the rounding of logarithms
        areas.append(roc_auc_score(true[rows] == first, ratio, sample_weight=weight[rows]))
    return float(np.mean(areas))


def _precision_recall_area(y: Floats, p: Floats, sample_weight: Floats) -> float:
    """Integral of precision over recall, true and false positives taken as linear between thresholds."""
    from sklearn.metrics import roc_curve

    positive = sample_weight[y > 0.5].sum()
    false, recall, _ = roc_curve(y, p, sample_weight=sample_weight, drop_intermediate=False)
    false = false * (sample_weight.sum() - positive) / positive  # both in units of the positives
    rises = np.flatnonzero(np.diff(recall) > 0)
    r, f, step = recall[rises], false[rises], recall[rises + 1] - recall[rises]
    # precision = r / (r + f), and r + f = slope r + offset on a step
    slope = 1.0 + (false[rises + 1] - f) / step
    offset = r + f - slope * r
    flagged = recall + false
    logs = xlogy(offset / slope, flagged[rises + 1]) - xlogy(offset / slope, flagged[rises])
    return float(((step - logs) / slope).sum())


def _against_the_rest(
    name: str, area: Callable[..., float], prediction: Floats, y: Floats, weight: Floats, *, alike: bool = False
) -> float:
    """Mean of a measure of two classes over the classes that counted rows have, by their weight or all alike."""
    counted = weight > 0
    prediction, y, weight = prediction[counted], y[counted], weight[counted]
    present = np.flatnonzero(y.any(axis=0))
    if y[:, present].all():
        raise _one_class(name)
    areas = [area(y[:, k], prediction[:, k], sample_weight=weight) for k in present]
    return float(np.average(areas, weights=None if alike else weight @ y[:, present]))


def _columns(prediction: Floats) -> Floats:
    """Probabilities with a column for each class."""
    return np.hstack([1.0 - prediction, prediction]) if prediction.shape[1] == 1 else prediction


def _one_class(name: str) -> ValueError:
    return ValueError(f"eval_metric={name!r} needs rows of two classes, got one. Use eval_metric='logloss'.")
