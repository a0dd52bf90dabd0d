"""Atomic writes: files are written beside their place and renamed, so that nothing half-written ever stands there."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

# What a rename would replace by a file, and a write would not.
_SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to, renamed to `path` if all goes well; a failure leaves what was there before.

    Links are followed: what they lead to is written. A file that is replaced keeps its permissions. Any number of
    threads and processes may write to one path: the last one wins. Raises what `check_writable` raises, before anything
    is written.
    """
    check_writable(path)
    target = _target(path)
    part, lock = _created(target)
    try:
        yield part
        with suppress(FileNotFoundError):
            shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Find out before long work whether its result can be written.

    Raises OSError if there is no such folder, or `path` is a folder, is not a regular file (such as a pipe or a device,
    which would be replaced by a file), or may not be written.
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


def remove_partial(path: str | os.PathLike[str]) -> None:
    """Remove what writers of `path` left unfinished when they were killed; what is being written now stays."""
    target = _target(path)
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(OSError):  # another process removes it as well
            _remove_if_abandoned(part)


def _target(path: str | os.PathLike[str]) -> Path:
    """The place that a link leads to, whether anything stands there or not; the path itself if it is no link."""
    return Path(os.path.realpath(path) if os.path.islink(path) else path)


def _created(target: Path) -> tuple[Path, int | None]:
    """A new empty file beside a place, and a descriptor with the lock that says that its writer lives."""
    while True:
        part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
        file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if sys.platform == "win32":
            os.close(file)
            return part, None
        if _locked(file) is not False and part.exists():
            return part, file
        os.close(file)  # another process took it for abandoned before it was locked


def _remove_if_abandoned(part: Path) -> None:
    if sys.platform == "win32":  # a file that is open cannot be removed
        part.unlink()
        return
    file = os.open(part, os.O_RDWR)
    try:
        if _locked(file):
            part.unlink()  # before the lock is given up: its writer may be about to take it
    finally:
        os.close(file)


def _locked(file: int) -> bool | None:
    """Whether a file could be locked; None if the file system knows no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
