"""Arrays of a graph: a runtime makes the same numbers of the few bytes that the file holds."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.export.onnx_graph import IR_VERSION, OPSET, Graph

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.export.test_onnx_models import ALL_LEVELS, onnx, session_of

RNG = np.random.default_rng(0)
WHOLE = {
    "bytes": (RNG.integers(0, 256, 5000), 1),
    "negative": (RNG.integers(-128, 128, 5000), 1),
    "two bytes": (RNG.integers(-1000, 1000, (50, 100)), 2),
    "wide": (RNG.integers(-(2**31), 2**31, 5000), 4),
}
REAL = {
    "halves": (RNG.integers(-1024, 1024, 5000) * 2.0**-20, 2),
    "small halves": (RNG.integers(-1000, 1000, 5000) * 2.0**-24, 2),
    "short": (RNG.normal(size=5000).astype(np.float32).astype(float), 4),
    "long": (RNG.normal(size=5000), 8),
    "few": (RNG.choice(RNG.normal(size=200), (50, 100)), 1.4),
    "signs of zero and infinity": (np.array([0.0, -0.0, np.inf, -np.inf]).repeat(500), 1.1),
}


def made(values, dtype, level):
    """What a runtime makes of a table, and the bytes of the file for each number."""
    graph = Graph(np.dtype(np.float64))
    graph.op("Identity", graph.table(values), outputs=["made"])
    proto = graph.proto([], [graph.typed("made", dtype)])
    model = onnx.helper.make_model(proto, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    return session_of(model, level).run(None, {})[0], len(model.SerializeToString()) / values.size


@pytest.mark.parametrize("level", ALL_LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize(("values", "room"), [*WHOLE.values(), *REAL.values()], ids=[*WHOLE, *REAL])
def test_tables_come_back_to_the_bit_and_take_few_bytes(values, room, level):
    dtype = np.float64 if values.dtype.kind == "f" else np.int32
    table, taken = made(values, dtype, level)
    assert table.dtype == dtype
    assert table.tobytes() == values.astype(dtype).tobytes()
    assert table.shape == values.shape
    assert taken < room + 0.2
