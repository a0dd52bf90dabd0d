"""Scalings come back from the means and ends of their columns, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbp.trees import kernels
from boostbp.trees.numbered_values import ranges_of, scaling_from
from boostbp.trees.rounding import _short_scalings


def scalings(rng, n_leaves, values):
    """Scalings as fits make them: of leaves with some of the values of each column, (values, columns)."""
    column = rng.integers(0, values.shape[1], n_leaves).astype(np.int32)
    ranges = np.empty((n_leaves, 4))
    for leaf, j in enumerate(column):
        z = rng.choice(values[:, j], rng.integers(1, 30))
        h = rng.uniform(0.1, 1.0, len(z))
        ranges[leaf] = z.min(), z.max(), h @ z, h.sum()
    scaling = np.empty((n_leaves, 4))
    kernels.scalings(ranges, 0.0, scaling)
    return column, scaling


@given(seed=st.integers(0, 2**20), digits=st.sampled_from([0, 2, 17]), size=st.sampled_from([1e-200, 1.0, 1e200]))
def test_scalings_of_fits_are_made_again_of_few_ends(seed, digits, size):
    rng = np.random.default_rng(seed)
    values = (rng.normal(size=(40, 3)) * [1.0, 30.0, 1.0] + [0.0, 0.0, 1e5]).round(digits) * size
    column, scaling = scalings(rng, 200, values)
    arrays = ranges_of(column, scaling)
    assert scaling_from(column, **arrays).tobytes() == scaling.tobytes()
    assert len(arrays["ends"]) <= sum(len(np.unique(z)) for z in values.T)
    flat = (scaling[:, 2] == scaling[:, 3]).sum()
    assert flat <= len(arrays["odd"]) <= flat + 10


@given(seed=st.integers(0, 2**20), size=st.sampled_from([1e-200, 1e-3, 1.0, 1e200]))
def test_rounded_scalings_are_made_again_of_whole_numbers(seed, size):
    rng = np.random.default_rng(seed)
    column, scaling = scalings(rng, 200, rng.normal([0.0, 5.0, 1e3], size=(40, 3)) * size)
    short, _, _ = _short_scalings(scaling)
    arrays = ranges_of(column, short)
    assert scaling_from(column, **arrays).tobytes() == short.tobytes()
    varies = scaling[:, 2] < scaling[:, 3]
    assert len(arrays["short"]) >= 0.99 * varies.sum()
    assert len(arrays["short"]) + len(arrays["odd"]) == len(column)


@pytest.mark.parametrize("n_columns", [0, 1, 50])
def test_other_scalings_come_back_as_they_are(n_columns):
    rng = np.random.default_rng(0)
    column = rng.integers(0, 3, n_columns).astype(np.int32)
    scaling = rng.normal(size=(n_columns, 4))
    scaling[::3] = [np.nan, np.inf, -np.inf, np.inf]
    scaling[1::3] = [0.0, 1.0, -np.inf, np.inf]
    arrays = ranges_of(column, scaling)
    assert scaling_from(column, **arrays).tobytes() == scaling.tobytes()
    assert len(arrays["odd"]) == n_columns
