"""check_loss: comparison of the members of a loss with each other, on a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.losses import load_loss, task_of
from boostbp.losses.base import Loss, traits_of
from boostbp.losses.checked_loss import CLOSE, CheckedLoss, slopes, try_loss
from boostbp.runtime.arrays import Floats, numpy_errstate
from boostbp.runtime.checks import ConformanceError

MOST_ROWS = 1000  # limit on the rows of a check. Arbitrary
KINK = 1e-3  # relative difference of the slopes of two steps from which on a function is not smooth
LEAST_SHARE = 0.5  # minimum hessian as a share of the second derivative; below it, steps are over twice too long
MOVES = (-1.0, -0.1, -0.01, 0.01, 0.1, 1.0)  # changes of the baseline, none of which may lower the loss
LOWER_LOSS, MUCH_LOWER_LOSS = 1e-6, 0.01  # shares of the mean loss that are reported, and refused


@dataclass(frozen=True, slots=True)
class LossReport:
    """Result of `check_loss`; its text has a line for each member.

    Attributes
    ----------
    name : str
    curved : bool
        Whether the hessian varies: rounds that raise the loss are then shortened.
    separable : bool
        Whether outputs can be boosted in parallel.
    gradient_error, hessian_error : float
        Largest relative error against finite differences of the value, and of the gradient, except at kinks. The error
        of a hessian need not be small: it may exceed the second derivative, as the 1 of an absolute error does.
    baseline : (outputs,) float64
    lines : tuple of str
    """

    name: str
    curved: bool
    separable: bool
    gradient_error: float
    hessian_error: float
    baseline: Floats
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"loss {self.name!r}:", *(f"  {line}" for line in self.lines)])


class _Trial(NamedTuple):
    """A loss, with the rows of a check."""

    loss: CheckedLoss
    h: Floats  # (rows, outputs), around the baseline
    y: Floats
    weight: Floats

    def mean(self, constant: Floats) -> float:
        """Return the weighted mean loss of a constant raw output, (outputs,)."""
        losses = self.loss.raw_value(np.broadcast_to(constant, self.h.shape).copy(), self.y)
        return float(self.weight @ losses / self.weight.sum())

    def refuse_where(self, wrong: NDArray[np.bool_], member: str, returned: Floats, expected: Floats, why: str) -> None:
        """Raise ConformanceError with both numbers of the first wrong row; `why` has ``{}`` for the expected one."""
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            where = f"in row {at[0]}, where y is {self.y[at[0]]} and the raw output {self.h[at[0]]}"
            fault = f"its {member} is {returned[at]:.6g} {where}, but {why.format(f'{expected[at]:.6g}')}"
            raise ConformanceError(f"loss={self.loss.name!r}: {fault}.")


@numpy_errstate()
def check_loss(
    loss: str | Loss, y: ArrayLike, *, sample_weight: ArrayLike | None = None, random_state: int = 0
) -> LossReport:
    """Compare the members of a loss with each other on a target.

    The gradient is compared with finite differences of the value, the hessian with finite differences of the gradient,
    the baseline with other constants, and `inverse_link` with the link. As in each fit, shapes are checked, too, and
    whether the loss writes into its arguments or depends on other rows. Declared attributes are also checked.

    Parameters
    ----------
    loss : str or Loss
        A name, or an object; see `boostbp.losses.Loss`.
    y : array-like, (rows,) or (rows, outputs)
        A target as training passes it to the loss. For a `scale_free` loss, it has mean 0 and standard deviation 1. For
        classes, it is one column of 0 and 1, or one column for each class.
    sample_weight : array-like, (rows,), optional
    random_state : int
        Seed of the raw outputs at which members are compared.

    Returns
    -------
    LossReport

    Raises
    ------
    ConformanceError
        If two members contradict each other; an AssertionError with both numbers.
    ValueError, TypeError
        As in a fit: if the loss lacks a member, or returns values that no fit can use.

    Examples
    --------
    >>> import boostbp
    >>> print(boostbp.check_loss("poisson", [0.0, 1.0, 4.0, 2.0]))
    loss 'poisson':
      gradient: agrees with differences of value
      hessian: 2.01 times the second derivative on average, at least 2.01 times
      baseline: [0.55961579], no constant beside it has less loss
      link: inverse_link undoes it
      rounds that raise the loss are shortened, as its hessian varies; outputs are boosted side by side
    """
    target = np.asarray(y, np.float64)
    target = target.reshape(len(target), -1)
    task = task_of(loss) if isinstance(loss, str) else traits_of(loss).task
    loaded = load_loss(loss, n_outputs=target.shape[1], task=task)
    target = np.repeat(target, traits_of(loaded).copies or 1, axis=1)
    CheckedLoss(loaded).check(target)
    # Evenly spaced rows, as the target may be sorted; neighbours of a joint loss, as others would hardly share a group.
    n_rows = min(len(target), MOST_ROWS)
    rows = np.arange(n_rows) if traits_of(loaded).joint else np.linspace(0, len(target) - 1, n_rows).astype(int)
    target = np.ascontiguousarray(target[rows])
    weight = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight, np.float64)[rows]
    baseline = CheckedLoss(loaded).baseline(target, weight)
    checked = try_loss(loaded, baseline, target)
    # Raw outputs vary around the baseline, in units of the target if the link is the identity.
    of_outputs = len(baseline) == target.shape[1] and np.ptp(target) > 0
    unit = float(np.std(target)) if of_outputs and np.allclose(checked.link(target), target) else 1.0
    noise = np.random.default_rng(random_state).standard_normal((len(target), len(baseline)))
    weight = weight if traits_of(loaded).joint is None else np.ones(len(target))
    trial = _Trial(checked.prepared(target, weight), baseline + unit * noise, target, weight)
    gradient_error = hessian_error = np.nan
    of_gradient = of_hessian = "not compared, as the gradient is declared not to be that of value"
    if traits_of(loaded).exact_gradient:
        gradient_error, of_gradient = _compare_gradient(trial)
        hessian_error, of_hessian = _compare_hessian(trial)
    varies = "rounds that raise the loss are shortened, as its hessian varies"
    side_by_side = "side by side" if checked.separable else "together"
    lines = (
        f"gradient: {of_gradient}",
        f"hessian: {of_hessian}",
        f"baseline: {_compare_baseline(trial, baseline, unit)}",
        f"link: {_compare_link(trial)}",
        *(f"{name}: it is so" for name in _compare_traits(trial)),
        f"{varies if checked.curved else 'no round is shortened'}; outputs are boosted {side_by_side}",
    )
    return LossReport(loaded.name, checked.curved, checked.separable, gradient_error, hessian_error, baseline, lines)


def _compare_gradient(trial: _Trial) -> tuple[float, str]:
    gradient = trial.loss.gradient(trial.h, trial.y).astype(np.float64)
    joint = trial.loss.of_rows is not None
    slope, holds = slopes(lambda at: trial.loss.raw_value(at, trial.y), trial.h, KINK, joint=joint)
    # A gradient near 0 is compared in units of the mean slope.
    size = np.maximum(np.abs(slope), float(np.abs(slope[holds]).mean()) if holds.any() else 1.0)
    error = np.where(holds, np.abs(gradient - slope) / np.maximum(size, np.finfo(float).tiny), 0.0)
    why = "finite differences of value() give {}: return the derivative of value() in h, of each row by itself"
    # Slopes have errors of CLOSE. A wrong factor, the usual fault, causes far larger errors.
    trial.refuse_where(error > 10 * CLOSE, "gradient", gradient, slope, why)
    return float(error.max()), "agrees with differences of value"


def _compare_hessian(trial: _Trial) -> tuple[float, str]:
    hessian = trial.loss.hessian(trial.h, trial.y).astype(np.float64)
    joint = trial.loss.of_rows is not None
    curvature, holds = slopes(lambda at: trial.loss.gradient(at, trial.y), trial.h, KINK, joint=joint)
    trial.loss.refuse_unusable({"hessian": hessian}, trial.h, trial.y, "in check_loss")
    # With a hessian below half of the second derivative, steps are over twice the distance to the minimum, and diverge.
    too_small = holds & (hessian < LEAST_SHARE * curvature - CLOSE)
    why = "finite differences of gradient() give {}: return the second derivative"
    trial.refuse_where(too_small, "hessian", hessian, curvature, why)
    # The error is only reported: a larger hessian makes steps shorter, which is intended for the Poisson loss.
    bent = holds & (curvature > CLOSE)
    if not bent.any():
        return 1.0, "above 0, where the gradient has no slope"
    ratio = hessian[bent] / curvature[bent]
    error = float(np.abs(ratio - 1.0).max())
    if error <= 100 * CLOSE:
        return error, "agrees with differences of gradient"
    return error, f"{ratio.mean():.3g} times the second derivative on average, at least {ratio.min():.3g} times"


def _compare_baseline(trial: _Trial, baseline: Floats, unit: float) -> str:
    # If none of these steps along an output lowers a convex loss, its minimum is near the baseline.
    moved = [baseline + move * unit * axis for axis in np.eye(len(baseline)) for move in MOVES]
    with np.errstate(all="ignore"):
        size = float(np.abs(trial.loss.raw_value(np.broadcast_to(baseline, trial.h.shape), trial.y)).mean())
        best = min(moved, key=lambda constant: np.nan_to_num(trial.mean(constant), nan=np.inf))
        here, lowest = trial.mean(baseline), trial.mean(best)
    # In units of the mean absolute loss, as losses may be negative.
    gain = (here - lowest) / max(size, np.finfo(float).tiny)
    if gain > MUCH_LOWER_LOSS:
        fault = f"its baseline is {baseline}, of mean loss {here:.6g}, but {best} has {lowest:.6g}"
        cure = "let baseline(y, weight) return the constant with the smallest loss"
        raise ConformanceError(f"loss={trial.loss.name!r}: {fault}: {cure}.")
    if gain > LOWER_LOSS:
        return f"{baseline}, near the best constant: {best} has {gain:.2%} less loss"
    return f"{baseline}, no constant beside it has less loss"


def _compare_link(trial: _Trial) -> str:
    prediction = trial.loss.link(trial.h)
    trial.loss.refuse_unusable({"link": prediction}, trial.h, trial.y, "in check_loss")
    if (inverse_link := getattr(trial.loss, "inverse_link", None)) is None:
        return "finite; there is no inverse_link to undo it"
    back = np.asarray(inverse_link(prediction))
    why = "the raw output before link() was {}: let inverse_link(link(h)) return h"
    trial.refuse_where(~np.isclose(back, trial.h, 1e-6, 1e-6), "inverse_link", back, trial.h, why)
    return "inverse_link undoes it"


def _compare_traits(trial: _Trial) -> list[str]:
    """Return the declared attributes of the value; raise an error if one is wrong."""
    loss, h, y = trial.loss, trial.h, trial.y
    value, traits, expected = loss.raw_value(h, y), traits_of(loss), dict[str, Floats]()
    # The definitions of `Traits`, tested at one point: twice the scale, half the squared residual.
    if traits.homogeneous:
        expected["homogeneous"] = loss.raw_value(2.0 * h, 2.0 * y) / 2.0
    if traits.least_squares:
        expected["least_squares"] = 0.5 * np.square(h - y).sum(axis=1)
    for name, values in expected.items():
        why = f"{name} = True means {{}}: leave {name} out"
        trial.refuse_where(~np.isclose(value, values, 1e-6, 1e-9), "value", value, values, why)
    return list(expected)
