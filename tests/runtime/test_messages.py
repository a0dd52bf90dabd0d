"""What a terminal would obey is shown, and all that people read stays."""

from __future__ import annotations

import unicodedata
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from boostbp.runtime.messages import Lines, printable


@given(st.text(st.characters()))
def test_nothing_acts_and_nothing_is_lost(text):
    shown = printable(text)
    assert all(unicodedata.category(one) not in {"Cc", "Cs", "Zl", "Zp"} for one in shown)
    shown.encode("utf-8")  # halves of characters cannot be written at all
    if "\\" not in text:
        escaped = shown.encode("ascii", "backslashreplace").decode("unicode_escape")
        assert escaped == text.encode("ascii", "backslashreplace").decode("unicode_escape")


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"])))
def test_words_of_all_scripts_stay(text):
    assert printable(text) == text


def test_what_terminals_and_readers_fall_for():
    assert printable("a\x1b]0;owned\x07") == r"a\x1b]0;owned\x07"
    assert printable("\x9b2J") == r"\x9b2J"
    assert printable("income\n\rerror: none") == r"income\n\rerror: none"
    assert printable("user\u202ecod.exe") == r"user\u202ecod.exe"
    assert printable("caf\udce9") == r"caf\udce9"
    joined = "👩\u200d🔬 \u0645\u06cc\u200c\u062e\u0648"
    assert printable(joined) == joined


def test_notebooks_show_lines_as_they_are_printed():
    text = Lines("loss < 1\nrounds 3")
    assert text == "loss < 1\nrounds 3"
    assert text._repr_html_() == "<pre>loss &lt; 1\nrounds 3</pre>"
    written: list[str] = []
    text._repr_pretty_(SimpleNamespace(text=written.append), cycle=False)
    assert written == [text]
