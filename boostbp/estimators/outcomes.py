"""Outcomes: units of targets; numbers, or classes and their probabilities, by the link from raw outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax

from boostbp import losses
from boostbp.estimators.nested_parameters import suggests
from boostbp.estimators.supervised import Supervised
from boostbp.floats import Floats, usual_in_methods
from boostbp.group import workers
from boostbp.losses import Loss, location, traits_of
from boostbp.network.steps import std

# Quantiles above the median (those below stand opposite), and the distance between the two in a Gaussian's standard
# deviations.
_QUARTILES = ((0.75, 1.349), (0.9, 2.563), (0.98, 4.107))


def standard_units(target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted mean and standard deviation of each output, (outputs,)."""
    total, moment = workers().sum(weight.sum(), weight @ target)
    shift = moment / total
    unit = np.maximum(std(target, weight), 1e-12 * np.abs(shift))  # what is less is rounding
    return shift, np.where(unit > 0, unit, 1.0)


def robust_units(target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted median of each output, (outputs,), and its standard deviation as quartiles, or wider quantiles, tell it.

    Where most rows have one value it is the standard deviation.
    """
    _, unit = standard_units(target, weight)
    target, weight = workers().sample(target, weight)
    shift = location.quantile(target, weight, 0.5)
    found = np.zeros_like(unit)
    for upper, between in _QUARTILES:
        width = location.quantile(target, weight, upper) - location.quantile(target, weight, 1.0 - upper)
        found = np.where(found > 0, found, width / between)
    return shift, np.where(found > 1e-12 * np.abs(shift), found, unit)


def units_of(target: Floats, weight: Floats, loss: Loss) -> tuple[Floats, Floats]:
    """Shift and standard deviation that bring a target to mean 0 and standard deviation 1, where the loss allows it.

    Of losses that a few rows far off do not bend these are the median and the quartiles, which such rows do not either.
    """
    n_outputs = target.shape[1]
    if not loss.scale_free:
        return np.zeros(n_outputs), np.ones(n_outputs)
    if traits_of(loss).robust:
        return robust_units(target, weight)
    return standard_units(target, weight)


@usual_in_methods
class NumberPredictions(Supervised):
    """Predictions of a regressor."""

    _scale: Floats
    _shift: Floats
    _one_dimensional: bool

    @suggests
    def predict(self, X: Any, *, offset: Any = None) -> Floats:
        """Predicted target, (rows,) or (rows, outputs); of several quantiles, (rows, levels) in ascending order.

        Parameters
        ----------
        X : array-like, (rows, features); path, or iterator of blocks of features
        offset : array-like, (rows,) or (rows, outputs), or 0, optional
            As in `fit`. Without one it is 0, such as an exposure of 1; a model that was fitted with one warns then,
            unless ``offset=0`` says that this is meant.
        """
        return self._prediction(self._raw(X, offset))

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[Floats]:
        """Predictions of the growing model: after each round of its output layer, on hidden layers that stay.

        Of an average (``deep="auto"``, ``quality``) one tree for each output joins at a time, in the order of
        `trees_to_dataframe`: those of one model after those of another.

        Parameters
        ----------
        X, offset :
            As in `predict`.

        Yields
        ------
        (rows,) or (rows, outputs) float64
            The last one is that of `predict`, up to rounding.
        """
        return (self._prediction(self._beside(raw, offset)) for raw in self._staged_raw(X))

    def _prediction(self, raw: Floats) -> Floats:
        prediction = self._outcome(raw)
        return prediction.ravel() if self._one_dimensional else prediction

    def _outcome(self, raw: Floats) -> Floats:
        return self._loss.link(raw) * self._scale + self._shift

    def _to_target(self, y: Floats) -> Floats:
        """As the loss takes it, (rows, outputs): several quantiles have units for each, and copies of one column."""
        return (y - self._shift) / self._scale

    def _output_scale(self) -> Floats:
        return self._scale

    def _output_offset(self) -> Floats:
        return self._shift

    def _score(self, y: Any, prediction: Floats, *, sample_weight: Any = None) -> float:
        """R2, or of several quantiles the mean of its like for pinball losses."""
        from sklearn.metrics import d2_pinball_score, r2_score  # imported here, as it slows the import of the package

        if not isinstance(self._loss, losses.Quantiles):
            return float(r2_score(y, prediction, sample_weight=sample_weight))
        levels = zip(self._loss.alpha, prediction.T, strict=True)
        scores = [d2_pinball_score(y, at, sample_weight=sample_weight, alpha=level) for level, at in levels]
        return float(np.mean(scores))

    def _output_names(self) -> list[str]:
        if isinstance(self._loss, losses.Quantiles):
            return [f"q{level:g}" for level in self._loss.alpha]
        return super()._output_names()


@usual_in_methods
class ClassPredictions(Supervised):
    """Predictions of a classifier."""

    classes_: NDArray[Any]

    def decision_function(self, X: Any, *, offset: Any = None) -> Floats:
        """Raw output: log-odds, (rows,), for two classes; (rows, classes) for more. `offset` as in `predict_proba`."""
        raw = self._raw(X, offset)
        return raw.ravel() if raw.shape[1] == 1 else raw

    @suggests
    def predict_proba(self, X: Any, *, offset: Any = None) -> Floats:
        """Probability of each class, (rows, classes).

        Parameters
        ----------
        X : array-like, (rows, features); path, or iterator of blocks of features
        offset : array-like, (rows,) for two classes, (rows, classes) for more, or 0, optional
            As in `fit`. Without one it is 0; a model that was fitted with one warns then, unless ``offset=0`` says
            that this is meant.
        """
        return self._probabilities(self._raw(X, offset))

    def predict_log_proba(self, X: Any, *, offset: Any = None) -> Floats:
        """Logarithm of the probability of each class, (rows, classes), where these round to 0 or 1, too.

        `offset` as in `predict_proba`.
        """
        raw = self._raw(X, offset)
        if self._link_name == "logit" and raw.shape[1] == 1:
            return log_expit(np.hstack([-raw, raw]))
        if self._link_name == "softmax":
            return log_softmax(raw, axis=1)
        with np.errstate(divide="ignore"):
            return np.log(self._probabilities(raw))

    def staged_predict_proba(self, X: Any, *, offset: Any = None) -> Iterator[Floats]:
        """Probabilities by the growing model, (rows, classes) each; see `BoostBPRegressor.staged_predict`."""
        return (self._probabilities(self._beside(raw, offset)) for raw in self._staged_raw(X))

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[NDArray[Any]]:
        """Most probable classes by the growing model, (rows,) each; see `BoostBPRegressor.staged_predict`."""
        return (self._labels(self._beside(raw, offset)) for raw in self._staged_raw(X))

    def _probabilities(self, raw: Floats) -> Floats:
        link = self._loss.link
        if raw.shape[1] == 1 and self._link_name == "logit":
            return np.column_stack([link(-raw), link(raw)])  # 1 - link(raw) would round small ones away
        p = link(raw)
        return p if p.shape[1] > 1 else np.column_stack([1.0 - p, p])

    @suggests
    def predict(self, X: Any, *, offset: Any = None) -> NDArray[Any]:
        """Most probable class, (rows,). For `offset` see `predict_proba`."""
        return self._labels(self._raw(X, offset))

    def _labels(self, raw: Floats) -> NDArray[Any]:
        if raw.shape[1] > 1:
            of_classes = raw if self._link_name == "softmax" else self._loss.link(raw)
            return self.classes_[of_classes.argmax(axis=1)]
        of_second = raw > 0 if self._link_name == "logit" else self._loss.link(raw) > 0.5
        return self.classes_[of_second[:, 0].astype(int)]

    @property
    def _link_name(self) -> str | None:
        return losses.traits_of(self._loss).link_name
