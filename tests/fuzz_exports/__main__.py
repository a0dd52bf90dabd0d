"""Compare exported models with predict in child processes: ``python -m tests.fuzz_exports --cases 1000 --seed 0``.

Each case is a random table and model. Its graph, served by onnxruntime with every level of optimization, and its
program, compiled, must give what predict gives, or the export must be refused for a reason that it names.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fuzz_exports.cases import case_of
from tests.fuzz_exports.check import outcome_of
from tests.support.child_cases import report, run_all

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
    child = ["-m", "tests.fuzz_exports", "--child", "--seed", str(options.seed)]
    outcomes, failures = run_all(child, numbers)
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


if __name__ == "__main__":
    sys.exit(main())
