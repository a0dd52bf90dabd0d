"""C files, compiled by the compiler that is there: the bits of predict."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival
from boostbp.export import c_program
from tests.export.rows import COMPILER, as_exported, hard_rows, measures, table
from tests.support.helpers import BASES
from tests.test_storage import EXPORTED, MODELS, X, regressor

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler: cc, gcc or clang")
SMALL = {"hidden_layer_sizes": (4,), "n_estimators": 10, "epochs": 2, "random_state": 0, "deep": True}
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC")


class Compiled:
    """A model in C, as a library that is loaded."""

    def __init__(self, model, folder, flags=FLAGS):
        source = folder / "model.c"
        source.write_text(boostbp.to_c(model), encoding="utf-8")
        subprocess.run([COMPILER, *flags, "-o", folder / "model.so", source, "-lm"], check=True)
        self.binary = ctypes.CDLL(str(folder / "model.so"))

    def call(self, name, rows, out):
        """Fill `out` by a function of the library; returns what it returns."""
        rows = np.ascontiguousarray(rows, np.float64)
        pointers = ctypes.c_void_p(rows.ctypes.data), ctypes.c_size_t(len(rows)), ctypes.c_void_p(out.ctypes.data)
        return getattr(self.binary, name)(*pointers)


def assert_same(model, compiled, rows, expected_rows=None):
    """Predictions to the bit; exponentials of a library of C differ from numpy's in the last ones."""
    expected_rows = rows if expected_rows is None else expected_rows
    if isinstance(model, BoostBPClassifier):
        probability = np.empty((len(rows), len(model.classes_)))
        number = np.empty(len(rows), np.intc)
        assert compiled.call("boostbp_predict_proba", rows, probability) == 0
        assert compiled.call("boostbp_predict", rows, number) == 0
        assert model.classes_[number].tolist() == model.predict(expected_rows).tolist()
        np.testing.assert_allclose(probability, model.predict_proba(expected_rows), rtol=1e-14)
        return
    expected = model.predict(expected_rows)
    prediction = np.empty(expected.shape)
    assert compiled.call("boostbp_predict", rows, prediction) == 0
    if not isinstance(model, BoostBPAutoencoder) and model.model_.targets.link_name == "log":
        np.testing.assert_allclose(prediction, expected, rtol=1e-15)
    else:
        np.testing.assert_array_equal(prediction, expected)


@needs_compiler
@pytest.mark.parametrize("kind", EXPORTED)
def test_every_kind_of_model_has_the_bits_of_predict(kind, tmp_path):
    make, inputs = MODELS[kind]
    model = make()
    rows = as_exported(model, inputs)
    if isinstance(inputs, np.ndarray):
        if not isinstance(model, BoostBPAutoencoder):
            rows = hard_rows(model, rows)
        inputs = rows
    assert_same(model, Compiled(model, tmp_path), rows, inputs)


@needs_compiler
@pytest.mark.parametrize("skip", [False, True])
def test_ten_thousand_hard_rows(skip, tmp_path):
    A, y = table(2000)
    how = SMALL | {"hidden_layer_sizes": (6, 4), "backprop": {"skip": skip}}
    model = BoostBPRegressor(categorical_features=[1, 4], **how).fit(A, y)
    rows = np.concatenate([table(4000, 1)[0], hard_rows(model, A, 2000)])
    assert len(rows) == 10_000
    assert_same(model, Compiled(model, tmp_path), rows)


@needs_compiler
def test_the_default_model(tmp_path):
    A, y = table(700)
    model = BoostBPRegressor(epochs=3, random_state=0, n_estimators=30, categorical_features=[1]).fit(A, y)
    assert_same(model, Compiled(model, tmp_path), hard_rows(model, A))


@needs_compiler
@pytest.mark.parametrize("kind", ["ranker", "cox", "aft"])
def test_scores_of_queries_and_survival_times(kind, tmp_path):
    A, y = table(700)
    how = {"quality": 1, "n_estimators": 30, "categorical_features": [1], "random_state": 0}
    if kind == "ranker":
        model = BoostBPRanker(**how).fit(A, np.digitize(y, np.quantile(y, [0.5, 0.8])), qid=np.arange(700) // 20)
    else:
        model = BoostBPSurvival(loss=kind, **how).fit(A, np.exp((y - y.mean()) / y.std()))
    assert_same(model, Compiled(model, tmp_path), hard_rows(model, A))


@needs_compiler
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_cells_far_from_what_their_row_says_have_the_bits_of_predict(missing, tmp_path):
    A, y, rows = measures(900, missing)
    model = BoostBPRegressor(**SMALL).fit(A, y)
    assert_same(model, Compiled(model, tmp_path), rows)


@needs_compiler
def test_nodes_of_more_bits_where_short_ones_do_not_hold_them(tmp_path, monkeypatch):
    A, y = table(300)
    model = BoostBPRegressor(categorical_features=[1, 4], **SMALL).fit(A, y)
    short = boostbp.to_c(model)
    monkeypatch.setattr(c_program, "NODE", [(name, "u1") for name, _ in c_program.NODE])
    assert "typedef int16_t boostbp_step" in short
    assert "typedef int32_t boostbp_step" in boostbp.to_c(model)
    assert_same(model, Compiled(model, tmp_path), hard_rows(model, A))


@needs_compiler
def test_infinite_cells_are_refused(tmp_path):
    compiled = Compiled(regressor(), tmp_path)
    rows, prediction = X[:3].copy(), np.full(3, np.nan)
    rows[1, 2] = np.inf
    assert compiled.call("boostbp_predict", rows, prediction) == 1
    assert np.isnan(prediction).tolist() == [False, True, True]


@needs_compiler
def test_fast_mathematics_are_refused(tmp_path, capfd):
    with pytest.raises(subprocess.CalledProcessError):
        Compiled(regressor(), tmp_path, (*FLAGS, "-ffast-math"))
    assert "Compile without -ffast-math" in capfd.readouterr().err


def test_what_cannot_be_exported_is_refused_by_name():
    with pytest.raises(ValueError, match=r"basis=.*Use 'linear'"):
        boostbp.to_c(regressor(basis=BASES["own"]))
    with pytest.raises(TypeError, match="give a fitted BoostBP"):
        boostbp.to_c(object())
