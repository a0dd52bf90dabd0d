"""Damage files in child processes and print figures: ``python -m tests.fuzz_files --cases 20000 --seed 0``.

Each case must end in ValueError or OSError, or in the predictions of the intact file if the damage left alone what they
are computed from; no child may die by a signal, be busy with a case for long, or need more than twice the memory
that the intact file needs.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz_files.corpus import Item, items, write_all
from tests.fuzz_files.damage import damaged
from tests.support.child_cases import Note, Program, main

SECONDS = 60  # longest time for one case: some milliseconds, on a busy machine more
ROOM = 16 << 20  # bytes that allocators, not the file, decide about
MEMORY = 4 << 30  # bytes of address space beyond what a child has when it begins
HAS_TORCH = importlib.util.find_spec("torch") is not None


def begin(folder: Path, n_cases: int, seed: int) -> Callable[[int, Note], str]:
    """Read the intact files, and return what tries the damage of a number."""
    warnings.simplefilter("ignore")
    kinds, path = items(torch=HAS_TORCH), folder / "damaged"
    data = {name: (folder / name).read_bytes() for name in kinds}
    intact = {name: _intact(item, path, data[name]) for name, item in kinds.items()}

    def attempt(number: int, note: Note) -> str:
        name = list(kinds)[number % len(kinds)]
        note(name)
        changed, numeric = damaged(data[name], (seed << 32) + number)
        return outcome_of(kinds[name], path, changed, intact[name], numeric)

    return attempt


def _intact(item: Item, path: Path, data: bytes) -> tuple[list[Any], int]:
    """What an intact file says, and the memory that it takes; imported before."""
    for _ in range(2):
        path.write_bytes(data)
        before = _peak_from_now()
        found = item.use(path)
        needed = _peak() - before
    return found, needed


def outcome_of(item: Item, path: Path, data: bytes, intact: tuple[list[Any], int], numeric: bool) -> str:
    """Read a damaged file: "read", "changed" or "refused".

    Raises
    ------
    Exception
        If the file is refused by another error, takes too much memory, or gives other predictions.
    """
    expected, needed = intact
    path.write_bytes(data)
    before = _peak_from_now()
    found = None
    with suppress(ValueError, OSError, *([FloatingPointError] if numeric else [])):
        found = item.use(path)
    taken = _peak() - before
    assert taken <= 2 * needed + ROOM, f"took {taken >> 20} MB, the intact file {needed >> 20}"
    if found is None:
        return "refused"
    same = _same(found, expected)
    assert same or numeric, "other predictions"
    return "read" if same else "changed"


def _same(found: list[Any], expected: list[Any]) -> bool:
    pairs = zip(map(np.asarray, found), map(np.asarray, expected), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def _peak_from_now() -> int:
    """Forget the largest size that this process ever had, and tell its size."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return _peak()


def _peak() -> int:
    """Largest resident size since `_peak_from_now`, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


PROGRAM = Program(
    "tests.fuzz_files", __doc__, 2000, begin, SECONDS, MEMORY, prepare=lambda folder: write_all(folder, torch=HAS_TORCH)
)

if __name__ == "__main__":
    sys.exit(main(PROGRAM))
