"""Predictions read a table in blocks: its bits, checks and errors are those of the whole table, its copy is small."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.inputs import matrices, schema
from boostbp.network.network import network_output
from boostbp.trees import sparse

ROWS, COLUMNS = 60_000, 40
CELLS = np.random.default_rng(0).integers(0, 200, (ROWS, COLUMNS)).astype(np.uint8)
Y = CELLS[:400, 0] + 0.1 * CELLS[:400, 1]
NAMES = [f"c{j}" for j in range(COLUMNS)]
QUICK = {"n_estimators": 5, "deep": False, "early_stopping": False, "random_state": 0}
FORMS = {
    "uint8": lambda cells: cells,
    "float32": lambda cells: cells.astype(np.float32),
    "float32 in columns": lambda cells: np.asfortranarray(cells, np.float32),
    "float64 in columns": lambda cells: np.asfortranarray(cells, np.float64),
    "frame of float64": lambda cells: pd.DataFrame(cells.astype(np.float64), columns=NAMES),
    "frame of float32": lambda cells: pd.DataFrame(cells.astype(np.float32), columns=NAMES),
    "frame of both": lambda cells: pd.DataFrame(cells.astype(np.float64), columns=NAMES).astype({"c1": np.int16}),
}


def peak_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", FORMS)
def test_prediction_takes_less_than_one_and_a_half_tables(form, tune):
    tune(matrices, CELLS=1 << 16, CHUNK=1)  # as this table is small
    table, first = FORMS[form](CELLS), FORMS[form](CELLS[:400])
    model = BoostBPRegressor(**QUICK).fit(first, Y)
    label = BoostBPClassifier(**QUICK).fit(first, Y > 100)
    coder = BoostBPRegressor(**QUICK | {"deep": True, "epochs": 1, "hidden_layer_sizes": (3,)}).fit(first, Y)
    size = 8 * ROWS * COLUMNS if "64" in form or "both" in form else CELLS.nbytes * (1 if form == "uint8" else 4)
    for predict in (model.predict, label.predict_proba, coder.transform):
        results = 2 * len(table) // len(first) * predict(first).nbytes  # in blocks, and together
        assert peak_of(lambda predict=predict: predict(table)) < 1.5 * size + results


@pytest.mark.parametrize("form", FORMS)
def test_blocks_change_no_bit(form, tune):
    table, first = FORMS[form](CELLS[:3000]), FORMS[form](CELLS[:400])
    model = BoostBPRegressor(**QUICK | {"deep": True, "epochs": 1, "hidden_layer_sizes": (3,)}).fit(first, Y)
    whole = [model.predict(table), model.transform(table)]
    expected = network_output(model.network_, np.ascontiguousarray(CELLS[:3000], np.float64))
    np.testing.assert_array_equal(model.model_.targets.prediction(expected), whole[0])
    for cells in (COLUMNS, 17 * COLUMNS, 1000 * COLUMNS):
        tune(schema, MAX_CELLS=0)
        tune(matrices, CELLS=cells, CHUNK=1)
        for blocks, one in zip((model.predict(table), model.transform(table)), whole, strict=True):
            assert blocks.tobytes() == one.tobytes()


def test_checks_see_the_whole_table(tune):
    tune(schema, MAX_CELLS=0)
    tune(matrices, CELLS=50, CHUNK=1)
    frame = pd.DataFrame({"x": np.arange(400.0), "c": pd.Categorical(np.resize(["a", "b"], 400))})
    model = BoostBPRegressor(**QUICK).fit(frame, Y)
    whole = model.predict(frame)
    assert np.array_equal(model.predict(frame.iloc[::-1])[::-1], whole)
    infinite = frame.assign(x=np.where(frame["x"] == 333, np.inf, 0.0))
    with pytest.raises(ValueError, match=r"Column 'x', row 333 \(counted from 0\) holds inf"):
        model.predict(infinite)
    numbers = np.where(np.arange(800).reshape(400, 2) == 600, np.inf, 1.0).astype(np.float32)
    with pytest.raises(ValueError, match=r"Column 0, row 300 \(counted from 0\) holds inf"):
        BoostBPRegressor(**QUICK).fit(np.ones((400, 2)) * Y[:, None], Y).predict(numbers)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(frame.assign(c="z"))
    assert [str(one.message)[:40] for one in caught] == ["Column 'c': almost no value was seen at "]


def test_an_auto_encoder_checks_all_blocks(tune):
    tune(schema, MAX_CELLS=0)
    tune(matrices, CELLS=50, CHUNK=1)
    X = CELLS[:200, :5].astype(np.float32)
    model = BoostBPAutoencoder(n_estimators=3, epochs=1, hidden_layer_sizes=(2,), random_state=0).fit(X)
    assert model.predict(X).shape == X.shape
    X[150, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(X)


def test_a_fit_keeps_no_copy_of_the_whole_table_beside_its_parts(tune):
    """Two tables of float32 are one of float64: the rows to train on and those held out, after the split."""
    tune(sparse, CELLS=1 << 14)  # as this table is small
    table = CELLS.astype(np.float32)
    target = CELLS[:, 0] + 0.1 * CELLS[:, 1]
    model = BoostBPRegressor(quality=1, n_estimators=20, random_state=0)
    assert peak_of(lambda: model.fit(table, target)) < 5.0 * table.nbytes
