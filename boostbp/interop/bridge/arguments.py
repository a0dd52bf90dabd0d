"""What a tree layer of a torch model is given: checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from boostbp import checks
from boostbp.learning.steps import Normalised, Plain, Step

__all__ = ["columns", "rule_of", "size"]


def size(name: str, value: Any) -> None:
    """Refuse what is no number of columns."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}={value!r} is not allowed: give a whole number of at least 1.")


def columns(categorical: Any, in_features: int | None) -> tuple[int, ...]:
    """Columns that hold category codes, checked."""
    found = tuple(categorical) if isinstance(categorical, Iterable) else (categorical,)
    if not isinstance(categorical, Iterable) or not all(
        isinstance(j, int | np.integer) and not isinstance(j, bool) for j in found
    ):
        raise ValueError(f"categorical={categorical!r} is not allowed: give a sequence of column numbers.")
    wrong = [j for j in found if j < 0 or (in_features is not None and j >= in_features)]
    if wrong:
        most = "from 0 on" if in_features is None else f"0 to {in_features - 1}"
        raise ValueError(f"categorical={found!r}: {wrong[0]} is no column, which are {most}.")
    return tuple(map(int, found))


def rule_of(step: Any, step_size: float, momentum: float) -> Step:
    """The rule by which outputs move, by name or as it is given."""
    rules: dict[str, Any] = {"normalised": Normalised, "plain": Plain}
    if not isinstance(step, str):
        rule: Step = step
        return rule
    if step not in rules:
        raise ValueError(
            f"step={step!r} is not known: use 'normalised', 'plain' or an object of boostbp.learning.steps."
        )
    checks.at_least("step_size", step_size, 0)
    checks.at_least("momentum", momentum, 0)
    if not (step_size > 0 and momentum < 1):
        raise ValueError(f"step_size={step_size!r}, momentum={momentum!r}: give a size above 0, a momentum in [0, 1).")
    return rules[step](step_size, momentum)
