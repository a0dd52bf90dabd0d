"""Checks: values of parameters, refused by name with the cure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["NUMBERS", "WORDS", "at_least", "one_of", "seconds", "whole"]


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """The value, if it is among those allowed: words, True, False or None."""
    given = bool(value) if isinstance(value, np.bool_) else value
    if not any(given is one or (isinstance(one, str) and isinstance(given, str) and given == one) for one in allowed):
        raise ValueError(f"{name}={value!r} is not known: use one of {', '.join(map(repr, allowed))}.")
    return given


def at_least(name: str, value: Any, least: float) -> Any:
    """The value, if it is a finite number of at least `least`."""
    if not (_number(value) and np.isfinite(value) and value >= least):
        raise ValueError(f"{name}={value!r} is not allowed: give a number of at least {least}.")
    return value


def whole(name: str, value: Any, least: int) -> int:
    """The value, if it is a whole number of at least `least`; 3.0 is one."""
    if not (_number(value) and (isinstance(value, Integral) or float(value).is_integer()) and value >= least):
        raise ValueError(f"{name}={value!r} is not allowed: give a whole number of at least {least}.")
    return int(value)


def seconds(name: str, value: Any) -> float | None:
    """The value, if it is None or a number above 0."""
    if value is not None and not (_number(value) and value > 0):
        raise ValueError(f"{name}={value!r} is not allowed: give a number of seconds above 0, or None for no limit.")
    return value


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _or(other: Any, check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """The check, which lets another value pass."""
    return lambda name, value: (
        value if value is other or (isinstance(value, str) and value == other) else check(name, value)
    )


# Of one layer: what its numbers, and its words and switches, may be.
NUMBERS: dict[str, Callable[[str, Any], Any]] = {
    "n_estimators": partial(whole, least=0),
    "learning_rate": partial(at_least, least=0),
    "max_depth": partial(whole, least=-1),
    "max_leaves": _or(None, partial(whole, least=2)),
    "min_samples_leaf": partial(whole, least=1),
    "max_bins": partial(whole, least=2),
    "reg_lambda": partial(at_least, least=0),
    "base_lambda": _or("gcv", partial(at_least, least=0)),
}
WORDS: dict[str, tuple[Any, ...]] = {
    "multi_strategy": ("one_output_per_tree", "multi_output_tree"),
    "extra_trees": ("auto", True, False),
    "leaves": ("refit", "native"),
    "base": ("ridge", "additive", None),
    **dict.fromkeys(("penalize_constant", "standardize", "clip"), (True, False)),
}
