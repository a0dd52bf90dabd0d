"""Float32, in which libraries see inputs and gradients, and the exact way back to float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LARGEST = np.finfo(np.float32).max


def representable(X: NDArray[np.float64]) -> NDArray[np.float32]:
    """The input in float32, with numbers beyond its range moved to its ends.

    Libraries refuse infinities. Trees still route the float64 input: a threshold separates no more
    than float32 can tell apart.
    """
    with np.errstate(over="ignore"):
        Z = X.astype(np.float32)
    return np.clip(Z, -_LARGEST, _LARGEST, out=Z)


def gradients(grad: NDArray[np.float64], library: str) -> NDArray[np.float32]:
    """Gradient or hessian in float32, C-contiguous; ValueError if a value exceeds the range of float32."""
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(grad, np.float32)
    except FloatingPointError:
        raise ValueError(
            f"gradient or hessian of size {np.abs(grad).max():.3g} exceeds the range of float32, in which {library} "
            f"grows trees: standardise the targets or use smaller steps."
        ) from None


def largest_below(threshold: NDArray[np.float32]) -> NDArray[np.float64]:
    """The largest float64 whose float32 rounding is below each threshold.

    For a library that sends ``float32(x) < threshold`` left. Rounding turns at the midpoint of the
    threshold and its predecessor, and there to whichever of the two has the even mantissa.
    """
    with np.errstate(over="ignore"):  # the ends of float32 have infinite neighbours
        before = np.nextafter(threshold, np.float32(-np.inf))
        middle = (before.astype(np.float64) + threshold) / 2
        rounded = middle.astype(np.float32)
    return np.where(rounded < threshold, middle, np.nextafter(middle, -np.inf))


def largest_not_above(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest float64 whose float32 rounding is at most each threshold.

    For a library that sends ``float32(x) <= threshold`` left, with a threshold in float64.
    """
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
        above = np.where(nearest > threshold, nearest, np.nextafter(nearest, np.float32(np.inf)))
    return largest_below(above)
