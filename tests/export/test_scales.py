"""Exported models of columns and targets of any size: what predict gives, at every level of optimization."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import boostbp
from boostbp import BoostBPRegressor
from boostbp.export.description import Description
from boostbp.export.onnx_graph import IR_VERSION, OPSET, Graph
from boostbp.export.onnx_layers import layer_outputs
from boostbp.export.onnx_leaves import Input
from boostbp.export.onnx_models import model_of
from boostbp.trees.forest import Forest
from tests.export.rows import hard_rows, table
from tests.export.test_c_program import Compiled, needs_compiler
from tests.export.test_c_program import assert_same as assert_same_in_c

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.export import test_onnx_models
from tests.export.test_onnx_models import ALL_LEVELS, SMALL, X, onnx, regressor, served, session_of


def assert_same(model, rows):
    """What a graph gives at every level of optimization is what the model predicts."""
    graph = boostbp.to_onnx(model)
    for level in ALL_LEVELS:
        test_onnx_models.assert_same(model, rows, graph, level)


def at_every_level(graph, rows):
    """The first output of a graph at each level of optimization."""
    return [session_of(graph, level).run(None, {"X": rows})[0] for level in ALL_LEVELS]


def set_units(model, scale, shift):
    targets = replace(model.model_.targets, scale=np.array([scale]), shift=np.array([shift]))
    model.model_ = replace(model.model_, targets=targets)


def of_scale(exponent, rows=300):
    """A table whose numeric columns are of a size, beside two of categories, and its target."""
    A, y = table(rows)
    A[:, [0, 2, 3, 5]] *= 10.0**exponent
    return A, y


@needs_compiler
@pytest.mark.parametrize(
    ("exponent", "clip"),
    [(-300, True), (-300, False), (-160, True), (-46, False), (46, True), (160, False), (290, True), (290, False)],
)
def test_columns_of_any_size(exponent, clip, tmp_path):
    """Slopes per unit of the column, or their squares, would be beyond float64."""
    A, y = of_scale(exponent)
    how = {"hidden": {"clip": clip}, "output": {"basis": "quadratic", "clip": clip}}
    model = BoostBPRegressor(categorical_features=[1, 4], **how, **SMALL).fit(A, y)
    rows = hard_rows(model, A, 60)
    assert_same(model, rows)
    assert_same_in_c(model, Compiled(model, tmp_path), rows)


@pytest.mark.parametrize("basis", ["linear", "quadratic"])
def test_one_tiny_column_beside_categories(basis):
    """Its center is a constant of one number that is 0 in float32."""
    rng = np.random.default_rng(0)
    A = np.column_stack([1e-46 * (1.0 + rng.random(80)), rng.integers(0, 3, 80)])
    y = A[:, 0] * 1e46 * (1 + A[:, 1])
    output = {"basis": basis, "base": "ridge"}
    model = BoostBPRegressor((), n_estimators=3, output=output, categorical_features=[1], deep=True).fit(A, y)
    assert_same(model, A)


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


@pytest.mark.parametrize("exponent", [-98, -60, -46, -45, 46, 90])
def test_targets_of_any_size(exponent):
    A, y = table(200)
    model = BoostBPRegressor(**SMALL).fit(A, (5.0 + y) * 10.0**exponent)
    assert_same(model, A)


@pytest.mark.parametrize(("scale", "shift"), [(1.0 + 1e-9, 0.0), (1.0, 1e-46), (1.0 - 1e-9, -1e-50), (2.0, 0.0)])
def test_numbers_that_float32_takes_for_0_or_1(scale, shift):
    """The optimizer of onnxruntime compares single constants with 0 and 1 in float32, and drops what seems neutral."""
    model = regressor()
    set_units(model, scale, shift)
    model.network_.baseline[:] = 1e-47
    for output in at_every_level(boostbp.to_onnx(model), X):
        np.testing.assert_allclose(output, model.predict(X), rtol=1e-13, atol=0)
    tiny = 1e-40 * model.predict(X)
    set_units(model, 1e-40, 1e-46)
    for output in at_every_level(boostbp.to_onnx(model), X):
        np.testing.assert_allclose(output, model.predict(X), rtol=1e-13, atol=1e-54)
        assert np.abs(output - tiny).max() < 1e-39


def test_small_columns_in_float32():
    A, y = of_scale(-30)
    model = BoostBPRegressor(output={"basis": "quadratic"}, **SMALL | {"hidden_layer_sizes": ()}).fit(A, y)
    with pytest.warns(UserWarning, match="float32"):
        graph = boostbp.to_onnx(model, dtype="float32")
    rows = A.astype(np.float32)
    expected = model.predict(rows.astype(np.float64))
    np.testing.assert_allclose(served(graph, rows)[0], expected, rtol=0, atol=1e-5 * expected.std())


@pytest.mark.parametrize("exponent", [-300, 300])
def test_columns_that_float32_does_not_hold_are_refused(exponent):
    A, y = of_scale(exponent)
    model = BoostBPRegressor(**SMALL).fit(A, y)
    with pytest.raises(ValueError, match=r"dtype='float32' merges numbers of the columns \[0, 2, 3, 5\]"):
        boostbp.to_onnx(model, dtype="float32")


def test_targets_that_float32_does_not_hold_are_refused():
    A, y = table(200)
    model = BoostBPRegressor(**SMALL).fit(A, 1e60 * y)
    with pytest.warns(UserWarning, match="float32"), pytest.raises(ValueError, match=r"dtype='float32' cannot hold"):
        boostbp.to_onnx(model, dtype="float32")


def test_no_rows():
    A, y = table(200)
    labels = np.array(["low", "high"])[(y > 0).astype(int)]
    for model in (regressor(), boostbp.BoostBPClassifier(categorical_features=[1, 4], **SMALL).fit(A, labels)):
        width = model.n_features_in_
        for level in ALL_LEVELS:
            outputs = session_of(boostbp.to_onnx(model), level).run(None, {"X": np.empty((0, width))})
            assert [output.shape for output in outputs] == ([(0,), (0, 2)] if hasattr(model, "classes_") else [(0,)])


def hidden_layer(forest, *, single):
    """A graph of a layer whose outputs are hidden units, for blocks of rows or a single row."""
    graph = Graph(np.dtype(np.float64))
    units = layer_outputs(graph, forest, Input.of(graph, "X", single=single), {}, last=False)
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
