"""ONNX graphs, served by onnxruntime: the predictions of the model, on every kind of model and row."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.export.description import described
from boostbp.export.onnx_models import model_of
from boostbp.losses import Huber
from tests.export.rows import as_exported, hard_rows, measures, table
from tests.support.helpers import BACKENDS, BASES, WITH_CATEGORIES
from tests.test_storage import EXPORTED, MODELS, X, Y, regressor

onnx = pytest.importorskip("onnx")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator
OpRun = pytest.importorskip("onnx.reference.op_run").OpRun
onnxruntime = pytest.importorskip("onnxruntime")
SMALL = {"hidden_layer_sizes": (4,), "n_estimators": 10, "epochs": 2, "random_state": 0, "deep": True}


class OwnLink(Huber):
    """A loss whose predictions are halves of its raw outputs."""

    scale_free = False

    def link(self, h):
        return h / 2


class Derived(BoostBPRegressor):
    """An estimator of one's own."""


LEVELS = onnxruntime.GraphOptimizationLevel
ALL_LEVELS = (LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_BASIC, LEVELS.ORT_ENABLE_EXTENDED, LEVELS.ORT_ENABLE_ALL)


def session_of(graph, level=LEVELS.ORT_ENABLE_ALL):
    """A session of one thread, with so much optimization."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def served(graph, rows):
    """All outputs for some rows."""
    return session_of(graph).run(None, {"X": rows})


def assert_same(model, rows, graph=None, level=LEVELS.ORT_ENABLE_ALL):
    """What a graph gives is what the model predicts, exactly but for exponentials, to 1e-12 of the standard deviation.

    Rows one by one, for which a graph has a branch of its own, give the same.
    """
    session = session_of(boostbp.to_onnx(model) if graph is None else graph, level)
    outputs = session.run(None, {"X": rows})
    few = np.random.default_rng(0).integers(0, len(rows), 12)
    for output, *alone in zip(outputs, *(session.run(None, {"X": rows[[row]]}) for row in few), strict=True):
        if output.dtype.kind == "f":
            atol = 1e-14 * max(np.abs(output).max(), 1e-300)
            np.testing.assert_allclose(np.concatenate(alone), output[few], rtol=0, atol=atol)
        else:
            assert np.concatenate(alone).tolist() == output[few].tolist()
    if isinstance(model, BoostBPClassifier):
        label, probability = outputs
        assert np.asarray(label).tolist() == model.predict(rows).tolist()
        expected = model.predict_proba(rows)
    else:
        [probability] = outputs
        expected = model.predict(rows)
    assert probability.shape == expected.shape
    has_exponentials = described(model).link.name not in ("identity", "sorted")
    atol = 1e-12 * max(expected.std(), 1e-300) if has_exponentials else 0.0
    np.testing.assert_allclose(probability, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("kind", EXPORTED)
def test_outputs_are_those_of_predict_for_every_kind_of_model(kind):
    make, inputs = MODELS[kind]
    model = make()
    graph = boostbp.to_onnx(model)
    onnx.checker.check_model(graph, full_check=True)
    rows = as_exported(model, inputs)
    if isinstance(inputs, np.ndarray) and not isinstance(model, BoostBPAutoencoder):
        assert_same(model, hard_rows(model, rows), graph)
        return
    last = served(graph, rows)[-1]
    expected = model.predict(inputs)
    np.testing.assert_allclose(last, expected, rtol=0, atol=1e-12 * expected.std())


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "skip"), [*((backend, True) for backend in BACKENDS), (BACKENDS[0], False)])
def test_ten_thousand_hard_rows(backend, skip):
    A, y = table(2000)
    categorical = [1, 4] if backend in WITH_CATEGORIES else None
    A = A if backend in WITH_CATEGORIES else np.nan_to_num(A)
    how = {**SMALL, "hidden_layer_sizes": (6, 4), "backprop": {"skip": skip}, "backend": backend}
    model = BoostBPRegressor(categorical_features=categorical, **how).fit(A, y)
    rows = np.concatenate([table(4000, 1)[0], hard_rows(model, A, 2000)])
    assert len(rows) == 10_000
    assert_same(model, rows if backend in WITH_CATEGORIES else np.nan_to_num(rows))


@pytest.mark.parametrize("basis", ["linear", "quadratic"])
@pytest.mark.parametrize("base", ["ridge", "additive", "zero"])
def test_bases_and_irregular_trees(basis, base):
    A, y = table(600)
    spec = {"basis": basis, "base": base, "max_depth": -1, "max_leaves": 24, "min_samples_leaf": 5}
    how = {name: value for name, value in SMALL.items() if name != "n_estimators"}
    model = BoostBPRegressor(hidden=spec | {"n_estimators": 4}, output=spec, n_estimators=10, **how).fit(A, y)
    assert_same(model, hard_rows(model, A))


def test_trees_with_constant_leaves():
    A, y = table(600)
    output = {"basis": "constant", "base": "zero"}
    model = BoostBPRegressor((), output=output, categorical_features=[1], deep=True, random_state=0).fit(A, y)
    assert_same(model, hard_rows(model, A))


def test_native_leaves_on_rows_with_missing_values():
    A, y = table(600)
    spec = {"leaves": "native", "basis": "linear"}
    model = BoostBPRegressor(hidden=spec, output=spec, **SMALL).fit(A, y)
    assert_same(model, hard_rows(model, A))


@pytest.mark.parametrize("deep", ["auto", False])
def test_the_default_model(deep):
    """Where linear units are collinear, slopes in single ones are steep: units must have the bits of our own."""
    A, y = table(700)
    model = BoostBPRegressor(epochs=3, deep=deep, random_state=0, n_estimators=30, categorical_features=[1]).fit(A, y)
    assert len(model.history_.choice.candidates) > 3
    assert_same(model, hard_rows(model, A))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_cells_far_from_what_their_row_says(missing):
    A, y, rows = measures(900, missing)
    assert_same(BoostBPRegressor(**SMALL).fit(A, y), rows)


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 129])
def test_any_number_of_rows(rows):
    model = regressor()
    assert_same(model, X[:rows])


def test_infinite_cells_are_read_as_missing():
    A, y = table(300)
    graph = boostbp.to_onnx(BoostBPRegressor(categorical_features=[1, 4], **SMALL).fit(A, y))
    rows = A[:60].copy()
    rows[np.arange(60), np.arange(60) % 6] = np.nan
    infinite = rows.copy()
    infinite[np.arange(60), np.arange(60) % 6] = np.where(np.arange(60) % 5, np.inf, -np.inf)
    np.testing.assert_array_equal(served(graph, infinite)[0], served(graph, rows)[0])


def test_the_graph_is_right_by_the_reference_implementation_too():
    class GatherElements(OpRun):
        """That of the package takes tables of 64 entries at most."""

        op_domain = ""

        def _run(self, data, indices, axis=0):
            return (np.take_along_axis(data, indices.astype(np.int64), axis),)

    A, y, rows = measures(900, 0.1)
    classes = np.array(["low", "middle", "high"])[np.digitize(y, [0, 1])]
    model = BoostBPClassifier(**SMALL | {"backprop": {"skip": True}}).fit(A, classes)
    evaluator = ReferenceEvaluator(boostbp.to_onnx(model), new_ops=[GatherElements])
    label, probability = evaluator.run(None, {"X": rows})
    assert label.tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(probability, model.predict_proba(rows), rtol=0, atol=1e-14)


def test_float32_differs_by_its_rounding():
    model = regressor()
    with pytest.warns(UserWarning, match="float32.*1e-6"):
        graph = boostbp.to_onnx(model, dtype="float32")
    rows = X.astype(np.float32)
    [prediction] = served(graph, rows)
    assert prediction.dtype == np.float32
    expected = model.predict(rows.astype(np.float64))
    np.testing.assert_allclose(prediction, expected, rtol=0, atol=1e-5 * expected.std())
    assert len(graph.SerializeToString()) <= len(boostbp.to_onnx(model).SerializeToString())


def test_rows_in_float32_go_where_the_same_numbers_in_float64_go():
    model = BoostBPRegressor((), output={"basis": "constant", "base": "zero"}, n_estimators=40, deep=True).fit(X, Y)
    with pytest.warns(UserWarning, match="float32"):
        graph = boostbp.to_onnx(model, dtype="float32")
    rows = hard_rows(model, X).astype(np.float32)
    expected = model.predict(rows.astype(np.float64))
    np.testing.assert_allclose(served(graph, rows)[0], expected, rtol=0, atol=1e-5 * expected.std())


def test_a_graph_says_which_categories_its_codes_are():
    make, inputs = MODELS["table"]
    facts = {entry.key: json.loads(entry.value) for entry in boostbp.to_onnx(make()).metadata_props}
    assert facts["features"] == list(inputs.columns)
    assert facts["categories"] == {"4": ["x", "y", "z"], "5": [0.0, 0.5, 1.0]}


@pytest.mark.parametrize("basis", ["linear", "quadratic"])
def test_a_graph_takes_about_the_room_of_the_file_of_the_model(basis, tmp_path):
    A, y = table(1500)
    how = SMALL | {"n_estimators": 60, "output": {"basis": basis}}
    model = BoostBPRegressor(categorical_features=[1], **how).fit(A, y)
    boostbp.save(model, tmp_path / "model.boostbp")
    room = (tmp_path / "model.boostbp").stat().st_size
    assert len(boostbp.to_onnx(model).SerializeToString()) <= 1.3 * room + 40_000  # for the operations of the graph


def test_what_cannot_be_exported_is_refused_by_name():
    with pytest.raises(ValueError, match=r"basis=.*Use 'linear'"):
        boostbp.to_onnx(regressor(basis=BASES["own"]))
    with pytest.raises(ValueError, match=r"loss='huber'.*its link is neither the identity"):
        boostbp.to_onnx(BoostBPRegressor((3,), loss=OwnLink(), epochs=1, deep=True).fit(X, Y))
    with pytest.raises(TypeError, match="Derived cannot be exported: give a fitted BoostBP"):
        boostbp.to_onnx(Derived())
    with pytest.raises(NotFittedError):
        boostbp.to_onnx(BoostBPRegressor())
    with pytest.raises(ValueError, match="dtype='float16' is not known: use one of 'float64', 'float32'"):
        boostbp.to_onnx(regressor(), dtype="float16")


def test_categories_that_float64_or_float32_does_not_tell_apart_are_refused():
    A = np.column_stack([X[:, 0], 2.0**53 + np.arange(120) % 2])
    whole = np.empty(A.shape, object)
    whole[:, 0], whole[:, 1] = A[:, 0], [2**53 + row % 2 for row in range(120)]
    model = BoostBPRegressor((3,), epochs=1, deep=True, categorical_features=[1]).fit(whole, Y)
    with pytest.raises(ValueError, match="Column 1 has categories that float64 merges, such as 9007199254740993"):
        boostbp.to_onnx(model)
    A[:, 1] = 1.0 + 1e-9 * (np.arange(120) % 2)
    model = BoostBPRegressor((3,), epochs=1, deep=True, categorical_features=[1]).fit(A, Y)
    assert_same(model, A)
    with pytest.raises(ValueError, match=r"dtype='float32'.*column 1"):
        boostbp.to_onnx(model, dtype="float32")


def test_without_onnx_the_error_names_the_extra(without):
    model = regressor()
    without("onnx")
    with pytest.raises(ImportError, match=r"to_onnx needs the onnx package: pip install 'boostbp\[onnx\]'"):
        boostbp.to_onnx(model)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("column", [lambda t: 1e15 + t, lambda t: np.where(t < 400, t, 1e12 + t)], ids=["ids", "gap"])
def test_columns_that_a_library_is_given_as_ranks(backend, column):
    rng = np.random.default_rng(0)
    t = rng.integers(0, 800, 500).astype(float)
    A = np.column_stack([column(t), rng.normal(size=500)])
    model = BoostBPRegressor((), deep=True, backend=backend, n_estimators=20, random_state=0).fit(A, np.sin(t / 60))
    assert model.score(A, np.sin(t / 60)) > 0.5  # 0 without ranks
    assert_same(model, hard_rows(model, A))
    with pytest.raises(ValueError, match=r"dtype='float32' merges numbers of the columns \[0\] that the model"):
        boostbp.to_onnx(model, dtype="float32")


def test_columns_whose_differences_float32_does_not_hold_are_refused_without_splits():
    """A ridge base alone reads the column: no threshold says that float32 merges its numbers."""
    rng = np.random.default_rng(0)
    t = rng.normal(size=80)
    how = {"n_estimators": 0, "output": {"base": "ridge"}, "deep": True}
    for offset in (1e15, 1e9):
        model = BoostBPRegressor((), **how).fit(np.column_stack([t, offset + t]), t)
        with pytest.raises(ValueError, match=r"merges numbers of the columns \[1\]"):
            boostbp.to_onnx(model, dtype="float32")
    A = np.column_stack([t, 2000.0 + t]).astype(np.float32)
    model = BoostBPRegressor((), **how).fit(A, t)
    with pytest.warns(UserWarning, match="float32"):
        graph = boostbp.to_onnx(model, dtype="float32")
    np.testing.assert_allclose(served(graph, A)[0], model.predict(A), rtol=0, atol=1e-3 * t.std())


def test_columns_that_only_a_later_layer_reads_are_looked_at():
    rng = np.random.default_rng(0)
    t = rng.integers(0, 800, 500).astype(float)
    A = np.column_stack([rng.normal(size=500), 1e15 + t])
    how = SMALL | {"backprop": {"skip": True}, "n_estimators": 20}
    model = described(BoostBPRegressor(**how).fit(A, np.sin(t / 60)))
    first, last = model.forests
    nothing = first.take(slice(0, 0))
    with pytest.raises(ValueError, match=r"merges numbers of the columns \[1\] that the model"):
        model_of(dataclasses.replace(model, forests=(nothing, last)), dtype="float32")
