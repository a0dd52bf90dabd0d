"""Leaves that are fitted block by block."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close, random_tree, values
from known_leaves import blocks, fit_leaves

from boostbp.trees.basis import Polynomial
from boostbp.trees.leaves import leaves_on_paths
from boostbp.trees.ridge import Ridge


@pytest.mark.parametrize("size", [1, 7, 128, 300])
def test_blocks_of_rows_change_nothing(size):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((300, 4)), rng.standard_normal((300, 2))
    tree = random_tree(rng, 4)
    leaf, paths = tree.leaf_of(X), leaves_on_paths(tree, Polynomial(2), 2)
    whole = fit_leaves(leaf, paths, X, -y, np.ones(300), Ridge(0.5))
    assert len(blocks(leaf, paths, X, size)) == -(-300 // size)
    parts = fit_leaves(leaf, paths, X, -y, np.ones(300), Ridge(0.5), size=size)
    np.testing.assert_allclose(parts.scaling, whole.scaling, rtol=1e-12, atol=1e-12)
    assert_close(values(parts, leaf, X), values(whole, leaf, X), 1e-10)
