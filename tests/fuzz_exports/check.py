"""What must hold of every case: graphs and programs that give what predict gives, or an error that says why not."""

from __future__ import annotations

import ctypes
import re
import subprocess
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier
from tests.export.rows import COMPILER, codes_of
from tests.fuzz_exports.cases import Case

FLAGS = ("-std=c99", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC")
LEVELS = onnxruntime.GraphOptimizationLevel
ALL_LEVELS = (LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_BASIC, LEVELS.ORT_ENABLE_EXTENDED, LEVELS.ORT_ENABLE_ALL)
CLOSE = 1e-11  # of the size of an output: what a sum in another order may lose
FLOAT32 = 1e-3  # of the size of an output, where no hidden unit can be rounded across a threshold
REASON = re.compile(
    r"^(classes_ holds|dtype='float32' (cannot hold|merges (numbers|categories))|basis=.* cannot be exported|"
    r"Column \d+ has categories)"
)


def outcome_of(case: Case, folder: Path) -> str:
    """Fit, export and compare: "same", or which exports were refused.

    Raises
    ------
    AssertionError
        If a graph or a program gives something else than predict, or an error names no argument.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = case.fitted()
        except (ValueError, TypeError, FloatingPointError):
            return "no model"
        rows, cells = rows_of(case, model)
        warnings.simplefilter("error", RuntimeWarning)
        refused = [
            way
            for way, check in (("ONNX", check_graph), ("C", check_program), ("float32", check_float32))
            if not exported(check, case, model, rows, cells, folder)
        ]
    return f"same, but refused: {', '.join(refused)}" if refused else "same"


def exported(check: Any, case: Case, model: Any, rows: Any, cells: np.ndarray, folder: Path) -> bool:
    """Whether a check passes; False if the model is refused for a reason."""
    try:
        check(case, model, rows, cells, folder)
    except ValueError as error:
        if type(error) is not ValueError or not REASON.search(str(error)):
            raise AssertionError(f"{type(error).__name__} names no reason of ours: {error}") from error
        return False
    return True


def rows_of(case: Case, model: Any) -> tuple[Any, np.ndarray]:
    """Rows that predict takes, and the same as an exported model takes them."""
    known, fresh = case.table(0), case.table(1)
    stretched = fresh.copy()
    plain = np.setdiff1d(np.arange(len(case.columns)), case.categorical)
    with np.errstate(over="ignore"):
        stretched[:, plain] = np.clip(1.5 * stretched[:, plain].astype(float), -1e308, 1e308)
    parts = [known, fresh, stretched, known[:1] * 0 if not case.categorical else known[:1]]
    if case.kind != "autoencoder":
        parts.append(np.full((1, len(case.columns)), np.nan, known.dtype))
    rows = np.concatenate(parts)
    on = thresholds(model, len(rows))
    for feature, values in on.items():
        if feature in plain:
            rows[: len(values), feature] = values
    return rows, codes_of(model, rows)


def thresholds(model: Any, most: int) -> dict[int, np.ndarray]:
    """Thresholds of the first layer by feature."""
    nodes = model.network_.layers[0].forest.nodes
    splits = (nodes.cat_start < 0) & np.isfinite(nodes.threshold)
    return {int(j): nodes.threshold[splits & (nodes.feature == j)][:most] for j in np.unique(nodes.feature[splits])}


def expected_of(case: Case, model: Any, rows: Any) -> tuple[np.ndarray, Any]:
    """Numbers that predict gives, and the offset that it was given."""
    how: dict[str, Any] = {}
    if case.offset:
        unit = model.model_.targets.scale[0]
        n_columns = model.model_.targets.n_columns
        offset = unit * np.random.default_rng(0).normal(size=(len(rows), n_columns))
        how["offset"] = offset if n_columns > 1 else offset[:, 0]
    if isinstance(model, BoostBPClassifier):
        return model.predict_proba(rows, **how), how
    return model.predict(rows, **how), how


def size_of(model: Any, expected: np.ndarray) -> np.ndarray:
    """The size of an output, in whose units it is compared: the target's where it is added up, its own otherwise."""
    unit = np.ones(1) if isinstance(model, BoostBPClassifier) else model.model_.targets.scale
    raw = np.abs(expected) if exponential(model) else np.maximum(np.abs(expected), unit)
    return np.maximum(raw, 5e-324 / CLOSE)


def exponential(model: Any) -> bool:
    """Whether predictions are exponentials of raw outputs."""
    return model.model_.targets.link_name == "log"


def assert_close(model: Any, made: np.ndarray, expected: np.ndarray, close: float, what: str) -> None:
    """Numbers are the same but for rounding, where predict gives finite ones."""
    assert made.shape == expected.shape, f"{what}: shape {made.shape}, predict {expected.shape}"
    finite = np.isfinite(expected)
    with np.errstate(all="ignore"):
        off = np.where(finite, np.abs(made - expected) / size_of(model, expected), 0.0)
    off = np.where(np.isnan(off), np.inf, off)
    if (off > close).any():
        at = np.unravel_index(np.argmax(off), off.shape)
        raise AssertionError(
            f"{what}: {made[at]!r} at {at}, predict {expected[at]!r}, off by {off[at]:.3g} of its size"
        )


def assert_labels(model: Any, labels: Any, expected: np.ndarray, what: str) -> None:
    """Labels are the most probable ones, or those above a half."""
    if model.multilabel_:
        sure = np.abs(expected - 0.5) > 1e-12
        assert (np.reshape(labels, expected.shape)[sure] == (expected > 0.5)[sure]).all(), f"{what}: other labels"
        return
    names = model.classes_.tolist()
    for row, label in enumerate(labels):
        probability = expected[row, names.index(label)]
        assert probability >= expected[row].max() - 1e-12, f"{what}: label {label!r} of row {row}: {expected[row]}"


def session_of(graph: bytes, level: Any) -> Any:
    """A session of one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def check_graph(case: Case, model: Any, rows: Any, cells: np.ndarray, folder: Path) -> None:
    """A graph in float64, with all levels of optimization, of many rows, one and none."""
    graph = boostbp.to_onnx(model, offset=case.offset).SerializeToString()
    expected, how = expected_of(case, model, rows)
    inputs = {"X": cells}
    if case.offset:
        inputs["offset"] = how["offset"].reshape(len(rows), -1)
    for level in ALL_LEVELS:
        session = session_of(graph, level)
        for part in (slice(None), slice(0, 1), slice(len(rows) - 1, None), slice(0, 0)):
            outputs = session.run(None, {name: values[part] for name, values in inputs.items()})
            what = f"ONNX, {level.name}, rows {part.start} to {part.stop}"
            assert_close(model, outputs[-1], expected[part], CLOSE, what)
            if isinstance(model, BoostBPClassifier):
                assert_labels(model, np.asarray(outputs[0]).tolist(), expected[part], what)


def check_float32(case: Case, model: Any, rows: Any, cells: np.ndarray, folder: Path) -> None:
    """A graph in float32, where no hidden unit stands before a threshold, and where float32 holds the cells."""
    graph = boostbp.to_onnx(model, dtype="float32").SerializeToString()
    if len(model.network_.layers) > 1 or case.categorical:
        return
    with np.errstate(over="ignore"):
        cells = cells.astype(np.float32)
    held = ~np.isinf(cells).any(axis=1)
    expected, _ = expected_of(replace(case, offset=False), model, cells[held].astype(np.float64))
    for level in ALL_LEVELS[::3]:
        made = session_of(graph, level).run(None, {"X": cells[held]})[-1]
        inside = np.abs(expected) < 1e38
        assert_close(model, np.where(inside, made, expected), expected, FLOAT32, f"ONNX, float32, {level.name}")


def check_program(case: Case, model: Any, rows: Any, cells: np.ndarray, folder: Path) -> None:
    """A program in C: the bits of predict, but for exponentials."""
    source, library = folder / "model.c", folder / f"model{case.number}.so"
    source.write_text(boostbp.to_c(model), encoding="utf-8")
    subprocess.run([COMPILER, *FLAGS, "-o", library, source, "-lm"], check=True, capture_output=True)
    binary = ctypes.CDLL(str(library))
    expected, _ = expected_of(replace(case, offset=False), model, rows)
    classes = isinstance(model, BoostBPClassifier)
    made = np.empty(expected.shape)
    assert _call(binary, "boostbp_predict_proba" if classes else "boostbp_predict", cells, made) == 0
    assert_close(model, made, expected, 1e-13 if classes or exponential(model) else 0.0, "C")
    if classes:
        number = np.empty(expected.shape if model.multilabel_ else len(rows), np.intc)
        assert _call(binary, "boostbp_predict", cells, number) == 0
        assert_labels(model, number if model.multilabel_ else model.classes_[number].tolist(), expected, "C")
    assert isinstance(model, BoostBPClassifier | BoostBPAutoencoder) or len(made) == len(rows)


def _call(binary: Any, name: str, cells: np.ndarray, out: np.ndarray) -> int:
    pointers = ctypes.c_void_p(cells.ctypes.data), ctypes.c_size_t(len(cells)), ctypes.c_void_p(out.ctypes.data)
    return int(getattr(binary, name)(*pointers))
