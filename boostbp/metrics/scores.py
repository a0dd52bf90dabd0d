"""Scores of predictions, ``function(prediction, y, weight) -> float``, with shapes as in `metrics`.

Metrics that scikit-learn defines in the same way are computed by it. It is imported on use, as its metrics would slow
the import of the package.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlogy

from boostbp.losses import Loss, traits_of
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.metrics.survival import concordance_index
from boostbp.runtime.arrays import Floats

_LEAST = np.finfo(np.float64).eps  # smallest probability in a logarithm, as in scikit-learn


def by_sklearn(function: str, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Call a regression metric of scikit-learn by its name; return the mean over the outputs."""
    # Several quantiles are predictions of one target, whose column is broadcast.
    return _call(function, np.broadcast_to(y, prediction.shape), prediction, sample_weight=weight)


def of_labels(function: str, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Call a metric of labels of scikit-learn by its name."""
    return _call(function, labels(y), labels(prediction), sample_weight=weight)


def against_the_rest(name: str, function: str, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Call a metric of two classes of scikit-learn by its name; for several, average each class against the rest."""
    p, y, weight = _present(name, prediction, y, weight)
    if y.shape[1] == 1:
        p, y = p[:, 0], y[:, 0]
    return _call(function, y, p, average="weighted", sample_weight=weight)


def _call(function: str, *arrays: ArrayLike, **options: object) -> float:
    from sklearn import metrics

    return float(getattr(metrics, function)(*arrays, **options))


def rmse(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the root mean squared error, the mean over the outputs."""
    # As the default metric it must be fast: 36 us on 100 rows, where scikit-learn takes 447 for checks of its inputs.
    return float(np.sqrt(np.average(np.square(prediction - y), axis=0, weights=weight)).mean())


def r2(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the share of the variance of `y` that is explained."""
    if len(y) < 2:  # one row has no variance to explain
        raise ValueError("eval_metric='r2' needs at least 2 rows, got 1. Use eval_metric='rmse'.")
    return by_sklearn("r2_score", prediction, y, weight)


def rmsle(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the root mean squared error of ``log(1 + y)``; infinite if a prediction is -1 or less."""
    prediction, y, weight = _counted(prediction, y, weight)
    if not (y > -1.0).all():
        raise ValueError("eval_metric='rmsle' needs y above -1: use eval_metric='rmse'.")
    # Without a logarithm the score is the worst, but no error, as this may be one epoch among many.
    if not (prediction > -1.0).all():
        return float("inf")
    return by_sklearn("root_mean_squared_log_error", prediction, y, weight)


def mean_value(loss: Loss, scale: Floats | float, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean of a loss over rows and outputs; `scale`, (outputs,), divides predictions and targets first.

    Predictions are the raw output of a loss without `inverse_link`.
    """
    h = prediction / scale
    if (inverse_link := getattr(loss, "inverse_link", None)) is not None:
        h = inverse_link(h)
    return float(np.average(loss.value(h, y / scale), weights=weight) / prediction.shape[1])


def concordance(loss: Loss, raw: Floats, y: Floats, weight: ArrayLike | None) -> float:
    """Return Harrell's concordance of raw outputs: risk scores, or logarithms of times.

    Raises ValueError for censoring other than on the right.
    """
    event, time = y[:, 0] == y[:, 1], y[:, 0]
    if (~event & np.isfinite(y[:, 1])).any():
        raise ValueError("y has times with an upper bound, which have no order: concordance takes right-censored rows.")
    sign = -1.0 if traits_of(loss).link_name == "log" else 1.0
    return concordance_index(event, time, sign * raw[:, 0], sample_weight=weight)


def cox_nloglik(loss: Loss, raw: Floats, y: Floats, weight: Floats) -> float:
    """Return the negative log partial likelihood, divided by the weight of the events."""
    events = float(weight[y[:, 0] == y[:, 1]].sum())
    return float(weight @ CheckedLoss(loss).prepared(y, weight).value(raw, y)) / events if events else 0.0


def aft_nloglik(loss: Loss, raw: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean negative log-likelihood of accelerated failure times."""
    return float(np.average(loss.value(raw, y), weights=weight))


def within_bounds(loss: Loss, raw: Floats, y: Floats, weight: Floats) -> float:
    """Return the share of times within their bounds."""
    time, (lower, upper) = loss.link(raw)[:, 0], y.T
    return float(np.average((lower <= time) & (time <= upper), weights=weight))


def fair(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean of ``|e| - log(1 + |e|)`` for errors `e`: LightGBM's with its ``fair_c=1``."""
    # log1p, as e - log(1 + e) is about e^2 / 2 for a small e, and would lose all digits.
    e = np.abs(prediction - y)
    return _mean(e - np.log1p(e), weight)


def pseudo_huber(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean of ``sqrt(1 + e^2) - 1`` for errors `e`: XGBoost's with its ``huber_slope=1``."""
    return _mean(np.hypot(1.0, prediction - y) - 1.0, weight)  # hypot avoids overflow of the square


# The likelihoods of LightGBM and XGBoost are half the deviances of scikit-learn, up to terms of y.


def poisson(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean of ``p - y log p``; `p` is at least LightGBM's 1e-10."""
    p = np.maximum(prediction, 1e-10)
    return _mean(p - y * np.log(p), weight)


def poisson_nloglik(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean of ``p - y log p + log y!``, XGBoost's."""
    # gammaln(y + 1) is log y!, also for rates, which need not be whole.
    return poisson(prediction, y, weight) + _mean(gammaln(y + 1.0), weight)


def tweedie(power: float, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean of ``p^(2 - power) / (2 - power) - y p^(1 - power) / (1 - power)``, `p` as in `poisson`."""
    # The terms of the density that depend on p. Powers 1 and 2, which would divide by 0, are poisson and gamma.
    p = np.maximum(prediction, 1e-10)
    return _mean(p ** (2.0 - power) / (2.0 - power) - y * p ** (1.0 - power) / (1.0 - power), weight)


def gamma(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean of ``y / p + log p``; `p` is at least XGBoost's 1e-6."""
    p, y, weight = _positive(prediction, y, weight)
    return _mean(y / p + np.log(p), weight)


def gamma_deviance(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean gamma deviance; LightGBM reports the sum over rows."""
    p, y, weight = _positive(prediction, y, weight)
    # scikit-learn accepts one column, so each output of a row becomes a row of the same weight.
    y, weight = np.broadcast_to(y, p.shape).ravel(), np.repeat(weight, p.shape[1])
    return _call("mean_gamma_deviance", y, p.ravel(), sample_weight=weight)


def _positive(prediction: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return rows with weight: predictions, at least XGBoost's minimum, `y`, which must be positive, and weights."""
    prediction, y, weight = _counted(prediction, y, weight)
    if not (y > 0.0).all():
        raise ValueError("eval_metric of the gamma distribution needs y above 0: use eval_metric='tweedie'.")
    return np.maximum(prediction, 1e-6), y, weight


def _counted(prediction: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the rows with weight."""
    counted = weight > 0
    return prediction[counted], y[counted], weight[counted]


def _mean(values: Floats, weight: Floats) -> float:
    return float(np.average(values.mean(axis=1), weights=weight))


def labels(columns: Floats) -> NDArray[np.int64]:
    """Return the class of each row of targets or probabilities."""
    # A probability of exactly 0.5 is class 0, as in LightGBM; argmax takes the first of several equal classes.
    if columns.shape[1] == 1:
        return np.asarray(columns[:, 0] > 0.5, np.int64)
    return np.argmax(columns, axis=1)


def logloss(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean negative log-likelihood of the true class."""
    # As the default metric it must be fast: 30 times faster than scikit-learn's, which encodes the labels first.
    p = np.take_along_axis(_columns(prediction), labels(y)[:, None], axis=1)[:, 0]
    return float(np.average(-np.log(np.clip(p, _LEAST, 1.0 - _LEAST)), weights=weight))


def logloss_of_labels(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean negative log-likelihood of several labels, over rows and labels."""
    p = np.where(y > 0.5, prediction, 1.0 - prediction)
    return _mean(-np.log(np.clip(p, _LEAST, 1.0 - _LEAST)), weight)


def accuracy_of_labels(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the share of rows with all of several labels right."""
    return float(np.average(((prediction > 0.5) == (y > 0.5)).all(axis=1), weights=weight))


def error_at(threshold: float, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the share of rows with a wrong class, for two classes, where class 1 is predicted above a threshold."""
    if prediction.shape[1] != 1:  # from a custom loss; softmax is refused before training
        raise ValueError("eval_metric='error@...' is for two classes: use 'multi_error', or 'multi_error@2'.")
    return float(np.average((prediction[:, 0] > threshold) != (y[:, 0] > 0.5), weights=weight))


def error_of_top(k: float, prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the share of rows whose class is not among the `k` most probable; ties count as errors, as in LightGBM."""
    # Number of classes at least as probable as the true one, which is included.
    p = _columns(prediction)
    as_probable = (p >= np.take_along_axis(p, labels(y)[:, None], axis=1)).sum(axis=1)
    return float(np.average(as_probable > k, weights=weight))


def aucpr(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return XGBoost's area under precision over recall; for several classes, the mean of each against the rest."""
    p, y, weight = _present("aucpr", prediction, y, weight)
    return float(np.mean([_precision_recall_area(y[:, k], p[:, k], weight) for k in range(y.shape[1])]))


def auc_mu(prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean over pairs of classes of the AUC of the ratio of their probabilities (Kleiman, Page 2019)."""
    p, y, weight = _counted(_columns(prediction), y, weight)
    score, true = np.log(np.maximum(p, np.finfo(float).tiny)), labels(y)
    present = np.unique(true)
    if len(present) < 2:
        raise _one_class("auc_mu")
    areas = []
    for first, second in combinations(present, 2):
        rows = (true == first) | (true == second)
        ratio = np.round(score[rows, first] - score[rows, second], 12)  # ties survive errors of logarithms
        areas.append(_call("roc_auc_score", true[rows] == first, ratio, sample_weight=weight[rows]))
    return float(np.mean(areas))


def _precision_recall_area(y: Floats, p: Floats, weight: Floats) -> float:
    """Return the integral of precision over recall; true and false positives are linear between thresholds."""
    # scikit-learn's average precision is a sum over thresholds; XGBoost integrates between them.
    from sklearn.metrics import roc_curve

    positive = weight[y > 0.5].sum()
    false, recall, _ = roc_curve(y, p, sample_weight=weight, drop_intermediate=False)
    false = false * (weight.sum() - positive) / positive  # both relative to the number of positives
    rises = np.flatnonzero(np.diff(recall) > 0)
    r, f, step = recall[rises], false[rises], recall[rises + 1] - recall[rises]
    # precision = r / (r + f), and r + f = slope r + offset on a step
    slope = 1.0 + (false[rises + 1] - f) / step
    offset = r + f - slope * r
    flagged = recall + false
    logs = xlogy(offset / slope, flagged[rises + 1]) - xlogy(offset / slope, flagged[rises])
    return float(((step - logs) / slope).sum())


def _present(name: str, prediction: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the rows with weight and the columns that some of them have, not all; ValueError if there are none."""
    prediction, y, weight = _counted(prediction, y, weight)
    present = y.any(axis=0) & ~y.all(axis=0)
    if not present.any():
        raise _one_class(name)
    return prediction[:, present], y[:, present], weight


def _columns(prediction: Floats) -> Floats:
    """Return probabilities with a column for each class."""
    return np.hstack([1.0 - prediction, prediction]) if prediction.shape[1] == 1 else prediction


def _one_class(name: str) -> ValueError:
    return ValueError(f"eval_metric={name!r} needs rows of two classes, got one. Use eval_metric='logloss'.")
