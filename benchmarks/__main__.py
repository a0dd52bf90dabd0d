"""Run the speed suites: medians and ratios measured side by side, as a table and as JSON.

A run that is given the JSON file of an interrupted one goes on from there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import cheaper, distributed, intervals, modes, overhead, prediction, reference, scaling, shares, startup
from benchmarks.accuracy.data import SETS
from benchmarks.cases import CASES, Case
from boostbp.backends import available
from boostbp.runtime.atomic_write import atomic_write
from boostbp.runtime.versions import versions

SUITES = (
    "overhead", "native", "prediction", "vjp", "threads", "growth", "memory", "profile", "startup",
    "kept", "shared", "sampled", "reference", "modes", "distributed", "workers", "intervals", "files",
)  # fmt: skip


def main(argv: list[str] | None = None, known_cases: Mapping[str, Case] = CASES) -> dict[str, Any]:
    """Parse the arguments, run the suites, print and write what they found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="suite", help=f"any of {', '.join(SUITES)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and rows")
    parser.add_argument("--backend", action="append", choices=("lightgbm", "xgboost"), help="again for several")
    parser.add_argument("--case", action="append", choices=tuple(CASES), help="again for several")
    parser.add_argument("--cores", type=int, default=None, help="cores for overhead; all if not given")
    parser.add_argument("--repeats", type=int, default=None)
    parser.add_argument("--json", type=Path, default=None, help="file to write, and to go on from")
    parser.add_argument("--data-dir", type=Path, default=None, help="files of tables, for modes, intervals and files")
    options = parser.parse_args(argv)
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"unknown suite {sorted(unknown)}: choose from {', '.join(SUITES)}")
    found: dict[str, Any] = {"machine": versions(), "quick": options.quick, "results": []}
    if options.json is not None and options.json.exists():
        earlier = json.loads(options.json.read_text(encoding="utf-8"))
        if {**earlier, "results": []} == found:
            found = earlier
    done = {(result["suite"], result["of"]) for result in found["results"]}
    print(" ".join(f"{key}={value}" for key, value in found["machine"].items()), flush=True)
    for suite, label, work in _jobs(options, known_cases):
        if (suite, label) in done:
            continue
        result = {"suite": suite, "of": label} | work()
        found["results"].append(result)
        shown = [f"{key}: {_text(value)}" for key, value in list(result.items())[2:] if not isinstance(value, list)]
        print(f"{suite:<12}{label:<20}  " + "  ".join(shown), flush=True)
        if options.json is not None:
            with atomic_write(options.json) as part:
                part.write_text(json.dumps(found, indent=2), encoding="utf-8")
    return found


def _jobs(
    options: argparse.Namespace, known_cases: Mapping[str, Case]
) -> list[tuple[str, str, Callable[[], dict[str, Any]]]]:
    repeats = options.repeats or (3 if options.quick else 5)
    names = options.backend or [name for name in ("lightgbm", "xgboost") if name in available()]
    sizes = options.case or list(CASES)
    cases = {name: known_cases[name].quick() if options.quick else known_cases[name] for name in sizes}
    per_case: dict[str, Callable[..., dict[str, Any]]] = {
        "overhead": lambda case, name: overhead.overhead(case, name, repeats=repeats, cores=options.cores),
        "vjp": lambda case, name: overhead.vjp(case, name, repeats=repeats),
        "threads": lambda case, name: overhead.two_threads(case, name, repeats=repeats),
        "memory": scaling.memory,
        "profile": shares.profile,
        "kept": lambda case, name: cheaper.kept(case, name, repeats=repeats),
        "shared": lambda case, name: cheaper.shared(case, name, repeats=repeats),
        "sampled": lambda case, name: cheaper.sampled(case, name, repeats=repeats),
    }
    top = 30_000 if options.quick else 1_000_000
    rows = tuple(n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000) if n <= top)
    many = 10_000 if options.quick else 100_000
    largest = replace(CASES["large"], outputs=1, rounds=3 if options.quick else 10)
    jobs: list[tuple[str, str, Callable[[], dict[str, Any]]]] = []
    for suite in options.suites or SUITES:
        if suite in per_case:
            for key, case in cases.items():
                for name in names:
                    jobs.append((suite, f"{key} {name}", lambda s=suite, c=case, n=name: per_case[s](c, n)))
        elif suite == "native":
            jobs += [(suite, key, lambda c=case: overhead.native(c, repeats=repeats)) for key, case in cases.items()]
        elif suite == "prediction":
            for key, case in cases.items():
                jobs.append((suite, key, lambda c=case: prediction.prediction(c, rows=many, repeats=repeats)))
        elif suite == "files":
            size = 600 if options.quick else 3000
            for table, name in prediction.TABLES.items():
                if not SETS[name].missing(options.data_dir):
                    work = partial(prediction.default_model, table, options.data_dir, rows=size, repeats=repeats)
                    jobs.append((suite, table, work))
        elif suite == "growth":
            for name in names:
                jobs.append((suite, name, lambda n=name: scaling.growth(largest, n, rows=rows, repeats=1)))
        elif suite == "reference":
            jobs.append(
                (suite, "paper", lambda: reference.reference(CASES["paper"], rounds=2 if options.quick else 10))
            )
        elif suite == "distributed":
            size = 3000 if options.quick else 300_000
            for model in ("network", "quality 2"):
                for name in names:
                    for workers in distributed.WORKERS:
                        work = partial(distributed.apart, model, name, workers, size)
                        jobs.append((suite, f"{model} {name} {workers} workers", work))
        elif suite == "workers":
            for size, features in distributed.QUICK_SIZES if options.quick else distributed.SIZES:
                for name in names:
                    for workers in (1, 2, 3, 4):
                        work = partial(distributed.grown, "epoch", name, workers, size, features)
                        jobs.append((suite, f"{size} x {features} {name} {workers} workers", work))
        elif suite == "intervals":
            how = {"rows": 600 if options.quick else 3000, "splits": options.repeats or (1 if options.quick else 5)}
            for table in intervals.tables(options.data_dir):
                for model in intervals.models_of(table):
                    work = partial(intervals.intervals, table, model, options.data_dir, **how)
                    jobs.append((suite, f"{table}: {model}", work))
        elif suite == "modes":
            size, epochs = (3000, 3) if options.quick else (10_000, 60)
            for task in modes.tasks(options.data_dir):
                jobs.append((suite, f"{task}: single layers", partial(modes.peers, task, options.data_dir, size)))
                for name in modes.MODES:
                    if modes.MODES[name].get("backend", "lightgbm") in names:
                        work = partial(modes.mode, task, name, options.data_dir, rows=size, epochs=epochs)
                        jobs.append((suite, f"{task}: {name}", work))
        else:
            jobs.append((suite, "", lambda: startup.startup(repeats=repeats)))
    return jobs


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={_text(each)}" for key, each in value.items())
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
