"""Trees fitted in one call and block by block give the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import BASES, random_tree

from boostbp.trees.leaves import BLOCK_ROWS, ColumnBins
from boostbp.trees.ridge import Ridge
from boostbp.trees.rounds import fit_round
from boostbp.trees.tree import Trees
from boostbp.trees.tree_fits import LeafFits


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("weights", ["ones", "one for all", "each its own"])
@pytest.mark.parametrize("basis", sorted(BASES))
@pytest.mark.parametrize("alike", [False, True])
def test_blocks_over_threads_give_the_bits_of_one_call(basis, weights, standardize, alike):
    """Of trees that split alike, the one call groups the rows once."""
    n_rows = 2 * BLOCK_ROWS + 700
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 4))
    X[:, 3] = rng.integers(0, 40, n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    trees = [random_tree(rng, n_splits, categorical=(3,)) for n_splits in (0, 6, 9)]
    if alike:
        trees = [trees[2], trees[2], replace(trees[2], threshold=trees[2].threshold + 0.1)]
    Z, grad = BASES[basis].expand(X), rng.standard_normal((3, n_rows))
    hess = {
        "ones": np.ones((1, n_rows)),
        "one for all": rng.uniform(0.5, 2, (1, n_rows)),
        "each its own": np.vstack([np.ones(n_rows), rng.uniform(0.5, 2, (2, n_rows))]),
    }[weights]
    fits = LeafFits(X, Z, ColumnBins.of(X), BASES[basis], Ridge(0.5, standardize=standardize), 0.3)
    found = []
    for n_threads in (1, 2):
        leaf, out = np.empty((3, n_rows), np.uint8), np.full((3, n_rows), 0.25)
        leaves = fit_round(Trees.concat(trees), fits, grad, hess, leaf=leaf, out=out, n_threads=n_threads)
        found.append((leaf, out, leaves))
    (leaf, out, leaves), (leaf_of_blocks, out_of_blocks, leaves_of_blocks) = found
    np.testing.assert_array_equal(leaf_of_blocks, leaf)
    assert out_of_blocks.tobytes() == out.tobytes()
    for tree, row in zip(trees, leaf, strict=True):
        np.testing.assert_array_equal(row, tree.leaf_of(X))
    for one, other in zip(leaves, leaves_of_blocks, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
