"""Sketches: a few columns in place of the gradients of all outputs, for growing one tree that serves them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boostbp import checks

__all__ = ["Sketch", "load"]

Floats = NDArray[np.float64]
Kind = Literal["projection", "singular", "outputs"]
ROWS = 2048
SQUARINGS = 12  # the 4,096th power of the matrix


@dataclass(frozen=True, slots=True)
class Sketch:
    """How the gradients of all outputs become a few columns.

    Attributes
    ----------
    kind : {"projection", "singular", "outputs"}
        Random directions, drawn anew each round; the leading singular directions of the gradients, of at most
        `ROWS` rows; or outputs drawn by the size of their gradients.
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
            return _times(grad, rng.standard_normal((n_outputs, columns)) / np.sqrt(n_outputs))
        if self.kind == "singular":
            some = grad[:: -(-len(grad) // ROWS)]
            return _times(grad, _leading(np.einsum("ni,nj->ij", some, some), columns))
        size = np.square(grad).sum(axis=0)
        order = np.log(rng.random(n_outputs)) / np.maximum(size, 1e-300)  # drawn without replacement, by size
        return np.ascontiguousarray(grad[:, np.sort(np.argsort(-order)[:columns])])


def _leading(gram: Floats, columns: int) -> Floats:
    """Leading eigenvectors, (outputs, columns), one after the other, by squaring the matrix again and again.

    Without LAPACK: in each round, threads of it would wait for each other longer than they work.
    """
    found = np.zeros((len(gram), columns))
    for column in range(columns):
        power = gram
        for _ in range(SQUARINGS):
            size = np.trace(power)
            if not size > 0.0:
                return found
            power = np.einsum("ij,jk->ik", power / size, power / size)
        leading = power[np.argmax(np.diag(power))]
        found[:, column] = leading / np.sqrt(np.square(leading).sum())
        along = np.einsum("ij,j->i", gram, found[:, column])
        gram = gram - np.outer(along, found[:, column])
    return found


def _times(grad: Floats, directions: Floats) -> Floats:
    """Their product; without BLAS, whose sums may depend on its number of threads."""
    product: Floats = np.einsum("ni,ij->nj", grad, directions)
    return product


def load(sketch: Any) -> Sketch | None:
    """A sketch by its kind, or by ``(kind, columns)``; None stays None.

    Raises
    ------
    ValueError
        If the kind is not known, or there is no column.
    """
    if sketch is None or isinstance(sketch, Sketch):
        return sketch
    given: Any = (sketch, 1) if isinstance(sketch, str) else sketch
    if not (isinstance(given, (tuple, list)) and len(given) == 2 and given[0] in get_args(Kind)):
        raise ValueError(
            f"sketch={checks.shown(sketch)} is not known: use {', '.join(map(repr, get_args(Kind)))}, or one of them "
            "with a number of columns, such as ('singular', 4)."
        )
    return Sketch(given[0], checks.whole("sketch: its number of columns", given[1], 1))
