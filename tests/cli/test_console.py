"""What reaches the terminal is text, and errors are one line."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest
from command_line import run

from boostbp import load
from boostbp.cli import console
from tests.cli.conftest import HOSTILE

SHOWN = r"\x1b]0;owned\x07[bold red]:bomb:[link=http://evil.example]\x9b2J\u202ename"


def unobeyed(text):
    return all(one.isprintable() or one in "\n" for one in text)


def test_nothing_of_a_file_reaches_the_terminal_as_more_than_text(hostile):
    where, model, _ = hostile
    told = run("inspect", model)
    assert told.exit_code == 0
    assert unobeyed(told.output)
    words = "".join(told.stdout.split())  # lines are broken anywhere
    for name in (f"{SHOWN}0", f"{SHOWN.replace('/', '|')}.boostbp", f"[red]{SHOWN}"):
        assert "".join(name.split()) in words
    broken = where / f"{HOSTILE.replace('/', '|')}.csv"
    broken.write_text("a\n1\n")
    for arguments in (
        ("predict", broken, "-m", model, "-o", where / "out.csv"),
        ("fit", broken, "-t", HOSTILE, "-m", where / "model"),
        ("fit", where / "table.csv", "-t", "target", "-m", where / "model", "--drop", f"{HOSTILE}9"),
        ("inspect", broken),
        ("compare", broken, "-t", HOSTILE),
    ):
        told = run(*arguments)
        assert told.exit_code == 1
        assert unobeyed(told.output)
        assert "[bold red]:bomb:[link=" in told.stderr


@pytest.mark.filterwarnings("always")
def test_warnings_of_the_command_line_are_text_too(capsys):
    console.one_line_errors(warnings.warn)(HOSTILE)
    told = capsys.readouterr().err
    assert SHOWN in told
    assert unobeyed(told)


def test_formulas_are_escaped_where_it_is_asked_for(hostile, tmp_path):
    where, model, y = hostile
    arguments = ["predict", where / "table.csv", "-m", model, "--keep", "=cmd|y"]
    for options in ([], ["--escape-formulas"]):
        assert run(*arguments, "-o", tmp_path / f"{len(options)}.csv", *options).exit_code == 0
    plain, escaped = (pd.read_csv(tmp_path / f"{number}.csv", dtype=str) for number in (0, 1))
    assert list(plain.columns) == ["=cmd|y", "prediction"]
    assert list(escaped.columns) == ["'=cmd|y", "prediction"]
    predicted = load(model).predict(pd.read_csv(where / "table.csv").iloc[:, :4])
    assert plain["prediction"].tolist() == predicted.tolist()
    assert escaped["prediction"].tolist() == [f"'{one}" if one.startswith("=") else one for one in predicted]
    kept = ["-2.5" if one == "-2" else "'@SUM(A1)" for one in y]  # a number stays one
    assert escaped.iloc[:, 0].tolist() == kept
    told = run(*arguments, "-o", tmp_path / "out.parquet", "--escape-formulas")
    assert told.exit_code == 2
    assert "--escape-formulas is for CSV files" in told.stderr


@pytest.mark.parametrize("arguments", [["fit"], ["nonsense"], ["compare", "iris", "--seed", "x"]])
def test_wrong_command_line_ends_with_2(arguments):
    assert run(*arguments).exit_code == 2
