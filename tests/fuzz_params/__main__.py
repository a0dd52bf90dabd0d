"""Walk every native parameter in child processes: ``python -m tests.fuzz_params --cases 20000 --seed 1``.

Each parameter is walked alone, with good, bad and absurd values; then come combinations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz_params.cases import BACKENDS, Case, combinations, walk
from tests.fuzz_params.check import outcome_of
from tests.fuzz_params.children import Found, do, run

__all__ = ["main", "report", "walked"]


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments; do all cases in children, or in this process from one on."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_params", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="combinations for each library, beside the walk")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, help="do the cases from this one on, in this process")
    parser.add_argument("--file", type=Path, help="where this process writes what it found")
    options = parser.parse_args(argv)
    if options.first is None:
        found = walked(options.cases, options.seed)
        print(report(found))
        return int(bool(found.failures))
    for name in BACKENDS:  # so that the libraries are loaded before memory is limited
        outcome_of(Case(name, "network", {}))
    do(_cases(options.cases, options.seed), outcome_of, options.first, options.file)
    return 0


def walked(number: int, seed: int) -> Found:
    """Do the walk of every library, and so many combinations for each, in children."""
    command = [sys.executable, "-m", "tests.fuzz_params", "--cases", str(number), "--seed", str(seed)]
    return run(_cases(number, seed), command)


def _cases(number: int, seed: int) -> list[Case]:
    walks = [case for name in BACKENDS for case in walk(name)]
    return walks + [case for name in BACKENDS for case in combinations(name, number, seed)]


def report(found: Found) -> str:
    """Figures of all cases."""
    total = sum(found.outcomes.values())
    models = sum(count for what, count in found.outcomes.items() if what.endswith(": model"))
    lines = [f"{count:>7}  {what}" for what, count in found.outcomes.most_common(40)]
    lines += [f"FAILED: {failure}" for failure in found.failures]
    lines.append(
        f"{total} cases: {models} finite models, {total - models} refused by name; {len(found.failures)} failures"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
