"""Run many cases in child processes and print figures: ``python -m tests.fuzz --cases 10000``.

A child that dies, or is busy with one case for too long, is a failure of the case it last began. What a
batch found is appended to a file, and a run that finds the file goes on from there.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.cases import Case, cases
from tests.fuzz.check import outcome_of

BATCH = 100
SECONDS = 900  # longest time for one case: one of 10^5 rows takes some seconds, on a busy machine minutes


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments; run one batch here, or all batches in children."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=None, help="run this batch alone, in this process")
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    parser.add_argument("--file", type=Path, default=Path("build/fuzz.jsonl"), help="what was found so far")
    options = parser.parse_args(argv)
    if options.batch is not None:
        print(json.dumps(run(options.batch, min(options.cases, BATCH))))
        return 0
    numbers = range(options.first, options.first + -(-options.cases // BATCH))
    found = list(run_all(numbers, min(options.cases, BATCH), options.file))
    print(report(found))
    return int(any(result["failure"] for result in found))


def run(number: int, n_cases: int) -> dict[str, Any]:
    """One batch in this process: the outcomes by kind of case; raises what the smallest failing case raises."""
    outcomes: Counter[str] = Counter()

    @seed(number)
    @settings(
        max_examples=n_cases,
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(cases())
    def check(case: Case) -> None:
        print(case, flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        outcomes[outcome_of(case)] += 1
        faulthandler.cancel_dump_traceback_later()

    faulthandler.enable()
    check()
    return {"outcomes": outcomes}


def run_all(numbers: Sequence[int], n_cases: int, file: Path) -> Any:
    """Each batch in a child, but for those that the file holds already."""
    file.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    done = {result["batch"]: result for result in known if result["cases"] >= n_cases or result["failure"]}
    for number in numbers:
        if number not in done:
            command = [sys.executable, "-m", "tests.fuzz", "--batch", str(number), "--cases", str(n_cases)]
            done[number] = {"batch": number} | result_of(command)
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(done[number]) + "\n")
            if done[number]["failure"]:
                print(f"batch {number}: {done[number]['failure']}", flush=True)
        yield done[number]


def result_of(command: list[str]) -> dict[str, Any]:
    """What a child found; a failure names the case that it was busy with."""
    begun = time.perf_counter()
    child = subprocess.run(command, capture_output=True, text=True)
    lines = child.stdout.splitlines()
    result = {"cases": 0, "outcomes": {}, "failure": "", "seconds": time.perf_counter() - begun}
    if child.returncode == 0:
        result |= json.loads(lines[-1])
    else:
        last = lines[-1] if lines else "before its first case"
        result["failure"] = f"exit code {child.returncode} at {last}\n{child.stderr[-3000:]}"
    return result | {"cases": sum(result["outcomes"].values())}


def report(found: Sequence[dict[str, Any]]) -> str:
    """Figures of all batches."""
    outcomes: Counter[str] = Counter()
    for result in found:
        outcomes.update(result["outcomes"])
    total, models = sum(outcomes.values()), outcomes["model"]
    failures = [result["batch"] for result in found if result["failure"]]
    lines = [f"{count:>7}  {what}" for what, count in outcomes.most_common()]
    seconds = sum(result["seconds"] for result in found)
    lines += [
        f"{total} cases in {len(found)} batches, {seconds:.0f} s: {models} finite models, {total - models} refused "
        f"with an error that names an argument; batches that failed: {failures or 'none'}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
