"""Compare exported models with predict in child processes: ``python -m tests.fuzz_exports --cases 1000 --seed 0``.

Each case is a random table and model. Its graph, served by onnxruntime with every level of optimization, and its
program, compiled, must give what predict gives, or the export must be refused for a reason that it names.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fuzz_exports.cases import case_of
from tests.fuzz_exports.check import outcome_of

SECONDS = 600  # longest time for one case: a second, on a busy machine more


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments; run some cases here, or all in children."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_exports", description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--child", action="store_true", help="run the cases in this process, a line of JSON for each")
    options = parser.parse_args(argv)
    numbers = range(options.first, options.cases)
    if options.child:
        for line in run(numbers, options.seed):
            print(line, flush=True)
        return 0
    begun = time.perf_counter()
    outcomes, failures = run_all(numbers, options.seed)
    print(report(outcomes, failures, time.perf_counter() - begun))
    return int(bool(failures))


def run(numbers: range, seed: int) -> Iterator[str]:
    """Some cases in this process; a line of JSON before and after each."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, and the case with it
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            yield json.dumps({"case": number, "outcome": "begins"})
            signal.alarm(SECONDS)
            try:
                outcome, why = outcome_of(case_of(seed, number), Path(folder)), ""
            except Exception:
                outcome, why = "failure", f"{case_of(seed, number)}\n{traceback.format_exc()[-1500:]}"
            signal.alarm(0)
            yield json.dumps({"case": number, "outcome": outcome, "why": why})


def run_all(numbers: range, seed: int) -> tuple[Counter[str], list[str]]:
    """All cases in children: a new one goes on behind a case in which one died."""
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    at = numbers.start
    while at < numbers.stop:
        command = [sys.executable, "-m", "tests.fuzz_exports", "--child", "--seed", str(seed)]
        command += ["--first", str(at), "--cases", str(numbers.stop)]
        child = subprocess.run(command, capture_output=True, text=True)
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        if not lines:
            raise RuntimeError(f"the child began no case:\n{child.stderr[-3000:]}")
        for line in lines:
            outcomes[line["outcome"]] += line["outcome"] != "begins"
            failures += [f"case {line['case']}: {line['why']}"] if line["outcome"] == "failure" else []
        at = lines[-1]["case"] + 1
        if child.returncode:
            outcomes["failure"] += 1
            failures.append(f"case {at - 1}: exit code {child.returncode}\n{child.stderr[-2000:]}")
    outcomes -= Counter()  # what only began
    return outcomes, failures


def report(outcomes: Counter[str], failures: Sequence[str], seconds: float) -> str:
    """Figures of all cases."""
    lines = [f"{count:>7}  {what}" for what, count in outcomes.most_common()]
    lines += [f"{sum(outcomes.values())} cases in {seconds:.0f} s; failures: {len(failures)}", *failures[:30]]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
