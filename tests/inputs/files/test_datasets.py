"""Datasets and scanners of pyarrow's as rows: any files, formats and selections that they read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from boostbp import BoostBPAutoencoder, BoostBPRegressor

COLUMNS = ["x", "kind", "year", "y"]


@pytest.fixture
def rows(tmp_path):
    """A dataset by years, and its rows as a frame."""
    rng = np.random.default_rng(0)
    parts = []
    for year in (2019, 2020):
        frame = pd.DataFrame({"x": rng.normal(size=200), "kind": rng.choice(["a", "b"], 200), "when": pd.Timestamp(0)})
        frame["y"] = frame["x"] + year - 2000 + (frame["kind"] == "b")
        (tmp_path / f"year={year}").mkdir()
        parquet.write_table(pa.Table.from_pandas(frame), tmp_path / f"year={year}" / "part.parquet")
        parts.append(frame.assign(year=float(year)))
    return dataset.dataset(tmp_path, partitioning="hive"), pd.concat(parts, ignore_index=True)


def test_a_selection_is_fitted_and_predicted_block_by_block(rows):
    theirs, frame = rows
    X = frame[["x", "kind", "year"]]
    expected = BoostBPRegressor(quality=1, random_state=0).fit(X, frame["y"])
    model = BoostBPRegressor(quality=1, random_state=0).fit(theirs.scanner(columns=COLUMNS), "y")
    assert model.schema_.names == ("x", "kind", "year")
    for source in (theirs, theirs.scanner(), theirs.scanner(columns=["year", "kind", "x"])):
        np.testing.assert_array_equal(model.predict(source), expected.predict(X))
    later = theirs.scanner(filter=dataset.field("year") == 2020)
    np.testing.assert_array_equal(model.predict(later), expected.predict(X[200:]))


def test_a_dataset_is_a_table_like_others(rows):
    theirs, frame = rows
    with pytest.raises(ValueError, match=r"Column 'when' of FileSystemDataset holds timestamp\[\w+\]: drop it"):
        BoostBPRegressor().fit(theirs, "y")
    with pytest.raises(ValueError, match=r"y=None with a table in files: name the target, one of 'x'"):
        BoostBPRegressor().fit(theirs)
    with pytest.raises(ValueError, match=r"Scanner has no column 'z': its columns are 'x', 'kind', 'year', 'y'"):
        BoostBPRegressor().fit(theirs.scanner(columns=COLUMNS), "z")
    memory = dataset.dataset(pa.Table.from_pandas(frame.drop(columns="when"), preserve_index=False))
    expected = BoostBPRegressor(quality=1, random_state=0).fit(frame[["x", "kind", "year"]], frame["y"])
    found = BoostBPRegressor(quality=1, random_state=0).fit(memory, "y")
    np.testing.assert_array_equal(found.predict(memory), expected.predict(frame[["x", "kind", "year"]]))


def test_who_does_not_read_blocks_says_so(rows):
    theirs, _ = rows
    with pytest.raises(TypeError, match="X is a FileSystemDataset of pyarrow, which only fit, predict"):
        BoostBPAutoencoder().fit(theirs)
