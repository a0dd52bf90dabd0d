"""What errors and warnings say: the line of the user's, the argument, and text of strangers that a terminal shows."""

from __future__ import annotations

import sys
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# what lies between: this package, and what wraps its methods or runs them
_BETWEEN = {"boostbp", "concurrent", "contextlib", "functools", "joblib", "sklearn", "threading"}
# Control characters (escape sequences of terminals begin with one), marks that turn the direction of what follows or
# are invisible, halves of characters, separators of lines.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"  # of these scripts and emoji are spelled


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost call from outside this package, whatever wraps its methods."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def named_in_errors(source: str) -> Iterator[None]:
    """Let errors about an input begin with the argument that it came in."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{source}: {error}") from error


def printable(text: str) -> str:
    r"""The text with each character that is not seen but acts written as Python writes it.

    >>> print(printable("price\x1b[2J"))
    price\x1b[2J
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _HIDDEN and character not in _JOINERS
        else character
        for character in text
    )


def counted(number: int, what: str) -> str:
    """A number of things in words: "1 epoch", "2 epochs"."""
    return f"{number} {what}{'' if number == 1 else 's'}"
