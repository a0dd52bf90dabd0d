"""The way from float32 rules to float64 thresholds is exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from boostbp.backends.dialects import gradients, largest_below, largest_not_above, representable

LARGEST = float(np.finfo(np.float32).max)
SINGLE = st.floats(width=32, allow_nan=False).filter(lambda t: t > -LARGEST)
DOUBLE = st.floats(allow_nan=False, min_value=-LARGEST, max_value=LARGEST)


def rounded(x: float) -> float:
    """As a library sees the number: in float32, and at an end of its range if beyond it."""
    with np.errstate(over="ignore"):
        return float(np.clip(np.float64(x).astype(np.float32), -LARGEST, LARGEST))


def after(bound: float) -> float:
    """What the next number is seen as; infinite if there is none."""
    with np.errstate(over="ignore"):
        following = np.nextafter(bound, np.inf)
    return rounded(following) if following < np.inf else np.inf


@given(SINGLE)
@example(0.0)
@example(-0.0)
@example(1.401298464324817e-45)
@example(1.1754943508222875e-38)
@example(1.0)
@example(16777216.0)
@example(LARGEST)
@example(float("inf"))
def test_largest_below_is_the_last_number_that_rounds_below(threshold: float) -> None:
    [bound] = largest_below(np.array([threshold], np.float32))
    assert rounded(bound) < threshold <= after(bound)


@given(DOUBLE)
@example(0.0)
@example(0.1)
@example(-1e-46)
@example(1e-46)
@example(-LARGEST)
@example(LARGEST)
def test_largest_not_above_is_the_last_number_that_rounds_to_at_most_the_threshold(threshold: float) -> None:
    [bound] = largest_not_above(np.array([threshold]))
    assert rounded(bound) <= threshold < after(bound)


def test_nothing_lies_below_the_least_threshold() -> None:
    assert largest_below(np.array([-LARGEST], np.float32)) < -1e300


@given(st.lists(st.floats(allow_infinity=False), min_size=1))
def test_representable_is_finite_and_keeps_the_order(values: list[float]) -> None:
    x = np.sort(np.array(values))
    z = representable(x)
    assert z.dtype == np.float32
    assert np.array_equal(np.isnan(x), np.isnan(z))
    assert np.all(np.isfinite(z) | np.isnan(x))
    assert np.all(np.diff(z[~np.isnan(z)].astype(float)) >= 0)


def test_gradients_say_what_exceeds_float32() -> None:
    assert gradients(np.array([[1.0], [LARGEST]]), "XGBoost").dtype == np.float32
    with pytest.raises(ValueError, match=r"size 4e\+38 .* XGBoost grows trees: standardise the targets"):
        gradients(np.array([[1.0], [-4e38]]), "XGBoost")
