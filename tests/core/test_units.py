"""All stages read a cell in the units of its leaf alike: u = (z - center) * inv_scale, to the bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from boostbp import core
from boostbp.trees.tree import offsets

SCALES = st.sampled_from([0.0, 1.0, 3.0, 1e-3, 1 / 7, 1e150])
CELLS = st.floats(allow_nan=True, allow_infinity=False, width=64) | st.sampled_from([0.0, -0.0, 1e-310, 0.1, 0.3])


def leaf_of(center, inverse):
    """A tree of one leaf that predicts u of its one column."""
    scaling = np.array([[center, inverse, -np.inf, np.inf]])
    whole = np.array([[0, 1]]), np.array([1])
    return core.Leaves(offsets([1]), *whole, offsets([1]), np.zeros(1, np.int32), scaling, offsets([2]), np.eye(2)[1])


def block_of(z):
    """Rows of that leaf."""
    return core.LeafRows(0, offsets([len(z)]), np.arange(len(z), dtype=np.uint16), offsets([1]), z)


@given(st.lists(CELLS, min_size=1, max_size=20), st.floats(-1e100, 1e100), SCALES)
def test_a_cell_has_the_same_bits_in_all_stages(cells, center, inverse):
    z = np.array(cells)
    leaves, Z, leaf = leaf_of(center, inverse), z[:, None], np.zeros((1, len(z)), np.uint8)
    with np.errstate(all="ignore"):
        expected = np.where(np.isnan(z) | (inverse == 0.0), 0.0, (z - center) * inverse)
    training, prediction = np.zeros((1, len(z))), np.zeros((len(z), 1))
    core.add_values(block_of(z), 1, leaves.scaling, leaves.weight, training)
    core.evaluate(leaves, (leaf, Z), False, 0, len(z), prediction)
    np.testing.assert_array_equal(training[0], expected)
    np.testing.assert_array_equal(prediction[:, 0], expected)
    product = np.zeros((len(z), 1))
    core.add_products(Z, (np.zeros(1, np.int32), leaves.scaling, np.zeros(1)), np.ones((1, 1)), product)
    np.testing.assert_array_equal(product[:, 0], np.where(z == 0.0, 0.0, expected))  # of sparse inputs: u - zero
    for row, u in enumerate(expected):
        moment, gram, targets = np.zeros(2), np.zeros(4), np.zeros(2)
        core.term_moments(leaves, (leaf[:, :1], Z[row : row + 1]), np.ones((1, 1)), moment)
        units, one = np.array([[center], [inverse], [0.0]]), -np.ones((1, 1))
        core.leaf_sums(block_of(z[row : row + 1]), units, 1, one, np.empty(0), gram, targets)
        np.testing.assert_array_equal([moment[1], gram[2], targets[1]], u)
