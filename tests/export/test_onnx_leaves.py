"""Leaves as nodes of a graph: cells that are infinite in the units of one output, or whose squares are."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import BoostBPRegressor
from boostbp.export.description import Description
from boostbp.export.onnx_models import model_of
from boostbp.trees.forest import Forest
from tests.export.rows import table
from tests.export.test_onnx_models import SMALL
from tests.export.test_scales import assert_same, at_every_level

pytest.importorskip("onnx")

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("cells", ["left out", "far"])
def test_cells_whose_squares_are_beyond_float64_without_clipping(cells):
    """Leaves of several outputs, which read a column in its units, or leave it out: it is constant in their rows."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(120, 3))
    y = np.column_stack([A[:, 0] + np.abs(A[:, 2]), A[:, 2] ** 2 - A[:, 0], A[:, 0] * A[:, 2]])
    A[:, 1] = 0.0 if cells == "left out" else 2.0**30 * A[:, 1]
    A[:4, 1] = 1e200 if cells == "left out" else A[:4, 1]
    hidden = {"basis": "quadratic", "clip": False, "multi_strategy": "multi_output_tree", "min_samples_leaf": 2}
    model = BoostBPRegressor(hidden=hidden, **SMALL | {"hidden_layer_sizes": (3,)}).fit(A, y)
    layer = model.network_.layers[0]
    m = layer.forest.n_outputs
    assert (layer.forest.leaves.tree_output[:, 1] == m).any()
    alone = Description(3, (layer.forest,), False, np.zeros(m), scale=np.ones(m), shift=np.zeros(m))
    rows = A.copy()
    rows[::3, 1] = 1e200 if cells == "left out" else 1e160
    assert np.isfinite(layer.predict(rows)).all()
    for output in at_every_level(model_of(alone, dtype="float64"), rows):
        np.testing.assert_allclose(output, layer.predict(rows), rtol=1e-12, atol=1e-13)
    assert_same(model, rows)


def test_cells_beyond_float64_in_the_units_of_another_output():
    """Functions of one graph share columns in different units: a cell is infinite in some, and times 0 is no number."""
    A, y = table(60)
    small, large = (
        BoostBPRegressor((), n_estimators=3, output={"clip": False}, deep=True)
        .fit(A[:, [0]] * size, y)
        .network_.layers[0]
        for size in (1e-200, 1e200)
    )
    forest = Forest.concat([layer.forest.placed(np.array([0]), 1, k, 2) for k, layer in enumerate((small, large))])
    alone = Description(1, (forest,), False, np.zeros(2), scale=np.ones(2), shift=np.zeros(2))
    rows = A[:, [0]] * 1e200
    with np.errstate(all="ignore"):
        expected = large.predict(rows)[:, 0]
    assert np.isfinite(expected).all()
    for some in (rows, rows[:1]):
        for output in at_every_level(model_of(alone, dtype="float64"), some):
            np.testing.assert_allclose(output[:, 1], expected[: len(some)], rtol=1e-12, atol=1e-14)
