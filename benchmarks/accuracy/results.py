"""The results file: one JSON line for each finished cell, added as it finishes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from benchmarks import lines

__all__ = ["Keyed", "Results"]


class Keyed(Protocol):
    """A cell of a benchmark: a model on a fold of a data set, and the key by which it is found again."""

    @property
    def set(self) -> str:
        """Name of the data set."""
        ...

    @property
    def fold(self) -> int:
        """Number of the fold."""
        ...

    @property
    def model(self) -> str:
        """Name of the model."""
        ...

    @property
    def key(self) -> list[str | int | float]:
        """What the cell is found again by."""
        ...


class Results:
    """Finished cells, in memory and in a file.

    A line is written at once and synced. What a killed process left of its last line is dropped when the file is
    opened again.

    Parameters
    ----------
    path : Path
    before : Path or None
        A file of cells that were finished elsewhere.
    counts : callable, optional
        Whether a line of a finished cell counts; by default all do.
    """

    def __init__(
        self, path: Path, before: Path | None = None, counts: Callable[[Mapping[str, Any]], bool] = lambda line: True
    ) -> None:
        self._path, self._lock, self._counts = path, threading.Lock(), counts
        path.parent.mkdir(parents=True, exist_ok=True)
        self.lines = [*(lines.read(before) if before else ()), *lines.read(path)]

    def of(self, cell: Keyed) -> dict[str, Any] | None:
        """What came of a cell at last; None if it has to be run: never begun, failed, or its library was not there."""
        ran = (line for line in reversed(self.lines) if line["key"] == cell.key and line["state"] == "ran")
        return next(filter(self._counts, ran), None)

    def add(self, cell: Keyed, outcome: dict[str, Any]) -> None:
        """Keep what came of a cell."""
        line = {"key": cell.key, "set": cell.set, "fold": cell.fold, "model": cell.model, **outcome}
        with self._lock:
            self.lines.append(line)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
