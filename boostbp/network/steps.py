"""Step rules: how a hidden variable moves along its gradient.

`STEPS` lists the rules that are known by name. ``docs/extending.md`` shows how to write one.
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

# With a larger step size, moves would overflow.
MAX_ALPHA = 1e300
# Epochs without a new lowest training loss after which steps are shortened. With fewer, steps vanish on plateaus that
# longer ones would cross.
PATIENCE = 16


class Step(Protocol):
    """A rule that moves hidden variables.

    A class that is registered by name is called as ``Rule(alpha, mu)``, with the parameters `step_size` and `momentum`
    of an estimator. A rule that is a dataclass can be stored in a file with the model.
    """

    @property
    def alpha(self) -> float:
        """Step size."""
        ...

    @property
    def decay(self) -> float:
        """Factor on further moves each time the training loss stops falling; 1 changes nothing. See `pace_after`."""
        ...

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return the values that the layer below is fitted to, and the momentum after the move, in new arrays.

        The arguments are read-only: the hidden variable, its momentum (0 before the first move), dL/dh of each row's
        own loss (not divided by rows), each (rows, units) float64, and row weights, (rows,), for means over rows.
        """
        ...


def std(h: Floats, weight: Floats) -> Floats:
    """Return the weighted standard deviation of each unit over the rows of all workers, (units,)."""
    # Two passes over the rows: a mean of squares minus the square of the mean would cancel for units far from 0.
    total, moment = workers().sum(weight.sum(), weight @ h)
    mean = moment / total
    [square] = workers().sum(weight @ np.square(h - mean))
    deviation: Floats = np.sqrt(square / total)
    return deviation


def is_constant(h: Floats) -> NDArray[np.bool_]:
    """Return which units have the same value in all rows, up to rounding, (units,)."""
    # Rounding and penalties may leave differences of some 1e-10 of its size in a unit without information.
    constant: NDArray[np.bool_] = np.ptp(h, axis=0) <= 1e-10 * np.abs(h).max(axis=0)
    return constant


def pace_after(losses: Sequence[float], decay: float) -> float:
    """Return the factor on moves after epochs with these training losses.

    It is multiplied by `decay` after every `PATIENCE` epochs without a new lowest loss. A single rise is ignored:
    layers are fitted again from scratch, so a falling loss still varies from epoch to epoch.
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
    """The paper's step with momentum: ``m <- mu m + (1 - mu) g``, ``h <- h - alpha m``."""

    alpha: float = 0.5
    mu: float = 0.5
    decay: float = 1.0

    def __post_init__(self) -> None:
        _check("alpha", self.alpha, "mu", self.mu)
        checks.share("decay", self.decay)

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return the target and the momentum; see `Step.move`."""
        # Equation 17 of the paper (section 3.4), and equation 6 with m in place of the gradient.
        m = self.mu * m + (1 - self.mu) * g
        return h - self.alpha * m, m


@dataclass(frozen=True, slots=True)
class Normalised(Plain):
    """A step in standard deviations: each unit moves by ``alpha * std(h) * m / rms(m)``, for any scale of the loss.

    A unit without gradient does not move. Steps of constant size do not converge, so `decay` shortens them whenever the
    training loss has stopped falling.
    """

    alpha: float = 0.4
    mu: float = 0.8
    decay: float = 0.5

    def move(self, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return the target and the momentum; see `Step.move`."""
        m = self.mu * m + (1 - self.mu) * g
        # Scale first: squares of very small or large gradients leave the range of float64.
        [scale] = workers().max(np.abs(m).max(axis=0, initial=0.0))
        scaled = np.divide(m, scale, out=np.zeros_like(m), where=scale > 0)
        # Divide by the root mean square of each unit over rows: all units move equally far, rows in proportion to m.
        square, total = workers().sum(weight @ np.square(scaled), weight.sum())
        size = np.sqrt(square / total)
        direction = np.divide(scaled, size, out=np.zeros_like(m), where=size > 0)
        return h - self.alpha * std(h, weight) * direction, m


# Each class is called with alpha and mu, or with the fields that a model file holds.
STEPS: dict[str, type[Any]] = {"normalised": Normalised, "plain": Plain}


def rule_of(step: str | Step, step_size: float, momentum: float) -> Step:
    """Return a step rule, by its name with a size and a momentum, or the user's object after a trial move.

    Raises ValueError if the name is unknown, a number is out of bounds, or `moved` refuses the trial move, and
    TypeError if the object lacks a member of `Step`.
    """
    names = ", ".join(map(repr, STEPS))
    if not isinstance(step, str):
        if isinstance(step, type):
            raise TypeError(f"step={step.__name__} is a class: pass an object of it, {step.__name__}().")
        if missing := [member for member in ("alpha", "decay", "move") if not hasattr(step, member)]:
            raise TypeError(f"step={checks.shown(step)} lacks {', '.join(missing)}: use {names}, or a Step.")
        _try(step)
        return step
    if step not in STEPS:
        raise ValueError(f"step={checks.shown(step)} is not known: use one of {names}, or an object.")
    _check("step_size", step_size, "momentum", momentum)
    rule: Step = STEPS[step](step_size, momentum)
    return rule


def _check(size_name: str, size: float, momentum_name: str, momentum: float) -> None:
    if not 0 <= checks.finite(momentum_name, momentum) < 1:
        raise ValueError(f"{momentum_name}={momentum!r} is not in [0, 1): 0 is no momentum, 0.8 a usual value.")
    if not checks.finite(size_name, size) > 0:
        raise ValueError(f"{size_name}={size!r} is not a positive number: try 0.5.")


def _try(step: Step) -> None:
    """Refuse a rule whose parameters are out of bounds, or that fails on a few rows, before any training."""
    for name, limit in (("alpha", MAX_ALPHA), ("decay", 1.0)):
        number: Any = getattr(step, name)
        if not isinstance(number, Real) or isinstance(number, bool) or not 0 < float(number) <= limit:
            cure = "a positive number" if name == "alpha" else "a number in (0, 1], where 1 keeps the size of steps"
            raise ValueError(f"step={step!r} has {name}={number!r}: it must be {cure}.")
    # Six rows of two units, all different. The gradient is parallel to h, the momentum is not.
    h = np.cos(np.arange(12.0)).reshape(6, 2)
    with training_in(SINGLE_PROCESS), np.errstate(all="ignore"):
        moved(step, h, 0.1 * h, h[::-1].copy(), np.ones(6))


def moved(step: Step, h: Floats, m: Floats, g: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the target and the momentum of a rule that may be the user's own, after checks of both.

    Raises ValueError if the rule does not return two arrays of the shape of `h`, writes into its arguments, or returns
    NaN for finite arguments.
    """
    with refuse_writes(f"step={step!r} writes into h, m, g or weight: use copies."):
        moved = step.move(*map(read_only, (h, m, g, weight)))
    if not isinstance(moved, tuple) or len(moved) != 2:
        raise ValueError(f"step={step!r}: its move() returns a {type(moved).__name__}: return (target, momentum).")
    for name, array in zip(("target", "momentum"), moved, strict=True):
        if not (isinstance(array, np.ndarray) and array.shape == h.shape and array.dtype.kind in "fiu"):
            received = f"an array of {array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)
            cure = f"it must hold numbers in the shape of h, {h.shape}, which is (rows, units)"
            raise ValueError(f"step={step!r}: the {name} that its move() returns is {received}: {cure}.")
        # A sum shows whether there is a NaN, and takes less memory than a mask of all rows.
        if np.isnan(array.sum()) and np.isfinite([h.sum(), m.sum(), g.sum()]).all():
            [row, *_], [unit, *_] = np.nonzero(np.isnan(array)) if np.isnan(array).any() else ([0], [0])
            where = f"in row {row}, where h is {h[row, unit]:g} and g is {g[row, unit]:g}"
            fault = f"the {name} that its move() returns is {array[row, unit]} {where}"
            raise ValueError(f"step={step!r}: {fault}: let it be finite, even if a unit or its gradient is constant.")
    # A rule may return one of its read-only arguments; training needs arrays that it can write into.
    target, momentum = (np.require(array, np.float64, "W") for array in moved)
    return target, momentum
