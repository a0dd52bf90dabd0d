"""One tree for all outputs: what it is grown on where the library has no vector leaves, and whom it serves."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters

from boostbp import BoostBPRegressor
from boostbp.backends import available
from boostbp.network.layers.cheaper_growth import along, random_direction

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (400, 4))
y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def test_projections_keep_inner_products_of_rows_on_average():
    grad = rng.standard_normal((5, 8))
    mean = np.mean([(S := along(grad, random_direction(8, rng))) @ S.T for _ in range(12_000)], axis=0)
    np.testing.assert_allclose(mean * 8, grad @ grad.T, atol=0.6)


@pytest.mark.parametrize("backend", available())
def test_one_tree_serves_all_units(backend):
    model = BoostBPRegressor(
        (5,),
        **parameters(
            backend=backend, multi_strategy="multi_output_tree", epochs=1, n_estimators=4, deep=True, random_state=0
        ),
    ).fit(X, y)
    forest = model.network_.layers[0].forest
    np.testing.assert_array_equal(forest.leaves.tree_output[1:], [[0, 5]] * 4)
    assert model.score(X, y) > 0.5
