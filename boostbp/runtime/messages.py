"""Messages: warnings at the user's line, errors that name an argument or an extra, text that is safe to print."""

from __future__ import annotations

import sys
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType

# Packages between the user's line and a warning: this one, and those that wrap its methods or run them.
_BETWEEN = {"boostbp", "concurrent", "contextlib", "functools", "joblib", "sklearn", "threading"}
# Unicode categories of control characters (escape sequences of terminals begin with one), of invisible marks and those
# that reverse the direction of text, of halves of characters, and of line and paragraph separators.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"  # invisible marks that some scripts and emoji are spelled with


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this package, whatever wraps its methods."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def named_in_errors(source: str) -> Iterator[None]:
    """Begin errors about an input with the name of its argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{source}: {error}") from error


def printable(text: str) -> str:
    r"""Return text with each invisible character that acts on a terminal or reader written as Python escapes it.

    >>> print(printable("price\x1b[2J"))
    price\x1b[2J
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _HIDDEN and character not in _JOINERS
        else character
        for character in text
    )


def require(module: str, *, extra: str, what: str) -> ModuleType:
    """Import a module of an optional package; if it is not installed, raise ImportError with the command to install it.

    `extra` is the extra that installs the package, and `what` names what needs it, as the user wrote it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"{what} needs the {error.name} package: pip install 'boostbp[{extra}]'.") from error


def counted(number: int, what: str) -> str:
    """Return a number of things in words: "1 epoch", "2 epochs"."""
    return f"{number} {what}{'' if number == 1 else 's'}"
