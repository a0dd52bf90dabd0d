"""Text of files and strangers, so that a terminal shows it and does not obey it."""

from __future__ import annotations

import unicodedata

# Control characters (escape sequences of terminals begin with one), marks that turn the direction of what follows or
# are invisible, halves of characters, separators of lines.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"  # of these scripts and emoji are spelled


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
