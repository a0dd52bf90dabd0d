"""Folders whose names hold columns, as in ``year=2020/part.parquet``, and files of a folder that disagree."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import run
from pyarrow import csv, dataset, parquet

from boostbp import BoostBPClassifier, BoostBPRegressor, load
from boostbp.inputs.files.reading import chunks, read_table
from boostbp.inputs.files.tables import ColumnRoles

MISSING = "__HIVE_DEFAULT_PARTITION__"


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=n)})


def write(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    (csv.write_csv if path.suffix == ".csv" else parquet.write_table)(table, path)


@pytest.fixture(params=["parquet", "csv"])
def years(request, tmp_path):
    """A folder by year and shop, which explain the target, and the same rows as a frame."""
    parts = []
    for year in (2019, 2020, 2021):
        for shop in ("a b", "ü", None):
            part = rows(seed=len(parts)).assign(y=year - 2000.0 + 5 * (shop == "ü"))
            write(part, tmp_path / "rows" / f"year={year}" / f"shop={shop or MISSING}" / f"part.{request.param}")
            parts.append(part.assign(year=float(year), shop=shop))
    frame = pd.concat([parts[k] for k in (2, 0, 1, 5, 3, 4, 8, 6, 7)], ignore_index=True)
    return tmp_path / "rows", frame.assign(shop=frame["shop"].astype("category"))


def test_the_names_of_folders_are_columns(years):
    folder, frame = years
    model = BoostBPRegressor(quality=1, random_state=0).fit(folder, "y")
    assert model.schema_.names == ("x", "year", "shop")
    X = frame[["x", "year", "shop"]]
    expected = BoostBPRegressor(quality=1, random_state=0).fit(X, frame["y"])
    np.testing.assert_array_equal(model.predict(folder), expected.predict(X))
    assert model.score(X, frame["y"]) > 0.99  # that of "x" alone is 0


def test_they_are_those_that_arrow_reads(years):
    folder, frame = years
    form = next(folder.rglob("part.*")).suffix[1:]
    theirs = dataset.dataset(folder, format=form, partitioning="hive").to_table().to_pandas()
    ours, _, _ = read_table(folder, "y")
    assert ours["year"].tolist() == theirs["year"].tolist() == frame["year"].tolist()
    for table in (ours, theirs, frame):
        assert (
            table["shop"].astype(object).where(table["shop"].notna(), None).tolist()
            == frame["shop"].astype(object).where(frame["shop"].notna(), None).tolist()
        )


def test_they_are_targets_weights_groups_and_offsets(years):
    folder, frame = years
    found = BoostBPRegressor(quality=1, random_state=0).fit(folder, "year", groups="y", sample_weight="year")
    expected = BoostBPRegressor(quality=1, random_state=0)
    expected.fit(frame[["x", "shop"]], frame["year"], frame["year"], groups=frame["y"])
    assert found.schema_.names == ("x", "shop")
    np.testing.assert_array_equal(found.predict(folder), expected.predict(frame[["x", "shop"]]))
    classes = BoostBPClassifier(quality=1, random_state=0).fit(folder, "year")
    assert classes.classes_.tolist() == [2019, 2020, 2021]
    assert classes.schema_.names == ("x", "y", "shop")


def test_the_command_line_reads_them(years, tmp_path):
    folder, frame = years
    told = run("fit", folder, "-t", "year", "-m", tmp_path / "model", "-s", "quality=1", "--drop", "y")
    assert told.exit_code == 0, told.stderr
    assert "classification of 'year'" in told.stderr
    assert load(tmp_path / "model").schema_.names == ("x", "shop")
    out = tmp_path / "out.csv"
    assert run("predict", folder, "-m", tmp_path / "model", "-o", out, "--keep", "year").exit_code == 0
    assert pd.read_csv(out)["year"].tolist() == frame["year"].tolist()
    one = tmp_path / "one.csv"
    assert run("predict", folder / "year=2020", "-m", tmp_path / "model", "-o", one).exit_code == 0
    assert len(pd.read_csv(one)) == 180


def test_zeros_before_a_number_and_escaped_names_are_read(tmp_path):
    write(rows().assign(y=1.0), tmp_path / "t" / "month=01" / "kind=a%2Fb" / "p.parquet")
    write(rows().assign(y=2.0), tmp_path / "t" / "month=11" / "kind=%C3%BC" / "p.parquet")
    X, _, _ = read_table(tmp_path / "t", "y")
    assert X["month"].unique().tolist() == [1.0, 11.0]
    assert X["kind"].unique().tolist() == ["a/b", "ü"]
    X, _, _ = read_table(tmp_path / "t", "y", ColumnRoles(categorical=["month"]))
    assert X["month"].unique().tolist() == ["01", "11"]


def test_a_column_that_is_in_the_files_too_is_read_from_there_if_they_agree(tmp_path):
    for year in (2019, 2020):
        part = rows().assign(year=year, day=dt.date(year, 1, 2), y=float(year))
        write(part, tmp_path / "t" / f"year={year}" / f"day={year}-01-02" / "p.parquet")
    X, _, _ = read_table(tmp_path / "t", "y", ColumnRoles(drop=["day"]))
    assert X["year"].unique().tolist() == [2019.0, 2020.0]
    assert read_table(tmp_path / "t", "y", ColumnRoles(categorical=["day"]))[0]["day"].unique().tolist() == [
        "2019-01-02",
        "2020-01-02",
    ]
    (tmp_path / "t" / "year=2020").rename(tmp_path / "t" / "year=2021")
    message = r"Column 'year' of t/year=2021/day=2020-01-02/p.parquet holds other values than '2021', which its folder"
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t", "y", ColumnRoles(drop=["day"]))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["year=2020", "."], r"t/year=2020/1.parquet and t/0.parquet have other columns, 'year': make them"),
        (
            ["year=2020", "month=1"],
            r"t/year=2020/1.parquet and t/month=1/0.parquet have other columns, 'month', 'year'",
        ),
        (["year=", "year=2020"], r"The folder 'year=' of 'year=/0.parquet' names no column, or no value: rename it"),
        (["=2020", "year=2020"], r"The folder '=2020' of '=2020/0.parquet' names no column, or no value: rename it"),
        (
            ["year=1/year=2", "year=1"],
            r"The folder 'year=2' of 'year=1/year=2/1.parquet' names 'year' twice: rename it",
        ),
    ],
)
def test_folders_that_disagree_or_name_nothing_are_refused(tmp_path, names, message):
    for number, name in enumerate(sorted(names)):
        write(rows().assign(y=1.0), tmp_path / "t" / name / f"{number}.parquet")
    with pytest.raises(ValueError, match=message):
        BoostBPRegressor().fit(tmp_path / "t", "y")


def test_days_are_refused_by_name_unless_they_are_categories(tmp_path):
    for day in range(1, 4):
        write(rows(seed=day).assign(y=float(day)), tmp_path / "t" / f"day=2020-01-0{day}" / "p.parquet")
    with pytest.raises(ValueError, match=r"Column 'day' of t holds date32\[day\].*drop it, or make it categorical"):
        BoostBPRegressor().fit(tmp_path / "t", "y")
    model = BoostBPRegressor(quality=1, categorical_features=["day"]).fit(tmp_path / "t", "y")
    assert model.schema_.categories == {1: ("2020-01-01", "2020-01-02", "2020-01-03")}
    told = run("fit", tmp_path / "t", "-t", "y", "-m", tmp_path / "model", "-s", "quality=1", "--drop", "day")
    assert told.exit_code == 0, told.stderr


X = [0.5, 1.5, 2.5] * 20
TYPES = {
    "number": pa.array(X),
    "null": pa.nulls(60),
    "whole": pa.array(range(60)),
    "text": pa.array(["a", "b", "c"] * 20),
    "dictionary": pa.array(["a", "b", "c"] * 20).dictionary_encode(),
    "date": pa.array([dt.date(2020, 1, 1)] * 60),
    "list": pa.array([[1]] * 60),
}


def folder_of(where, *kinds):
    for number, kind in enumerate(kinds):
        table = pa.table({"a": TYPES[kind], "x": pa.array(X), "y": pa.array(range(60))})
        write(table, where / "t" / f"{number}.parquet")
    return where / "t"


@pytest.mark.parametrize("first", ["number", "whole", "text", "dictionary"])
def test_a_part_that_is_null_is_of_the_type_of_the_others(tmp_path, first):
    expected, _, _ = read_table(folder_of(tmp_path, first), "y")
    for kinds in (("null", first), (first, "null")):
        found, _, _ = read_table(folder_of(tmp_path / kinds[0], *kinds), "y")
        seen = found.iloc[60:] if kinds[0] == "null" else found.iloc[:60]
        assert seen["a"].astype(str).tolist() == expected["a"].astype(str).tolist()
        assert found["a"].isna().sum() == 60
        model = BoostBPRegressor(quality=1, random_state=0).fit(tmp_path / kinds[0] / "t", "y")
        assert np.isfinite(model.predict(tmp_path / kinds[0] / "t")).all()


@pytest.mark.parametrize(
    "kinds", [("number", "date"), ("null", "number", "date"), ("text", "number"), ("date", "text")]
)
def test_files_whose_types_disagree_are_named_with_the_column(tmp_path, kinds):
    folder = folder_of(tmp_path, *kinds)
    message = (
        rf"Column 'a' of t holds \S+ in t/{len(kinds) - 2}.parquet, and \S+ in t/{len(kinds) - 1}.parquet: write it"
    )
    for reading in (
        lambda: BoostBPRegressor(quality=1).fit(folder, "y"),
        lambda: BoostBPRegressor(quality=1).fit(folder, "a"),
        lambda: BoostBPRegressor(quality=1).fit(folder, "y", sample_weight="a"),
        lambda: read_table(folder, "y"),
    ):
        with pytest.raises(ValueError, match=message):
            reading()
    assert read_table(folder, "y", ColumnRoles(drop=["a"]))[0].columns.tolist() == ["x"]


@pytest.mark.parametrize("kind", ["date", "list", "text"])
def test_a_later_file_of_another_type_is_named_in_prediction(tmp_path, kind):
    model = BoostBPRegressor(quality=1).fit(folder_of(tmp_path, "number"), "y")
    folder = folder_of(tmp_path / "later", "number", kind)
    with pytest.raises(ValueError, match=r"Column 'a' of t/1.parquet holds .*, and cannot be read as double"):
        model.predict(folder)


def test_a_file_that_lacks_a_column_is_named(tmp_path):
    folder = folder_of(tmp_path, "number", "number")
    model = BoostBPRegressor(quality=1).fit(folder, "y")
    write(pa.table({"x": X, "y": X, "z": X}), folder / "2.parquet")
    with pytest.raises(ValueError, match=r"t/2.parquet and t/0.parquet have other columns, 'a', 'z'"):
        model.fit(folder, "y")
    with pytest.raises(ValueError, match=r"t/2.parquet has no column 'a': its columns are 'x', 'y', 'z'"):
        model.predict(folder)


def test_whole_numbers_of_one_file_are_not_cut_from_fractions_of_another(tmp_path):
    write(pa.table({"id": [1, 2], "x": [0.5, 1.5]}), tmp_path / "t" / "0.parquet")
    write(pa.table({"id": [1.5, 2.5], "x": [0.5, 1.5]}), tmp_path / "t" / "1.parquet")
    parts = [kept["id"].to_pylist() for _, kept in chunks(tmp_path / "t", ColumnRoles(("x",), verbatim=["id"]))]
    assert parts == [[1.0, 2.0], [1.5, 2.5]]


def test_csv_files_whose_first_blocks_disagree_are_named(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "0.csv").write_text("a,y\n1,1\n2,2\n")
    (tmp_path / "t" / "1.csv").write_text("a,y\nx,1\nz,2\n")
    with pytest.raises(ValueError, match=r"Column 'a' of t holds int64 in t/0.csv, and string in t/1.csv: write it"):
        BoostBPRegressor().fit(tmp_path / "t", "y")
    X, _, _ = read_table(tmp_path / "t", "y", ColumnRoles(categorical=["a"]))
    assert X["a"].tolist() == ["1", "2", "x", "z"]
    (tmp_path / "t" / "0.csv").write_text("a,y\n,1\n,2\n")
    assert read_table(tmp_path / "t", "y")[0]["a"].astype(object).tolist()[2:] == ["x", "z"]


def test_a_cell_that_does_not_fit_is_named_by_file_column_and_row(tmp_path, small_blocks):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "0.csv").write_text("b,a,y\n" + "1,1.5,1\n" * 3000 + "1,late text,1\n")
    with pytest.raises(ValueError, match=r"t/0.csv: In column 'a': Row #3002: CSV conversion error.*'late text'"):
        BoostBPRegressor().fit(tmp_path / "t", "y")
