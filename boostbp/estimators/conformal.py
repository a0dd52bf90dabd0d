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

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boostbp import checks
from boostbp.backends.base import Table
from boostbp.estimators.held_out import at_random
from boostbp.estimators.supervised import Supervised
from boostbp.floats import Floats
from boostbp.inputs.rows import Rows
from boostbp.inputs.targets import read_groups, read_weight
from boostbp.losses import Quantiles, traits_of

DRAW = 99  # of the draws of a seed: those before are of rows that are held out
ROUNDING = 1e-12  # of coverage times rows
LEAST_DEVIATION = 1e-150  # that a residual is divided by


class KeptOut(NamedTuple):
    """Rows of a fit that it must not learn from, by number, and their weights."""

    rows: NDArray[np.intp]
    weight: Floats


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far a model was from targets that it had not seen."""

    # (rows, outputs) float64: of numbers the target minus the prediction, divided by the deviation that a loss tells of
    # it. Of classes, one column: 1 minus the probability of the true one.
    scores: Floats
    weight: Floats  # (rows,) float64: above 0, in any unit

    def bound(self, scores: Floats, coverage: float) -> float:
        """Return the score that so large a share of rows to come stays below.

        Of n rows it is the k-th smallest, ``k = ceil(coverage (n + 1))``: the row to come may take any of n + 1 places.
        Of rows with weights, n is their effective number, and k a sum of weights.

        Parameters
        ----------
        scores : (rows,) float64

        Raises
        ------
        ValueError
            If there are too few rows, so that the largest score does not do.
        """
        weight = self.weight / self.weight.max()
        weight *= weight.sum() / (weight @ weight)
        total = float(weight.sum())
        if coverage * (total + 1) > total * (1 + ROUNDING):
            counted = "" if np.ptp(weight) <= ROUNDING else f" by their weights, of {len(weight)}"
            raise ValueError(
                f"coverage={coverage:g} needs {np.ceil(coverage / (1 - coverage) - 1e-9):.0f} rows of calibration, and "
                f"there are {total:.6g}{counted}: ask for {total / (total + 1):.3g} at most, or keep more rows out, by "
                "a larger calibration=... of the estimator, or by calibrate(X, y)."
            )
        order = np.argsort(scores, kind="stable")
        reached = np.cumsum(weight[order])
        place = np.searchsorted(reached, coverage * (total + 1) * (1 - ROUNDING))
        return float(scores[order[min(int(place), len(order) - 1)]])


class Conformal(Supervised):
    """Rows that are kept out of a fit, and what they say of it."""

    calibration: Any
    _calibration: Calibration | None = None

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> Self:
        """Learn from rows that the model has not seen how far it is to be trusted.

        Earlier rows of this kind, also those that ``calibration=...`` kept out, do not count any more.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix, (rows, features)
            Rows that neither the fit nor an `eval_set` had: otherwise what is made of them holds too few targets.
        y : array-like, (rows,) or (rows, outputs)
        sample_weight : array-like, (rows,), optional
            Shares of the rows to come that are like each, in any unit. Unequal ones count as fewer rows.
        offset : array-like, optional
            As in `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._check_offset(offset, "calibrate")
        table = self._read(X)
        target = self._encode(y, len(table.X))
        if target.shape[1] != self._n_targets:
            raise ValueError(
                f"y has {target.shape[1]} outputs, the model was fitted to {self._n_targets}: give the same."
            )
        weight = read_weight(sample_weight, len(table.X))
        self._calibration = self._calibrated(table, target, weight, offset)
        return self

    def _keep_out(self, table: Table, weight: Floats, strata: Any, groups: Any) -> tuple[Floats, KeptOut | None]:
        """Draw the rows that ``calibration=...`` keeps out, and return weights, (rows,), which are 0 for them.

        `strata` and `groups` are those of `hold_out`.
        """
        if self.calibration is None:
            return weight, None
        checks.between("calibration", self.calibration, 0, 0.5)
        names = None if groups is None else read_groups(groups, len(weight))
        rows = at_random(self, table, weight, strata, names, 0, DRAW, _number_kept_out)
        if not len(rows):
            raise ValueError(
                f"calibration={self.calibration!r} keeps none of {np.count_nonzero(weight)} rows out: give more that "
                "differ, or leave it None and call calibrate(X, y)."
            )
        rest = weight.copy()
        rest[rows] = 0.0
        return rest, KeptOut(rows, weight[rows])

    def _calibrate_by(self, kept_out: KeptOut | None, rows: Rows, offset: Any) -> None:
        """Compare the fitted model with the rows that were kept out of its fit; `offset` is the user's."""
        if kept_out is not None:
            numbers, weight = kept_out
            if offset is not None:
                offset = self._read_offset(offset, len(rows), self._n_targets)[numbers]
            self._calibration = self._calibrated(rows.table.take(numbers), rows.y[numbers], weight, offset)

    def _calibrated(self, table: Table, target: Floats, weight: Floats, offset: Any) -> Calibration:
        counted = weight > 0
        raw = self._beside(self.network_.predict(table.X, n_jobs=self._n_threads()), offset)
        return Calibration(self._scores(raw, target)[counted], weight[counted])

    def _scores(self, raw: Floats, target: Floats) -> Floats:
        """Scores of rows by their raw outputs and targets, as in `Calibration`."""
        raise NotImplementedError

    def _known(self, coverage: Any) -> tuple[Calibration, float]:
        """Return the calibration, and the coverage, checked."""
        check_is_fitted(self)
        if self._calibration is None:
            raise ValueError(
                "No rows were kept out when the model was trained last, and calibrate was not called since: how far it "
                "is to be trusted is not known. Fit with calibration=0.2, say (fit_more keeps none out), or call "
                "calibrate(X, y) with rows that the fit did not have."
            )
        return self._calibration, checks.between("coverage", coverage, 0, 1)


class Intervals(Conformal):
    """Intervals of a regressor."""

    def predict_interval(self, X: Any, coverage: float = 0.9, *, offset: Any = None) -> Floats:
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
        calibration, share = self._known(coverage)
        prediction = self._outcome(self._raw(X, offset))
        deviation = self._deviation(prediction)
        ends = self._levels(share) or [(output, output) for output in range(prediction.shape[1])]
        intervals = []
        for low, high in ends:
            further = np.maximum(-calibration.scores[:, low], calibration.scores[:, high])
            bound = calibration.bound(further, share)
            below = prediction[:, low] - bound * deviation[:, low]
            above = prediction[:, high] + bound * deviation[:, high]
            middle = (below + above) / 2  # where quantiles are moved past each other
            intervals.append(np.column_stack([np.minimum(below, middle), np.maximum(above, middle)]))
        if traits_of(self._loss).link_name == "log":
            intervals = [np.maximum(part, 0.0) for part in intervals]
        return np.stack(intervals, axis=1) if len(ends) > 1 else intervals[0]

    def _levels(self, coverage: float) -> list[tuple[int, int]]:
        """Outputs of the levels next to those of the coverage; none where outputs are targets of their own."""
        if not isinstance(self._loss, Quantiles):
            return []
        distance = np.abs(np.array(self._loss.alpha) - np.array([[1 - coverage], [1 + coverage]]) / 2)
        low, high = distance.argmin(axis=1)
        return [(int(low), int(high))]

    def _scores(self, raw: Floats, target: Floats) -> Floats:
        prediction = self._outcome(raw)
        return (target - prediction) / self._deviation(prediction)

    def _deviation(self, prediction: Floats) -> Floats:
        """What residuals of a prediction grow with, (rows, outputs): 1 where the loss says nothing of it."""
        told = getattr(self._loss, "deviation", np.ones_like)(prediction)
        return np.maximum(told, LEAST_DEVIATION)

    def _outcome(self, raw: Floats) -> Floats:
        raise NotImplementedError


class Sets(Conformal):
    """Sets of classes of a classifier."""

    def predict_set(self, X: Any, coverage: float = 0.9, *, offset: Any = None) -> NDArray[np.bool_]:
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
        calibration, share = self._known(coverage)
        return 1.0 - self._probabilities(self._raw(X, offset)) <= calibration.bound(calibration.scores[:, 0], share)

    def _scores(self, raw: Floats, target: Floats) -> Floats:
        of_classes = target if target.shape[1] > 1 else np.hstack([1.0 - target, target])
        return 1.0 - (self._probabilities(raw) * of_classes).sum(axis=1, keepdims=True)

    def _probabilities(self, raw: Floats) -> Floats:
        raise NotImplementedError


def _number_kept_out(estimator: Any, count: int, what: str) -> int:
    """How many of so many rows, or groups of them, are kept out."""
    return int(np.ceil(estimator.calibration * count))
