"""Aside: files are written beside their place and renamed, so that nothing half-written ever stands there."""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["aside", "clear"]


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Give a path to write to, renamed to `path` if all goes well; a failure leaves what was there before."""
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def clear(path: str | os.PathLike[str]) -> None:
    """Remove what writers of `path` left aside when they were killed; nobody may be writing it now."""
    path = Path(path)
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)
