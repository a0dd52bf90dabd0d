"""Scalings of path columns are those of plain numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from boostbp import core
from tests.core.test_binding import LAYOUTS

layouts = st.sampled_from(sorted(LAYOUTS)).map(LAYOUTS.get)


@given(st.lists(st.tuples(*[st.floats(-1e300, 1e300)] * 3, st.floats(0, 1e300))), layouts, st.sampled_from([0, 1.0]))
def test_scalings_are_those_of_plain_numbers(ranges, layout, flat_scale):
    ranges, out = np.array(ranges).reshape(-1, 4), np.empty((len(ranges), 4))
    ranges[:, :2].sort(axis=1)
    lower, upper, moment, mass = ranges.T
    with np.errstate(all="ignore"):
        center = moment / mass
        center = np.where((lower <= center) & (center <= upper), center, 0.5 * lower + 0.5 * upper)
        scale = np.maximum(upper - center, center - lower)
        inverse = 1 / scale
        expected = np.column_stack([center, inverse, (lower - center) * inverse, (upper - center) * inverse])
    flat = ~np.isfinite(inverse) | np.isinf(scale)
    expected[flat, 1], expected[flat, 2:] = np.where(np.isinf(scale[flat]), 0.0, flat_scale), 0.0
    core.scalings(layout(ranges), flat_scale, out)
    np.testing.assert_array_equal(out, expected)
