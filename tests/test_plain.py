"""Plain values survive JSON with their types."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbp import plain

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(scalars, inner),
    max_leaves=20,
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


@pytest.mark.parametrize("value", [print, object(), {1, 2}, [1, (2, print)], {"a": b"bytes"}, 1j])
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
