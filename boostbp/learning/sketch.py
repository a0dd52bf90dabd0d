"""Sketches: a few columns in place of the gradients of all outputs, for growing one tree that serves them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sketch", "load"]

Floats = NDArray[np.float64]
Kind = Literal["projection", "singular", "outputs"]


@dataclass(frozen=True, slots=True)
class Sketch:
    """How the gradients of all outputs become a few columns.

    Attributes
    ----------
    kind : {"projection", "singular", "outputs"}
        Random directions, drawn anew each round; the leading singular directions of the gradients; or
        outputs drawn by the size of their gradients.
    columns : int
        Their number; more than one needs a library with vector leaves.
    """

    kind: Kind = "projection"
    columns: int = 1

    def of(self, grad: Floats, rng: np.random.Generator) -> Floats:
        """The columns of gradients, (rows, outputs) -> (rows, columns)."""
        n_outputs = grad.shape[1]
        columns = min(self.columns, n_outputs)
        if self.kind == "projection":
            return grad @ rng.standard_normal((n_outputs, columns)) / np.sqrt(n_outputs)
        if self.kind == "singular":
            directions = np.linalg.eigh(grad.T @ grad)[1][:, : -columns - 1 : -1]
            return np.ascontiguousarray(grad @ directions)
        size = np.square(grad).sum(axis=0)
        order = np.log(rng.random(n_outputs)) / np.maximum(size, 1e-300)  # drawn without replacement, by size
        return np.ascontiguousarray(grad[:, np.sort(np.argsort(-order)[:columns])])


def load(sketch: Any) -> Sketch | None:
    """A sketch by its kind, or by ``(kind, columns)``; None stays None.

    Raises
    ------
    ValueError
        If the kind is not known, or there is no column.
    """
    if sketch is None or isinstance(sketch, Sketch):
        return sketch
    kind, columns = (sketch, 1) if isinstance(sketch, str) else tuple(sketch)
    if kind not in get_args(Kind) or isinstance(columns, bool) or int(columns) != columns or columns < 1:
        raise ValueError(
            f"sketch={sketch!r} is not known: use {', '.join(map(repr, get_args(Kind)))}, or one of them with a "
            "number of columns, such as ('singular', 4)."
        )
    return Sketch(kind, int(columns))
