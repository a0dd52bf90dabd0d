"""Linear probe: the share of the target that a linear regression on a hidden layer explains."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq

from boostbp.runtime.arrays import Floats

ROUNDING = 1e-12  # a column that varies by less than this share of its size is constant
MAX_ROWS = 1000  # training rows of a probe, which must take no noticeable time. Not varied


def linear_probe_r2(
    h: Floats, y: Floats, weight: Floats, held_out_rows: tuple[Floats, Floats, Floats] | None = None
) -> tuple[float, float]:
    """Return the share of the target that a linear regression on a hidden layer explains.

    Parameters
    ----------
    h : (rows, units) float64
    y : (rows, outputs) float64
    weight : (rows,) float64
    held_out_rows : tuple of the same three, or None

    Returns
    -------
    training : float
        R^2; NaN if no output varies.
    held_out : float
        Squared correlation of the prediction with the target, which does not depend on the target's unit; 0 if it is
        negative. It is averaged over the outputs as R^2 is.
    """
    with np.errstate(all="ignore"):  # targets may have any size; an overflow gives NaN
        (h, scale), (y, _) = _centred(h, weight, axis=0), _centred(y, weight, axis=None)
        if not (np.isfinite(h).all() and np.isfinite(y).all()):
            return float("nan"), float("nan")
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
    fit, y = _centred(h @ w, weight, axis=0)[0], _centred(y, weight, axis=0)[0]
    along, sizes = weight @ (fit * y), (weight @ np.square(fit)) * (weight @ np.square(y))
    squared = np.divide(np.maximum(along, 0.0) ** 2, sizes, out=np.zeros_like(along), where=sizes > 0)
    share = np.where(weight @ np.square(y) > 0, share, 0.0)
    return float(share @ squared / share.sum()) if share.sum() > 0 else float("nan")
