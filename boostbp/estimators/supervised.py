"""What the supervised estimators share: the user's evaluation sets, and what is read in place of mistyped cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import Tags

from boostbp.backends.base import Table
from boostbp.estimators import parameters
from boostbp.estimators.base import BaseBoostBP, names_of
from boostbp.estimators.earlier import Earlier
from boostbp.estimators.eval_sets import Part
from boostbp.estimators.nested_parameters import constrained
from boostbp.floats import Floats
from boostbp.inputs import Repair, named_in_errors, read_offset, read_weight
from boostbp.losses import Loss, traits_of
from boostbp.network.monitor import EvalSet
from boostbp.network.offsets import NO_OFFSET


class Supervised(BaseBoostBP):
    """Targets and evaluation sets as the loss takes them."""

    _fewest_hidden = 0  # a single layer is a model
    _loss: Loss
    _repair: Repair | None = None  # of models that had none, and where there is nothing to compare

    def _read(self, X: Any, *, reset: bool = False) -> Table:
        table = super()._read(X, reset=reset)
        return table if reset or self._repair is None else self._repair.read(table)

    def _repaired(self, table: Table, weight: Floats) -> Table:
        """Training rows without mistyped cells; other tables are read by the same rule from now on."""
        # what is read in the place of a cell depends on the others of its row: no function of one column is monotone
        self._repair = Repair.of(table, weight) if parameters.clips(self) and not constrained(self) else None
        return table if self._repair is None else self._repair.read(table)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags

    def _raw(self, X: Any, offset: Any = None) -> Floats:
        """Raw output, its offset included, (rows, outputs)."""
        return self._beside(super()._raw(X), offset)

    def _beside(self, raw: Floats, offset: Any) -> Floats:
        """A raw output with the user's offset added, (rows, outputs)."""
        if offset is None:
            return raw
        return raw + self._read_offset(offset, len(raw), self._n_targets) / self._output_scale()

    @property
    def _n_targets(self) -> int:
        """Columns of the target: outputs, but for several quantiles of one."""
        return len(self.network_.baseline) if traits_of(self._loss).copies is None else 1

    def _read_offset(self, offset: Any, n_rows: int, n_outputs: int, name: str = "offset") -> Floats:
        """The user's offset, (rows, outputs); of a logarithmic link, refused where no exponential is taken."""
        known = read_offset(offset, n_rows, n_outputs, name)
        if traits_of(self._loss).link_name == "log":
            low, high = getattr(self._loss, "lowest", -np.inf), getattr(self._loss, "highest", np.inf)
            wrong = known[(known < low) | (known > high)]
            if len(wrong):
                raise ValueError(
                    f"{name} holds {wrong[0]:g}, and loss={self._loss.name!r} takes exponentials of raw outputs from "
                    f"{low:g} to {high:g}: give the logarithm of the exposure."
                )
        return known

    def _eval_sets(
        self,
        parts: Sequence[Part],
        eval_names: Sequence[str] | None,
        offset: Any,
        n_outputs: int,
        earlier: Earlier | None,
    ) -> list[EvalSet]:
        """The user's evaluation sets, read; they have an offset where the training rows have.

        Parameters
        ----------
        offset : object
            That of the training rows, None if there is none.
        n_outputs : int
        earlier : Earlier or None
            What is added to their offset.
        """
        sets = []
        for name, part in zip(names_of(parts, eval_names), parts, strict=True):
            with named_in_errors(part.source):
                table = self._read(part.X)
                y = self._encode(part.y, len(table.X))
                if y.shape[1] != n_outputs:  # which numpy would broadcast
                    raise ValueError(
                        f"its y has {y.shape[1]} outputs, the training target has {n_outputs}. Give the same outputs, "
                        "in the same order."
                    )
                weight = read_weight(part.weight, len(table.X))
                if (part.offset is None) != (offset is None):
                    given, other = ("eval_offset", "offset") if offset is None else ("offset", "eval_offset")
                    raise ValueError(f"{given} is given without {other}: give both; zeros where there is none.")
                known = self._offset(table.X, part.offset, n_outputs, earlier, "eval_offset")
            sets.append(EvalSet(name, table.X, y, weight, offset=known))
        return sets

    def _offset(self, X: Floats, offset: Any, n_outputs: int, earlier: Earlier | None, name: str = "offset") -> Floats:
        """The user's offset and what an earlier model predicts, (rows, outputs); `NO_OFFSET` if there is neither."""
        known = NO_OFFSET if offset is None else self._read_offset(offset, len(X), n_outputs, name)
        return known if earlier is None else known + earlier.offset(X, self._n_threads())

    def _encode(self, y: Any, n_rows: int) -> Floats:
        raise NotImplementedError
