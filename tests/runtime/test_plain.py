"""Plain values survive JSON with their types."""

from __future__ import annotations

import json
import math
from array import array
from collections import deque
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbp.runtime import plain

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(scalars, inner), max_leaves=20
)


def described(value):
    """Text that tells types, signs of zero and NaN apart."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{described(k)}: {described(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{', '.join(map(described, value))}]"
    return f"{type(value).__name__} {value!r}"


@given(values)
def test_values_come_back_with_their_types(value):
    text = json.dumps(plain.encode(value), allow_nan=False)
    assert described(plain.decode(json.loads(text))) == described(value)


def test_numbers_of_numpy_become_pythons():
    encoded = plain.encode((np.float64(math.nan), np.int32(3), np.bool_(True), np.array([0.1, 2.0])))
    assert described(plain.decode(encoded)) == described((math.nan, 3, True, [0.1, 2.0]))


class Word(StrEnum):
    ANY = "any"


@pytest.mark.parametrize("value", [{2}, range(2, 3), {2: 0}.keys(), deque([2]), array("q", [2]), pd.Index([2])])
def test_containers_become_lists(value):
    assert plain.encode(value) == [2]


def test_numbers_and_text_of_other_types_become_pythons():
    values = [Fraction(1, 4), IntEnum("Number", {"ONE": 1}).ONE, Word.ANY, np.str_("a"), np.float32(0.5)]
    assert list(map(described, plain.encode(values))) == ["float 0.25", "int 1", "str 'any'", "str 'a'", "float 0.5"]


@pytest.mark.parametrize("value", [print, object(), iter([1]), [1, (2, print)], {"a": b"bytes"}, 1j])
def test_other_objects_are_refused(value):
    with pytest.raises(TypeError, match="neither number, text, list, tuple nor dict"):
        plain.encode(value)


@pytest.mark.parametrize(
    "value",
    [{}, {"float": "1.5"}, {"float": 1.5}, {"tuple": 3}, {"dict": [[1]]}, {"dict": [[[1], 2]]}, {"tuple": [], "a": 1}],
)
def test_what_encode_never_writes_is_refused(value):
    with pytest.raises(ValueError, match="is not a"):
        plain.decode(value)


class Colour(Enum):
    RED = "#f00"


@dataclass
class Point:
    x: float
    name: str | None = None
    colours: tuple[Colour, ...] = ()
    steps: list[int] = field(default_factory=list)
    next: dict[str, Point] = field(default_factory=dict)
    hidden: object = field(default=print, init=False)


POINT = Point(math.inf, "a", (Colour.RED,), [1, 2], {"right": Point(3)})


def test_dataclasses_come_back_by_their_annotations():
    text = json.dumps(plain.encode(POINT, records=True), allow_nan=False)
    assert plain.decode_as(Point, json.loads(text)) == POINT


@pytest.mark.parametrize(
    "change",
    [
        {"x": "1"}, {"x": True}, {"name": 3}, {"colours": ["RED"]}, {"colours": {"tuple": ["BLUE"]}},
        {"steps": [1, 2.5]}, {"steps": {"tuple": [1]}}, {"next": {"dict": [[1, {}]]}}, {"more": 1},
    ],
)  # fmt: skip
def test_fields_of_other_types_are_refused(change):
    with pytest.raises(ValueError, match="is not"):
        plain.decode_as(Point, plain.encode(POINT, records=True) | change)
