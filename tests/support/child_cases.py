"""Programs that try many cases in child processes: one driver, to which each program describes its cases.

A child that dies, or is busy with one case for too long, is a failure of this case, and a new child goes on behind it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Note", "Program", "main", "run_all", "tried"]

ROOT = Path(__file__).parents[2]
Note = Callable[[object], None]
Attempt = Callable[[int, Note], str | Counter[str]]


@dataclass(frozen=True)
class Program:
    """A kind of cases.

    Attributes
    ----------
    module : str
        Its name, as ``python -m`` takes it.
    about : str or None
        What it does, for ``--help``.
    cases : int
        How many cases are tried by default.
    begin : callable
        ``begin(folder, cases, seed)`` makes a process ready, and returns ``attempt(number, note)``. This tells `note`
        what it is about to try, and returns the outcome, or counts of several; what it raises is a failure.
    seconds : int
        Longest time for one number, on a busy machine.
    memory : int
        Bytes of address space that cases may take beyond what a process has before them; 0: any.
    prepare : callable
        ``prepare(folder)`` writes what all children read.
    numbers : callable
        ``numbers(cases)``: how many numbers so many cases have.
    """

    module: str
    about: str | None
    cases: int
    begin: Callable[[Path, int, int], Attempt]
    seconds: int
    memory: int = 0
    prepare: Callable[[Path], object] = lambda folder: None
    numbers: Callable[[int], int] = lambda cases: cases


def main(program: Program, argv: Sequence[str] | None = None) -> int:
    """Parse the arguments; try all cases in children, or, as a child, those from one on."""
    parser = argparse.ArgumentParser(prog=f"python -m {program.module}", description=program.about)
    parser.add_argument("--cases", type=int, default=program.cases)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case, or batch of cases")
    parser.add_argument("--folder", type=Path, default=None, help="where a child reads and writes")
    options = parser.parse_args(argv)
    if options.folder is not None:
        attempt = program.begin(options.folder, options.cases, options.seed)
        _work(program, attempt, range(options.first, program.numbers(options.cases)), options.folder / "lines")
        return 0
    begun = time.perf_counter()
    outcomes, failures = tried(program, options.cases, options.seed, options.first)
    print(report(outcomes, failures, time.perf_counter() - begun))
    return int(bool(failures))


def tried(program: Program, cases: int, seed: int = 0, first: int = 0) -> tuple[Counter[str], list[str]]:
    """Try cases in children: how many had which outcome, and the failures."""
    with tempfile.TemporaryDirectory() as folder:
        program.prepare(Path(folder))
        child = ["-m", program.module, "--cases", str(cases), "--seed", str(seed), "--folder", folder]
        return run_all(child, range(first, program.numbers(cases)), Path(folder))


def run_all(arguments: Sequence[str], numbers: range, folder: Path) -> tuple[Counter[str], list[str]]:
    """Run children of Python by some arguments, to which ``--first`` is added, until all numbers are done."""
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    at = numbers.start
    while at < numbers.stop:
        (folder / "lines").unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as empty:
            child = subprocess.run(
                [sys.executable, *arguments, "--first", str(at)],
                capture_output=True,
                text=True,
                cwd=empty,
                env=environment,
            )
            failures += [f"a file {path.name!r}, in the cases from {at} on" for path in Path(empty).iterdir()]
        if not (folder / "lines").exists():
            raise RuntimeError(f"the child began no case:\n{child.stderr[-3000:]}")
        lines = [json.loads(line) for line in (folder / "lines").read_text(encoding="utf-8").splitlines()]
        for line in lines:
            outcomes.update(line.get("outcomes", {}))
        failures += [f"case {line['number']}, {line['failure']}" for line in lines if "failure" in line]
        if child.stdout:
            failures.append(f"printed {child.stdout[:300]!r}, in the cases from {at} on")
        if child.returncode:
            last = lines[-1]
            failures.append(
                f"case {last['number']}, {last['tries']}: exit code {child.returncode}\n{child.stderr[-2000:]}"
            )
        at = lines[-1]["number"] + 1
    return outcomes, failures


def _work(program: Program, attempt: Attempt, numbers: range, file: Path) -> None:
    """Try cases in this process, with lines of JSON before and after each."""
    faulthandler.enable()
    _limit_memory(program.memory)
    with file.open("w", encoding="utf-8") as out:

        def write(**line: Any) -> None:
            print(json.dumps(line), file=out, flush=True)

        for number in numbers:
            noted = [""]

            def note(case: object, number: int = number, noted: list[str] = noted) -> None:
                noted.append(str(case)[:1000])
                write(number=number, tries=noted[-1])

            faulthandler.dump_traceback_later(program.seconds, exit=True)
            try:
                outcome = attempt(number, note)
                write(number=number, outcomes={outcome: 1} if isinstance(outcome, str) else outcome)
            except Exception:
                write(number=number, failure=f"{noted[-1]}: {traceback.format_exc()[-2000:]}")
    faulthandler.cancel_dump_traceback_later()


def _limit_memory(room: int) -> None:
    if room:
        import resource  # which Windows has not

        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + room,) * 2)


def report(outcomes: Counter[str], failures: Sequence[str], seconds: float) -> str:
    """Return the figures of all cases."""
    lines = [f"{count:>7}  {what}" for what, count in outcomes.most_common(40)]
    lines += [f"FAILED: {failure}" for failure in failures[:30]]
    lines.append(f"{sum(outcomes.values())} cases in {seconds:.0f} s; failures: {len(failures)}")
    return "\n".join(lines)
