"""Probes: figures of the hidden layers at an epoch, and the share of the target that a regression on them explains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lstsq

from boostbp.network.steps import std
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

# A column that varies by less than this share of its size is constant.
ROUNDING = 1e-12
# Number of training rows of a probe, small enough for it to take little time. Not varied.
MAX_ROWS = 1000


def refit_r2(target: Floats, fit: Floats, weight: Floats) -> float:
    """Return R^2 over the rows of all workers and all outputs; NaN if the target is constant."""
    moment, weights, residual = workers().sum(weight @ target, weight.sum(), weight @ np.square(target - fit).sum(1))
    # R^2 = 1 - residual / total, with sums over all outputs, so outputs of large variance count most.
    [total] = workers().sum(weight @ np.square(target - moment / weights).sum(1))
    return 1.0 - float(residual) / float(total) if total > 0 else float("nan")


def drift(old: Floats, new: Floats, weight: Floats) -> float:
    """Return the root mean square change of the units in their standard deviations, averaged over units."""
    square, total = workers().sum(weight @ np.square(new - old), weight.sum())
    moved, before = np.sqrt(square / total), std(old, weight)
    return float(np.mean(np.divide(moved, before, out=np.zeros_like(moved), where=before > 0)))


def gradient_figures(g: Sequence[Floats]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the root mean square of each hidden layer's gradient, and its share of dead rows; see `Epoch`.

    `g` has the gradients in h_0 .. h_L, each (rows, units); that of h_0 is a placeholder.
    """
    # A row whose loss gradient is 0 is already fitted, so a gradient of 0 in the layers below is no sign of a dead
    # unit.
    hidden, learning = g[1:-1], np.asarray(g[-1].any(axis=1))
    squares = [np.square(of_layer).sum() for of_layer in hidden]
    dead = [float(np.count_nonzero(~of_layer[learning].any(axis=1))) for of_layer in hidden]
    counts = float(len(learning)), float(np.count_nonzero(learning))
    n_rows, n_learning, *sums = map(float, workers().sum(*counts, *squares, *dead))
    norms = [np.sqrt(square / (n_rows * h.shape[1])) for square, h in zip(sums, hidden, strict=False)]
    return tuple(map(float, norms)), tuple(number / max(n_learning, 1.0) for number in sums[len(hidden) :])


def linear_probe_r2(
    h: Floats, y: Floats, weight: Floats, held_out_rows: tuple[Floats, Floats, Floats] | None = None
) -> tuple[float, float]:
    """Return the share of the target, (rows, outputs), that a linear regression on a hidden layer explains.

    On the training rows this is R^2, NaN if no output varies. On held-out rows, which are passed as the same three
    arrays, it is the squared correlation of prediction and target, which does not depend on the unit of the target, or
    0 if the correlation is negative. It is averaged over the outputs in the same way as R^2.
    """
    # Targets may have any size; if they overflow, the probe is NaN.
    with np.errstate(all="ignore"):
        (h, scale), (y, _) = _centred(h, weight, axis=0), _centred(y, weight, axis=None)
        if not (np.isfinite(h).all() and np.isfinite(y).all()):
            return float("nan"), float("nan")
        # Least squares of minimal norm (SVD, relative cutoff 1e-10), as units that follow one gradient are collinear.
        root = np.sqrt(weight / weight.sum())[:, None]
        w = lstsq(root * h, root * y, cond=1e-10, check_finite=False)[0]
        total = np.square(root * y).sum(axis=0)
        if not total.sum() > 0:
            return float("nan"), float("nan")
        training = float(1.0 - np.square(root * (y - h @ w)).sum() / total.sum())
        return training, float("nan") if held_out_rows is None else _agreement(held_out_rows, w / scale[:, None], total)


def _centred(values: Floats, weight: Floats, axis: int | None) -> tuple[Floats, Floats]:
    """Return columns of mean 0 scaled to a largest size of 1, each (axis 0) or all together, and the divisor."""
    largest = np.abs(values).max(axis=axis)
    values = values - weight @ values / weight.sum()
    size = np.abs(values).max(axis=axis)
    varies = size > ROUNDING * largest
    return np.where(varies, values, 0.0) / np.where(varies, size, 1.0), np.where(varies, size, 1.0)


def _agreement(held_out_rows: tuple[Floats, Floats, Floats], w: Floats, share: Floats) -> float:
    h, y, weight = held_out_rows
    # The correlation, not R^2, as targets of evaluation sets may have another unit than those of the loss.
    fit, y = _centred(h @ w, weight, axis=0)[0], _centred(y, weight, axis=0)[0]
    along, sizes = weight @ (fit * y), (weight @ np.square(fit)) * (weight @ np.square(y))
    squared = np.divide(np.maximum(along, 0.0) ** 2, sizes, out=np.zeros_like(along), where=sizes > 0)
    share = np.where(weight @ np.square(y) > 0, share, 0.0)
    return float(share @ squared / share.sum()) if share.sum() > 0 else float("nan")
