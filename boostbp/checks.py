"""Checks: values of parameters, refused by name with the cure."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

LARGEST_INT = 2**31 - 1  # of compiled code: beyond it libraries wrap round without a word
MOST_LEAVES = 2**17  # of a tree: more are refused by LightGBM
LONGEST = 200  # characters of a value in a message


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """The value, if it is among those allowed: words, whole numbers, True, False or None; numpy's are Python's."""
    given = value.item() if isinstance(value, np.bool_ | np.integer) else value
    if not any(
        given is word or (isinstance(word, str) and isinstance(given, str) and given == word) for word in allowed
    ):
        raise ValueError(f"{name}={shown(value)} is not known: use one of {', '.join(map(repr, allowed))}.")
    return given


def at_least(name: str, value: Any, least: float, most: float | None = None) -> float:
    """The value as a float, if it is a finite number of at least `least`, and at most `most`."""
    if not (_number(value) and _finite(value) and _within(value, least, most)):
        raise ValueError(f"{name}={shown(value)} is not allowed: give a number of {_bound(value, least, most)}.")
    return float(value)


def finite(name: str, value: Any) -> float:
    """The value as a float, if it is a finite number."""
    if not (_number(value) and _finite(value)):
        raise ValueError(f"{name}={shown(value)} is not allowed: give a finite number.")
    return float(value)


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """The value, if it is a whole number of at least `least`, and at most `most`; 3.0 is one."""
    integral = _number(value) and (isinstance(value, Integral) or (_finite(value) and float(value).is_integer()))
    if not (integral and _within(value, least, most)):
        raise ValueError(f"{name}={shown(value)} is not allowed: give a whole number of {_bound(value, least, most)}.")
    return int(value)


def between(name: str, value: Any, least: float, most: float) -> float:
    """The value as a float, if it is a number above `least` and below `most`."""
    if not (_number(value) and least < value < most):
        raise ValueError(f"{name}={shown(value)} is not allowed: give a number above {least}, and below {most}.")
    return float(value)


def share(name: str, value: Any) -> float:
    """The value as a float, if it is a number above 0, and at most 1."""
    if not (_number(value) and 0 < value <= 1):
        raise ValueError(f"{name}={shown(value)} is not allowed: give a share above 0, and at most 1.")
    return float(value)


def signs(name: str, value: Any) -> tuple[int, ...]:
    """The value as a tuple, if it is a sequence of -1, 0 and 1."""
    several = value.ndim == 1 if isinstance(value, np.ndarray) else isinstance(value, Sequence)
    if isinstance(value, str) or not several or not all(_number(sign) and sign in (-1, 0, 1) for sign in value):
        raise ValueError(
            f"{name}={shown(value)} is not allowed: give -1 (falls), 0 (free) or 1 (rises) for each column."
        )
    return tuple(map(int, value))


def seconds(name: str, value: Any) -> float | None:
    """The value, if it is None or a number above 0."""
    if value is not None and not (_number(value) and value > 0):
        raise ValueError(
            f"{name}={shown(value)} is not allowed: give a number of seconds above 0, or None for no limit."
        )
    return value


def file(name: str, value: Any) -> str:
    """The value as text, if it can be the name of a file."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not (isinstance(text, str) and text and "\0" not in text):
        raise ValueError(f"{name}={shown(value)} is not the name of a file: give a str or a pathlib.Path.")
    return text


def random_state(name: str, value: Any) -> np.random.RandomState:
    """Random numbers of a seed, as scikit-learn takes one."""
    try:
        return check_random_state(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}={shown(value)} is not allowed: give a whole number from 0 to 2**32 - 1, a "
            "numpy.random.RandomState, or None."
        ) from error


def named(name: str, value: Any) -> dict[str, Any]:
    """The value as a dict, if it maps names to values; None is an empty one."""
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{name}={shown(value)} is not allowed: give a dict of names and values, or None.")
    mapping = dict(value or {})
    for key in mapping:
        if not isinstance(key, str):
            raise ValueError(f"{name} has the name {shown(key)}, which is not allowed: names are strings.")
    return mapping


def shown(value: Any) -> str:
    """How a message shows a value: as Python writes it, cut where that is long."""
    try:
        text = repr(value)
    except Exception:  # an integer of many digits, or an object that cannot be shown
        return f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, Real)) and not isinstance(value, (bool, np.bool_))


def _finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of float64
        return False


def _within(value: Any, least: float, most: float | None) -> bool:
    return bool(value >= least and (most is None or value <= most))


def _bound(value: Any, least: float, most: float | None) -> str:
    return f"at most {most}" if most is not None and _number(value) and value > most else f"at least {least}"


def or_else(other: Any, check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """The check, which lets another value pass."""
    return lambda name, value: (
        value if value is other or (isinstance(value, str) and value == other) else check(name, value)
    )
