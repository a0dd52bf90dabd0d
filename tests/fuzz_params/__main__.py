"""Walk every native parameter in child processes: ``python -m tests.fuzz_params --cases 20000 --seed 1``.

A child does its cases one after the other and says which one it is at. If it dies by a signal, takes too long or too
much memory, the case is a failure, and another child goes on behind it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from boostbp.backends import available
from tests.fuzz_params.cases import Case, combinations, walk

__all__ = ["Found", "main", "run"]

SECONDS = 60  # longest time for one case: most take milliseconds
MEMORY = 2 << 30  # address space that the cases may take beyond what the libraries take when they are loaded


@dataclass(slots=True)
class Found:
    """What came of the cases.

    Attributes
    ----------
    outcomes : Counter of str
        How many ended as models, and with which error.
    failures : list of str
        Cases that ended in any other way.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments; do cases here, or all cases in children."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_params", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="combinations of parameters, beside the walk of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", action="append", choices=available())
    parser.add_argument("--first", type=int, help="do the cases from this one on, in this process")
    parser.add_argument("--report", type=Path, help="file for what is found in this process")
    options = parser.parse_args(argv)
    backends = options.backend or available()
    if options.first is not None:
        _do(_cases(backends[0], options.cases, options.seed), options.first, options.report)
        return 0
    failed = False
    for backend in backends:
        found = run(backend, options.cases, options.seed)
        failed |= bool(found.failures)
        print(report(backend, found))
    return int(failed)


def run(backend: str, number: int, seed: int) -> Found:
    """Do all cases of a backend in children, one after the other."""
    found, first, total = Found(), 0, len(_cases(backend, number, seed))
    while first < total:
        first = _child(backend, number, seed, first, found)
    return found


def _child(backend: str, number: int, seed: int, first: int, found: Found) -> int:
    """Start a child at a case; where the next one has to start."""
    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.jsonl"
        work = Path(folder) / "work"  # nothing may be written here
        work.mkdir()
        command = [
            sys.executable, "-m", "tests.fuzz_params", "--backend", backend, "--cases", str(number),
            "--seed", str(seed), "--first", str(first), "--report", str(file),
        ]  # fmt: skip
        path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
        child = subprocess.run(
            command, capture_output=True, text=True, cwd=work, env={**os.environ, "PYTHONPATH": path}
        )
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        found.outcomes.update(line["outcome"] for line in lines if "outcome" in line)
        found.failures += [line["failure"] for line in lines if "failure" in line]
        if child.stdout:
            found.failures.append(f"printed {child.stdout[:300]!r} in the cases from {first} on")
        found.failures += [f"wrote {path.name!r} in the cases from {first} on" for path in work.iterdir()]
    if child.returncode == 0:
        return sys.maxsize
    begun = [line for line in lines if "case" in line]
    if not begun:
        raise RuntimeError(f"the child began no case: {child.stderr[-3000:]}")
    found.failures.append(f"exit code {child.returncode} at {begun[-1]['case']}\n{child.stderr[-1500:]}")
    return int(begun[-1]["number"]) + 1


def _cases(backend: str, number: int, seed: int) -> list[Case]:
    return [*walk(backend), *(combinations(backend, number, seed) if number else ())]


def _do(cases: Sequence[Case], first: int, report: Path) -> None:
    """Do the cases from the first on, and report each: its number before, its outcome after."""
    from tests.fuzz_params.check import outcome_of

    outcome_of(Case(cases[0].backend, "network", {}))  # so that all libraries are loaded and code is compiled
    limit = _address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    faulthandler.enable()
    with report.open("w") as out:
        for number, case in islice(enumerate(cases), first, None):
            print(json.dumps({"number": number, "case": str(case)}), file=out, flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                line = {"outcome": outcome_of(case)}
            except Exception as error:
                line = {"failure": f"{type(error).__name__}: {str(error)[:600]} at {case}"}
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps(line), file=out, flush=True)


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def report(backend: str, found: Found) -> str:
    """Figures of a backend."""
    total, models = sum(found.outcomes.values()), found.outcomes["model"]
    lines = [f"{count:>7}  {what}" for what, count in found.outcomes.most_common(25)]
    lines += [f"FAILED: {failure}" for failure in found.failures]
    lines.append(
        f"{backend}: {total} cases, {models} finite models, {total - models} refused by name; "
        f"{len(found.failures)} failed"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
