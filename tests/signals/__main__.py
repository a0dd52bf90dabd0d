"""Ctrl-C at random moments, in child processes: ``python -m tests.signals --trials 100``.

Counts for each kind of work, library, handler of SIGINT and number of threads how many exceptions arrived.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DEFAULTS = {"work": "fit", "model": "regressor", "deep": True, "n_jobs": 1, "threaded": False, "seed": 0, "trials": 30}
HANDLERS = ("user", "python")


def kinds(trials: int, seed: int, *, torch: bool) -> list[dict[str, Any]]:
    """All kinds of trial: the usual fit with each handler, library and number of threads, then one each of others."""
    found = [
        {"backend": backend, "handler": handler, "n_jobs": n_jobs}
        for backend in ("lightgbm", "xgboost")
        for handler in HANDLERS
        for n_jobs in (1, 2)
    ]
    for backend in ("lightgbm", "xgboost"):
        found += [
            {"backend": backend, "handler": handler, "n_jobs": 2, **other}
            for handler in HANDLERS
            for other in (
                {"deep": "auto"},
                {"deep": "auto", "n_jobs": 1},
                {"work": "fit_again"},
                {"work": "fit_more"},
                {"work": "use", "deep": "auto"},
                {"model": "classifier", "deep": "auto"},
                {"threaded": True},
                *([{"model": "mixture"}] if torch else []),
            )
        ]
    return [DEFAULTS | {"trials": trials, "seed": seed} | kind for kind in found]


def run(kind: dict[str, Any], timeout: float = 3600) -> dict[str, int]:
    """Trials of one kind in a child; one that dies is counted by how it died."""
    command = [sys.executable, "-m", "tests.signals.trials", json.dumps(DEFAULTS | kind)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=ROOT)
    if done.returncode:
        return {f"died with {done.returncode}: {done.stderr.strip()[-2000:]}": 1}
    if "Exception ignored" in done.stderr:
        return {f"printed and lost: {done.stderr.strip()[-2000:]}": 1}
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def main(argv: Sequence[str] | None = None) -> int:
    """Run all kinds and print the counts of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.signals", description=__doc__)
    parser.add_argument("--trials", type=int, default=30, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--torch", action="store_true", help="mixtures, too")
    options = parser.parse_args(argv)
    total: Counter[str] = Counter()
    for kind in kinds(options.trials, options.seed, torch=options.torch):
        counts = run(kind)
        total.update({f"{kind['backend']}: {what}": n for what, n in counts.items()})
        told = {name: value for name, value in kind.items() if DEFAULTS.get(name) != value}
        print(json.dumps(counts), json.dumps(told), flush=True)
    print(json.dumps(total, indent=1))
    return int(any(not what.endswith(": heard") for what in total))


if __name__ == "__main__":
    sys.exit(main())
