"""Files that a command writes: what would go wrong with them is said before the work."""

from __future__ import annotations

import os
from pathlib import Path

from boostbp.atomic_write import check_writable
from boostbp.cli.errors import fail

__all__ = ["check_written"]


def check_written(option: str, path: Path, *read: tuple[str, Path | None]) -> None:
    """Leave with exit code 2 if a file could not be written, or would replace another of the same command.

    Parameters
    ----------
    option : str
        What names the file on the command line.
    path : Path
        The file to write.
    *read : (str, Path or None)
        The command's other files and what names them; None for one that was not given.
    """
    try:
        check_writable(path)
    except OSError as error:
        raise fail(f"{option} {error}", 2) from error
    for name, other in read:
        if other is not None and _same(path, other):
            raise fail(f"{option} {str(path)!r} would replace {name} {str(other)!r}: give {option} another name.", 2)


def _same(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file, or would if it were there."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return os.path.realpath(first) == os.path.realpath(second)
