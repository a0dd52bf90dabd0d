"""Atomic writes: a file is written under another name and then renamed, so it is never incomplete."""

from __future__ import annotations

import glob
import os
import platform
import secrets
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Seconds without a write after which a partial file belongs to a killed writer. Arbitrary: writers pause for seconds.
ABANDONED = 3600.0
# Seconds to wait for other processes that have the file open, such as virus scanners. Windows, unlike other systems,
# does not replace an open file.
OPEN_ELSEWHERE = 2.0 if os.name == "nt" else 0.0


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to, which replaces `path` at the end; after an error `path` is unchanged.

    If `path` is a link, its target is written. A replaced file keeps its permissions. If several threads and processes
    write to one path, the last one wins. Raises the errors of `check_writable` before anything is written.
    """
    check_writable(path)
    target = _target(path)
    part = target.with_name(f".{target.name}.{_host()}-{os.getpid()}-{secrets.token_hex(3)}.part")
    try:
        part.touch(exist_ok=False)
        yield part
        with suppress(FileNotFoundError):
            shutil.copymode(target, part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())  # otherwise the file could be empty after a loss of power
        _replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check before long work that its result can be written to a path; raise OSError if it cannot."""
    target, name = _target(path), repr(os.fspath(path))
    if target.is_symlink():
        raise OSError(f"{name} is a link that leads back to itself: remove it, or give another name.")
    if target.is_dir():
        raise IsADirectoryError(f"{name} is a folder: give the name of a file in it.")
    folder = target.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {str(folder)!r}: create it first.")
    if target.exists() and not target.is_file():
        raise OSError(f"{name} is a pipe, socket or device, which a file would replace: give the name of a file.")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{name} may not be written: change its permissions, or give another name.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{name}: no file may be created in {str(folder)!r}: give a name in another folder.")


def remove_partial(path: str | os.PathLike[str]) -> None:
    """Remove partial files of killed writers of `path`: those of ended processes of this host, and old ones."""
    target = _target(path)
    for part in target.parent.glob(f".{glob.escape(target.name)}.*-*-*.part"):
        host, process, _ = part.name.rsplit(".", 2)[1].split("-", 2)
        with suppress(OSError):  # another process may have removed it
            if (host == _host() and _is_gone(process)) or time.time() - part.stat().st_mtime > ABANDONED:
                part.unlink()


def _replace(part: Path, target: Path) -> None:
    """Rename a file; if other processes have the target open, wait for them."""
    end = time.monotonic() + OPEN_ELSEWHERE
    while True:
        try:
            return os.replace(part, target)
        except PermissionError:
            if time.monotonic() > end:
                raise
        time.sleep(0.01)


def _host() -> str:
    """Return a short identifier of this host, as several hosts may share a file system."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_gone(process: str) -> bool:
    """Return whether no process has this number; False on Windows, where a check could end the process."""
    if os.name == "posix" and process.isdecimal():
        try:
            os.kill(int(process), 0)
        except OSError as error:  # PermissionError if it is a process of another user
            return isinstance(error, ProcessLookupError)
    return False


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the target of a link, which need not exist, or the path itself if it is not a link."""
    return Path(os.path.realpath(path) if os.path.islink(path) else path)
