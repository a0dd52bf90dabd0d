"""Labels of every kind in graphs and C programs: as they are, or refused by name."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import boostbp
from boostbp import BoostBPClassifier
from boostbp.export.description import labels_of
from tests.export.test_c_program import Compiled, needs_compiler

ROWS = np.random.default_rng(0).normal(size=(60, 2))
HELD = {
    "ends of int64": np.array([-(2**63), 0, 2**63 - 1]),
    "uint64 that int64 holds": np.array([0, 7, 2**63 - 1], np.uint64),
    "beyond 2**53": np.array([-1, 2**53 + 1, 2**62]),
    "int8": np.array([-128, 0, 127], np.int8),
    "real": np.array([-1.0, 2.0**60, 2.0**62]),
    "float32": np.array([0.0, 1.0, 2.0**24], np.float32),
    "bool": np.array([False, True]),
    "text": np.array(["", '"\\??/%', "*/ /* \n\t漢字"], object),
    "text like a name": np.array(["boostbp_predict", "BOOSTBP_NODE", "x" * 4095], object),
}
BOTH_REFUSE = {
    "uint64": (np.array([0, 2**64 - 1], np.uint64), "18446744073709551615, a number beyond int64"),
    "surrogate": (np.array(["a", "\ud800"], object), "half of a surrogate pair"),
}
C_REFUSES = {
    "NUL": (np.array(["a", "a\0b"], object), r"NUL ends a text in C"),
    "long": (np.array(["a", "x" * 4096], object), "a text of over 4095 bytes"),
}


def classifier(labels):
    y = labels[np.digitize(ROWS[:, 0], np.linspace(-0.5, 0.5, len(labels) - 1))]
    return BoostBPClassifier((), n_estimators=3, deep=True, random_state=0).fit(ROWS, y)


def in_graph(model, **words):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    graph = boostbp.to_onnx(model, **words).SerializeToString()
    rows = ROWS.astype(words.get("dtype", "float64"))
    return runtime.InferenceSession(graph, providers=["CPUExecutionProvider"]).run(None, {"X": rows})[0].tolist()


@pytest.mark.parametrize("labels", HELD.values(), ids=HELD)
def test_a_graph_gives_the_labels_of_predict(labels):
    model = classifier(labels)
    assert in_graph(model) == model.predict(ROWS).tolist()


@pytest.mark.filterwarnings("ignore:dtype='float32'")
@pytest.mark.parametrize("labels", [HELD["real"], HELD["ends of int64"]], ids=["real", "int64"])
def test_a_graph_in_float32_does_not_round_labels(labels):
    assert set(in_graph(classifier(labels), dtype="float32")) == set(labels.tolist())


@needs_compiler
@pytest.mark.parametrize("labels", HELD.values(), ids=HELD)
def test_a_program_has_the_labels(labels, tmp_path):
    model = classifier(labels)
    binary = Compiled(model, tmp_path).binary
    kind = {str: ctypes.c_char_p, bool: ctypes.c_int64, int: ctypes.c_int64, float: ctypes.c_double}
    held = list((kind[type(labels.tolist()[0])] * len(labels)).in_dll(binary, "boostbp_labels"))
    assert [part.decode() if isinstance(part, bytes) else part for part in held] == model.classes_.tolist()


@pytest.mark.parametrize(("labels", "reason"), BOTH_REFUSE.values(), ids=BOTH_REFUSE)
def test_labels_that_no_file_holds_are_refused(labels, reason):
    model = classifier(labels)
    for export in (boostbp.to_onnx, boostbp.to_c):
        with pytest.raises(ValueError, match=f"^classes_ holds .*{reason}.*use other labels"):
            export(model)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([-(2**70), 1], "-1180591620717411303424, a number beyond int64"),
        ([2**53 + 1, 0.5], "9007199254740993, an integer among fractions, which float64 cannot represent"),
        ([b"a", b"b"], "b'a', a label of type bytes"),
        (["a", 1], "'a', a label of type str"),
    ],
)
def test_labels_of_other_types_are_refused(labels, reason):
    with pytest.raises(ValueError, match=f"^classes_ holds {reason}, so the model cannot be exported"):
        labels_of(np.array(labels, object))


def test_labels_of_objects():
    for labels in ([True, False], [3, 2**62], [0.5, 3], ["a", ""]):
        held = labels_of(np.array(labels, object))
        assert held.tolist() == labels
        assert held.dtype.kind == {bool: "b", int: "i", float: "f", str: "O"}[type(labels[0])]


@pytest.mark.parametrize(("labels", "reason"), C_REFUSES.values(), ids=C_REFUSES)
def test_text_that_c_does_not_hold_is_refused_there(labels, reason):
    model = classifier(labels)
    with pytest.raises(ValueError, match=f"^classes_ holds .*{reason}.*other labels"):
        boostbp.to_c(model)
    assert in_graph(model) == model.predict(ROWS).tolist()
