"""Stamp of the core's sources, which its build compiles into the library: a library of other sources is refused."""

from __future__ import annotations

import zlib
from pathlib import Path

FOLDER = Path(__file__).parent
PROTOTYPES = FOLDER / "__init__.py"


def stamp() -> int | None:
    """Return a checksum of the C files and of their prototypes; None where only compiled files are installed."""
    sources = sorted(FOLDER.glob("*.[ch]"))
    if not (sources and PROTOTYPES.exists()):
        return None
    checksum = 0
    for source in (*sources, PROTOTYPES):
        checksum = zlib.crc32(source.read_bytes(), checksum)
    return checksum
