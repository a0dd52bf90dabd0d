"""Contract: on no table is a model worse than the library that it wraps.

::

    python -m benchmarks.contract --data-dir FOLDER
    python -m benchmarks.contract --data-dir FOLDER --backend xgboost --qualities 2 --splits 5
    python -m benchmarks.contract --data-dir FOLDER --max-time 1.5 --jobs 1

Each model is trained beside the library with early stopping, on the same rows of several splits, both with their
defaults. It breaks the contract on a table if its error exceeds the library's by more than `LIMITS`, in the mean over
the splits and by more than two standard errors of that mean. The command lists each table, and ends with status 1 if
the contract is broken.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.data import SETS, train_rows
from benchmarks.frontier.plan import Cell
from benchmarks.frontier.work import run

TABLES = (
    *("power-plant", "concrete", "energy", "wine-quality-red", "california", "ames", "diabetes", "breast_cancer"),
    *("drug", "adult", "airfoil", "pol", "pumadyn32nm", "sml", "elevators", "segment", "spambase", "splice"),
    *("mammography", "phoneme"),
)
# Largest excess of the error over the library's: that of `quality=1`, and of all other models.
LIMITS = 0.02, 0.01
STANDARD_ERRORS = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description="On no table is a model worse than the library that it wraps.")
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of the data files")
    parser.add_argument("--backend", choices=("lightgbm", "xgboost"), default="lightgbm")
    parser.add_argument("--qualities", type=int, nargs="+", choices=range(1, 6), default=[1, 2, 3])
    parser.add_argument(
        "--max-time",
        type=float,
        nargs="+",
        default=[],
        metavar="TIMES",
        help="the default model, with a limit of so many times the library's seconds, in place of qualities",
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES, metavar="TABLE")
    parser.add_argument("--splits", type=int, choices=range(2, 6), default=3)
    parser.add_argument("--rows", type=int, default=3000, help="most rows to learn from")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="fits at a time, each on one thread")
    options = parser.parse_args()
    absent = {name: SETS[name].missing(options.data_dir) for name in options.tables}
    if any(absent.values()):
        parser.error("; ".join(f"{name} needs {what}" for name, what in absent.items() if what))
    broken = [line for line, holds in verdicts(options) if not holds]
    print(f"The contract is broken {len(broken)} times." if broken else "The contract holds.")
    return bool(broken)


def verdicts(options: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    """Print a line for each table and quality; yield the line, and whether the contract holds there."""
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.tables:
            models = models_of(options)
            errors = {model: _errors(pool, name, model, options) for model in (options.backend, *models)}
            for model in models:
                ratios = np.log(errors[model]) - np.log(errors[options.backend])
                excess, chance = excess_of(ratios)
                limit = LIMITS[not model.startswith("boostbp-1")]
                holds = bool(excess - STANDARD_ERRORS * chance <= np.log1p(limit))
                line = f"{name:18} {model:20} {np.exp(excess):.3f} +- {chance:.3f}  "
                print(f"{line}{'' if holds else 'worse than the library'}", flush=True)
                yield line, holds


def models_of(options: argparse.Namespace) -> list[str]:
    """Return the names of the models that are compared with the library, as `benchmarks.frontier` has them."""
    ours = [f"@{times:g}x" for times in options.max_time] or [f"-{quality}" for quality in options.qualities]
    return [f"boostbp{one}{'-xgboost' * (options.backend == 'xgboost')}" for one in ours]


def excess_of(log_ratios: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the mean of the logarithms of the ratios of two errors, and its standard error."""
    return float(np.mean(log_ratios)), float(np.std(log_ratios, ddof=1) / np.sqrt(len(log_ratios)))


def _errors(pool: ProcessPoolExecutor, name: str, model: str, options: argparse.Namespace) -> list[float]:
    """Return the error of a model on each split. Raises RuntimeError if it did not run."""
    cells = [
        Cell(name, fold, model, min(options.rows, train_rows(name, fold, options.data_dir)), options.rows)
        for fold in range(options.splits)
    ]
    found = list(pool.map(partial(run, data_dir=options.data_dir), cells))
    for cell in found:
        if cell["state"] != "ran":
            raise RuntimeError(f"{model} on {name}: {cell['reason']}")
    return [cell["error"] for cell in found]


if __name__ == "__main__":
    sys.exit(main())
