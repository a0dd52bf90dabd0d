"""What the supervised estimators share: evaluation sets, the user's or held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from boostbp.backends.base import Table
from boostbp.estimators.base import BaseBoostBP
from boostbp.inputs import read_weight
from boostbp.learning.backprop import EvalSet

__all__ = ["HOLD_OUT_ROWS", "Supervised"]

Floats = NDArray[np.float64]
HOLD_OUT_ROWS = 200  # below this many rows early_stopping="auto" does not give rows away


class Supervised(BaseBoostBP):
    """Evaluation sets: the user's, or a part held out of the training rows."""

    def _eval_sets(self, eval_set: Any) -> list[EvalSet]:
        """The user's evaluation sets: pairs (X, y) or triples (X, y, sample_weight)."""
        parts = [eval_set] if isinstance(eval_set, tuple) and len(eval_set) in (2, 3) else list(eval_set or [])
        sets = []
        for number, part in enumerate(parts):
            if not isinstance(part, Sequence) or len(part) not in (2, 3):
                raise ValueError(
                    f"eval_set[{number}] is a {type(part).__name__}: give pairs (X, y), or triples "
                    "(X, y, sample_weight)."
                )
            table = self._read(part[0])
            y = self._encode(part[1], len(table.X))
            weight = read_weight(part[2] if len(part) == 3 else None, len(table.X))
            sets.append(EvalSet(f"valid_{number}", table.X, y, weight))
        return sets

    def _encode(self, y: Any, n_rows: int) -> Floats:
        raise NotImplementedError

    def _hold_out(
        self, table: Table, y: Floats, weight: Floats, strata: Any
    ) -> tuple[Table, Floats, Floats, list[EvalSet]]:
        """Give some rows away for early stopping, if that is wanted and there are enough."""
        if self.early_stopping not in (True, False, "auto"):
            raise ValueError(f"early_stopping={self.early_stopping!r} is not known: use True, False or 'auto'.")
        wanted = self.early_stopping is True or (self.early_stopping == "auto" and len(y) >= HOLD_OUT_ROWS)
        if not wanted or self.epochs == 0:
            return table, y, weight, []
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rows = np.arange(len(y))
        try:
            train, held = train_test_split(rows, test_size=self.validation_fraction, random_state=seed, stratify=strata)
        except ValueError:  # a class too small to be split: without strata
            train, held = train_test_split(rows, test_size=self.validation_fraction, random_state=seed)
        if not (weight[held].any() and weight[train].any()):
            return table, y, weight, []
        train.sort()
        held.sort()
        held_out = EvalSet("held_out", table.X[held], y[held], weight[held])
        return Table(table.X[train], table.categorical), y[train], weight[train], [held_out]
