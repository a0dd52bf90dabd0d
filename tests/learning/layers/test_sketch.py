"""Sketches keep what they promise of the gradients, and grow one tree for all outputs."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import BoostBPRegressor
from boostbp.backends import available, load
from boostbp.backends.base import Growth, Table
from boostbp.learning.layers import BoundInput, LayerSettings, SquaredTo, fit
from boostbp.learning.layers import sketch as sketches
from boostbp.learning.layers.sketch import Sketch

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (400, 4))
y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


def test_leading_directions_hold_the_most_of_the_gradients():
    grad = rng.standard_normal((300, 6)) * [5.0, 0.1, 3.0, 0.1, 0.1, 0.1]
    columns = Sketch("singular", 2).of(grad, rng)
    values = np.linalg.svd(grad, compute_uv=False)
    np.testing.assert_allclose(np.square(columns).sum(), np.square(values[:2]).sum(), rtol=1e-10)
    np.testing.assert_allclose(columns[:, 0] @ columns[:, 1], 0.0, atol=1e-8)


def test_projections_keep_inner_products_of_rows_on_average():
    grad = rng.standard_normal((5, 8))
    mean = np.mean([(S := Sketch("projection", 3).of(grad, rng)) @ S.T for _ in range(4000)], axis=0)
    np.testing.assert_allclose(mean * 8 / 3, grad @ grad.T, atol=0.6)


def test_outputs_are_drawn_by_the_size_of_their_gradients():
    grad = np.ones((10, 3)) * np.sqrt([6.0, 3.0, 1.0])
    drawn = [Sketch("outputs").of(grad, rng)[0, 0] ** 2 for _ in range(4000)]
    shares = [np.mean(np.isclose(drawn, size)) for size in (6.0, 3.0, 1.0)]
    np.testing.assert_allclose(shares, [0.6, 0.3, 0.1], atol=0.03)
    assert Sketch("outputs", 9).of(grad, rng).shape == (10, 3)


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("kind", ["projection", "singular", "outputs"])
def test_one_tree_grown_on_a_sketch_serves_all_units(backend, kind):
    model = BoostBPRegressor(
        (5,),
        backend=backend,
        multi_strategy="multi_output_tree",
        sketch=kind,
        epochs=1,
        n_estimators=4,
        deep=True,
        random_state=0,
    ).fit(X, y)
    forest = model.network_.layers[0].forest
    np.testing.assert_array_equal(forest.leaves.tree_output[1:], [[0, 5]] * 4)
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize("wrong", ["svd", ("singular", 0), ("singular", 1.5), ("outputs", True)])
def test_unknown_sketches_are_refused(wrong):
    with pytest.raises(ValueError, match="is not known: use 'projection'"):
        sketches.load(wrong)


def test_several_columns_need_vector_leaves():
    model = BoostBPRegressor((5,), multi_strategy="multi_output_tree", sketch=("singular", 2), epochs=1, deep=True)
    with pytest.raises(ValueError, match=r"sketch=\('singular', 2\) needs a library that grows one tree"):
        model.fit(X, y)


@pytest.mark.skipif("xgboost" not in available(), reason="needs vector leaves")
def test_several_columns_with_vector_leaves():
    target, weight = rng.standard_normal((400, 5)) + 3 * X[:, [0]], np.ones(400)

    def fitted(sketch):
        settings = LayerSettings(n_estimators=4, growth=Growth(max_depth=3, shared=True), sketch=sketch)
        return fit(BoundInput(load("xgboost"), Table(X), settings, weight), SquaredTo(target, weight)).output

    one, two, whole = (fitted(sketch) for sketch in (Sketch("singular"), Sketch("singular", 2), None))
    assert not np.array_equal(one, two)
    assert not np.array_equal(two, whole)
