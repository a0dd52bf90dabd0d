"""Cases in child processes: a child that dies names its case, and the next one goes on behind it."""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

__all__ = ["Found", "do", "run"]

ROOT = Path(__file__).parents[2]
SECONDS = 120  # longest time for a hundred cases: most take milliseconds
MEMORY = 2 << 30  # address space that the cases may take beyond what the process has when it begins


@dataclass(slots=True)
class Found:
    """What came of the cases.

    Attributes
    ----------
    outcomes : Counter of str
        How many ended in what.
    failures : list of str
        What else was seen: a signal, an error, too much time or memory, text on stdout, a file.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def run(cases: Sequence[Any], command: Sequence[str]) -> Found:
    """Do all cases by a command that takes ``--first NUMBER --file PATH``, and calls `do`."""
    found, first = Found(), 0
    while first < len(cases):
        last = _child(command, first, found)
        if last is None:
            break
        found.failures[-1] += f" at {cases[last]}"
        first = last + 1
    return found


def _child(command: Sequence[str], first: int, found: Found) -> int | None:
    """Do cases from the first one on in a child; the one at which it died, if it did."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as folder:
        file, work = Path(folder) / "found.jsonl", Path(folder) / "work"
        work.mkdir()
        child = subprocess.run(
            [*command, "--first", str(first), "--file", str(file)],
            capture_output=True,
            text=True,
            cwd=work,
            env={**os.environ, "PYTHONPATH": path},
        )
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        found.failures += [f"a file {path.name!r}, in the cases from {first} on" for path in work.iterdir()]
    found.outcomes.update(line["outcome"] for line in lines if "outcome" in line)
    found.failures += [line["failure"] for line in lines if "failure" in line]
    if child.stdout:
        found.failures.append(f"printed {child.stdout[:300]!r}, in the cases from {first} on")
    if child.returncode == 0:
        return None
    begun = [line["number"] for line in lines if "number" in line]
    if not begun:
        raise RuntimeError(f"the child began no case: {child.stderr[-3000:]}")
    found.failures.append(f"exit code {child.returncode}: {child.stderr[-1500:]}")
    return int(begun[-1])


def do(cases: Sequence[Any], outcome_of: Callable[[Any], str], first: int, file: Path) -> None:
    """Do the cases from the first on in this process; their numbers and outcomes are written to the file."""
    _limit_memory()
    faulthandler.enable()
    with file.open("w", encoding="utf-8") as out:
        for number, case in islice(enumerate(cases), first, None):
            if number % 100 == 0 or number == first:
                faulthandler.dump_traceback_later(SECONDS, exit=True)
            print(json.dumps({"number": number}), file=out, flush=True)
            try:
                line = {"outcome": outcome_of(case)}
            except Exception as error:
                line = {"failure": f"{type(error).__name__}: {str(error)[:600]} at {case}"}
            print(json.dumps(line), file=out)


def _limit_memory() -> None:
    import resource  # which Windows has not

    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
