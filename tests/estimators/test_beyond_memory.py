"""Rows that are read block by block give the model that they give as arrays, and leave nothing behind."""

from __future__ import annotations

import gc
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import WITH_CATEGORIES, interrupted_fit
from pyarrow import csv, parquet
from scipy.sparse import csr_matrix
from sklearn.model_selection import TimeSeriesSplit

import boostbp.backends.xgboost
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.distributed.worker import refuse_unsupported
from boostbp.inputs import blocks, disk_arrays
from boostbp.inputs.files import parts as files
from boostbp.network import trainer
from boostbp.network.layers import boosting, fitting

pa = pytest.importorskip("pyarrow")
ROWS = 900
NETWORK = {"hidden_layer_sizes": (3,), "deep": True, "epochs": 2, "n_estimators": 8, "hidden": {"n_estimators": 4}}
SOURCES = ("parquet", "csv", "folder", "frames", "arrays")
# How rows are read is nothing to the library that grows trees: each source with one of them, and each with some.
WAYS = list(zip(SOURCES, cycle(WITH_CATEGORIES), strict=False))


def table(rows=ROWS, seed=0):
    """Numbers with missing values, a category that the first rows lack, weights, groups, a target and its class."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 4)), columns=list("abcd"))
    frame.loc[rng.random(rows) < 0.1, "b"] = np.nan
    frame["colour"] = rng.choice(["red", "blue", "green"], rows)
    frame.loc[: rows // 2, "colour"] = frame["colour"][: rows // 2].replace("blue", "violet")
    frame["target"] = frame["a"] + np.sin(frame["c"] * 2) + (frame["colour"] == "green") + rng.normal(size=rows) / 5
    frame["class"] = np.where(frame["target"] > 0.5, "yes", "no")
    frame["weight"] = rng.integers(0, 4, rows).astype(float)
    frame["group"] = rng.integers(0, 50, rows)
    return frame


TABLE = table()
FEATURES = TABLE[["a", "b", "c", "d", "colour"]]
NUMBERS = FEATURES.drop(columns="colour").to_numpy()


@pytest.fixture(autouse=True)
def small_blocks(scratch, tune):
    """Rows come in small blocks, and leave no scratch file."""
    tune(files, _PARQUET_ROWS=130)
    tune(blocks, READ_ROWS=130)
    yield
    assert not list(scratch.iterdir())


def source_of(kind, where, frame, *names):
    """The rows as a source of some kind, and the arguments of fit that go with it; of iterators, a function of them."""
    chosen = pa.Table.from_pandas(frame[[*FEATURES.columns, *names]], preserve_index=False)
    if kind == "parquet":
        parquet.write_table(chosen, where / "rows.parquet")
        return lambda: (where / "rows.parquet", *names)
    if kind == "csv":
        csv.write_csv(chosen, where / "rows.csv")
        return lambda: (str(where / "rows.csv"), *names)
    if kind == "folder":
        for number, first in enumerate(range(0, len(frame), 250)):
            path = where / "rows" / f"day {number:02}" / "part.parquet"
            path.parent.mkdir(parents=True)
            parquet.write_table(chosen.slice(first, 250), path)
        (where / "rows" / "_SUCCESS.csv").touch()
        return lambda: (where / "rows", *names)
    parts = [frame[first : first + 170] for first in range(0, len(frame), 170)]
    if kind == "frames":
        return lambda: (((part[FEATURES.columns], *(part[name] for name in names)) for part in parts),)
    numbers = [part[list("abcd")].to_numpy() for part in parts]
    return lambda: (((X, *(part[name].to_numpy() for name in names)) for X, part in zip(numbers, parts, strict=True)),)


@pytest.mark.parametrize(("kind", "backend"), WAYS)
def test_a_network_is_that_of_arrays(tmp_path, kind, backend):
    X = NUMBERS if kind == "arrays" else FEATURES
    expected = BoostBPRegressor(**NETWORK, backend=backend, random_state=0)
    expected.fit(X, TABLE["target"], TABLE["weight"])
    source = source_of(kind, tmp_path, TABLE, "target", "weight")
    found = BoostBPRegressor(**NETWORK, backend=backend, random_state=0).fit(*source())
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    np.testing.assert_array_equal(found.transform(X), expected.transform(X))
    assert found.schema_.categories == expected.schema_.categories
    assert getattr(found, "feature_names_in_", "none") is not None
    assert found.n_features_in_ == expected.n_features_in_
    if kind != "arrays":
        assert list(found.feature_names_in_) == list(FEATURES.columns)


@pytest.mark.parametrize(
    ("kind", "backend"),
    [pytest.param(*way, marks=() if way[0] in ("csv", "arrays") else pytest.mark.slow) for way in WAYS],
)
def test_an_average_of_classes_is_that_of_arrays(tmp_path, kind, backend):
    X = NUMBERS if kind == "arrays" else FEATURES
    expected = BoostBPClassifier(quality=1, backend=backend, random_state=0).fit(X, TABLE["class"])
    source = source_of(kind, tmp_path, TABLE, "class")
    found = BoostBPClassifier(quality=1, backend=backend, random_state=0).fit(*source())
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.history_.choice == expected.history_.choice or str(found.history_.choice) == str(
        expected.history_.choice
    )


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_rows_beyond_a_sample_are_binned_and_grown_alike(tmp_path, tune, backend):
    tune(boostbp.backends.xgboost, SAMPLE=300)  # then XGBoost keeps its bins in files
    tune(boosting, SAMPLE=300)
    tune(fitting, MOST_TRACE=0)
    expected = BoostBPRegressor(**NETWORK, backend=backend, random_state=0, n_jobs=2).fit(FEATURES, TABLE["target"])
    source = source_of("folder", tmp_path, TABLE, "target")
    found = BoostBPRegressor(**NETWORK, backend=backend, random_state=0).fit(*source())
    np.testing.assert_array_equal(found.predict(FEATURES), expected.predict(FEATURES))


def test_files_of_numpy_are_read_where_they_are(tmp_path):
    np.save(tmp_path / "X.npy", NUMBERS.astype(np.float32))
    np.save(tmp_path / "y.npy", TABLE["target"].to_numpy())
    expected = BoostBPRegressor(**NETWORK, random_state=0).fit(
        NUMBERS.astype(np.float32), TABLE["target"], TABLE["weight"], groups=TABLE["group"]
    )
    found = BoostBPRegressor(**NETWORK, random_state=0)
    found.fit(str(tmp_path / "X.npy"), tmp_path / "y.npy", TABLE["weight"], groups=TABLE["group"])
    np.testing.assert_array_equal(found.predict(tmp_path / "X.npy"), expected.predict(NUMBERS.astype(np.float32)))


def test_offsets_groups_and_several_targets_are_columns(tmp_path):
    frame = TABLE.assign(known=TABLE["a"] / 3, other=TABLE["target"] * 2 + TABLE["d"], zero=0.0)
    parquet.write_table(pa.Table.from_pandas(frame.drop(columns="class")), tmp_path / "rows.parquet")
    X = FEATURES
    expected = BoostBPRegressor(quality=1, random_state=0).fit(
        X,
        frame[["target", "other"]],
        frame["weight"],
        offset=frame[["known", "zero"]],
        groups=frame["group"],
    )
    found = BoostBPRegressor(quality=1, random_state=0).fit(
        tmp_path / "rows.parquet", ["target", "other"], "weight", offset=["known", "zero"], groups="group"
    )
    np.testing.assert_array_equal(found.predict(X, offset=0), expected.predict(X, offset=0))


@pytest.mark.parametrize(
    "validation", ["last", *(pytest.param(each, marks=pytest.mark.slow) for each in (TimeSeriesSplit(3), 0.3))]
)
def test_rows_are_held_out_as_of_arrays(validation):
    expected = BoostBPRegressor(quality=1, validation=validation, calibration=0.2, random_state=0)
    expected.fit(NUMBERS, TABLE["target"])
    found = BoostBPRegressor(quality=1, validation=validation, calibration=0.2, random_state=0)
    found.fit(iter([(NUMBERS, TABLE["target"])]))
    np.testing.assert_array_equal(found.predict_interval(NUMBERS), expected.predict_interval(NUMBERS))


def test_arrays_of_all_rows_may_stand_beside_a_table(tmp_path):
    parquet.write_table(pa.Table.from_pandas(FEATURES), tmp_path / "rows.parquet")
    expected = BoostBPRegressor(quality=1, random_state=0).fit(FEATURES, TABLE["target"])
    found = BoostBPRegressor(quality=1, random_state=0).fit(tmp_path / "rows.parquet", TABLE["target"])
    np.testing.assert_array_equal(found.predict(FEATURES), expected.predict(FEATURES))


def test_training_goes_on_from_a_model(tmp_path):
    first = BoostBPRegressor(quality=1, random_state=0).fit(FEATURES, TABLE["target"])
    later = table(seed=1)
    expected = BoostBPRegressor(quality=1, random_state=0)
    expected.fit(later[FEATURES.columns], later["target"], init_model=first)
    source = source_of("folder", tmp_path, later, "target")
    found = BoostBPRegressor(quality=1, random_state=0).fit(*source(), init_model=first)
    np.testing.assert_array_equal(found.predict(FEATURES), expected.predict(FEATURES))


@pytest.mark.parametrize("kind", ["parquet", "csv", "folder"])
def test_predictions_come_block_by_block(tmp_path, kind):
    model = BoostBPClassifier(**NETWORK, random_state=0).fit(FEATURES, TABLE["class"])
    path = source_of(kind, tmp_path, TABLE, "class", "weight")()[0]  # other columns are not looked at
    parts = lambda: (FEATURES[first : first + 99] for first in range(0, ROWS, 99))  # noqa: E731
    for rows in (lambda: path, parts):
        np.testing.assert_array_equal(model.predict_proba(rows()), model.predict_proba(FEATURES))
        np.testing.assert_array_equal(model.predict(rows()), model.predict(FEATURES))
        np.testing.assert_array_equal(model.transform(rows()), model.transform(FEATURES))
        np.testing.assert_array_equal(model.hidden_representation(rows())[0], model.transform(FEATURES))


def test_a_constant_number_of_categories_is_no_name_for_each_row():
    names = [f"n{number}" for number in range(ROWS)]
    frame = FEATURES.assign(name=names)
    parts = ((frame[first : first + 30], TABLE["target"][first : first + 30]) for first in range(0, ROWS, 30))
    with pytest.warns(UserWarning, match=r"Column 'name' is read as categories, but has 900 distinct values"):
        BoostBPRegressor(quality=1, random_state=0).fit(parts)


def test_text_that_spells_numbers_is_refused_by_all_rows():
    frame = FEATURES.assign(code=[f"{number / 7:.3f}" for number in range(ROWS)])
    parts = ((frame[first : first + 300], TABLE["target"][first : first + 300]) for first in range(0, ROWS, 300))
    with pytest.raises(ValueError, match=r"Column 'code' holds text, but"):
        BoostBPRegressor(quality=1).fit(parts)


# Arrays of eight thousand bytes lie in files here, nearly all that hold a number for each row.
EVERY_ARRAY = """
import gc, resource, sys
import numpy as np
from boostbp.inputs import disk_arrays
disk_arrays.LEAST = 8000
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.backends import xgboost
from boostbp.network.layers import boosting
xgboost.SAMPLE = boosting.SAMPLE = 500
rng = np.random.default_rng(0)
X = rng.normal(size=(1200, 5))
X[rng.random(X.shape) < 0.1] = np.nan
y = np.nan_to_num(X[:, 0]) + np.sin(np.nan_to_num(X[:, 1])) + rng.normal(size=1200) / 5
weight = rng.integers(0, 3, 1200).astype(float)
network = {"hidden_layer_sizes": (3, 2), "deep": True, "epochs": 3, "n_estimators": 6, "hidden": {"n_estimators": 3}}
models = [
    (BoostBPRegressor, network, y),
    (BoostBPRegressor, {"quality": 1, "loss": "huber"}, y),
    (BoostBPClassifier, network | {"hidden_layer_sizes": (3,)}, np.digitize(y, [-0.5, 0.5])),
]
most = []

def count_files(y_true, y_pred):
    with open("/proc/self/maps") as maps:
        most.append(sum("boostbp-" in line for line in maps))
    return float(np.mean(y_true.ravel() != y_pred.ravel()[: y_true.size]))

for kind, options, target in models:
    found = None
    gc.collect()  # its summary of the rows may lie in files
    options = {**options, "backend": sys.argv[1], "random_state": 0, "eval_metric": ("files", count_files, False)}
    expected = kind(**options).fit(X, target, weight)
    assert max(most) == 0
    for n_jobs in (1, 2):
        found = kind(**options, n_jobs=n_jobs)
        found.fit((X[k : k + 100], target[k : k + 100], weight[k : k + 100]) for k in range(0, 1200, 100))
        assert max(most) > 20, most
        most.clear()
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
        np.testing.assert_array_equal(found.jacobian(X), expected.jacobian(X))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="raises the number of files that may be open")
@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_a_fit_is_the_same_with_nearly_all_of_its_arrays_in_files(backend):
    done = subprocess.run([sys.executable, "-c", EVERY_ARRAY, backend], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the files of the process in /proc")
def test_the_model_is_in_memory(scratch):
    wide = np.random.default_rng(0).normal(size=(4000, 60))  # 2 MB, as large arrays are
    model = BoostBPRegressor(quality=1, random_state=0).fit(iter([(wide, wide[:, 0])]))
    gc.collect()
    assert str(scratch) not in Path("/proc/self/maps").read_text(encoding="utf-8")
    assert np.isfinite(model.predict(wide)).all()


def blocks_with(number, block):
    """Six blocks, one of which is another."""
    for k in range(6):
        part = slice(k * 150, (k + 1) * 150)
        yield block if k == number else (NUMBERS[part], TABLE["target"].to_numpy()[part])


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (NUMBERS, r"block 2 of X is a ndarray: give tuples \(X, y\) or \(X, y, sample_weight\)"),
        ((NUMBERS,), r"block 2 of X is a tuple of 1: give tuples"),
        ((NUMBERS[:9, :3], np.ones(9)), r"X of block 2 has n_features=3, that of block 0 has 4: give all of them"),
        ((NUMBERS[:9], np.ones(8)), r"block 2 of X: y: Found input variables with inconsistent numbers of samples"),
        ((NUMBERS[:9], np.ones((9, 2))), r"block 2 of X: y: it has the shape \(9, 2\), earlier ones have \(300,\)"),
        ((NUMBERS[:9], ["b"] * 9), r"block 2 of X: y: y holds text"),
        ((NUMBERS[:9], np.ones(9), np.ones(9)), r"block 2 of X: it has a sample_weight, or has none, unlike those"),
        ((np.full((9, 4), np.inf), np.ones(9)), r"block 2 of X: Input X contains infinity"),
        ((csr_matrix(np.ones((9, 4))), np.ones(9)), r"block 2 of X: X is sparse, which is not supported in blocks"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(block, message):
    model = BoostBPRegressor()
    with pytest.raises(ValueError, match=message):
        model.fit(blocks_with(2, block))
    assert not hasattr(model, "schema_")


def test_labels_of_two_kinds_are_refused():
    parts = [(NUMBERS[:99], ["a", "b", "c"] * 33), (NUMBERS[:99], [1, 2, 3] * 33)]
    with pytest.raises(ValueError, match=r"block 1 of X: y: y holds text, such as 'a', beside numbers"):
        BoostBPClassifier().fit(iter(parts))


def test_blocks_without_rows_are_none():
    model = BoostBPRegressor(quality=1, random_state=0).fit(blocks_with(2, (NUMBERS[:0], np.ones(0))))
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="X has no rows: give at least one block"):
        model.fit(iter([]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": None}, r"y=None with a table in files: name the target, one of 'a', 'b'"),
        ({"y": "goal"}, r"rows.parquet has no column 'goal': its columns are 'a', 'b'"),
        ({"y": "target", "sample_weight": "w"}, r"rows.parquet has no column 'w'"),
        ({"y": "b"}, r"'b' is missing in \d+ rows"),
        ({"y": "target", "keep_state": True}, r"keep_state=True is not supported with rows that are read block by"),
        ({"y": "class"}, r"Column 'class' must hold numbers: 'yes' is not one"),
    ],
)
def test_what_a_table_lacks_is_said(tmp_path, arguments, message):
    path, *_ = source_of("parquet", tmp_path, TABLE, "target", "class")()
    with pytest.raises(ValueError, match=message):
        BoostBPRegressor().fit(path, **arguments)


def test_folders_that_are_no_table_are_refused(tmp_path):
    folder, *_ = source_of("folder", tmp_path, TABLE, "target")()
    model = BoostBPRegressor()
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        ValueError, match=r"The folder '.*empty' has no file that ends in .csv, .csv.gz, .csv.bz2, .csv.zst or .parquet"
    ):
        model.fit(tmp_path / "empty", "target")
    with pytest.raises(FileNotFoundError, match=r"nowhere.parquet' is neither a file nor a folder"):
        model.fit(tmp_path / "nowhere.parquet", "target")
    with pytest.raises(ValueError, match=r"'rows.txt' has an unknown format"):
        model.fit("rows.txt", "target")
    other = pa.Table.from_pandas(TABLE[["a", "target"]])
    parquet.write_table(other, folder / "zz.parquet")
    with pytest.raises(
        ValueError, match=r"rows/zz.parquet and rows/day 00/part.parquet have other columns, 'b', 'c', 'colour', 'd'"
    ):
        model.fit(folder, "target")
    csv.write_csv(other, folder / "more.csv")
    with pytest.raises(ValueError, match=r"has CSV and Parquet files: give one with files of one kind"):
        model.fit(folder, "target")


def test_who_does_not_read_blocks_says_so(tmp_path):
    with pytest.raises(TypeError, match=r"X is the path 'rows.parquet', which only fit, predict"):
        BoostBPAutoencoder().fit("rows.parquet")
    with pytest.raises(TypeError, match=r"X is an iterator, which only fit, predict"):
        BoostBPRegressor(quality=1).fit(NUMBERS, TABLE["target"]).attributions(iter([NUMBERS]))
    with pytest.raises(ValueError, match=r"y is given, a Series, with blocks: let these be"):
        BoostBPRegressor().fit(iter([(NUMBERS, TABLE["target"])]), TABLE["target"])
    with pytest.raises(
        ValueError, match=r"X='rows.parquet' is not supported on several workers: pass this worker's rows"
    ):
        refuse_unsupported(BoostBPRegressor(), "rows.parquet")


def test_an_interrupt_while_reading_leaves_nothing(scratch):
    def interrupted():
        yield NUMBERS, TABLE["target"]
        raise KeyboardInterrupt

    model = BoostBPRegressor()
    with pytest.raises(KeyboardInterrupt):
        model.fit(interrupted())
    assert not hasattr(model, "network_")
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=() if name == "lightgbm" else pytest.mark.slow) for name in WITH_CATEGORIES]
)
def test_an_interrupt_in_training_keeps_the_model_and_no_file(press, tune, scratch, backend):
    tune(boostbp.backends.xgboost, SAMPLE=300)
    press(trainer.layers, "fit", 4)
    model = BoostBPRegressor(**NETWORK, backend=backend, early_stopping=False, random_state=0)
    interrupted_fit(model, iter([(NUMBERS, TABLE["target"])]), None)
    assert model.n_iter_ == 0
    gc.collect()
    assert not list(scratch.iterdir())


def test_a_full_disk_is_an_error_that_leaves_nothing(press, scratch, monkeypatch):
    monkeypatch.setattr(disk_arrays, "is_of_user", lambda error: False)  # of the file, not of the user's blocks
    press(blocks._StoredValues, "add", 1, OSError(28, "No space left on device"))
    model = BoostBPRegressor()
    with pytest.raises(OSError, match=r"No space for the rows and arrays of the fit in the folder .*scratch.*TMPDIR"):
        model.fit(iter([(NUMBERS, TABLE["target"])]))
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        {"quality": 2, "loss": "poisson"},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"deep": False, "alpha": [0.1, 0.9]}, marks=pytest.mark.slow),
    ],
)
def test_the_default_model_and_others_are_those_of_arrays(options):
    y = np.exp(TABLE["target"].to_numpy() / 3)
    options |= {"loss": "quantile"} if "alpha" in options else {}
    expected = BoostBPRegressor(**options, epochs=4, random_state=0).fit(NUMBERS, y)
    parts = ((NUMBERS[first : first + 200], y[first : first + 200]) for first in range(0, ROWS, 200))
    found = BoostBPRegressor(**options, epochs=4, random_state=0).fit(parts)
    np.testing.assert_array_equal(found.predict(NUMBERS), expected.predict(NUMBERS))


def test_a_checkpoint_is_gone_on_from(tmp_path):
    def parts():
        return ((NUMBERS[first : first + 200], TABLE["target"][first : first + 200]) for first in range(0, ROWS, 200))

    longer = NETWORK | {"epochs": 4}
    expected = BoostBPRegressor(**longer, random_state=0).fit(NUMBERS, TABLE["target"])
    BoostBPRegressor(**NETWORK, random_state=0).fit(parts(), checkpoint=tmp_path / "state")
    found = BoostBPRegressor(**longer, random_state=0).fit(parts(), checkpoint=tmp_path / "state")
    np.testing.assert_array_equal(found.predict(NUMBERS), expected.predict(NUMBERS))
