"""Labels of a classifier in the types of graphs and programs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_KINDS: tuple[tuple[type, Any], ...] = ((str, object), (bool, np.bool_), (int, np.int64), (float, np.float64))


def labels_of(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels as text (object), bool, int64 or float64, (classes,).

    Raises
    ------
    ValueError
        If none of these types represents all labels exactly; the message names the first that does not fit.
    """
    values = classes.tolist()
    for kind, dtype in _KINDS:
        if all(isinstance(value, kind | int if kind is float else kind) for value in values):
            for value in values:
                _check(value, kind)
            return np.array(values, dtype)
    other = next((value for value in values if not isinstance(value, str | int | float)), values[0])
    raise _refusal(other, f"a label of type {type(other).__name__}")


def _check(value: Any, kind: type) -> None:
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _refusal(value, "half of a surrogate pair, which UTF-8 cannot encode") from None
    if kind is int and not -(2**63) <= value < 2**63:
        raise _refusal(value, "a number beyond int64")
    if kind is float and float(value) != value:
        raise _refusal(value, "an integer among fractions, which float64 cannot represent")


def _refusal(value: Any, what: str) -> ValueError:
    return ValueError(
        f"classes_ holds {value!r}, {what}, so the model cannot be exported: fit it to other labels, such as the "
        "numbers 0, 1, 2, ... or text."
    )
