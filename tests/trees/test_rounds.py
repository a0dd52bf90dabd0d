"""Rounds in one call of the core: known trees, or trees that a function grows, have the bits of separate rounds."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BASES, random_tree

from boostbp.trees.leaves import ColumnBins
from boostbp.trees.ridge import Ridge
from boostbp.trees.rounds import Derivatives, Widths, boost_rounds, fit_round
from boostbp.trees.tree import Trees
from boostbp.trees.tree_fits import LeafFits

ROUNDS, OUTPUTS, ROWS = 4, 3, 600


@pytest.mark.parametrize("basis", sorted(BASES))
@pytest.mark.parametrize("known", [True, False])
def test_rounds_in_one_call_have_the_bits_of_separate_rounds(basis, known):
    rng = np.random.default_rng(0)
    X, target = rng.standard_normal((ROWS, 4)), rng.standard_normal((OUTPUTS, ROWS))
    X[:, 3] = rng.integers(0, 40, ROWS)
    X[rng.random(X.shape) < 0.05] = np.nan
    trees = Trees.concat([random_tree(rng, n_splits % 7, categorical=(3,)) for n_splits in range(ROUNDS * OUTPUTS)])
    fits = LeafFits(X, BASES[basis].expand(X), ColumnBins.of(X), BASES[basis], Ridge(0.5), 0.3)
    hess, base = rng.uniform(0.5, 2.0, (1, ROWS)), np.zeros((OUTPUTS, ROWS))
    leaf, out = np.empty((len(trees), ROWS), np.uint8), np.zeros((OUTPUTS, ROWS))
    of_rounds = (trees[k : k + OUTPUTS] for k in range(0, len(trees), OUTPUTS))
    grown, leaves, fault = boost_rounds(
        trees if known else lambda *_: next(of_rounds), None, fits,
        Derivatives(np.empty_like(base), hess, squared=(base, target)),
        most=Widths(6, 4 * BASES[basis].columns_per_feature, 2), leaf=leaf, out=out,
    )  # fmt: skip
    assert (fault, len(grown)) == (0, len(trees))
    np.testing.assert_array_equal(grown.threshold, trees.threshold)
    of_round, running = np.empty((OUTPUTS, ROWS), np.uint8), np.zeros_like(out)
    for first in range(0, len(trees), OUTPUTS):
        some = trees[first : first + OUTPUTS]
        fitted = fit_round(some, fits, hess * (running - target), hess, leaf=of_round, out=running, n_threads=1)
        np.testing.assert_array_equal(of_round, leaf[first : first + OUTPUTS])
        begin, end = leaves.weight_start[leaves.tree_leaf[[first, first + OUTPUTS]]]
        np.testing.assert_array_equal(fitted.weight, leaves.weight[begin:end])
    np.testing.assert_array_equal(running, out)
