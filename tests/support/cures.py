"""Code in messages, run as by a user who pastes it."""

from __future__ import annotations

import ast
import re
import shlex
from contextlib import suppress

import numpy as np
import pandas as pd


def code_in(message, start):
    """Return the longest expression that begins with `start`, a pattern, in a message."""
    first = re.search(start, message)
    assert first, f"no code in {message!r}"
    rest = message[first.start() :]
    for last in range(len(rest), 0, -1):
        with suppress(SyntaxError):
            if not isinstance(ast.parse(rest[:last], mode="eval").body, ast.Tuple):  # the comma may be the sentence's
                return rest[:last]
    raise AssertionError(f"no code in {message!r}")


def pasted(message, start=r"\(*(pandas|numpy)\.", **names):
    """Return the value of the code in a message."""
    return eval(code_in(message, start), {"pandas": pd, "numpy": np, **names})


def options_in(message):
    """Return the options of the command line that a message adds, as words."""
    found = re.search(r"[Aa]dd (--.*?)(?:; |\.?$)", message)
    assert found, f"no option in {message!r}"
    return shlex.split(found[1])
