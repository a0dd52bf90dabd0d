"""Files of NumPy's format and of Parquet that are cut, damaged, replaced, or none at all: errors that name them."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from boostbp import BoostBPRegressor
from boostbp.inputs import blocks
from boostbp.inputs.blocks import array_blocks, read_array

X = np.random.default_rng(0).normal(size=(500, 4))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "f4", "f2", "i8", "u1", "?", "U7", "M8[s]"])
@pytest.mark.parametrize("shape", [(500, 4), (1, 3), (0, 4), (7,), (), (2, 3, 4), (5, 0)])
def test_arrays_are_those_of_numpy(tmp_path, dtype, order, shape):
    values = np.asarray(np.random.default_rng(0).integers(0, 2, shape).astype(dtype), order=order)
    np.save(tmp_path / "x.npy", values)
    found = read_array(tmp_path / "x.npy")
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)
    if len(shape) == 2:
        parts = list(array_blocks(tmp_path / "x.npy", 130))
        assert max(map(len, parts)) <= 130
        np.testing.assert_array_equal(np.concatenate(parts), values)


CUT = """
import os, sys
import numpy as np
import pyarrow as pa
from pyarrow import parquet
from boostbp import BoostBPRegressor
from boostbp.inputs import blocks
X = np.random.default_rng(0).normal(size=(200_000, 4))
model = BoostBPRegressor(quality=1, random_state=0).fit(X[:500], X[:500, 0])
np.save("x.npy", X)
np.save("y.npy", X[:, 0])
blocks.READ_ROWS = 1000
for use in (lambda: model.predict("x.npy"), lambda: model.fit("x.npy", "y.npy")):
    np.save("x.npy", X)
    check, calls = blocks.interrupts.check, []
    def cut():
        calls.append(1)
        if len(calls) == 1:
            os.truncate("x.npy", 5000)
    blocks.interrupts.check = cut
    try:
        use()
    except ValueError as error:
        print(error)
    blocks.interrupts.check = check
rows = parquet.ParquetFile.iter_batches
def cut_rows(self, *args, **options):
    for number, batch in enumerate(rows(self, *args, **options)):
        if number == 1:
            os.truncate("x.parquet", 5000)
        yield batch
parquet.ParquetFile.iter_batches = cut_rows
table = pa.table({name: X[:, j] for j, name in enumerate("abcy")})
named = BoostBPRegressor(quality=1, random_state=0).fit(table.slice(0, 500).select(list("abc")), X[:500, 3])
for use in (lambda: named.predict("x.parquet"), lambda: named.fit("x.parquet", "y")):
    parquet.write_table(table, "x.parquet")
    try:
        use()
    except (OSError, ValueError) as error:
        print(error)
"""


@pytest.mark.slow
def test_a_file_that_is_cut_while_it_is_read_ends_in_an_error_not_in_a_signal(tmp_path):
    done = subprocess.run([sys.executable, "-c", CUT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["'x.npy' was truncated while it was read: write it again."] * 2
    assert len(lines) == 4
    assert all(line.startswith("x.parquet: ") and "damaged" in line for line in lines[2:])


def test_a_file_that_is_cut_after_it_was_read_changes_nothing(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    expected = BoostBPRegressor(quality=1, random_state=0).fit(X, X[:, 0]).predict(X)
    opened = blocks.read_array

    def cut(path):
        found = opened(path)
        os.truncate(path, 100)
        return found

    monkeypatch.setattr(blocks, "read_array", cut)
    model = BoostBPRegressor(quality=1, random_state=0).fit(tmp_path / "x.npy", X[:, 0])
    np.testing.assert_array_equal(model.predict(X), expected)


def numpy_bytes(values, **options):
    file = io.BytesIO()
    np.save(file, values, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"is not a file of one array as numpy.save writes it"),
        (b"PK\x03\x04 an archive of arrays", r"is not a file of one array"),
        (
            numpy_bytes(X)[:-1],
            r"holds 15999 bytes of an array \(500, 4\) of float64, which takes 16000: it is truncated",
        ),
        (numpy_bytes(X).replace(b"(500, 4)", b"(10**9,)"), r"is not a file of one array"),
        (
            numpy_bytes(X).replace(b"(500, 4), ", b"(9999999,)"),
            r"holds 16000 bytes of an array \(9999999,\) of float64, which takes 79999992",
        ),
        (
            numpy_bytes(X).replace(b"(500, 4)", b"(-50, 4)"),
            r"holds 16000 bytes of an array \(-50, 4\) .* it is truncated",
        ),
        (numpy_bytes(np.array([{}, None]), allow_pickle=True), r"holds Python objects, which are code"),
    ],
)
def test_what_is_no_whole_array_is_refused_by_name(tmp_path, data, message):
    path = tmp_path / "x.npy"
    path.write_bytes(data)
    model, whole = BoostBPRegressor(quality=1, random_state=0).fit(X, X[:, 0]), tmp_path / "whole.npy"
    np.save(whole, X)
    for use in (lambda: model.predict(path), lambda: model.fit(path, X[:, 0]), lambda: model.fit(whole, path)):
        with pytest.raises(ValueError, match=rf"x\.npy' {message}"):
            use()


def test_pipes_devices_and_folders_are_refused_at_once(tmp_path):
    model = BoostBPRegressor(quality=1, random_state=0).fit(X, X[:, 0])
    names = ["x.npy", "x.csv", "x.parquet"]
    for name in names:
        os.mkfifo(tmp_path / name)
        with pytest.raises(OSError, match=rf"{name}' is not a regular file"):
            BoostBPRegressor().fit(tmp_path / name, "y" if name != "x.npy" else X[:, 0])
        os.remove(tmp_path / name)
        os.symlink("/dev/zero", tmp_path / name)
        with pytest.raises(OSError, match=rf"{name}' is not a regular file"):
            BoostBPRegressor().fit(tmp_path / name, "y" if name != "x.npy" else X[:, 0])
    with pytest.raises(OSError, match=r"x.npy' is not a regular file"):
        model.predict(tmp_path / "x.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(IsADirectoryError):
        model.predict(tmp_path / "folder.npy")


def test_an_array_of_no_rows_is_refused_as_one_in_memory(tmp_path):
    model = BoostBPRegressor(quality=1, random_state=0).fit(X, X[:, 0])
    np.save(tmp_path / "x.npy", X[:0])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.predict(tmp_path / "x.npy")
    with pytest.raises(ValueError, match="X has no rows"):
        model.predict(iter([]))


@pytest.mark.parametrize("form", ["parquet", "csv", "csv.gz", "npy"])
def test_cut_and_flipped_files_are_read_or_refused_by_name(tmp_path, form):
    """Each of 60 damages ends in ValueError or OSError that names the file, or is not noticed in what is read."""
    path = tmp_path / f"rows.{form}"
    table = pa.table({name: X[:, j] for j, name in enumerate("abcd")})
    model = BoostBPRegressor(quality=1, random_state=0)
    model.fit(X if form == "npy" else table.select(list("abc")), X[:, 3])
    if form == "parquet":
        parquet.write_table(table, path)
    elif form == "npy":
        np.save(path, X)
    else:
        csv.write_csv(table, pa.output_stream(str(path)))
    whole = path.read_bytes()
    model.predict(path)
    told = []
    for seed in range(60):
        rng, data = random.Random(seed), bytearray(whole)
        if seed % 2:
            data = data[: rng.randrange(len(data))]
        else:
            for _ in range(rng.choice((1, 3))):
                data[rng.randrange(len(data) if seed % 4 else 200)] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            model.predict(path)
        except (ValueError, OSError) as error:
            told.append(str(error))
    assert [text for text in told if "rows." not in text and "infinity" not in text] == []
    assert len(told) >= (10 if form == "csv" else 20)
