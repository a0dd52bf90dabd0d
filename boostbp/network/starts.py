"""Starts: the hidden variables before the first epoch, and the constant that the output starts from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from boostbp.inputs.rows import Rows
from boostbp.losses import Loss
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.network.steps import std
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.sparse import Matrix, Sparse, Table, row_blocks
from boostbp.trees.standardised import Standardised

# Randomised principal components. Both are usual values (Halko, Martinsson and Tropp 2011); not varied.
# Additional directions of the sketch.
OVERSAMPLED = 8
# Power iterations, which sharpen the sketch where singular values fall slowly.
POWERS = 4
# Limit on the steps of Newton's method, and the step at which it ends. Arbitrary.
MAX_STEPS, MIN_STEP = 100, 1e-10
# A Newton step must be at most this share of the previous one: with a hessian twice too large, each step is half of it.
SHORTER = 0.75
Start = Callable[[Matrix, Floats, int, np.random.Generator], Floats]


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
    below = Standardised.of(h, weight)
    directions = rng.standard_normal((h.shape[1], units))
    copied = min(directions.shape)
    directions[:, :copied] = np.eye(h.shape[1], copied)
    return standardised(below.project(directions), weight)


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
    """Return the raw output that training starts from: 0 in Algorithm 1, the best constant if the output is boosted."""
    return best_constant(loss, rows) if output_target == "loss" else np.zeros(rows.y.shape[1])


def best_constant(loss: Loss, rows: Rows) -> Floats:
    """Return the best constant beside an offset, (outputs,): ``argmin_c sum weight loss(c + offset, y)``.

    It lies between ``c - max(offset)`` and ``c - min(offset)``, where c is the best constant without offset. Newton's
    method finds it there. Bisection replaces a step that would leave the bracket or is hardly shorter than the previous
    one. All workers of a group use the same sample of the rows.
    """
    y, weight, offset, checked = rows.y, rows.weight, rows.offset, CheckedLoss(loss)
    if not offset.ndim:
        return checked.baseline(*workers().sample(y, weight))
    y, weight, offset = workers().sample(y, weight, offset)
    # The best constant of such a loss shifts with the target: it is that of the target minus the offset.
    if loss.scale_free:
        return checked.baseline(y - offset, weight)
    constant = checked.baseline(y, weight)
    # The slope of a convex loss rises in c, so the best c lies between the best ones if all offsets were the largest,
    # or all the smallest.
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
