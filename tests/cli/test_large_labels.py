"""Classes that are large whole numbers, from a file to a file: each stays what it is, or they are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from boostbp.inputs.files.reading import read_table
from tests.support.command_line import run

QUICK = ("--task", "classification", "--set", "quality=1")
HELD = {
    "beyond 2**53": [2**53, 2**53 + 1, 2**53 + 2],
    "ends of int64": [-(2**63), 0, 2**63 - 1],
    "uint64": [2**63, 2**63 + 1, 2**64 - 1],
}


def table(labels, rows=60):
    """Text of a CSV file, whose first column tells the class."""
    place = np.arange(rows) % len(labels)
    noise = np.random.default_rng(0).random(rows)
    return "a,b,y\n" + "".join(f"{p},{z},{labels[p]}\n" for p, z in zip(place, noise, strict=True))


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("labels", HELD.values(), ids=HELD)
def test_predicted_classes_are_those_of_the_file(labels, form, tmp_path):
    data, model, out = tmp_path / f"rows.{form}", tmp_path / "model", tmp_path / f"out.{form}"
    if form == "csv":
        data.write_text(table(labels))
    else:
        place = np.arange(60) % 3
        frame = pd.DataFrame({"a": place, "b": np.random.default_rng(0).random(60)})
        frame.assign(y=np.array(labels, object)[place].astype("u8" if max(labels) >= 2**63 else "i8")).to_parquet(data)
    done = run("fit", data, "-t", "y", "-m", model, *QUICK)
    assert done.exit_code == 0, done.output
    done = run("predict", data, "-m", model, "-o", out)
    assert done.exit_code == 0, done.output
    made = pd.read_csv(out, dtype=str) if form == "csv" else pd.read_parquet(out)
    assert [int(value) for value in made["prediction"]] == [labels[place] for place in np.arange(60) % 3]


def test_classes_beyond_64_bits_that_would_become_one_are_refused(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text(table([2**64, 2**64 + 1, 2**65]))
    done = run("fit", data, "-t", "y", "-m", tmp_path / "model", *QUICK)
    assert done.exit_code == 1
    assert (
        "Target 'y' holds 18446744073709551616 and 18446744073709551617, which do not fit into 64 bits" in done.stderr
    )
    assert not (tmp_path / "model").exists()


def test_large_amounts_stay_what_they_are(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text(table([10**20, 3 * 10**20, 10**30]))
    _, y, _ = read_table(data, "y")
    assert set(y.tolist()) == {1e20, 3e20, 1e30}
