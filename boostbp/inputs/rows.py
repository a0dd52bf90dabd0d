"""Rows: input, target, weight and offset of training rows and evaluation sets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.inputs.targets import weights_in_rows
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import SINGLE_PROCESS, Group, evenly_spaced
from boostbp.trees.sparse import Matrix, Table, vstack

NO_OFFSET: Floats = np.zeros(())  # an offset is this, or (rows, outputs)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that a model is trained or evaluated on."""

    table: Table  # input of the first layer, h_0, or of the output layer if it is trained alone
    # (rows, outputs): targets, as the loss reads them for training rows, and as the metric reads them for evaluation
    # sets
    y: Floats
    weight: Floats  # (rows,)
    # (rows, outputs) float64, or `NO_OFFSET`: added to the raw output of each row, but not part of the model
    offset: Floats = field(default_factory=lambda: NO_OFFSET)
    group: Group = SINGLE_PROCESS  # the workers that hold the rows

    def __len__(self) -> int:
        return len(self.y)

    @property
    def X(self) -> Matrix:  # noqa: N802 (the name of the matrix everywhere)
        """The input, (rows, features)."""
        return self.table.X

    def take(self, rows: NDArray[Any]) -> Rows:
        """Return the rows with these ascending numbers, or of a mask."""
        offset = self.offset[rows] if self.offset.ndim else self.offset
        return Rows(self.table.take(rows), self.y[rows], self.weight[rows], offset, self.group.select_rows(rows))

    def spaced(self, n_most: int) -> Rows:
        """Return at most `n_most` of the rows of this process, evenly spaced."""
        return self.take(evenly_spaced(len(self), n_most))

    def concat(self, others: Rows) -> Rows:
        """Return these rows followed by others, which are on the last of several workers."""
        offset = np.concatenate([self.offset, others.offset]) if self.offset.ndim else self.offset
        table = Table(vstack(self.X, others.X), self.table.categorical)
        y, weight = np.concatenate([self.y, others.y]), np.concatenate([self.weight, others.weight])
        return Rows(table, y, weight, offset, self.group.append_rows(len(others)))

    def in_units(self, shift: Floats, scale: Floats) -> Rows:
        """Return the rows with targets ``(y - shift) / scale`` and offsets ``offset / scale``; both are (outputs,)."""
        return replace(self.with_offset_unit(scale), y=(self.y - shift) / scale)

    def with_offset_unit(self, scale: Floats) -> Rows:
        """Return the rows with offsets ``offset / scale`` for a scale, (outputs,), and unchanged targets."""
        return replace(self, offset=self.offset / scale) if self.offset.ndim else self

    def gathered(self) -> Rows:
        """Return the rows of all workers."""
        X, y, weight = self.group.allgather_rows(self.X, self.y, self.weight)
        offset = self.group.allgather_rows(self.offset)[0] if self.offset.ndim else self.offset
        return Rows(replace(self.table, X=X), y, weight, offset)

    def counted(self) -> Rows:
        """Return the rows of weight above 0, which alone may count in `min_samples_leaf`, with `weights_in_rows`."""
        used = self.weight > 0
        rows = self if used.all() else self.take(used)
        return replace(rows, weight=weights_in_rows(rows.weight))
