"""check_loss: the members of a loss, compared with one another on a target of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.capabilities import ConformanceError
from boostbp.floats import Floats, usual_floats
from boostbp.losses import checked, load
from boostbp.losses.base import Loss, traits_of
from boostbp.losses.checked_loss import CheckedLoss, differences

MOST_ROWS = 1000  # rows of the target that are tried
CLOSE = 1e-4  # relative error of finite differences
KINK = 1e-3  # relative difference of two slopes at a raw output where the function is not smooth
LEAST_SHARE = 0.5  # of the second derivative: with a smaller hessian, a step is more than twice too long
MOVES = (-1.0, -0.1, -0.01, 0.01, 0.1, 1.0)  # of the baseline, none of which may lower the loss
LOWER, MUCH_LOWER = 1e-6, 0.01  # shares of the mean loss that are reported, and refused


@dataclass(frozen=True, slots=True)
class LossReport:
    """Result of `check_loss`; its text has a line for each member.

    Attributes
    ----------
    name : str
    curved : bool
        Whether the hessian varies: rounds that raise the loss are then shortened.
    separable : bool
        Whether outputs can be boosted side by side.
    gradient_error, hessian_error : float
        Largest relative error against finite differences of the value, and of the gradient. Kinks do not count. The
        error of a hessian need not be small: it may exceed the second derivative, such as 1 for an absolute error.
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
    """A loss, with the rows on which it is tried."""

    loss: Loss
    h: Floats  # (rows, outputs), about the baseline
    y: Floats
    weight: Floats

    def value(self, h: Floats) -> Floats:
        return checked.value(self.loss, h, self.y)

    def gradient(self, h: Floats) -> Floats:
        return checked.gradient(self.loss, h, self.y)


@usual_floats()
def check_loss(loss: str | Loss, y: Any, *, sample_weight: Any = None, random_state: int = 0) -> LossReport:
    """Compare the members of a loss with one another on a target.

    The gradient is compared with finite differences of the value, the hessian with finite differences of the gradient,
    the baseline with other constants, and `inverse_link` with the link. As in each fit, shapes are checked too, and
    that the loss neither writes into its arguments nor depends on other rows. Declared attributes are checked as well.

    Parameters
    ----------
    loss : str or Loss
        A name, or an object; see `boostbp.losses.Loss`.
    y : array-like, (rows,) or (rows, outputs)
        A target as the loss sees it. A `scale_free` loss sees the target of a fit with mean 0 and standard deviation 1.
        A loss of classes sees one column of 0 and 1, or one column for each class.
    sample_weight : array-like, (rows,), optional
    random_state : int
        Seed of the raw outputs at which members are compared.

    Returns
    -------
    LossReport
        Print it to read it.

    Raises
    ------
    ConformanceError
        If two members contradict each other, with both numbers. It is an AssertionError.
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
    loaded = load(loss, n_outputs=target.shape[1])
    target = np.repeat(target, traits_of(loaded).copies or 1, axis=1)
    checked.check_target(loaded, target)
    rows = np.linspace(0, len(target) - 1, min(len(target), MOST_ROWS)).astype(int)
    target = np.ascontiguousarray(target[rows])
    weight = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight, np.float64)[rows]
    baseline = checked.baseline(loaded, target, weight)
    tried = CheckedLoss.of(loaded, baseline, target)
    unit = float(np.std(target)) if np.allclose(tried.link(target), target) and np.ptp(target) > 0 else 1.0
    noise = np.random.default_rng(random_state).standard_normal(target.shape)
    trial = _Trial(loaded, baseline + unit * noise, target, weight)
    gradient_error, of_gradient = _compare_gradient(trial)
    hessian_error, of_hessian = _compare_hessian(trial)
    how = (
        "rounds that raise the loss are shortened, as its hessian varies" if tried.curved else "its hessian is constant"
    )
    side = "outputs are boosted side by side" if tried.separable else "outputs are boosted together"
    lines = (
        f"gradient: {of_gradient}",
        f"hessian: {of_hessian}",
        f"baseline: {_compare_baseline(trial, baseline, unit)}",
        f"link: {_compare_link(trial)}",
        *(f"{name}: it is so" for name in _compare_traits(trial)),
        f"{how}; {side}",
    )
    return LossReport(loaded.name, tried.curved, tried.separable, gradient_error, hessian_error, baseline, lines)


def _slopes(function: Callable[[Floats], Floats], h: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return central differences, and where they hold: finite, and alike for steps of two lengths."""
    with np.errstate(all="ignore"):
        fine, coarse = differences(function, h, 1e-5), differences(function, h, 3e-4)
        smooth = np.abs(fine - coarse) <= KINK * (np.abs(fine) + np.abs(coarse)) + CLOSE
    return fine, smooth & np.isfinite(fine)


def _compare_gradient(trial: _Trial) -> tuple[float, str]:
    gradient = trial.gradient(trial.h).astype(np.float64)
    slope, holds = _slopes(trial.value, trial.h)
    size = np.maximum(np.abs(slope), float(np.abs(slope[holds]).mean()) if holds.any() else 1.0)
    error = np.where(holds, np.abs(gradient - slope) / np.maximum(size, np.finfo(float).tiny), 0.0)
    _refuse_where(trial, error > 10 * CLOSE, "gradient", gradient, "finite differences of value() give", slope,
                  "return the derivative of value() in h, of each row by itself")  # fmt: skip
    return float(error.max()), "agrees with differences of value"


def _compare_hessian(trial: _Trial) -> tuple[float, str]:
    hessian = checked.hessian(trial.loss, trial.h, trial.y).astype(np.float64)
    curvature, holds = _slopes(trial.gradient, trial.h)
    checked.refuse_unusable(trial.loss, {"hessian": hessian}, trial.h, trial.y, "in check_loss")
    _refuse_where(trial, holds & (hessian < LEAST_SHARE * curvature - CLOSE), "hessian", hessian,
                  "finite differences of gradient() give", curvature, "return the second derivative")  # fmt: skip
    bent = holds & (curvature > CLOSE)
    if not bent.any():
        return 1.0, "above 0, where the gradient has no slope"
    ratio = hessian[bent] / curvature[bent]
    error = float(np.abs(ratio - 1.0).max())
    if error <= 100 * CLOSE:
        return error, "agrees with differences of gradient"
    return error, f"{ratio.mean():.3g} times the second derivative on average, at least {ratio.min():.3g} times"


def _compare_baseline(trial: _Trial, baseline: Floats, unit: float) -> str:
    def mean(constant: Floats) -> float:
        losses = trial.value(np.broadcast_to(constant, trial.y.shape).copy())
        return float(trial.weight @ losses / trial.weight.sum())

    moves = [move * unit * along for along in np.eye(len(baseline)) for move in MOVES]
    with np.errstate(all="ignore"):
        size = float(np.abs(trial.value(np.broadcast_to(baseline, trial.y.shape))).mean())
        best = min((baseline + move for move in moves), key=lambda beside: np.nan_to_num(mean(beside), nan=np.inf))
        here, lowest = mean(baseline), mean(best)
    gain = (here - lowest) / max(size, np.finfo(float).tiny)
    if gain > MUCH_LOWER:
        raise ConformanceError(
            f"loss={trial.loss.name!r}: its baseline is {baseline}, of mean loss {here:.6g}, but {best} has "
            f"{lowest:.6g}: let baseline(y, weight) return the constant of least loss."
        )
    if gain > LOWER:
        return f"{baseline}, near the best constant: {best} has {gain:.2%} less loss"
    return f"{baseline}, no constant beside it has less loss"


def _compare_link(trial: _Trial) -> str:
    prediction = checked.link(trial.loss, trial.h)
    checked.refuse_unusable(trial.loss, {"link": prediction}, trial.h, trial.y, "in check_loss")
    inverse_link = getattr(trial.loss, "inverse_link", None)
    if inverse_link is None:
        return "finite; there is no inverse_link to undo it"
    back = np.asarray(inverse_link(prediction))
    far = ~np.isclose(back, trial.h, 1e-6, 1e-6)
    _refuse_where(trial, far, "inverse_link", back, "the raw output before link() was", trial.h,
                  "let inverse_link(link(h)) return h")  # fmt: skip
    return "inverse_link undoes it"


def _compare_traits(trial: _Trial) -> list[str]:
    """Return the declared attributes of the value; raise if one is not true."""
    traits, h, y, value = traits_of(trial.loss), trial.h, trial.y, trial.value(trial.h)
    expected = {}
    if traits.homogeneous:
        expected["homogeneous"] = checked.value(trial.loss, 2.0 * h, 2.0 * y) / 2.0
    if traits.least_squares:
        expected["least_squares"] = 0.5 * np.square(h - y).sum(axis=1)
    for name, values in expected.items():
        _refuse_where(trial, ~np.isclose(value, values, 1e-6, 1e-9), "value", value, f"{name} = True means", values,
                      f"leave {name} out")  # fmt: skip
    return list(expected)


def _refuse_where(trial: _Trial, wrong: Any, what: str, found: Floats, of: str, expected: Floats, cure: str) -> None:
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ConformanceError(
            f"loss={trial.loss.name!r}: its {what} is {found[at]:.6g} in row {at[0]}, where y is {trial.y[at[0]]} and "
            f"the raw output {trial.h[at[0]]}, but {of} {expected[at]:.6g}: {cure}."
        )
