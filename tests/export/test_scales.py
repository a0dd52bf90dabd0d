"""Exported models of columns and targets of any size: what predict gives, at every level of optimization."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import boostbp
from boostbp import BoostBPRegressor
from tests.export.rows import hard_rows, table
from tests.export.test_c_program import Compiled, needs_compiler
from tests.export.test_c_program import assert_same as assert_same_in_c

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.export import test_onnx_models
from tests.export.test_onnx_models import ALL_LEVELS, SMALL, X, regressor, served, session_of


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
