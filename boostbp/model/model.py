"""Model: the result of a fit, from which predictions, files and exports are made; its targets and calibration."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.inputs.schema import Schema
from boostbp.inputs.survival_times import read_survival
from boostbp.inputs.targets import label_names, read_offset, read_target
from boostbp.losses import Loss, Quantiles, traits_of
from boostbp.losses.base import weighted_quantile
from boostbp.model.regressions import Names
from boostbp.model.summary import Summary
from boostbp.network.history import History
from boostbp.network.network import Network
from boostbp.network.steps import std
from boostbp.runtime import messages
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

ROUNDING = 1e-12  # relative rounding error of a coverage times a number of rows
# Quantile levels q, and the distance between the quantiles q and 1 - q of a Gaussian in standard deviations.
QUARTILES = ((0.75, 1.349), (0.9, 2.563), (0.98, 4.107))


@dataclass(frozen=True, slots=True)
class Targets:
    """Conversion between targets as users pass them and raw outputs."""

    loss: Loss
    # (outputs,) each: ``raw * scale + shift`` has the units of the target; 0 and 1 for classes
    shift: Floats
    scale: Floats
    # Labels in ascending order, or the names of several labels in the order of the columns; None for numeric targets
    classes: NDArray[Any] | None = None
    one_dimensional: bool = False  # whether the target was (rows,) and not (rows, outputs)
    is_input: bool = False  # whether the target is the input, as in an auto-encoder
    zero_one: NDArray[Any] | None = None  # 0 and 1 in the dtype of the target if a row may have several labels

    @property
    def multilabel(self) -> bool:
        """Whether the target has a column of 0 and 1 for each of several labels."""
        return self.zero_one is not None

    @property
    def n_outputs(self) -> int:
        """Number of raw outputs."""
        return len(self.scale)

    @property
    def n_columns(self) -> int:
        """Number of columns of the target: one for each output, unless the loss says otherwise."""
        traits = traits_of(self.loss)
        return len(traits.columns) or (self.n_outputs if traits.copies is None else 1)

    def read(self, y: ArrayLike, n_rows: int) -> Floats:
        """Return a target with `n_rows` rows as metrics read it, (rows, columns).

        Raises ValueError if it cannot be read, contains a class that `fit` did not see, or has other labels.
        """
        if traits_of(self.loss).task == "survival":
            return read_survival(y, n_rows)
        if self.classes is None:
            target: Floats = read_target(y, n_rows)
            return target.reshape(n_rows, -1)
        labels = read_target(y, n_rows, labels=True)
        self.check_labels(labels, label_names(y))
        if not self.multilabel and len(unknown := np.setdiff1d(labels, self.classes)):
            raise ValueError(f"y has classes that it did not have at fit: {unknown.tolist()!r}. Leave those rows out.")
        return self.one_hot(labels)

    def check_labels(self, labels: NDArray[Any], names: tuple[str, ...] | None) -> None:
        """Raise ValueError unless labels, (rows,) or (rows, labels), have the columns of these targets.

        Their names must be the same, too, if both have some.
        """
        assert self.classes is not None
        width = f"(rows, {self.n_outputs})" if self.multilabel else "(rows,)"
        if labels.shape[1:] != ((self.n_outputs,) if self.multilabel else ()):
            raise ValueError(f"y has shape {labels.shape}, and the model has targets of shape {width}: give the same.")
        if self.multilabel and names is not None and self.classes.dtype.kind == "U" and names != (*self.classes,):
            known = (*self.classes.tolist(),)
            raise ValueError(f"y has the labels {names}, the model {known}: give the same, in order.")

    def read_offset(self, offset: ArrayLike, n_rows: int, name: str = "offset") -> Floats:
        """Return an offset, (rows, columns); raise ValueError if it cannot be read or its exponential is clipped."""
        known = read_offset(offset, n_rows, self.n_columns if traits_of(self.loss).copies else self.n_outputs, name)
        if self.link_name == "log":
            low, high = getattr(self.loss, "lowest", -np.inf), getattr(self.loss, "highest", np.inf)
            wrong = known[(known < low) | (known > high)]
            if len(wrong):
                raise ValueError(
                    f"{name} holds {wrong[0]:g}, and loss={self.loss.name!r} takes exponentials of raw outputs from "
                    f"{low:g} to {high:g}: give the logarithm of the exposure."
                )
        return known

    def one_hot(self, labels: NDArray[Any]) -> Floats:
        """Return labels in one-hot encoding, (rows, classes); for two classes only the second column, (rows, 1).

        Several labels of a row, (rows, labels), are encoded already.
        """
        assert self.classes is not None
        if self.multilabel:
            return np.ascontiguousarray(labels, np.float64)
        columns = (labels[:, None] == self.classes).astype(np.float64)
        return columns[:, 1:] if len(self.classes) == 2 else columns

    def to_loss(self, y: Floats) -> Floats:
        """Return targets as the loss reads them, (rows, outputs)."""
        return y if self.classes is not None else (y - self.shift) / self.scale

    def outcome(self, raw: Floats) -> Floats:
        """Return the link of raw outputs, (rows, outputs), for regression in the units of the target."""
        linked = self.loss.link(raw)
        return linked if self.classes is not None else linked * self.scale + self.shift

    def prediction(self, raw: Floats) -> Floats:
        """Return predicted numbers in the shape of the target, (rows,) or (rows, outputs)."""
        outcome = self.outcome(raw)
        return outcome.ravel() if self.one_dimensional else outcome

    def probabilities(self, raw: Floats) -> Floats:
        """Return the probability of each class, (rows, classes), or of each of several labels, (rows, labels)."""
        if raw.shape[1] == 1 and self.link_name == "logit":
            # 1 - link(raw) would round small probabilities to 0
            return np.column_stack([self.loss.link(-raw), self.loss.link(raw)])
        p = self.loss.link(raw)
        return p if p.shape[1] > 1 else np.column_stack([1.0 - p, p])

    def labels(self, raw: Floats) -> NDArray[Any]:
        """Return the most probable class of each row, (rows,); for several labels 0 and 1, (rows, labels)."""
        assert self.classes is not None
        if raw.shape[1] > 1 and not self.multilabel:
            return self.classes[(raw if self.link_name == "softmax" else self.loss.link(raw)).argmax(axis=1)]
        number = (raw > 0 if self.link_name == "logit" else self.loss.link(raw) > 0.5).astype(int)
        return self.classes[number[:, 0]] if self.zero_one is None else self.zero_one[number]

    @property
    def link_name(self) -> str | None:
        """Name of the link function of the loss, such as "log" or "sorted"; None if it has no name."""
        return traits_of(self.loss).link_name

    def names(self, features: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the raw outputs."""
        if self.is_input:
            return features
        if self.classes is not None:
            labels = tuple(map(str, self.classes))
            return labels[1:] if len(labels) == 2 and not self.multilabel else labels
        if isinstance(self.loss, Quantiles):
            return tuple(f"q{level:g}" for level in self.loss.alpha)
        return ("y",) if self.n_outputs == 1 else tuple(f"y{k}" for k in range(self.n_outputs))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Distances of a model from the targets of rows that it was not trained on; see `boostbp.estimators.conformal`."""

    # (rows, outputs). For numbers, the target minus the prediction, divided by the `deviation` of the loss. For
    # classes, one column: 1 minus the probability of the true class.
    scores: Floats
    weight: Floats  # (rows,), above 0, in any unit

    def bound(self, scores: Floats, coverage: float) -> float:
        """Return a bound for the share `coverage` of future scores, from `scores`, (rows,).

        It is the k-th smallest of n scores, ``k = ceil(coverage (n + 1))``, as the rank of a future score among them is
        uniform on 1 .. n + 1. With weights, n is the effective number of rows, and k a sum of weights. Raises
        ValueError if there are too few rows.
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
        place = np.searchsorted(np.cumsum(weight[order]), coverage * (total + 1) * (1 - ROUNDING))
        return float(scores[order[min(int(place), len(order) - 1)]])


@dataclass(frozen=True, slots=True)
class Model:
    """Result of a fit."""

    schema: Schema  # the columns of the training table
    targets: Targets
    network: Network
    history: History
    summary: Summary | None = None  # of the training rows; None for a mixture with a neural network
    with_offset: bool = False  # whether the fit had an offset, which predictions then need too
    calibration: Calibration | None = None
    # of survival times, (times,) each: distinct times of events, ascending, and the last time; and with proportional
    # hazards the cumulative hazard of a raw output of 0 at these times
    event_times: Floats | None = None
    hazard: Floats | None = None

    def names(self) -> Names:
        """Return the names of features, hidden units and outputs."""
        schema, network = self.schema, self.network
        features = schema.names or tuple(f"x{j}" for j in range(schema.n_features))
        units = tuple(layer.forest.n_outputs for layer in network.layers[:-1])
        return Names(features, self.targets.names(features), units, network.skip, schema.categories)

    def add_offset(self, raw: Floats, offset: ArrayLike | None) -> Floats:
        """Return the raw output plus the user's offset, (rows, outputs); warn if the model needs one."""
        if offset is None and self.with_offset:
            messages.warn(
                "The model was fitted with an offset, but none was passed: the output is for an offset of 0, such as "
                "an exposure of 1. Pass offset=... (--offset on the command line), or offset=0 if you mean it."
            )
        is_zero = isinstance(offset, Real) and not isinstance(offset, bool) and offset == 0
        if offset is None or is_zero:
            return raw
        return raw + self.targets.read_offset(offset, len(raw)) / self.targets.scale


def standard_units(target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean and standard deviation of each output, (outputs,)."""
    total, moment = workers().sum(weight.sum(), weight @ target)
    shift = moment / total
    unit = np.maximum(std(target, weight), 1e-12 * np.abs(shift))  # smaller values are rounding errors
    return shift, np.where(unit > 0, unit, 1.0)


def robust_units(target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the weighted median of each output, and its standard deviation by quartiles, both (outputs,).

    If both quartiles are equal, quantiles further out replace them; if these are equal too, so does `standard_units`.
    """
    _, unit = standard_units(target, weight)
    target, weight = workers().sample(target, weight)
    shift = weighted_quantile(target, weight, 0.5)
    robust = np.zeros_like(unit)
    for upper, between in QUARTILES:
        width = weighted_quantile(target, weight, upper) - weighted_quantile(target, weight, 1.0 - upper)
        robust = np.where(robust > 0, robust, width / between)
    return shift, np.where(robust > 1e-12 * np.abs(shift), robust, unit)


def units_of(target: Floats, weight: Floats, loss: Loss) -> tuple[Floats, Floats]:
    """Return the shift and scale of a target for a loss, both (outputs,).

    They are 0 and 1 for a loss that depends on the units, and the median and quartiles for a robust loss.
    """
    if not loss.scale_free:
        n_outputs = traits_of(loss).n_outputs(target)
        return np.zeros(n_outputs), np.ones(n_outputs)
    return (robust_units if traits_of(loss).robust else standard_units)(target, weight)
