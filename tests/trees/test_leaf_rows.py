"""A workspace lends each array to one borrower at a time, and large ones again and again."""

from __future__ import annotations

import numpy as np

from boostbp.trees.leaf_rows import Workspace


def test_arrays_are_lent_again_but_never_twice_at_once():
    space = Workspace()
    first, second = space.take("a", 10), space.take("a", 5)
    assert not np.shares_memory(first, second)
    space.give("a", first)
    again = space.take("a", 4)
    assert np.shares_memory(again, first)
    assert len(again) == 4
    space.give("a", again, second)
    assert len(space.take("a", 20)) == 20


def test_names_keep_types_apart():
    space = Workspace()
    space.give("a", space.take("a", 10))
    other = space.take("b", 10, np.int32)
    assert other.dtype == np.int32
