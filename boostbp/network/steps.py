"""Starts and steps of hidden variables: their values before the first epoch, and the rules that move them.

`STARTS` and `STEPS` list those that are known by name. ``docs/extending.md`` shows how to write a step rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from boostbp.inputs.rows import Rows
from boostbp.losses import Loss, traits_of
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats, read_only, refuse_writes
from boostbp.runtime.group import SINGLE_PROCESS, training_in, workers
from boostbp.trees.linear import Standardised
from boostbp.trees.sparse import Matrix, Sparse, Table, row_blocks

# With a larger step size, moves would overflow.
MAX_ALPHA = 1e300
# Epochs without a new lowest training loss until steps are shortened. With fewer, they vanish on plateaus.
PLATEAU_EPOCHS = 16
# Randomised principal components: additional directions of the sketch, and power iterations, which sharpen it where
# singular values fall slowly. Usual values (Halko, Martinsson and Tropp 2011).
OVERSAMPLED, POWERS = 8, 4
# Limit on the steps of Newton's method, and the step at which it ends. Arbitrary.
MAX_STEPS, MIN_STEP = 100, 1e-10
# A Newton step must be at most this share of the previous one: with a hessian twice too large, each step is half of it.
SHORTER = 0.75
Start = Callable[[Matrix, Floats, int, np.random.Generator], Floats]


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
    return np.asarray(np.sqrt(square / total))


def is_constant(h: Floats) -> NDArray[np.bool_]:
    """Return which units have the same value in all rows, up to rounding, (units,)."""
    # Rounding and penalties may leave differences of some 1e-10 of its size in a unit without information.
    return np.asarray(np.ptp(h, axis=0) <= 1e-10 * np.abs(h).max(axis=0))


def pace_after(losses: Sequence[float], decay: float) -> float:
    """Return the factor on moves after epochs with these training losses.

    It is multiplied by `decay` after every `PLATEAU_EPOCHS` epochs without a new lowest loss. A single rise is ignored:
    layers are fitted again from scratch, so a falling loss still varies from epoch to epoch.
    """
    lowest, waited, pace = np.inf, 0, 1.0
    for loss in losses:
        waited = 0 if loss < lowest else waited + 1
        lowest = min(lowest, loss)
        if waited == PLATEAU_EPOCHS:
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


def start_of(how: Start, table: Table, weight: Floats, units: int, rng: np.random.Generator) -> Floats:
    """Return a hidden variable before the first epoch, computed from the numeric columns, (rows, units).

    Units that are all constant would have no gradient to move along. In that case, indicators of the categories replace
    the numeric columns.
    """
    h = how(table.numeric, weight, units, rng)
    # Category codes have no order, so starts ignore them, unless all numeric columns are constant.
    if table.categorical and not std(h, weight).any():
        h = how(_indicators(table), weight, units, rng)
    return h


def _indicators(table: Table) -> Sparse:
    """Return the indicators of all categories, one column for each category of each categorical column."""
    X, columns = table.X, np.array(table.categorical, np.int32)
    parts = []
    for column in (X.dense(columns, slice(0, len(X))) if isinstance(X, Sparse) else X[:, columns]).T:
        known = np.flatnonzero(~np.isnan(column))
        codes = np.unique(np.concatenate(workers().gather(np.unique(column[known]))))
        place = np.searchsorted(codes, column[known])
        parts.append(sp.csc_matrix((np.ones(len(known)), (known, place)), shape=(len(column), len(codes))))
    return Sparse.of(sp.hstack(parts))


def noise(h: Matrix, weight: Floats, units: int, rng: np.random.Generator) -> Floats:
    """Return Gaussian noise, the paper's start, (rows, units)."""
    # Section 3.4 of the paper: "Hidden variable h is initialized as random Gaussian noise."
    numbers, total = workers().row_numbers(len(h))
    parts = [np.empty((0, units))]
    # Each worker draws the noise of all rows, so that a row has the same noise as on one machine.
    for rows in row_blocks(0, total, units):
        held = slice(*np.searchsorted(numbers, (rows.start, rows.stop)))
        parts.append(rng.standard_normal((rows.stop - rows.start, units))[numbers[held] - rows.start])
    return np.concatenate(parts)


def projection(h: Matrix, weight: Floats, units: int, rng: np.random.Generator) -> Floats:
    """Return random projections of the standardised input, each unit with standard deviation 1, (rows, units)."""
    directions = rng.standard_normal((h.shape[1], units))
    return standardised(Standardised.of(h, weight).project(directions), weight)


def identity(h: Matrix, weight: Floats, units: int, rng: np.random.Generator) -> Floats:
    """Return the first columns of the standardised input, and random projections for further units, (rows, units)."""
    directions = rng.standard_normal((h.shape[1], units))
    copied = min(directions.shape)
    directions[:, :copied] = np.eye(h.shape[1], copied)
    return standardised(Standardised.of(h, weight).project(directions), weight)


def principal(h: Matrix, weight: Floats, units: int, rng: np.random.Generator) -> Floats:
    """Return principal components of the standardised input, and random projections for further units, (rows, units).

    The components come from a random sketch with a few more directions than units, after some power iterations (Halko,
    Martinsson and Tropp 2011). No (columns, columns) matrix is formed.
    """
    below = Standardised.of(h, weight)
    directions = rng.standard_normal((h.shape[1], units))
    shape = workers().row_runs(len(h))[1], h.shape[1]
    n_components = min(*shape, units)
    basis = rng.standard_normal((h.shape[1], min(*shape, units + OVERSAMPLED)))
    # Multiply by X'WX. Without orthogonalisation, all directions would converge to the first component.
    for _ in range(POWERS):
        [pulled] = workers().sum(below.project_transposed(weight[:, None] * below.project(basis)))
        basis, _ = np.linalg.qr(pulled)
    scores = below.project(basis)
    # Within the sketch the components are the eigenvectors of a small matrix. eigh sorts them in ascending order.
    [gram] = workers().sum(scores.T @ (weight[:, None] * scores))
    _, rotation = np.linalg.eigh(gram)
    directions[:, :n_components] = basis @ rotation[:, ::-1][:, :n_components]
    return standardised(below.project(directions), weight)


def standardised(h: Floats, weight: Floats) -> Floats:
    """Return columns with weighted mean 0 and standard deviation 1; missing values and constant columns become 0."""
    # Divide by the largest value first: squares of values near the limits of float64 overflow.
    missing = np.isnan(h)
    present = np.where(missing, 0.0, weight[:, None])
    [largest] = workers().max(np.abs(np.where(missing, 0.0, h)).max(axis=0, initial=0.0))
    h = np.where(missing, 0.0, h) / np.maximum(largest, np.finfo(float).tiny)
    moment, total = workers().sum((present * h).sum(0), present.sum(0))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.nan_to_num(moment / total)
    centred = np.where(missing, 0.0, h - mean)
    deviation = std(centred, weight)
    # Columns have size 1 here, so a smaller deviation is a rounding error.
    return centred / np.where(deviation > 1e-14, deviation, np.inf)


STARTS: dict[str, Start] = {"identity": identity, "noise": noise, "principal": principal, "projection": projection}


def baseline_of(loss: Loss, rows: Rows, output_target: str) -> Floats:
    """Return the raw output that training starts from: 0 in Algorithm 1, the best constant if the loss is boosted."""
    return best_constant(loss, rows) if output_target == "loss" else np.zeros(traits_of(loss).n_outputs(rows.y))


def best_constant(loss: Loss, rows: Rows) -> Floats:
    """Return the best constant beside an offset, (outputs,): ``argmin_c sum weight loss(c + offset, y)``.

    Newton's method finds it. Bisection replaces a step that would leave the bracket or is hardly shorter than the
    previous one. All workers of a group use the same sample of the rows.
    """
    y, weight, offset, checked = rows.y, rows.weight, rows.offset, CheckedLoss(loss)
    if not offset.ndim:
        return checked.baseline(*workers().sample(y, weight))
    y, weight, offset = workers().sample(y, weight, offset)
    # The best constant of such a loss shifts with the target: it is that of the target minus the offset.
    if loss.scale_free:
        return checked.baseline(y - offset, weight)
    constant, checked = checked.baseline(y, weight), checked.prepared(y, weight)
    # The slope of a convex loss rises in c, so the best c lies between those for the largest and the smallest offset.
    low, high = constant - offset.max(axis=0), constant - offset.min(axis=0)
    constant = constant - weight @ offset / weight.sum()
    step = high - low
    for _ in range(MAX_STEPS):
        h = constant + offset
        slope = weight @ checked.gradient(h, y)
        # The sign of the slope says on which side of `constant` the minimum is.
        low, high = np.where(slope < 0, constant, low), np.where(slope > 0, constant, high)
        after = constant - slope / (weight @ checked.hessian(h, y))
        newton = (low <= after) & (after <= high) & (np.abs(after - constant) <= SHORTER * step)
        after = np.where(newton, after, (low + high) / 2)
        step, constant = np.abs(after - constant), after
        if (step <= MIN_STEP).all():
            break
    return constant
