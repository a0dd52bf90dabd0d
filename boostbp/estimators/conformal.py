"""Conformal prediction: intervals and sets of classes that hold as many targets as is asked for [1]_, [2]_, [3]_.

A fitted model is compared with the targets of n rows that it did not learn from. If these and a row to come could as
well stand in any other order, its distance is as likely the k-th smallest of all n + 1 for each k.

Rows with weights, such as exposures or inverse probabilities, stand for rows to come that are drawn in proportion to
them [4]_. Such a row has the weight ``sum w^2 / sum w`` on average, which counts as 1 here: the weights then sum to the
effective number of rows, ``n = (sum w)^2 / sum w^2`` (Kish), which is the number of rows where all are alike.

References
----------
.. [1] Lei, G'Sell, Rinaldo, Tibshirani, Wasserman: Distribution-free predictive inference for regression. JASA 113
   (2018). Split-conformal intervals: a prediction and quantiles of residuals.
.. [2] Romano, Patterson, Candès: Conformalized quantile regression. NeurIPS 2019.
.. [3] Sadinle, Lei, Wasserman: Least ambiguous set-valued classifiers with bounded error levels. JASA 114 (2019).
.. [4] Tibshirani, Barber, Candès, Ramdas: Conformal prediction under covariate shift. NeurIPS 2019.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boostbp.inspection.calibration import Calibration
from boostbp.losses import Loss, Quantiles
from boostbp.model import Targets
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats

if TYPE_CHECKING:
    from boostbp.estimators.supervised import Supervised

LEAST_DEVIATION = 1e-150  # that a residual is divided by


def predict_interval(self: Supervised, X: Any, coverage: float = 0.9, *, offset: Any = None) -> Floats:
    """Intervals that hold so large a share of the targets, over rows that are like those of the calibration.

    Of a model of several quantiles they reach from the level next to ``(1 - coverage) / 2`` to that next to
    ``(1 + coverage) / 2``, both moved by as much as the calibration says [2]_: they are wide where `y` is
    uncertain. Those of other models are as wide everywhere, or, with ``loss="poisson"``, ``"gamma"`` and
    ``"tweedie"``, grow with the prediction as the deviation of their distribution does [1]_. The references are
    those of `boostbp.estimators.conformal`.

    Parameters
    ----------
    X : array-like, (rows, features)
    coverage : float
        Between 0 and 1. The calibration does not depend on it: any number of them may be asked for.
    offset : array-like, optional
        As in `predict`.

    Returns
    -------
    (rows, 2) or (rows, outputs, 2) float64
        Lowest and highest value. Several targets are covered each by itself.

    Raises
    ------
    ValueError
        If no rows were kept out of the fit, by ``calibration=...`` or for `calibrate`, or too few for the coverage.
    """
    calibration, share = _calibration(self, coverage)
    targets = self.model_.targets
    prediction = targets.outcome(self._with_offset(self._raw(X), offset))
    deviation = _deviation(targets, prediction)
    ends = _levels(targets.loss, share) or [(output, output) for output in range(prediction.shape[1])]
    intervals = []
    for low, high in ends:
        further = np.maximum(-calibration.scores[:, low], calibration.scores[:, high])
        bound = calibration.bound(further, share)
        below = prediction[:, low] - bound * deviation[:, low]
        above = prediction[:, high] + bound * deviation[:, high]
        middle = (below + above) / 2  # where quantiles are moved past each other
        intervals.append(np.column_stack([np.minimum(below, middle), np.maximum(above, middle)]))
    if targets.link_name == "log":
        intervals = [np.maximum(part, 0.0) for part in intervals]
    return np.stack(intervals, axis=1) if len(ends) > 1 else intervals[0]


def predict_set(self: Supervised, X: Any, coverage: float = 0.9, *, offset: Any = None) -> NDArray[np.bool_]:
    """Sets of classes that hold so large a share of the true ones, over rows like those of the calibration.

    A class is in the set of a row if its probability is above a threshold, the same for all rows and classes:
    such sets are the smallest on average [3]_. That of a row between classes has several, and where the model is
    right more often than `coverage` asks for, sets of the rows that it is least sure of are empty. The reference
    is one of `boostbp.estimators.conformal`.

    Parameters
    ----------
    X : array-like, (rows, features)
    coverage : float
        Between 0 and 1, any number of times.
    offset : array-like, optional
        As in `predict`.

    Returns
    -------
    (rows, classes) bool
        Columns as in `classes_`.

    Raises
    ------
    ValueError
        If no rows were kept out of the fit, by ``calibration=...`` or for `calibrate`, or too few for the coverage.
    """
    calibration, share = _calibration(self, coverage)
    return 1.0 - self.model_.targets.probabilities(self._with_offset(self._raw(X), offset)) <= calibration.bound(
        calibration.scores[:, 0], share
    )


def conformity_scores(targets: Targets, raw: Floats, target: Floats) -> Floats:
    """Return how far targets are from what raw outputs say, as in `Calibration`."""
    if targets.classes is None:
        prediction = targets.outcome(raw)
        return (target - prediction) / _deviation(targets, prediction)
    of_classes = target if target.shape[1] > 1 else np.hstack([1.0 - target, target])
    return 1.0 - (targets.probabilities(raw) * of_classes).sum(axis=1, keepdims=True)


def _calibration(estimator: Supervised, coverage: Any) -> tuple[Calibration, float]:
    """Return the calibration of a fitted estimator, and the coverage, checked."""
    check_is_fitted(estimator)
    calibration = estimator.model_.calibration
    if calibration is None:
        raise ValueError(
            "No rows were kept out when the model was trained last, and calibrate was not called since: how far it "
            "is to be trusted is not known. Fit with calibration=0.2, say (fit_more keeps none out), or call "
            "calibrate(X, y) with rows that the fit did not have."
        )
    return calibration, checks.between("coverage", coverage, 0, 1)


def _levels(loss: Loss, coverage: float) -> list[tuple[int, int]]:
    """Return the outputs of the quantiles next to the ends of the coverage; none if the loss is of no quantiles."""
    if not isinstance(loss, Quantiles):
        return []
    distance = np.abs(np.array(loss.alpha) - np.array([[1 - coverage], [1 + coverage]]) / 2)
    low, high = distance.argmin(axis=1)
    return [(int(low), int(high))]


def _deviation(targets: Targets, prediction: Floats) -> Floats:
    """Return what residuals of a prediction grow with, (rows, outputs): 1 if the loss does not say."""
    told = getattr(targets.loss, "deviation", np.ones_like)(prediction)
    return np.maximum(told, LEAST_DEVIATION)
