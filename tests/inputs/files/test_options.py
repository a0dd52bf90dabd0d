"""Options of files: what they may be, how they change, and which ones a file seems to need."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbp.inputs.files.options import FileOptions, flags

TABLE = "naïve,b\n1,2\n3,4\n"


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"sep": ""}, r"--sep '' is not known: give one character"),
        ({"sep": "ab"}, r"--sep 'ab'"),
        ({"sep": "é"}, r"--sep 'é'"),
        ({"thousands": "ab"}, r"--thousands 'ab'"),
        ({"thousands": "."}, r"--thousands and --decimal are both '.': give another --decimal ','"),
        ({"encoding": "latin-99"}, r"--encoding 'latin-99' is not known: give utf-8, cp1252 or utf-16"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(stated, message):
    with pytest.raises(ValueError, match=message):
        FileOptions().replaced(stated)


def test_stated_options_replace_and_changes_add():
    options = FileOptions(missing=("?",), sep=";")
    assert options.replaced({"missing": ["-"], "sep": "\\t"}) == FileOptions(missing=("-",), sep="\t")
    changed = options.changed([("missing", "-"), ("missing", "?"), ("sep", ","), ("drop", "x"), ("day_first", True)])
    assert changed == FileOptions(missing=("?", "-"), day_first=True)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_encodings_and_separators_are_noticed(encoding, sep):
    text = TABLE.replace(",", sep)
    options = FileOptions().changed(FileOptions().noticed(text.encode(encoding)))
    assert options.sep == sep
    assert text.encode(encoding).decode(options.encoding).removeprefix("\ufeff") == text
    assert options.noticed(text.encode(encoding)) == []


@pytest.mark.parametrize(
    "text",
    [
        "x\n1\n2\n",
        "",
        "x",
        "a,b\n1,2;3\n",
        'a,b\n"1;2",3\n"4;5",6\n',
        "a;b,c\n1,2\n",
        "x\nsome; text\nmore; text; here\n",
    ],
)
def test_files_that_may_be_as_they_are_stated_are(text):
    assert FileOptions().noticed(text.encode()) == []


def test_half_a_character_at_the_end_is_no_other_encoding():
    assert FileOptions().noticed(TABLE.encode()[:3]) == []
    assert FileOptions(encoding="cp1252").noticed(TABLE.encode("cp1252")) == []
    assert FileOptions().noticed(b"\x81\x8d") == [("encoding", "latin-1")]


@given(st.sampled_from(["missing", "dates", "numeric"]), st.text("ab '\"?$;\\", min_size=1))
def test_flags_are_the_words_of_a_shell(name, value):
    assert shlex.split(flags([(name, value)])) == [f"--{name}", value]


def test_flags_of_all_kinds():
    assert flags([("sep", "\t"), ("day_first", False), ("day_first", True), ("sep", "\t")]) == (
        r"--sep '\t' --month-first --day-first"
    )
