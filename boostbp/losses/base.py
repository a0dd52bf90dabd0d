"""Final losses of a network: value, gradient, hessian, link and baseline of each.

Conventions, the same for every loss:

==========  ====================  ==================================================================
``h``       (rows, outputs)       raw output of the network, float64, finite
``y``       (rows, outputs)       target, float64: the values (regression), one column of 0 and 1
                                  (logistic), one-hot (softmax), a column of 0 and 1 for each label (multilabel), or
                                  the columns of `Traits.columns`
``weight``  (rows,)               weight of each row, float64, >= 0, not all 0
value       (rows,)               loss of each row, summed over outputs, without weight
gradient    (rows, outputs)       d value / d h of each row, **not divided by the number of rows**
hessian     (rows, outputs)       positive Newton weight: a step goes to ``h - gradient / hessian``
link        (rows, outputs)       ``h`` on the scale of ``y``; may be ``h`` itself
baseline    (outputs,)            constant ``h`` with the smallest weighted value, finite
==========  ====================  ==================================================================

Hessians are at least 1e-6. Otherwise a row that is fitted well would have no weight in the leaf regressions, and a row
with a large error could have an infinite step. Losses without curvature (absolute, Huber, quantile) have hessian 1, as
in LightGBM, so their trees fit the negative gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.arrays import Floats

Task = Literal["classification", "ranking", "regression", "survival"]
LinkName = Literal["identity", "log", "logit", "softmax", "sorted"]
LEAST_HESSIAN = 1e-6  # an arbitrary small number


class Loss(Protocol):
    """Members that training needs of a loss, of this package or of the user.

    A loss may also have the attributes that `Traits` lists, each with a default: its task, its other names, its default
    metric, and so on. `boostbp.losses.checked_loss.try_loss` finds out on a few rows whether its hessian varies, and
    whether its outputs can be boosted in parallel.

    Value and derivatives are separate members, because an evaluation needs no derivatives. If the hessian varies, each
    round needs all three, which an optional method ``derivatives(h, y) -> (value, gradient, hessian)`` computes
    together. With a method ``inverse_link(prediction) -> h``, the mean of the loss is a metric with the name of the
    loss. A method ``deviation(prediction)`` returns the scale of residuals, (rows, outputs), by which prediction
    intervals divide them.

    A loss whose value of a row depends on other rows says so by `Traits.joint`. It has a method
    ``prepare(y, weight) -> Loss``, which is called once for a set of rows. The members of the loss that it returns are
    called with this `y` alone, so they may use an order or groups of the rows that `prepare` has computed. The loss of
    the rows is ``weight @ value``, and its derivative ``weight[:, None] * gradient``. Without ``prepare``, all weights
    are 1.

    A single output has these shapes, too: LightGBM and XGBoost take a gradient of (rows,), which is
    ``gradient[:, None]`` here. A fit refuses other shapes, and a loss that writes into `h` or `y`.
    `boostbp.check_loss` compares the members with each other.

    >>> from boostbp import losses
    >>> loss = losses.load_loss("log_loss", n_outputs=1)
    >>> y = np.array([[0.0], [1.0], [1.0]])
    >>> loss.check(y)
    >>> h = np.tile(loss.baseline(y, np.ones(3)), (3, 1))
    >>> loss.link(h).round(3).ravel().tolist()  # the share of ones
    [0.667, 0.667, 0.667]
    >>> loss.gradient(h, y).round(3).ravel().tolist()
    [0.667, -0.333, -0.333]
    """

    @property
    def name(self) -> str:
        """Name of the loss in messages and files."""
        ...

    @property
    def scale_free(self) -> bool:
        """Whether training may shift and scale `y`: the best fit then shifts and scales with it."""
        ...

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the loss of each row, (rows,)."""
        ...

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return the derivative of `value`, (rows, outputs)."""
        ...

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Return the positive Newton weight, (rows, outputs)."""
        ...

    def link(self, h: Floats) -> Floats:
        """Return the prediction on the scale of `y`, (rows, outputs)."""
        ...

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the best constant raw output, (outputs,)."""
        ...

    def check(self, y: Floats) -> None:
        """Raise ValueError if the loss cannot take the target `y`."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Optional attributes of a loss, with their defaults.

    Attributes
    ----------
    task : {"regression", "classification", "ranking", "survival", None}
        The kind of estimator that accepts the loss; None: a regressor or a classifier. A regressor refuses metrics of
        classes with any loss.
    aliases : tuple of str
        Other names, in LightGBM, XGBoost or scikit-learn. Two losses may share an alias if no number of outputs is
        valid for both.
    link_name : {"identity", "log", "logit", "softmax", "sorted", None}
        The link function, of which `link` is the inverse; with "sorted", `link` sorts the outputs of a row. With a
        logit or softmax link, a classifier reads labels from the raw output, and takes ``link(-h)`` as the probability
        of class 0 of two classes, which avoids rounding errors.
    min_outputs, max_outputs : int, int or None
        Valid numbers of target columns; None: no limit.
    columns : tuple of str
        Names of the target's columns if they are not outputs, such as the bounds of a survival time. The loss then has
        one output. Empty: outputs are the columns of the target.
    joint : {"groups", "rows", None}
        Other rows on which the loss of a row depends: those with the same number in the last column of the target, or
        all. None: the loss is a sum over rows. Joint losses are not computed in blocks of rows; groups are held out and
        sampled whole, and each must lie on one of several workers. Losses of all rows are trained in one process.
    exact_gradient : bool
        Whether `gradient` is the derivative of `value`, so that rounds which raise the value are shortened. False for
        LambdaMART, whose gradient is that of a smooth replacement of the value.
    copies : int or None
        Number of outputs for a target of one column: ``y`` then has as many copies of this column. None: outputs are
        the columns of the target.
    default_metric : str or None
        Name of the metric of evaluation sets if ``eval_metric`` is None. None: a classifier takes the log-loss, a
        regressor the mean of the loss itself.
    homogeneous : bool
        Whether ``value(a h, a y) = a value(h, y)`` for a > 0. Its mean is then reported in units of the target instead
        of the standardised target of training.
    robust : bool
        Whether a few outliers hardly change the fit. Targets are then scaled by median and quartiles.
    least_squares : bool
        Whether the loss is half the squared residual. The slope of held-out targets on the model then has a standard
        error, by which models with a weak signal are shrunk.
    soft_labels : bool
        Whether `value` accepts probabilities of classes in place of 0 and 1. Held-out labels are then smoothed in
        comparisons of candidates.
    multilabel : bool
        Whether the target has a column of 0 and 1 for each of several labels, any number of which a row may have.
        `link` returns the probability of each label, and `value` the sum over them.
    """

    task: Task | None = None
    aliases: tuple[str, ...] = ()
    link_name: LinkName | None = None
    min_outputs: int = 1
    max_outputs: int | None = None
    columns: tuple[str, ...] = ()
    joint: Literal["groups", "rows"] | None = None
    exact_gradient: bool = True
    copies: int | None = None
    default_metric: str | None = None
    homogeneous: bool = False
    robust: bool = False
    least_squares: bool = False
    soft_labels: bool = False
    multilabel: bool = False

    def takes(self, n_outputs: int) -> bool:
        """Return whether targets may have `n_outputs` columns."""
        return self.min_outputs <= n_outputs and (self.max_outputs is None or n_outputs <= self.max_outputs)

    def n_outputs(self, y: Floats) -> int:
        """Return the number of outputs for a target, (rows, columns)."""
        return 1 if self.columns else y.shape[1]


_DEFAULTS: list[tuple[str, Any]] = [(field.name, field.default) for field in fields(Traits)]


def traits_of(loss: Loss | type[Loss]) -> Traits:
    """Return the traits of a loss, or of a class of losses."""
    return Traits(*[getattr(loss, name, default) for name, default in _DEFAULTS])  # quick, as each round asks for it


def refuse(y: Floats, wrong: NDArray[np.bool_], cure: str) -> None:
    """Raise ValueError if any target is `wrong`, (rows, outputs): with the first one, its place, and the `cure`."""
    if wrong.any():
        row, output = np.argwhere(wrong)[0]
        raise ValueError(f"y={y[row, output]:g} in row {row}, output {output}: {cure}")


# Constants with the smallest weighted loss, (outputs,): y is (rows, outputs) float64, weight (rows,) float64 >= 0.
# Each raises ValueError if no row has a positive, finite weight.
_ABSENT = 1e-6  # share of an absent class, or mean of counts that are all 0. Arbitrary
_ROUNDING = 1e-12  # generous bound of the relative rounding error of sums of shares, such as 1/3 + 1/3


def weighted_mean(y: Floats, weight: Floats) -> Floats:
    """Return the weighted mean."""
    # Divide weights by their sum first, as a sum of weight * y may overflow.
    return np.asarray(_shares(weight) @ y)


def log_mean(y: Floats, weight: Floats) -> Floats:
    """Return the logarithm of the weighted mean of `y` >= 0; ``log(1e-6)`` for a column of zeros."""
    average = weighted_mean(y, weight)
    # Only a mean of 0 is replaced: a minimum for all means would change those of rare classes.
    return np.log(np.where(average > 0, average, _ABSENT))


def weighted_quantile(y: Floats, weight: Floats, alpha: float | Sequence[float]) -> Floats:
    """Return the weighted quantile: the middle of all constants with the smallest pinball loss.

    `alpha` is a level for all outputs, or one for each.
    """
    share, levels = _shares(weight), np.broadcast_to(alpha, y.shape[1])
    return np.array([_quantile(column, level, share) for column, level in zip(y.T, levels, strict=True)])


def huber_centre(y: Floats, weight: Floats, delta: float) -> Floats:
    """Return the weighted Huber centre: the middle of all constants with the smallest Huber loss."""
    share = _shares(weight)
    median = weighted_quantile(y, weight, 0.5)
    # The centre is within delta of the median, so residuals of rows further away than 2 delta are clipped in any case.
    near = np.clip(y - median, -2 * delta, 2 * delta)
    return np.asarray(median + [_huber_root(column, share, delta) for column in near.T])


def _shares(weight: Floats) -> Floats:
    """Return the weights divided by their sum."""
    largest = weight.max()  # dividing by it first avoids overflow of the sum
    if not 0 < largest < np.inf:
        raise ValueError(f"sample_weight has the largest value {largest:g}: give some row a positive, finite weight.")
    scaled = weight / largest
    return np.asarray(scaled / scaled.sum())


def _quantile(column: Floats, alpha: float, share: Floats) -> float:
    # The loss falls while the share of rows below the constant is less than alpha. If it is exactly alpha, the loss is
    # constant from one row to the next, and the result is the middle of both.
    order = np.argsort(column, kind="stable")
    below = np.cumsum(share[order])
    lower = int(np.searchsorted(below, alpha * (1 - _ROUNDING), side="left"))
    upper = int(np.searchsorted(below, alpha * (1 + _ROUNDING), side="right"))
    last = len(order) - 1  # rounded sums may end just below 1
    return float(0.5 * column[order[min(lower, last)]] + 0.5 * column[order[min(upper, last)]])


def _huber_root(column: Floats, share: Floats, delta: float) -> float:
    """Return the root ``c`` of ``sum(share * clip(c - column, -delta, delta))``."""
    # The sum is increasing and piecewise linear in c: a row adds its share to the slope while |c - column| < delta.
    knots = np.concatenate((column - delta, column + delta))
    order = np.argsort(knots, kind="stable")
    knots = knots[order]
    slope = np.cumsum(np.concatenate((share, -share))[order])
    # The sum is -delta at the lowest knot, so the root is where it has risen by delta; an interval if it is flat there.
    above_lowest = np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(knots))))
    lower, upper = np.interp([delta * (1 - _ROUNDING), delta * (1 + _ROUNDING)], above_lowest, knots)
    return float(0.5 * lower + 0.5 * upper)
