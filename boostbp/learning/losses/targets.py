"""Targets of a loss: what they may be, and the refusal of those that it cannot take."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Task", "refuse"]

Task = Literal["classification", "regression"]


def refuse(y: NDArray[np.float64], wrong: NDArray[np.bool_], cure: str) -> None:
    """Raise ValueError if any target is wrong.

    Parameters
    ----------
    y : (rows, outputs) float64
    wrong : (rows, outputs) bool
    cure : str
        What the loss takes and what to do; follows the first wrong value and its place.
    """
    if wrong.any():
        row, output = np.argwhere(wrong)[0]
        raise ValueError(f"y={y[row, output]:g} in row {row}, output {output}: {cure}")
