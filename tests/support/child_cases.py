"""Cases in child processes: one that dies, or is busy for too long, is a failure of the case it last began."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence


def run_all(arguments: Sequence[str], numbers: range) -> tuple[Counter[str], list[str]]:
    """Run all cases in children: a new one goes on behind a case in which one died.

    Parameters
    ----------
    arguments : sequence of str
        Of Python, for a child that writes a line of JSON before and after each case; ``--first`` and ``--cases`` are
        added.

    Returns
    -------
    outcomes : Counter
    failures : list of str
    """
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    at = numbers.start
    while at < numbers.stop:
        command = [sys.executable, *arguments, "--first", str(at), "--cases", str(numbers.stop)]
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
    """Return the figures of all cases."""
    lines = [f"{count:>7}  {what}" for what, count in outcomes.most_common()]
    lines += [f"{sum(outcomes.values())} cases in {seconds:.0f} s; failures: {len(failures)}", *failures[:30]]
    return "\n".join(lines)
