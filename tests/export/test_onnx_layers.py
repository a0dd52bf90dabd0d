"""Layers as nodes of a graph: hidden units to the bit, and layers without trees."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import BoostBPRegressor
from boostbp.export.onnx_graph import IR_VERSION, OPSET, Graph
from boostbp.export.onnx_layers import layer_outputs
from boostbp.export.onnx_leaves import Input
from tests.export.rows import hard_rows, table
from tests.export.test_onnx_models import ALL_LEVELS, SMALL, onnx, session_of
from tests.export.test_scales import assert_same

pytest.importorskip("onnx")

pytest.importorskip("onnxruntime")


def hidden_layer(forest, *, single):
    """A graph of a layer whose outputs are hidden units, for blocks of rows or a single row."""
    graph = Graph(np.dtype(np.float64))
    units = layer_outputs(graph, forest, Input.of(graph, "X", single=single), {})
    graph.op("Transpose", units, perm=[1, 0], outputs=["units"])
    proto = graph.proto([graph.typed("X", shape=["rows", forest.n_features])], [graph.typed("units")])
    return onnx.helper.make_model(proto, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


@pytest.mark.parametrize("shape", ["a tree for each output", "a tree for all outputs"])
def test_hidden_units_have_the_bits_of_ours_where_scales_are_no_powers_of_two(shape):
    """A unit whose last bit is another one may be on the other side of a threshold above."""
    A, y = table(300 if "all" in shape else 60)
    hidden = {"basis": "quadratic", "min_samples_leaf": 2}
    backend = "xgboost" if "all" in shape else "lightgbm"
    hidden |= {"multi_strategy": "multi_output_tree"} if "all" in shape else {}
    model = BoostBPRegressor(hidden=hidden, backend=backend, **SMALL | {"epochs": 1}).fit(A, y)
    layer = model.network_.layers[0]
    forest = layer.forest
    assert (np.frexp(forest.leaves.scaling[:, 1])[0] != 0.5).any()
    rows = hard_rows(model, A, 100)
    expected = layer.predict(rows)
    for single in (False, True):
        graph, parts = hidden_layer(forest, single=single), rows[:40, None] if single else [rows]
        for level in ALL_LEVELS:
            session = session_of(graph, level)
            units = np.concatenate([session.run(None, {"X": part})[0] for part in parts])
            np.testing.assert_array_equal(units, expected[: len(units)])


@pytest.mark.filterwarnings("ignore::boostbp.model.health.HealthWarning")
@pytest.mark.parametrize("hidden_layer_sizes", [(), (2,)])
def test_layers_without_trees(hidden_layer_sizes):
    A, y = table(60)
    how = {"hidden_layer_sizes": hidden_layer_sizes, "n_estimators": 0, "output": {"base": "zero"}, "epochs": 1}
    model = BoostBPRegressor(**SMALL | how).fit(A, y)
    assert_same(model, A)
    two = BoostBPRegressor(**SMALL | how).fit(A, np.column_stack([y, -y]))
    assert_same(two, A)
