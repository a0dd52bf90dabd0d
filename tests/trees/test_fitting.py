"""Trees fitted in one call and block by block give the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import BASES, random_tree

from boostbp.trees import leaf_rows
from boostbp.trees.leaf_rows import ColumnBins
from boostbp.trees.ridge import Ridge, fit_round
from boostbp.trees.tree import Trees


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("weights", ["ones", "one for all", "each its own"])
@pytest.mark.parametrize("basis", sorted(BASES))
@pytest.mark.parametrize("block", [100, 256, 1000])
@pytest.mark.parametrize("alike", [False, True])
def test_blocks_over_threads_give_the_bits_of_one_call(basis, weights, standardize, block, alike, monkeypatch):
    """Of trees that split alike, the one call groups the rows once."""
    monkeypatch.setattr(leaf_rows, "BLOCK_ROWS", block)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 4))
    X[:, 3] = rng.integers(0, 40, 700)
    X[rng.random(X.shape) < 0.05] = np.nan
    trees = [random_tree(rng, n_splits, categorical=(3,)) for n_splits in (0, 6, 9)]
    if alike:
        trees = [trees[2], trees[2], replace(trees[2], threshold=trees[2].threshold + 0.1)]
    Z, grad = BASES[basis].expand(X), rng.standard_normal((3, 700))
    hess = {
        "ones": np.ones((1, 700)),
        "one for all": rng.uniform(0.5, 2, (1, 700)),
        "each its own": np.vstack([np.ones(700), rng.uniform(0.5, 2, (2, 700))]),
    }[weights]
    found = []
    for n_threads in (1, 2):
        leaf, out = np.empty((3, 700), np.uint8), np.full((3, 700), 0.25)
        leaves = fit_round(
            Trees.concat(trees), X, Z, ColumnBins.of(X), BASES[basis], grad, hess, Ridge(0.5, standardize=standardize),
            learning_rate=0.3, leaf=leaf, out=out, n_threads=n_threads,
        )  # fmt: skip
        found.append((leaf, out, leaves))
    (leaf, out, leaves), (leaf_of_blocks, out_of_blocks, leaves_of_blocks) = found
    np.testing.assert_array_equal(leaf_of_blocks, leaf)
    assert out_of_blocks.tobytes() == out.tobytes()
    for tree, row in zip(trees, leaf, strict=True):
        np.testing.assert_array_equal(row, tree.leaf_of(X))
    for one, other in zip(leaves, leaves_of_blocks, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
