"""Bins of few values, and a workspace that lends its arrays again."""

from __future__ import annotations

import numpy as np

from boostbp.trees.leaves import ColumnBins, Workspace


def test_few_distinct_values_have_buckets_of_their_own():
    x = np.repeat([-1.0, 0.0, 2.5, np.nan], 50)
    bins = ColumnBins.of(x[:, None])
    ends = [(bins.lower[0, c], bins.upper[0, c]) for c in np.unique(bins.bins[0])[:-1]]
    assert ends == [(-1.0, -1.0), (0.0, 0.0), (2.5, 2.5)]
    assert (bins.bins[0, np.isnan(x)] == 255).all()


def test_the_ends_of_the_bins_of_few_rows_take_no_more_than_the_rows():
    X = np.random.default_rng(2).standard_normal((20, 50))
    bins = ColumnBins.of(X)
    assert bins.lower.nbytes + bins.upper.nbytes <= 2.2 * X.nbytes
    assert all(len(np.unique(of_column)) == 20 for of_column in bins.bins)


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
