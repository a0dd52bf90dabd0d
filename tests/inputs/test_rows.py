"""Rows keep what belongs to each of them: weights, offsets and targets, whichever rows are taken or joined."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.inputs.rows import NO_OFFSET, Rows
from boostbp.trees.sparse import Table

NUMBERS = np.arange(6.0)


def rows(weight=(1.0, 2.0, 0.0, 3.0, 0.0, 6.0), *, offset=True):
    """Rows whose cells, targets and offsets are their numbers, in tens and hundreds."""
    X, y = NUMBERS[:, None], 10 * NUMBERS[:, None]
    return Rows(Table(X), y, np.array(weight), 100 * NUMBERS[:, None] if offset else NO_OFFSET)


def numbers_of(some):
    """The numbers of the rows, which cells, targets and offsets agree on."""
    for array, unit in ((some.y, 10), (some.offset, 100)):
        np.testing.assert_array_equal(array, unit * some.X)
    return some.X[:, 0].tolist()


def test_what_is_taken_belongs_together():
    some = rows()
    assert numbers_of(some.take(np.array([1, 4]))) == [1, 4]
    assert numbers_of(some.take(NUMBERS > 3)) == [4, 5]
    assert numbers_of(some.spaced(9)) == NUMBERS.tolist()
    assert len(some.spaced(3)) == 3
    assert numbers_of(some.take(np.array([5])).concat(some.take(np.array([0, 2])))) == [5, 0, 2]
    assert numbers_of(some.gathered()) == NUMBERS.tolist()


@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_rows_that_count_have_weight_and_shares_become_numbers_of_rows(unit):
    counted = rows(unit * np.array([1.0, 2.0, 0.0, 3.0, 0.0, 6.0])).counted()
    assert numbers_of(counted) == [0, 1, 3, 5]
    np.testing.assert_allclose(counted.weight, np.array([1, 2, 3, 6]) / (1 if unit == 1 else 3), rtol=1e-15)


@pytest.mark.parametrize("offset", [True, False])
def test_units_are_of_targets_and_offsets(offset):
    shift, scale = np.array([5.0]), np.array([4.0])
    scaled = rows(offset=offset).in_units(shift, scale)
    np.testing.assert_array_equal(scaled.y[:, 0], (10 * NUMBERS - 5) / 4)
    np.testing.assert_array_equal(scaled.offset, 25 * NUMBERS[:, None] if offset else NO_OFFSET)
    for each in (scaled.take(np.array([0])), scaled.concat(scaled), scaled.gathered()):
        assert bool(each.offset.ndim) is offset
