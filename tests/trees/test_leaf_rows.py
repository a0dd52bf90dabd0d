"""A workspace lends each array to one borrower at a time, and large ones again and again."""

from __future__ import annotations

import numpy as np

from boostbp.trees.leaves import Workspace


def test_arrays_are_lent_again_but_never_twice_at_once():
    space = Workspace()
    first, second = space.lend(10, 3), space.lend(5, 1)
    assert [len(array) for array in first] == [10, 30]
    assert not any(map(np.shares_memory, first, second))
    space.take_back(*first)
    again = space.lend(4, 3)
    assert all(map(np.shares_memory, again, first))
    assert [len(array) for array in again] == [4, 12]
    assert [array.dtype for array in again] == [np.uint16, np.float64]
    space.take_back(*again)
    space.take_back(*second)
    assert [len(array) for array in space.lend(20, 7)] == [20, 140]
