"""What the supervised estimators share: the user's evaluation sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.estimators.base import BaseBoostBP, names_of
from boostbp.inputs import read_weight
from boostbp.learning.backprop import EvalSet

__all__ = ["Supervised"]

Floats = NDArray[np.float64]


class Supervised(BaseBoostBP):
    """Targets and evaluation sets as the loss takes them."""

    _fewest_hidden = 0  # a single layer is a model

    def _eval_sets(self, eval_set: Any, eval_names: Sequence[str] | None) -> list[EvalSet]:
        """The user's evaluation sets: pairs (X, y) or triples (X, y, sample_weight)."""
        parts = [eval_set] if isinstance(eval_set, tuple) and len(eval_set) in (2, 3) else list(eval_set or [])
        sets = []
        for number, (name, part) in enumerate(zip(names_of(parts, eval_names), parts, strict=True)):
            if not isinstance(part, Sequence) or len(part) not in (2, 3):
                raise ValueError(
                    f"eval_set[{number}] is a {type(part).__name__}: give pairs (X, y), or triples "
                    "(X, y, sample_weight)."
                )
            table = self._read(part[0])
            y = self._encode(part[1], len(table.X))
            weight = read_weight(part[2] if len(part) == 3 else None, len(table.X))
            sets.append(EvalSet(name, table.X, y, weight))
        return sets

    def _encode(self, y: Any, n_rows: int) -> Floats:
        raise NotImplementedError
