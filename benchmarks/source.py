"""A name for the code that a measurement was taken with."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import boostbp

__all__ = ["source"]


@cache
def source() -> str:
    """A name for the code of the package: another one where a line of it is another."""
    folder, digest = Path(boostbp.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
