"""Out of Python: a classifier as an ONNX graph, served by onnxruntime, and as C, compiled and called.

python examples/export.py [--quick] [--backend xgboost]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import boostbp
from boostbp import BoostBPClassifier


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Tumours as a laboratory would hold them: grades as words, some results missing, diagnoses as words."""
    cancer = load_breast_cancer(as_frame=True)
    frame = cancer.data.iloc[:, :8].copy()
    frame["grade"] = pd.cut(frame["mean smoothness"], [0, 0.09, 0.1, 1], labels=["smooth", "usual", "rough"])
    rng = np.random.default_rng(0)
    for column in ("mean texture", "grade"):
        frame.loc[rng.random(len(frame)) < 0.1, column] = None
    return frame, cancer.target_names[cancer.target]


def as_numbers(frame: pd.DataFrame, facts: dict[str, list]) -> np.ndarray:
    """Rows as the exported models take them, by the facts that the ONNX file holds: words become codes."""
    rows = np.empty(frame.shape)
    for j, name in enumerate(facts["features"]):
        codes = {word: code for code, word in enumerate(facts["categories"].get(str(j), []))}
        rows[:, j] = frame[name].map(codes).astype(float) if codes else frame[name]
    return rows


def compiled(source: str, folder: Path) -> ctypes.CDLL | None:
    """The C file as a library; None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    (folder / "model.c").write_text(source, encoding="utf-8")
    flags = ["-O2", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", folder / "model.so", folder / "model.c", "-lm"], check=True)
    return ctypes.CDLL(str(folder / "model.so"))


def main() -> None:
    """Fit, export, and compare what the three say of rows that none has seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small model")
    parser.add_argument("--backend", default="lightgbm")
    args = parser.parse_args()
    X, y = table()
    X, X_new, y, _ = train_test_split(X, y, random_state=0)
    how = {"epochs": 2, "n_estimators": 20} if args.quick else {"epochs": 20}
    model = BoostBPClassifier((8,), deep=True, backend=args.backend, random_state=0, **how).fit(X, y)

    graph = boostbp.to_onnx(model)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    facts = {key: json.loads(value) for key, value in session.get_modelmeta().custom_metadata_map.items()}
    rows = as_numbers(X_new, facts)
    label, probability = session.run(["label", "probabilities"], {"X": rows})
    expected = model.predict_proba(X_new)
    agree = bool(np.allclose(probability, expected, rtol=0, atol=1e-12))
    print(f"ONNX: labels differ in {(label != model.predict(X_new)).sum()} of {len(rows)} rows;", end=" ")
    print(f"probabilities agree to 1e-12: {agree}")

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows keeps a loaded library
        library = compiled(boostbp.to_c(model), Path(folder))
        if library is None:
            print("C: no compiler here")
            return
        made = np.empty_like(expected)
        pointers = ctypes.c_void_p(rows.ctypes.data), ctypes.c_size_t(len(rows)), ctypes.c_void_p(made.ctypes.data)
        assert library.boostbp_predict_proba(*pointers) == 0
        print(f"C: probabilities agree to 1e-12: {bool(np.allclose(made, expected, rtol=0, atol=1e-12))}")
        words = list((ctypes.c_char_p * 2).in_dll(library, "boostbp_labels"))
        for row in range(3):
            print(f"row {row}: {words[int(made[row].argmax())].decode()}, probability {made[row].max():.3f}")


if __name__ == "__main__":
    main()
