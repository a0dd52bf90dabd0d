"""Conversion of numbers, text, lists, tuples, dicts and dataclasses to strict JSON, and back with their types.

Values that JSON cannot express are objects with one key: ``{"float": "nan"}``, ``{"tuple": [...]}``,
``{"dict": [[key, value], ...]}``. A dataclass is an object with its fields, and a member of an enum is its name;
`decode_as` reads them with their types.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum, EnumType
from functools import partial
from numbers import Integral, Real
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_NOT_FINITE = ("nan", "inf", "-inf")


def encode(value: Any, *, records: bool = False) -> Any:
    """Return a value in the types of JSON.

    Numbers and text of other types become Python's, and containers that can be read again, such as arrays, columns and
    sets, become lists. With `records`, dataclasses and members of enums are accepted, which only `decode_as` reads.
    """
    inner = partial(encode, records=records)
    if records and isinstance(value, Enum):
        return value.name
    if records and is_dataclass(value):
        return {field.name: inner(getattr(value, field.name)) for field in fields(value) if field.init}
    if hasattr(value, "tolist"):  # of NumPy, pandas and Arrow
        value = value.tolist()
    if value is None or type(value) is bool:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if type(value) is tuple:
        return {"tuple": [inner(item) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[inner(key), inner(item)] for key, item in value.items()]}
    if isinstance(value, Iterable) and not isinstance(value, Iterator | bytes | bytearray):
        return [inner(item) for item in value]
    raise TypeError(f"{value!r} is a {type(value).__name__}: it is neither number, text, list, tuple nor dict")


def decode(value: Any) -> Any:
    """Return the value that `encode` received; raise ValueError if `encode` never returns such a value."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"float": str() as number, **rest} if not rest and number in _NOT_FINITE:
            return float(number)
        case {"tuple": list() as items, **rest} if not rest:
            return tuple(decode(item) for item in items)
        case {"dict": list() as pairs, **rest} if not rest and all(map(_is_pair, pairs)):
            with suppress(TypeError):  # a key is not hashable
                return {decode(key): decode(item) for key, item in pairs}
    raise ValueError(f"{value!r:.999} is not a plain value")


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


def decode_as(hint: Any, value: Any) -> Any:
    """Return the value of an annotated type that `encode` received; raise ValueError if it has another type.

    A whole number that a float can represent counts as a float.
    """
    kinds = get_args(hint)
    match get_origin(hint) or hint, value:
        case (kind, _) if kind is UnionType:
            for member in kinds:
                with suppress(ValueError):
                    return decode_as(member, value)
        case (kind, list()) if kind is list:
            return [decode_as(kinds[0], item) for item in value]
        case (kind, {"tuple": list() as items}) if kind is tuple:
            return tuple(decode_as(kinds[0], item) for item in items)
        case (kind, {"dict": list() as pairs}) if kind in (dict, Mapping):
            return {decode_as(kinds[0], key): decode_as(kinds[1], item) for key, item in pairs}
        case (EnumType(), str()) if value in hint.__members__:
            return hint[value]
        case (kind, dict()) if is_dataclass(kind):
            hints = get_type_hints(kind)
            names = [field.name for field in fields(kind) if field.init]
            if value.keys() == set(names):
                return hint(**{name: decode_as(hints[name], value[name]) for name in names})
        case _:
            plain = decode(value)
            if type(plain) is hint or (hint is float and type(plain) is int and math.isfinite(float(plain))):
                return plain
    raise ValueError(f"{value!r:.999} is not {getattr(hint, '__name__', hint)}")
