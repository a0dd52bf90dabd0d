"""Checks of parameter values, whose errors have the name and the cure."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

import numpy as np
from sklearn.utils import check_random_state

T = TypeVar("T")
LARGEST_INT = 2**31 - 1  # of C's int: larger values overflow in libraries without an error
LARGEST_SCALE = 1e6  # of parameters in units of a target or of raw outputs, and the inverse of the smallest
MOST_LEAVES = 2**17  # limit on the leaves of a tree in LightGBM
MAX_SHOWN_VALUE = 200  # characters of a value in a message: two lines of a terminal. Arbitrary


class ConformanceError(AssertionError):
    """A backend breaks a duty, or cannot do what its capabilities declare."""


def one_of(name: str, value: object, allowed: tuple[object, ...]) -> Any:
    """Return the value if it is allowed: a word, a whole number, True, False or None. NumPy's become Python's."""
    plain = bool(value) if isinstance(value, np.bool_) else int(value) if is_whole(value) else value
    # compared by identity, as 1 == True; words by equality
    if not any(plain is word or (isinstance(plain, str) and plain == word) for word in allowed):
        raise ValueError(f"{name}={shown(value)} is not known: use one of {', '.join(map(repr, allowed))}.")
    return plain


def at_least(name: str, value: object, least: float, most: float | None = None) -> float:
    """Return the value as a float if it is a finite number of at least `least`, and at most `most`."""
    if not (_is_number(value) and _is_finite(value) and _is_within(value, least, most)):
        raise not_allowed(name, value, f"a number of {_broken_bound(value, least, most)}")
    return float(value)


def finite(name: str, value: object) -> float:
    """Return the value as a float if it is a finite number."""
    if not (_is_number(value) and _is_finite(value)):
        raise not_allowed(name, value, "a finite number")
    return float(value)


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return the value if it is a whole number from `least` to `most`."""
    if not (is_whole(value) and _is_within(value, least, most)):
        raise not_allowed(name, value, f"a whole number of {_broken_bound(value, least, most)}")
    return int(value)


def is_whole(value: object) -> TypeGuard[float]:
    """Return whether a value is a whole number, as 3.0 is, too: samplers and tables of parameters have such floats."""
    return _is_number(value) and (isinstance(value, Integral) or (_is_finite(value) and float(value).is_integer()))


def between(name: str, value: object, least: float, most: float) -> float:
    """Return the value as a float if it is a number above `least` and below `most`."""
    if not (_is_number(value) and least < value < most):
        raise not_allowed(name, value, f"a number above {least}, and below {most}")
    return float(value)


def share(name: str, value: object) -> float:
    """Return the value as a float if it is a number above 0, and at most 1."""
    if not (_is_number(value) and 0 < value <= 1):
        raise not_allowed(name, value, "a share above 0, and at most 1")
    return float(value)


def signs(name: str, value: Any) -> tuple[int, ...]:
    """Return the value as a tuple if it is a sequence of -1, 0 and 1."""
    several = value.ndim == 1 if isinstance(value, np.ndarray) else isinstance(value, Sequence)
    if isinstance(value, str) or not several or not all(_is_number(sign) and sign in (-1, 0, 1) for sign in value):
        raise not_allowed(name, value, "-1 (falls), 0 (free) or 1 (rises) for each column")
    return tuple(map(int, value))


def seconds(name: str, value: T) -> T:
    """Return the value if it is None or a number above 0."""
    if value is not None and not (_is_number(value) and value > 0):
        raise not_allowed(name, value, "a number of seconds above 0, or None for no limit")
    return value


def file(name: str, value: object) -> str:
    """Return the value as text if it can be the name of a file."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not (isinstance(text, str) and text and "\0" not in text):
        raise ValueError(f"{name}={shown(value)} is not the name of a file: give a str or a pathlib.Path.")
    return text


def random_state(name: str, value: object) -> np.random.RandomState:
    """Return the random generator of a seed, with the rules of scikit-learn."""
    try:
        return check_random_state(int(value) if is_whole(value) else value)
    except (TypeError, ValueError) as error:
        cure = "a whole number from 0 to 2**32 - 1, a numpy.random.RandomState, or None"
        raise not_allowed(name, value, cure) from error


def named(name: str, value: object) -> dict[str, Any]:
    """Return the value as a dict if it maps names to values; None becomes an empty dict."""
    if value is not None and not isinstance(value, Mapping):
        raise not_allowed(name, value, "a dict of names and values, or None")
    mapping = dict(value or {})
    for key in mapping:
        if not isinstance(key, str):
            raise ValueError(f"{name} has the name {shown(key)}, which is not allowed: names are strings.")
    return mapping


def is_container(value: object) -> TypeGuard[Iterable[Any]]:
    """Return whether a value holds others, as lists, arrays, columns and sets do, and text does not."""
    has_items = isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray)
    return has_items and getattr(value, "ndim", 1) > 0  # an array of a single number has none


def or_else(other: object, check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return the check, extended to accept another value."""
    return lambda name, value: (
        value if value is other or (isinstance(value, str) and value == other) else check(name, value)
    )


def not_allowed(name: str, value: object, cure: str) -> ValueError:
    """Return an error with the name of a parameter, its value, and the cure."""
    return ValueError(f"{name}={shown(value)} is not allowed: give {cure}.")


def shown(value: object) -> str:
    """Return the text of a value in a message: its `repr`, shortened if it is long."""
    try:
        text = repr(value)
    except Exception:  # an integer of many digits, or an object that cannot be shown
        return f"<{type(value).__name__}>"
    return text if len(text) <= MAX_SHOWN_VALUE else f"{text[:MAX_SHOWN_VALUE]}... ({len(text)} characters)"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float, Real)) and not isinstance(value, (bool, np.bool_))


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of float64
        return False


def _is_within(value: float, least: float, most: float | None) -> bool:
    return bool(value >= least and (most is None or value <= most))


def _broken_bound(value: object, least: float, most: float | None) -> str:
    return f"at most {most}" if most is not None and _is_number(value) and value > most else f"at least {least}"
