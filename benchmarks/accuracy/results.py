"""The results file: one JSON line for each finished cell, added as it finishes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from benchmarks import lines
from benchmarks.accuracy.plan import Cell

__all__ = ["Results"]


class Results:
    """Finished cells, in memory and in a file.

    A line is written at once and synced. What a killed process left of its last line is dropped when the file is
    opened again.

    Parameters
    ----------
    path : Path
    before : Path or None
        A file of cells that were finished elsewhere.
    """

    def __init__(self, path: Path, before: Path | None = None) -> None:
        self._path, self._lock = path, threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.lines = [*(lines.read(before) if before else ()), *lines.read(path)]

    def of(self, cell: Cell) -> dict[str, Any] | None:
        """What came of a cell; None if it has to be run: never begun, failed, or its library was not there."""
        return next((line for line in self.lines if line["key"] == cell.key and line["state"] == "ran"), None)

    def add(self, cell: Cell, outcome: dict[str, Any]) -> None:
        """Keep what came of a cell."""
        line = {"key": cell.key, "set": cell.set, "fold": cell.fold, "model": cell.model, **outcome}
        with self._lock:
            self.lines.append(line)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
