"""Steps: how a hidden variable moves along its gradient.

A rule is known by name once it is in `STEPS`, the only list of rules that there is; ``docs/extending.md`` writes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats, read_only, refuse_writes
from boostbp.runtime.group import SINGLE_PROCESS, training_in, workers

MOST_ALPHA = 1e300  # a larger step size is a mistake
PATIENCE = 16  # epochs without a new lowest training loss; after fewer, steps die on a plateau that they would cross


class Step(Protocol):
    """A rule that moves hidden variables.

    Known by name are classes that are made of two numbers, ``Rule(alpha, mu)``: the parameters `step_size` and
    `momentum` of an estimator. A rule that is a dataclass can be stored in a file with the model.
    """

    @property
    def alpha(self) -> float:
        """Step size."""
        ...

    @property
    def decay(self) -> float:
        """What later moves are multiplied by when the training loss has stopped falling, or 1; see `pace_after`."""
        ...

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Move one hidden layer. The arrays cannot be written to: new ones are returned.

        Parameters
        ----------
        h : (rows, units) float64
            The hidden variable.
        m : (rows, units) float64
            Momentum; 0 before the first move.
        g : (rows, units) float64
            dL/dh of each row's own loss, not divided by rows.
        weight : (rows,) float64
            Row weights, for standard deviations over rows.

        Returns
        -------
        target : (rows, units) float64
            Where the layer below is to be fitted to.
        m : (rows, units) float64
            Momentum after the move.
        """
        ...


def std(h: Floats, weight: Floats) -> Floats:
    """Weighted standard deviation of each unit, (units,), over the rows of all workers."""
    total, moment = workers().sum(weight.sum(), weight @ h)
    mean = moment / total
    [square] = workers().sum(weight @ np.square(h - mean))
    deviation: Floats = np.sqrt(square / total)
    return deviation


def is_constant(h: Floats) -> NDArray[np.bool_]:
    """Which units, (units,), are the same in all rows but for rounding."""
    constant: NDArray[np.bool_] = np.ptp(h, axis=0) <= 1e-10 * np.abs(h).max(axis=0)
    return constant


def pace_after(losses: Sequence[float], decay: float) -> float:
    """What moves are multiplied by after epochs with these training losses: `decay` for each `PATIENCE` without a low.

    Layers are fitted again from scratch, so the loss jitters from epoch to epoch even where it falls: a single
    rise says nothing.
    """
    lowest, waited, pace = np.inf, 0, 1.0
    for loss in losses:
        waited = 0 if loss < lowest else waited + 1
        lowest = min(lowest, loss)
        if waited == PATIENCE:
            waited, pace = 0, pace * decay
    return pace


@dataclass(frozen=True, slots=True)
class Plain:
    """The paper's step: ``m <- mu m + (1 - mu) g``, ``h <- h - alpha m`` (equation for momentum)."""

    alpha: float = 0.5
    mu: float = 0.5
    decay: float = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers by which nothing would move, or without end."""
        _check("alpha", self.alpha, "mu", self.mu)
        checks.share("decay", self.decay)

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """See `Step.move`."""
        m = self.mu * m + (1 - self.mu) * g
        return h - self.alpha * m, m


@dataclass(frozen=True, slots=True)
class Normalised:
    """A step in standard deviations: each unit moves by ``alpha * std(h) * m / rms(m)``, for any scale of the loss.

    A unit without gradient stays where it is. Steps of one size do not settle by themselves: `decay` makes them
    shorter whenever the training loss has stopped falling.
    """

    alpha: float = 0.4
    mu: float = 0.8
    decay: float = 0.5

    def __post_init__(self) -> None:
        """Refuse numbers by which nothing would move, or without end."""
        _check("alpha", self.alpha, "mu", self.mu)
        checks.share("decay", self.decay)

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """See `Step.move`."""
        m = self.mu * m + (1 - self.mu) * g
        # squares of very small or large gradients stay representable
        [scale] = workers().max(np.abs(m).max(axis=0, initial=0.0))
        scaled = np.divide(m, scale, out=np.zeros_like(m), where=scale > 0)
        square, total = workers().sum(weight @ np.square(scaled), weight.sum())
        size = np.sqrt(square / total)
        direction = np.divide(scaled, size, out=np.zeros_like(m), where=size > 0)
        return h - self.alpha * std(h, weight) * direction, m


# Each is made of alpha and mu, or of the fields that a file of a model holds.
STEPS: dict[str, type[Any]] = {"normalised": Normalised, "plain": Plain}
_MEMBERS = ("alpha", "decay", "move")


def load(step: str | Step, step_size: float, momentum: float) -> Step:
    """Step rule: a name with a size and a momentum, or the user's object, which has its own and is tried.

    Raises
    ------
    ValueError
        If the name is unknown, one of its numbers out of bounds, or a move as `moved` refuses it.
    TypeError
        If the object lacks a member of `Step`.
    """
    names = ", ".join(map(repr, STEPS))
    if not isinstance(step, str):
        if isinstance(step, type):
            raise TypeError(f"step={step.__name__} is a class: pass an object of it, {step.__name__}().")
        missing = [member for member in _MEMBERS if not hasattr(step, member)]
        if missing:
            raise TypeError(
                f"step={checks.shown(step)} lacks {', '.join(missing)}: use one of {names}, or an object like "
                "boostbp.network.steps.Step, such as Normalised(alpha=0.2)."
            )
        _try(step)
        return step
    if step not in STEPS:
        raise ValueError(f"step={checks.shown(step)} is not known: use one of {names}, or an object.")
    _check("step_size", step_size, "momentum", momentum)
    made: Step = STEPS[step](step_size, momentum)
    return made


def _check(size_name: str, size: float, momentum_name: str, momentum: float) -> None:
    if not 0 <= checks.finite(momentum_name, momentum) < 1:
        raise ValueError(f"{momentum_name}={momentum!r} is not in [0, 1): 0 is no momentum, 0.8 a usual value.")
    if not checks.finite(size_name, size) > 0:
        raise ValueError(f"{size_name}={size!r} is not a positive number: try 0.5.")


def _try(step: Step) -> None:
    """Refuse a rule with numbers out of bounds, or one that moves a few rows wrongly, even if no network is trained."""
    for name, most in (("alpha", MOST_ALPHA), ("decay", 1.0)):
        number: Any = getattr(step, name)
        if not isinstance(number, Real) or isinstance(number, bool) or not 0 < float(number) <= most:
            cure = "a positive number" if name == "alpha" else "above 0, and at most 1, which leaves steps as they are"
            raise ValueError(f"step={step!r} has {name}={number!r}: let it be {cure}.")
    h = np.cos(np.arange(12.0)).reshape(6, 2)
    with training_in(SINGLE_PROCESS), np.errstate(all="ignore"):
        moved(step, h, 0.1 * h, h[::-1].copy(), np.ones(6))


def moved(step: Step, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Target and momentum by a rule that may be the user's own: what `Step.move` returns, checked.

    Raises
    ------
    ValueError
        If it returns anything but two arrays of the shape of `h`, writes into its arguments, or makes NaN of numbers.
    """
    with refuse_writes(f"step={step!r} writes into h, m, g or weight: use copies."):
        moved = step.move(*map(read_only, (h, m, g, weight)))
    if not isinstance(moved, tuple) or len(moved) != 2:
        raise ValueError(f"step={step!r}: its move() returns a {type(moved).__name__}: return (target, momentum).")
    for name, array in zip(("target", "momentum"), moved, strict=True):
        if not (isinstance(array, np.ndarray) and array.shape == h.shape and array.dtype.kind in "fiu"):
            received = f"an array of {array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)
            raise ValueError(
                f"step={step!r}: the {name} that its move() returns is {received}: let it be numbers of the shape of "
                f"h, {h.shape}, which is (rows, units)."
            )
        if np.isnan(array.sum()) and np.isfinite([h.sum(), m.sum(), g.sum()]).all():
            [row, *_], [unit, *_] = np.nonzero(np.isnan(array)) if np.isnan(array).any() else ([0], [0])
            raise ValueError(
                f"step={step!r}: the {name} that its move() returns is {array[row, unit]} in row {row}, where h is "
                f"{h[row, unit]:g} and g is {g[row, unit]:g}: let it be finite, even if a unit or its gradient is "
                "constant."
            )
    target, momentum = (np.require(array, np.float64, "W") for array in moved)  # a rule may return what it was given
    return target, momentum
