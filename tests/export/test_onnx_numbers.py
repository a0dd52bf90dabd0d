"""Numbers of a graph in few bits: a runtime makes the same numbers of them, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.export.onnx_graph import IR_VERSION, OPSET, Graph
from boostbp.export.onnx_numbers import Units, lowest_bits, multiples, owners, whole_numbers

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def made(graph, name, dtype):
    """What a runtime makes of a name, and the bytes of the graph."""
    graph.op("Identity", name, outputs=["made"])
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    proto = graph.proto([], [graph.typed("made", kind)], constants=True)
    model = onnx.helper.make_model(proto, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    raw = model.SerializeToString()
    return onnxruntime.InferenceSession(raw, providers=["CPUExecutionProvider"]).run(None, {})[0], len(raw)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("low", [0, -7])
def test_whole_numbers_come_back_and_take_few_bits(few, low):
    rng = np.random.default_rng(0)
    values = low + rng.integers(0, 30, 50 if few else 5000)
    values[::500] = rng.integers(-(2**31), 2**31, len(values[::500]))
    graph = Graph(np.dtype(np.float64))
    numbers, room = made(graph, whole_numbers(graph, values), np.int32)
    np.testing.assert_array_equal(numbers, values)
    assert room < 5000 * 5 / 8 + 1500


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_multiples_of_units_come_back_and_others_beside_them(dtype):
    rng = np.random.default_rng(0)
    exponent = rng.integers(-20, 5, 3000)
    values = rng.integers(-500, 500, (3000, 2)) * np.ldexp(1.0, exponent)[:, None]
    values[::300] = rng.normal(size=(10, 2))
    graph = Graph(np.dtype(dtype))
    numbers, room = made(graph, multiples(graph, values, Units.of(graph, exponent[:, None])), dtype)
    np.testing.assert_array_equal(numbers, values.astype(dtype))
    assert room < 3000 * (2 * 10 + 5) / 8 + 2500


def test_numbers_that_are_no_multiples_stay_as_they_are():
    values = np.random.default_rng(0).normal(size=300)
    graph = Graph(np.dtype(np.float64))
    numbers, _ = made(graph, multiples(graph, values, Units.of(graph, np.zeros(300, np.int64))), np.float64)
    np.testing.assert_array_equal(numbers, values)


def test_lowest_bits():
    values = np.array([1.0, -12.0, 0.75, 3 * 2.0**-1000, 5e-324, 0.0])
    np.testing.assert_array_equal(lowest_bits(values), [0, 2, -2, -1000, -1074, 1 << 20])


def test_owners_of_counts_some_of_which_are_0():
    count = np.array([2, 0, 3, 0, 0, 1, 0], np.int64)
    graph = Graph(np.dtype(np.float64))
    numbers, _ = made(graph, owners(graph, graph.constant(count), 6), np.int64)
    np.testing.assert_array_equal(numbers, np.repeat(np.arange(7), count))
