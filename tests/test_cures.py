"""Cures in messages: their code, pasted, works on the input that caused them; no message with code is left out."""

from __future__ import annotations

import ast
import datetime as dt
import io
import re
import tomllib
import warnings
from contextlib import suppress
from pathlib import Path

import command_line
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from cures import options_in, pasted
from helpers import needs_torch
from sklearn.exceptions import NotFittedError

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, plots
from boostbp.inputs.files.reading import chunks, read_table
from boostbp.runtime import messages

ROOT = Path(__file__).parents[1]
ROWS = 60
rng = np.random.default_rng(0)
X = pd.DataFrame({"x": rng.normal(size=ROWS), "z": rng.normal(size=ROWS)})
y = X["x"].to_numpy() * 2
AMOUNTS = {
    "plain": [f"{value:.2f}" for value in y],
    "$": [f"${value:,}" for value in range(1_110_000, 1_110_000 + ROWS)],
    "thousands": [f"{value:,}" for value in range(2_340, 2_340 + ROWS)],
    "decimal comma": [f"{value:.2f}".replace(".", ",") for value in y],
    "both, as in Germany": [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in 5000 + y],
    "percent": [f"{value:.1f} %" for value in y],
    "blanks": [f" {value:.2f} " for value in y],
    "groups of blanks": [f"{value:,}".replace(",", "\u00a0") for value in range(2_340, 2_340 + ROWS)],
    "accounts": [f"({value})" for value in range(ROWS)],
    "minus": [f"\u2212{value}.5" for value in range(ROWS)],
}
days = [dt.date(2024, 1, 3) + dt.timedelta(days=11 * row) for row in range(ROWS)]
times = [dt.time(row % 24, row, row % 7) for row in range(ROWS)]
DATES = {
    "ISO": [day.isoformat() for day in days],
    "day first": [day.strftime("%d/%m/%Y") for day in days],
    "month first": [day.strftime("%m/%d/%Y") for day in days],
    "words": [day.strftime("%d %b %Y") for day in days],
    "with times": [f"{day} {row % 24:02}:30" for row, day in enumerate(days)],
    "zones": [f"{day}T10:00:00Z" for day in days],
    "times": [f"{row % 24}:{row:02}" for row in range(ROWS)],
}
SPELT = {
    "plain": y.round(2),
    "$": np.arange(1_110_000.0, 1_110_000 + ROWS),
    "thousands": np.arange(2_340.0, 2_340 + ROWS),
    "decimal comma": y.round(2),
    "both, as in Germany": (5000 + y).round(2),
    "percent": y.round(1),
    "blanks": y.round(2),
    "groups of blanks": np.arange(2_340.0, 2_340 + ROWS),
    "accounts": -np.arange(float(ROWS)),
    "minus": -0.5 - np.arange(ROWS),
    **dict.fromkeys(("ISO", "day first", "month first", "words"), np.array(days, "M8[D]").astype(float)),
    "with times": np.array(days, "M8[D]").astype(float) + (np.arange(ROWS) % 24 + 0.5) / 24,
    "zones": np.array(days, "M8[D]").astype(float) + 10 / 24,
    "times": (np.arange(ROWS) % 24 + np.arange(ROWS) / 60) / 24,
}


def message_of(action, *args, **named):
    """Return what an action raises, or warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            action(*args, **named)
        except (TypeError, ValueError) as error:
            return str(error)
    return str(caught[0].message)


def run(*arguments):
    """Run a command; return the exit code and what it printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # the command prints them
        result = command_line.run(*arguments)
    return result.exit_code, " ".join(result.output.split())


def fit(X, y, kind=BoostBPRegressor, **params):
    return kind(**{"quality": 1, "n_estimators": 2, "random_state": 0} | params).fit(X, y)


@pytest.mark.parametrize(
    ("spelling", "others"),
    [("thousands", []), ("decimal comma", []), ("both, as in Germany", []), ("thousands", ["?"])],
)
def test_the_options_of_a_reader_work(here, spelling, others):
    column = [*AMOUNTS[spelling], *others]
    pd.DataFrame({"x": column, "z": np.arange(len(column)) / 7}).to_csv("rows.csv", index=False)
    message = message_of(read_table, Path("rows.csv"), "z")
    options = re.search(r"or read the file with (.*?=(?:\[.*?\]|'.'))(?=[;.]| \()", message)[1]
    read = eval(f"pandas.read_csv('rows.csv', {options})", {"pandas": pd})["x"]
    np.testing.assert_allclose(read, [*SPELT[spelling], *[np.nan] * len(others)])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_options_of_the_command_line_work(here, form):
    table = pd.DataFrame({"x": [*AMOUNTS["plain"], "?"], "y": np.arange(ROWS + 1) / 7})
    getattr(table, f"to_{form}")(f"rows.{form}", index=False)
    command = ["fit", f"rows.{form}", "-t", "y", "-m", "m", "-s", "quality=1", "-s", "n_estimators=2"]
    code, said = run(*command)
    assert code == 1, said
    assert run(*command, *options_in(said))[0] == 0
    assert run(*command, "--categorical", "x")[0] == 0


@pytest.mark.parametrize("spelling", [*AMOUNTS, *DATES])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_feature_in_a_file_is_read_with_the_options_of_the_message(here, form, spelling):
    table = pd.DataFrame({"x": (AMOUNTS | DATES)[spelling], "z": np.arange(ROWS) // 2, "y": np.arange(ROWS) % 30})
    getattr(table, f"to_{form}")(f"rows.{form}", index=False)
    command = ["fit", f"rows.{form}", "-t", "y", "-m", "m", "-s", "quality=1", "-s", "n_estimators=2"]
    code, said = run(*command)
    if code == 0:
        assert (form, spelling) in {("csv", "plain"), ("csv", "blanks")}  # which are numbers there
        return
    code, said = run(*command, *options_in(said))
    assert code == 0, said
    [(X, _)] = chunks(Path(f"rows.{form}"), boostbp.load("m").schema_.roles())
    numbers = X["x"] if spelling in AMOUNTS else X["x_seconds"] / 86400
    np.testing.assert_allclose(numbers, SPELT[spelling])


@pytest.mark.parametrize("spelling", ["decimal comma", "both, as in Germany"])
def test_a_decimal_comma_among_decimal_points_is_no_option(here, spelling):
    X.assign(x=AMOUNTS[spelling], y=y).to_csv("rows.csv", index=False)
    command = ["fit", "rows.csv", "-t", "y", "-m", "m", "-s", "quality=1", "-s", "n_estimators=2"]
    code, said = run(*command)
    assert (code, options_in(said)) == (1, ["--drop", "x"]), said
    assert "which no option reads with the other columns" in said
    assert run(*command, "--drop", "x")[0] == 0


@pytest.mark.parametrize("spelling", [*AMOUNTS, *DATES])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_target_in_a_file_is_refused_and_has_a_way_through(here, form, spelling):
    """A price with a currency sign became a class for each row."""
    table = X.assign(price=(AMOUNTS | DATES)[spelling])
    getattr(table, f"to_{form}")(f"houses.{form}", index=False)
    command = ["fit", f"houses.{form}", "-t", "price", "-m", "m", "-s", "quality=1", "-s", "n_estimators=2"]
    code, said = run(*command)
    if code == 0:
        assert (form, spelling) in {("csv", "plain"), ("csv", "blanks")}  # which are numbers there
        return
    assert code == 1, said
    if spelling in AMOUNTS:
        assert "--task regression" in said
        code, said = run(*command, "--task", "regression")
        assert (code, "which is read as" in said) == (0, spelling not in ("plain", "blanks")), said
        np.testing.assert_allclose(read_numbers(f"houses.{form}"), SPELT[spelling])
        return
    table = table.assign(price=pasted(said, column=table["price"]))
    getattr(table, f"to_{form}")(f"houses.{form}", index=False)
    assert run(*command)[0] == 0


def read_numbers(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_table(Path(name), "price", text=False)[1].astype(float)


def test_a_folder_reads_a_spelt_target_as_a_file_does(here):
    Path("houses").mkdir()
    X.assign(price=AMOUNTS["$"]).to_csv("houses/0.csv", index=False)
    command = ["fit", "houses", "-t", "price", "-m", "m", "-s", "quality=1", "-s", "n_estimators=2"]
    code, said = run(*command)
    assert (code, "--task regression" in said) == (1, True), said
    code, said = run(*command, "--task", "regression")
    assert (code, "regression of 'price'" in said, "is read as 1110000" in said) == (0, True, True), said


def test_the_automatic_task_never_takes_a_class_for_each_row(here):
    names = [f"customer {row // 2}" for row in range(ROWS)]
    X.assign(name=names).to_csv("rows.csv", index=False)
    command = ["fit", "rows.csv", "-t", "name", "-m", "m", "-s", "quality=1", "-s", "n_estimators=2"]
    code, said = run(*command)
    assert (code, "30 distinct texts in 60 rows" in said, "--task classification" in said) == (1, True, True), said
    assert run(*command, "--task", "classification")[0] == 0


@pytest.mark.parametrize(
    "labels",
    [
        ["0", "1"],
        ["1", "2", "3"],
        ["0.5", "1.0", "2.5"],
        ["$10", "$20", "$50"],
        ["10 %", "20 %", "30 %"],
        ["2024-01-03", "2024-02-03", "2024-03-03"],
        [f"{hour}:00" for hour in range(12)],
        [f"{code:05}" for code in range(12)],
    ],
)
def test_labels_that_spell_numbers_are_labels(labels):
    """As in scikit-learn, text is a label, whatever it spells, where labels are few or come often."""
    target = [*labels] * (ROWS // len(labels))
    assert fit(X[: len(target)], target, BoostBPClassifier, n_estimators=1).classes_.tolist() == sorted(labels)


@pytest.mark.parametrize(
    ("values", "fewer"),
    [
        (["True", "true", "T", "False"], [1, 1, 1, 0]),
        ([True, "true", False, "false"], [1, 1, 0, 0]),
        (["yes", "no", "y", "N"], [1, 0, 1, 0]),
        (["Red", "red ", "RED", "blue"], ["red", "red", "red", "blue"]),
    ],
)
def test_one_value_in_several_spellings_is_told_of_and_made_one(here, values, fewer):
    column = pd.Series(values * 15, dtype=object)
    message = message_of(fit, X.assign(x=column), y)
    assert "which are different categories" in message
    assert pasted(message, column=column).tolist() == fewer * 15
    fit(X.assign(x=pasted(message, column=column)), y)
    fit(X.assign(x=column.astype(str).astype("category")), y)  # declared
    assert "which are different categories" in message_of(fit, X, column.astype(str), BoostBPClassifier)
    if len({*map(type, values)}) == 1:
        X.assign(x=column, y=y).to_csv("rows.csv", index=False)
        assert "which are different categories" in message_of(read_table, Path("rows.csv"), "z")
        command = ["fit", "rows.csv", "-t", "y", "-m", "m", "-s", "quality=1", "-s", "n_estimators=2"]
        said = run(*command)[1]
        assert "which are different categories" in said
        if "--numeric" in said:
            code, said = run(*command, "--numeric", "x")
            assert (code, "different categories" in said) == (0, False), said


@pytest.mark.parametrize(
    "values", [["a", "b"], ["Y", "N"], ["n", "y", "t", "f"], ["True", "False"], ["yes", "no", "?"]]
)
def test_other_categories_are_not_warned_of(values):
    fit(X.assign(x=values[0:2] * 30 if len(values) == 2 else (values * 60)[:ROWS]), y)


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(ROWS),
        np.arange(1000.0, 1000.0 + ROWS),
        np.random.default_rng(0).permutation(ROWS),
        np.sort(np.random.default_rng(0).choice(80, ROWS, replace=False)),
        (np.arange(ROWS) - 30).astype("int8"),
    ],
    ids=["counted", "floats", "shuffled", "a part", "int8"],
)
@pytest.mark.parametrize("name", ["tx_id", "tx (no", "n[id", "row"])
def test_row_numbers_are_told_of_and_may_be_kept(numbers, name):
    table = X.assign(**{name: numbers})
    message = message_of(fit, table, y)
    assert f"Column {name!r} holds distinct whole numbers of a range, as row numbers do" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pasted(message, r"warnings\.filterwarnings", warnings=warnings)
        fit(table, y)
    fit(table.drop(columns=name), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(table[[name]], y)  # a grid
        fit(table.to_numpy(), y)


@pytest.mark.parametrize(
    "numbers",
    [
        np.repeat(np.arange(ROWS // 2), 2),
        1_600_000_000 + np.cumsum(np.random.default_rng(0).integers(1, 90, ROWS)),
        19_700 + np.arange(ROWS),
        np.arange(ROWS) / 2,
        np.arange(ROWS) * 5,
        np.where(np.arange(ROWS) == 7, np.nan, np.arange(ROWS)),
        np.random.default_rng(0).integers(0, 90, ROWS),
    ],
    ids=["years", "time stamps", "days", "halves", "fives", "missing", "counts"],
)
@pytest.mark.filterwarnings("error")
def test_other_whole_numbers_are_no_row_numbers(numbers):
    fit(X.assign(x=numbers), y)


def test_tables_of_other_libraries_are_named():
    lightgbm, table = pytest.importorskip("lightgbm"), X.to_numpy()
    tables = [lightgbm.Dataset(table, y), type("Pool", (), {})()]
    with suppress(ImportError):
        import xgboost

        tables += [xgboost.DMatrix(table, y), xgboost.QuantileDMatrix(table, y)]
    model = fit(X, y)
    for other in tables:
        for action in (lambda other=other: fit(other, y), lambda other=other: model.predict(other)):
            with pytest.raises(TypeError, match=f"X is a {type(other).__name__} of .*: pass the array or data frame"):
                action()


@pytest.mark.parametrize("name", messages.ATTRIBUTES)
def test_attributes_of_other_libraries_are_answered_and_the_answer_exists(name):
    with pytest.raises(AttributeError, match=rf"'BoostBPRegressor' object has no attribute '{name}': use ") as refusal:
        getattr(fit(X, y), name)
    for known in re.findall(
        r"(boostbp\.\w+|to_\w+|\w+_(?!\w)|\w+\(\)|\bloss$)", str(refusal.value).partition(": use ")[2]
    ):
        known = known.removesuffix("()").removeprefix("boostbp.")
        assert hasattr(boostbp, known) or hasattr(fit(X, y), known), known


def test_other_missing_attributes_keep_their_errors():
    model = BoostBPRegressor()
    with pytest.raises(AttributeError, match=r"^'BoostBPRegressor' object has no attribute 'no_such'$"):
        _ = model.no_such
    with pytest.raises(NotFittedError):
        _ = model.network_
    assert not hasattr(model, "classes_")
    with pytest.raises(AttributeError, match="no hidden layer, so there are no units"):
        _ = fit(X, y, hidden_layer_sizes=())._n_features_out


PASTED = {}  # start of the code -> test, which gets the code's start


def cure(start):
    def added(test):
        PASTED[start] = test
        return test

    return added


@cure("numpy.asarray(y, float)")
def bools(start):
    for target in ([True, False] * 30, pd.Series([True, False] * 30)):
        fit(X, pasted(message_of(fit, X, target), start, y=target))


@cure("numpy.ravel(y)")
def column_vector(start):
    for target in (y[:, None], pd.DataFrame({"y": y}), pl.DataFrame({"y": y})):
        fit(X, pasted(message_of(fit, X, target), start, y=target))


@cure("numpy.argmax(y, axis=1)")
def one_label_each(start):
    indicators = np.eye(3, dtype=int)[np.arange(ROWS) % 3]
    for target in (indicators, pd.DataFrame(indicators, columns=list("abc"))):
        classes = pasted(message_of(fit, X, target, BoostBPClassifier), start, y=target)
        assert fit(X, classes, BoostBPClassifier).n_classes_ == 3


@cure("[f'class {label}' for label in y]")
def classes_that_are_amounts(start):
    target = np.repeat(np.arange(0, 6000, 100), 3)
    rows = np.random.default_rng(0).normal(size=(180, 1))
    labels = pasted(message_of(fit, rows, target, BoostBPClassifier, n_estimators=1), start, y=target)
    assert fit(rows, labels, BoostBPClassifier, n_estimators=1).n_classes_ == 60


@cure("sklearn.multioutput.MultiOutputClassifier(BoostBPClassifier())")
def several_targets(start):
    import sklearn.multioutput

    target = np.array([["a", "b"], ["b", "c"]] * 30)
    model = pasted(message_of(fit, X, target, BoostBPClassifier), start, sklearn=sklearn, BoostBPClassifier=small)
    assert model.fit(X, target).predict(X).shape == (ROWS, 2)


def small():
    return BoostBPClassifier(quality=1, n_estimators=2)


@cure("X.toarray()")
def sparse(start):
    rows = sp.csr_array(np.abs(X.to_numpy()))
    message = message_of(BoostBPAutoencoder(epochs=1).fit, rows)
    assert fit(pasted(message, start, X=rows), y).n_features_in_ == 2


@cure("narwhals.from_native(X)")
def lazy(start):
    import narwhals

    rows = pl.from_pandas(X).lazy()
    fit(pasted(message_of(fit, rows, y), start, X=rows, narwhals=narwhals), y)


@cure("column.astype(str)")
def categories_that_are_objects(start):
    column = pd.Series([dt.date(2020, 1, 1), dt.date(2020, 2, 1)] * 30, dtype="category")
    message = message_of(fit, X.assign(x=column), y)
    fit(X.assign(x=pasted(message, start, column=column).astype("category")), y)


@cure("pandas.to_timedelta(")
def durations_and_times(start):
    for column in (pd.Series([pd.Timedelta(hours=row) for row in range(ROWS)]), pl.Series(times)):
        table = pl.from_pandas(X).with_columns(x=column) if isinstance(column, pl.Series) else X.assign(x=column)
        seconds = pasted(message_of(fit, table, y), start, column=column)
        assert seconds.iloc[-1] == (59 * 3600 if isinstance(column, pd.Series) else 11 * 3600 + 59 * 60 + 3)
        fit(X.assign(x=seconds), y)


@cure("pandas.to_datetime(")
def moments(start):
    for column in (pd.Series(pd.DatetimeIndex(days)), pl.Series(days)):
        table = pl.from_pandas(X).with_columns(x=column) if isinstance(column, pl.Series) else X.assign(x=column)
        np.testing.assert_allclose(pasted(message_of(fit, table, y), column=column), SPELT["ISO"])
    target = np.array(days, "M8[D]")
    for kind in (BoostBPRegressor, BoostBPClassifier):
        np.testing.assert_allclose(pasted(message_of(fit, X, target, kind), y=target), SPELT["ISO"])


@cure("numpy.array(y, 'm8[us]')")
def durations(start):
    target = np.arange(ROWS).astype("m8[D]")
    np.testing.assert_array_equal(pasted(message_of(fit, X, target), start, y=target, numpy=np), np.arange(ROWS))


@cure("io.BytesIO(data)")
def bytes_of_a_file(start):
    model, file = fit(X, y), io.BytesIO()
    boostbp.save(model, file)
    data = file.getvalue()
    assert boostbp.load(pasted(message_of(boostbp.load, data), start, io=io, data=data)).n_features_in_ == 2


@cure("np.column_stack(")
def calibration_of_labels(start):
    pytest.importorskip("matplotlib")
    target = rng.integers(0, 2, (ROWS, 2))
    p = fit(X, target, BoostBPClassifier).predict_proba(X)
    two = pasted(message_of(plots.calibration, target, p), start, np=np, p=p, k=1)
    plots.calibration(target[:, 1], two)


@needs_torch
@cure("torch.as_tensor(x)")
@cure("x.float()")
@cure("x.to_dense()")
@cure("x.flatten(1)")
def tensors(start):
    torch = pytest.importorskip("torch")
    from boostbp.torch import GBDTModule

    module = GBDTModule(2, 1)
    whole = torch.arange(40).reshape(20, 2)
    for x in (whole.numpy(), whole, whole.float().to_sparse(), whole.float().reshape(20, 1, 2)):
        message = warned_or_raised(module, x)
        if re.search(start, message or ""):
            assert module(pasted(message, start, x=x, torch=torch).float()).shape == (20, 1)
            return
    raise AssertionError(start)


# Code that other tests run, or that is not for pasting: what to return from one's own functions, and names of steps.
ELSEWHERE = {
    "np.maximum(hessian, 1e-6)",
    "np.full(h.shape,",
    "y.mean(axis=0)",
    "y.rechunk(...)",
    "y.repartition(...)",
    "x.copy()",
    "torch.nan_to_num(x)",
    "sklearn.set_config(",
    "numpy.timedelta64(",
    "pandas.read_csv",
    "pandas.Timestamp(",
    "pandas.Timedelta(",
    "pandas.Series(",
    "pandas.to_numeric(",
    "column.astype('category')",
    "numpy.asarray(",
    "numpy.array(",
    "np.rec.fromarrays(",
    "np.asarray({})[:, {}]",  # tests/estimators/test_survival.py
    "sklearn.preprocessing.MultiLabelBinarizer(",  # tests/inputs/test_target_cells.py
    "pandas.DataFrame([*y]",
    "X.columns.isin(",  # tests/inputs/test_column_names.py
}


def texts_in(tree):
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(node.body[0], ast.Expr)
    }
    parts = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(value.value if isinstance(value, ast.Constant) else "{}" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (documents | parts):
            yield node.value


def test_no_message_with_code_on_data_is_left_out():
    """Text of the package, outside docstrings, that calls a method of data, or a function of another library."""
    code = re.compile(
        r"(?<![\w.])(?:(?:[Xxyhp]|column|pandas|numpy|np|narwhals|sklearn|torch|io)\.[\w.]+\(|\.astype\()"
    )
    for path in sorted((ROOT / "boostbp").rglob("*.py")):
        for text in texts_in(ast.parse(path.read_text(encoding="utf-8"))):
            if " " not in text or path.name == "c_program.py":
                continue
            for call in code.finditer(text):
                rest = text[call.start() :]
                assert any(rest.startswith(start) for start in {*PASTED, *ELSEWHERE}), f"{path}: {rest[:80]!r}"


@pytest.mark.parametrize("start", PASTED)
def test_code_of_a_message_cures_it(start):
    PASTED[start](re.escape(start))


def test_extras_of_messages_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for path in (ROOT / "boostbp").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for name in [*re.findall(r'extra="(\w+)"', text), *re.findall(r"pip install '?boostbp\[(\w+)\]", text)]:
            assert name in extras, (path, name)


# What a message says to use, as `name=value`, is used, and then the fit is quiet.
@pytest.mark.parametrize(
    ("params", "fit_arguments"),
    [
        ({"quality": 1, "epochs": 5}, {}),
        ({"quality": 1, "early_stopping": False, "eval_metric": "mae"}, {}),
        ({"quality": 1, "early_stopping": False, "validation": 0.2}, {}),
        ({"quality": 1, "alpha": 0.7}, {}),
        ({"quality": 1, "loss": "huber", "alpha": 0.7}, {}),
        ({"quality": 1}, {"checkpoint": "here.npz"}),
        ({"quality": 1}, {"keep_state": True}),
        ({"deep": False}, {"keep_state": True}),
        ({"deep": False, "epochs": 5}, {}),
        ({"basis": "constant", "deep": True}, {}),
    ],
    ids=str,
)
def test_parameters_that_a_message_names_cure_it(here, params, fit_arguments):
    """Each alternative by itself; that of a sentence with "and" or "with" as a whole."""

    def trained(params):
        names = {name: value for name, value in params.items() if name != "basis"}
        output = {"output": {"basis": params["basis"]}} if "basis" in params else {}
        few = {"n_estimators": 2, "max_time": 20, "random_state": 0, **names, **output}
        return BoostBPRegressor(**few).fit(X, y, **fit_arguments)

    known = "|".join(BoostBPRegressor().get_params(deep=False))
    message = message_of(trained, params)
    cures = re.split(r"Use | use |Give ", message, maxsplit=1)[1].rstrip(".")
    assert "=" in cures, message
    for one in re.split(r", or |, which| or (?=\w+=)", cures):
        if settings := re.findall(rf"({known})=('\w+'|[\w.]+|\(\))", one):
            after = warned_or_raised(trained, params | {name: ast.literal_eval(value) for name, value in settings})
            assert after is None or message.partition(",")[0] not in after, (one, after)


def warned_or_raised(action, *args):
    """Return what an action raises or warns of, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            action(*args)
        except (TypeError, ValueError, UserWarning) as error:
            return str(error)
    return None
