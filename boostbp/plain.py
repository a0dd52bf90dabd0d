"""Numbers, text, lists, tuples and dicts as strict JSON holds them, and back with their types.

Values that JSON cannot express are objects with one key: ``{"float": "nan"}``, ``{"tuple": [...]}``,
``{"dict": [[key, value], ...]}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_NOT_FINITE = ("nan", "inf", "-inf")


def encode(value: Any) -> Any:
    """Return a value in the types of JSON; numpy's numbers become Python's, and arrays become lists.

    Raises
    ------
    TypeError
        If the value, or one inside it, has another type.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) is tuple:
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, list | range):
        return [encode(item) for item in value]
    raise TypeError(f"{value!r} is a {type(value).__name__}: it is neither number, text, list, tuple nor dict")


def decode(value: Any) -> Any:
    """Return the value that `encode` was given; ValueError if `encode` never returns such a value."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"float": str() as number, **rest} if not rest and number in _NOT_FINITE:
            return float(number)
        case {"tuple": list() as items, **rest} if not rest:
            return tuple(decode(item) for item in items)
        case {"dict": list() as pairs, **rest} if not rest:
            return _dict(pairs)
    raise ValueError(f"{value!r} is not a plain value")


def _dict(pairs: list[Any]) -> dict[Any, Any]:
    decoded = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"{pair!r} is not a key and a value")
        key = decode(pair[0])
        try:
            decoded[key] = decode(pair[1])
        except TypeError as error:
            raise ValueError(f"{key!r} is not a key") from error
    return decoded
