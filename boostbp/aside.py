"""Aside: files are written beside their place and renamed, so that nothing half-written ever stands there."""

from __future__ import annotations

import glob
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["aside", "check", "clear"]

# What a rename would replace by a file, and a write would not.
_SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextmanager
def aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to, renamed to `path` if all goes well; a failure leaves what was there before.

    Links are followed: what they lead to is written. A file that is replaced keeps its permissions.

    Raises
    ------
    OSError
        What `check` raises, before anything is written.
    """
    check(path)
    target = _target(path)
    part = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield part
        with suppress(FileNotFoundError):
            shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def check(path: str | os.PathLike[str]) -> None:
    """Find out before long work whether its result can be written.

    Raises
    ------
    OSError
        If there is no such folder, or `path` is a folder, is not a regular file (such as a pipe or a device, which
        would be replaced by a file), or may not be written.
    """
    target, name = _target(path), repr(os.fspath(path))
    if target.is_symlink():
        raise OSError(f"{name} is a link that leads back to itself: remove it, or give another name.")
    if target.is_dir():
        raise IsADirectoryError(f"{name} is a folder: give the name of a file in it.")
    folder = target.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {str(folder)!r}: make it first.")
    if target.exists():
        kind = _SPECIAL.get(stat.S_IFMT(target.stat().st_mode))
        if kind is not None:
            raise OSError(f"{name} is {kind}, which a file would take the place of: give the name of a file.")
        if not os.access(target, os.W_OK):
            raise PermissionError(f"{name} may not be written: change its permissions, or give another name.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{name}: no file may be made in {str(folder)!r}: give a name in another folder.")


def clear(path: str | os.PathLike[str]) -> None:
    """Remove what writers of `path` left aside when they were killed; nobody may be writing it now."""
    target = _target(path)
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        part.unlink(missing_ok=True)


def _target(path: str | os.PathLike[str]) -> Path:
    """The place that a link leads to, whether anything stands there or not; the path itself if it is no link."""
    return Path(os.path.realpath(path) if os.path.islink(path) else path)
