"""The cache of compiled loops on the disk.

numba's own cache fails the import if it can write no folder, fails the call if the disk is full, fails on a damaged
file, and may return the code of another signature if two processes write at once. Here each compiled version of a loop
is one file that is written in one step and found without an index. A file that cannot be read is compiled again; one
that cannot be written costs a warning.

Files are looked for where numba would write them (``NUMBA_CACHE_DIR``, the ``__pycache__`` beside the code, the user's
cache folder), and always beside the code too: that folder may have been filled once and be read-only now.
"""

from __future__ import annotations

import os
import pickle
import stat
import sys
import uuid
import warnings
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from boostbp.runtime.compiling import begins

_HASH = 32  # bytes of a digest


def _digest(*parts: Any) -> bytes:
    return sha256(repr(parts).encode()).digest()


def _source() -> bytes:
    """Return a digest of all kernels: a compiled loop contains the loops that it calls and constants of other files."""
    files = [file for file in resources.files(__package__).iterdir() if file.name.endswith((".py", ".pyc"))]
    return _digest(*[(file.name, file.read_bytes()) for file in sorted(files, key=lambda file: file.name)])


# As early as possible, as the code that will be compiled is the code imported now.
_STAMP = _digest(_source(), numba.__version__)


class KernelCache(_Cache):
    """The compiled versions of one loop on the disk, with the interface that numba's dispatchers expect."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """The folder that is written to; None if there is none."""
        folder = _writable()
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the version of a signature; None if there is none."""
        target_context.refresh()  # its registries are filled on first use
        file, stamp = self._entry(sig, target_context.codegen())
        for folder in _folders() if self._enabled else ():
            payload = _read(folder / file, stamp)
            if payload is not None:
                try:
                    return CompileResult._rebuild(target_context, *pickle.loads(payload))
                except Exception:  # a version that cannot be loaded here, for whatever reason, is compiled here
                    continue
        begins(self._name.rpartition(".")[2])
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the version of a signature, if that is possible."""
        folder = _writable()
        if not self._enabled:
            return
        if folder is None:
            _warn("neither the package's folder nor the user's cache folder can be written")
            return
        file, stamp = self._entry(sig, data.codegen)
        payload = dumps(data._reduce())
        try:
            _write(folder / file, stamp + sha256(payload).digest() + payload)
        except OSError as error:  # full, over the quota, or written by another process at this moment
            if _read(folder / file, stamp) is None:
                _warn(f"{folder} cannot be written ({error})")

    def enable(self) -> None:
        """Load and save from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor save from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Remove all versions that can be removed."""
        folder = _writable()
        for path in folder.glob(f"{self._name}-*.nbc") if folder is not None else ():
            path.unlink(missing_ok=True)

    def _entry(self, sig: Any, codegen: Any) -> tuple[str, bytes]:
        """Return the name of a file, the same for all releases of the package, and the bytes that it begins with."""
        key = self._name, str(sig), codegen.magic_tuple(), sys.version_info[:2], getattr(sys, "abiflags", "")
        return f"{self._name}-{_digest(*key).hex()[:24]}.nbc", _digest(_STAMP, *key)


@cache
def _writable() -> Path | None:
    """Return the folder that numba would write to; None if there is none."""
    try:
        return Path(CompileResultCacheImpl(_digest).locator.get_cache_path())
    except RuntimeError:  # no locator available
        return None


def _folders() -> list[Path]:
    """Return the folders in which compiled loops may be."""
    beside = Path(__file__).parent / "__pycache__"
    return list(dict.fromkeys(folder for folder in (_writable(), beside) if folder is not None))


def _read(path: Path, stamp: bytes) -> bytes | None:
    """Return the content of a file after the stamp, if the file is whole and may be trusted."""
    try:
        with path.open("rb") as file:
            data = file.read() if _trusted(os.fstat(file.fileno())) else b""
    except OSError:
        return None
    payload = data[2 * _HASH :]
    return payload if data[: 2 * _HASH] == stamp + sha256(payload).digest() else None


def _trusted(info: os.stat_result) -> bool:
    """Return whether a file is as trustworthy as the code, because unpickling runs its content.

    It must belong to this user, the administrator or the owner of the code, and may be writable for all users only if
    the code is.
    """
    if not hasattr(os, "geteuid"):
        return True
    try:
        code = os.stat(__file__)
        owners, open_to_all = {0, os.geteuid(), code.st_uid}, code.st_mode & stat.S_IWOTH
    except OSError:  # imported from an archive
        owners, open_to_all = {0, os.geteuid()}, 0
    return info.st_uid in owners and not info.st_mode & stat.S_IWOTH & ~open_to_all


def _write(path: Path, data: bytes) -> None:
    """Write a file in one step: a reader sees all of it, or the file before."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


_warned: list[str] = []


def _warn(reason: str) -> None:
    """Warn once in a process that compiled code cannot be kept."""
    if not _warned:
        _warned.append(reason)
        warnings.warn(
            f"Compiled code cannot be kept for other processes, each of which will compile it again: {reason}. Set the "
            "environment variable NUMBA_CACHE_DIR to a folder that can be written, and run `boostbp warm-up` there "
            "once.",
            RuntimeWarning,
            stacklevel=2,
        )
