"""Conformal prediction: intervals and sets of classes with a requested coverage of the targets [1]_, [2]_, [3]_.

The predictions of a fitted model are compared with the targets of n rows that it was not trained on. If these rows and
a future row are exchangeable, the rank of the future row's distance among all n + 1 is uniformly distributed.

Weights of rows, such as exposures or inverse probabilities, mean that future rows are drawn in proportion to them [4]_.
A future row has the mean weight ``sum w^2 / sum w``, which is scaled to 1 here. The weights then sum to the effective
number of rows, ``n = (sum w)^2 / sum w^2`` (Kish), which is the number of rows if all weights are equal.

References
----------
.. [1] Lei, G'Sell, Rinaldo, Tibshirani, Wasserman: Distribution-free predictive inference for regression. JASA 113
   (2018). Split-conformal intervals: a prediction and quantiles of residuals.
.. [2] Romano, Patterson, Candès: Conformalized quantile regression. NeurIPS 2019.
.. [3] Sadinle, Lei, Wasserman: Least ambiguous set-valued classifiers with bounded error levels. JASA 114 (2019).
.. [4] Tibshirani, Barber, Candès, Ramdas: Conformal prediction under covariate shift. NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.estimators.held_out import at_random
from boostbp.estimators.inspected import FittedModel
from boostbp.estimators.request import Request
from boostbp.inputs.targets import read_groups
from boostbp.losses import Quantiles, traits_of
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.model.hazards import with_curves, with_scale
from boostbp.model.model import Calibration, Model, Targets
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats, TableLike
from boostbp.trees.sparse import Table

CALIBRATION_DRAW = 99  # number of this random draw; those of held-out rows count from 0. Arbitrary
MIN_DEVIATION = 1e-150  # smallest divisor of a residual; arbitrary


def predict_interval(
    self: FittedModel, X: TableLike, coverage: float = 0.9, *, offset: ArrayLike | None = None
) -> Floats:
    """Predict intervals that contain the share `coverage` of the targets, for rows like those of the calibration.

    With several quantiles, an interval extends from the level closest to ``(1 - coverage) / 2`` to the level closest to
    ``(1 + coverage) / 2``, and the calibration shifts both ends (Romano et al. 2019). Such intervals are wide where `y`
    is uncertain. Other models have intervals of constant width, except that with ``loss="poisson"``, ``"gamma"`` and
    ``"tweedie"`` the width grows with the prediction like the standard deviation of the distribution (Lei et al. 2018).

    Parameters
    ----------
    X : array-like, (rows, features)
    coverage : float
        Between 0 and 1. One calibration serves any number of coverages.
    offset : array-like, optional
        As in `predict`.

    Returns
    -------
    (rows, 2) or (rows, outputs, 2) float64
        Lower and upper end. The coverage holds for each of several targets separately.

    Raises
    ------
    ValueError
        If the model has no calibration, from ``calibration=...`` or `calibrate`, or too few rows for the coverage.
    """
    calibration, share = _calibration(self.model_, coverage)
    targets = self.model_.targets
    prediction = targets.outcome(self._raw(X, offset))
    deviation = _deviation(targets, prediction)
    ends = [(output, output) for output in range(prediction.shape[1])]
    if isinstance(targets.loss, Quantiles):  # the levels closest to the ends of the coverage
        distances = np.abs(np.array(targets.loss.alpha) - np.array([[1 - share], [1 + share]]) / 2)
        ends = [tuple(distances.argmin(axis=1).tolist())]
    intervals = []
    for low, high in ends:
        distance = np.maximum(-calibration.scores[:, low], calibration.scores[:, high])
        bound = calibration.bound(distance, share)
        below = prediction[:, low] - bound * deviation[:, low]
        above = prediction[:, high] + bound * deviation[:, high]
        middle = (below + above) / 2  # both ends if the shift makes quantiles cross
        intervals.append(np.column_stack([np.minimum(below, middle), np.maximum(above, middle)]))
    if targets.link_name == "log":
        intervals = [np.maximum(part, 0.0) for part in intervals]
    return np.stack(intervals, axis=1) if len(ends) > 1 else intervals[0]


def predict_set(
    self: FittedModel, X: TableLike, coverage: float = 0.9, *, offset: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """Predict sets of classes that contain the share `coverage` of the true classes, for rows like the calibration's.

    The set of a row contains each class whose probability exceeds a threshold that is the same for all rows and
    classes. Such sets have the smallest mean size (Sadinle et al. 2019). The set of an ambiguous row has several
    classes. If the model is right more often than `coverage` requires, the sets of its least certain rows are empty.

    Parameters
    ----------
    X : array-like, (rows, features)
    coverage : float
        Between 0 and 1. One calibration serves any number of coverages.
    offset : array-like, optional
        As in `predict`.

    Returns
    -------
    (rows, classes) bool
        Columns as in `classes_`.

    Raises
    ------
    ValueError
        If the model has no calibration, from ``calibration=...`` or `calibrate`, or too few rows for the coverage.
    """
    calibration, share = _calibration(self.model_, coverage)
    probabilities = self.model_.targets.probabilities(self._raw(X, offset))
    return 1.0 - probabilities <= calibration.bound(calibration.scores[:, 0], share)


def conformity_scores(targets: Targets, raw: Floats, target: Floats) -> Floats:
    """Return the distances of targets from predictions, as in `Calibration`."""
    if targets.classes is None:
        prediction = targets.outcome(raw)
        return (target - prediction) / _deviation(targets, prediction)
    one_hot = target if target.shape[1] > 1 else np.hstack([1.0 - target, target])
    return 1.0 - (targets.probabilities(raw) * one_hot).sum(axis=1, keepdims=True)


def _calibration(model: Model, coverage: float) -> tuple[Calibration, float]:
    """Return the calibration of a model and the checked coverage."""
    calibration = model.calibration
    refuse_several_labels(model.targets.multilabel)
    if calibration is None:
        raise ValueError(
            "The model is not calibrated: the last fit reserved no rows for calibration, and calibrate was not called "
            "since. Fit with, for example, calibration=0.2 (fit_more reserves none), or call calibrate(X, y) with rows "
            "that the fit did not have."
        )
    return calibration, checks.between("coverage", coverage, 0, 1)


def refuse_several_labels(multilabel: bool) -> None:
    """Raise ValueError if a row may have several labels, as sets of classes are calibrated for one true class."""
    if multilabel:
        raise ValueError(
            "Several labels have no sets of classes, so calibration=..., calibrate and predict_set are not supported: "
            "fit a model for each label, with sklearn.multioutput.MultiOutputClassifier(BoostBPClassifier())."
        )


def _deviation(targets: Targets, prediction: Floats) -> Floats:
    """Return the scale of the residuals of a prediction, (rows, outputs): 1 if the loss has no `deviation`."""
    deviation = getattr(targets.loss, "deviation", np.ones_like)(prediction)
    return np.maximum(deviation, MIN_DEVIATION)


def calibration_rows(request: Request, table: Table, weight: Floats, strata: NDArray[Any] | None) -> NDArray[np.intp]:
    """Return the numbers of the rows that ``calibration`` reserves; see `hold_out`."""
    share = checks.between("calibration", request.values["calibration"], 0, 0.5)
    refuse_several_labels(strata is not None and strata.ndim == 2)
    groups = request.arguments.groups
    names = None if groups is None else read_groups(groups, len(weight))
    rows = at_random(request, table, weight, strata, names, CALIBRATION_DRAW, share)
    if not len(rows):
        raise ValueError(
            f"calibration={share!r} reserves no row: give more rows, or leave it None and call calibrate(X, y)."
        )
    return rows


def calibrated(
    model: Model, table: Table, target: Floats, weight: Floats, offset: ArrayLike | None, n_threads: int
) -> Model:
    """Return a model with the calibration on rows that it was not trained on."""
    counted = weight > 0
    refuse_several_labels(model.targets.multilabel)
    raw = model.add_offset(model.network.predict(table.X, n_jobs=n_threads), offset)
    if traits_of(model.targets.loss).task == "survival":
        CheckedLoss(model.targets.loss).check(target[counted], weight[counted])
        of_rows = raw[counted], target[counted], weight[counted]
        return with_curves(with_scale(model, *of_rows), *of_rows)
    scores = conformity_scores(model.targets, raw, target)
    return replace(model, calibration=Calibration(scores[counted], weight[counted]))
