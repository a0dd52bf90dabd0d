"""What the experiments share: options, cells that survive an interruption, and results as JSON, table and picture."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from tqdm import tqdm

from benchmarks.source import source
from boostbp.runtime.atomic_write import atomic_write
from boostbp.runtime.versions import versions

__all__ = [
    "RECORDED",
    "Cell",
    "Experiment",
    "Options",
    "Row",
    "complaints",
    "made",
    "main",
    "markdown",
    "parser",
    "picture",
    "plain",
    "read",
    "run",
]

RECORDED = Path(__file__).with_name("recorded.jsonl")  # finished cells behind the table of docs/paper.md; see record.py
PICTURE = {"points", "colours", "tested"}  # what an outcome holds for a picture alone


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; `folds` and `seeds` are None where an experiment's own number is wanted."""

    backend: str = "lightgbm"
    data_dir: Path | None = None
    folds: int | None = None
    seeds: int | None = None
    quick: bool = False
    out: Path = Path("paper-results")
    jobs: int = 1
    recorded: bool = False
    record: Path = RECORDED

    def result(self, name: str, ending: str) -> Path:
        """The file of a result: libraries may share a folder, and the rivals that they share."""
        return self.out / f"{name}-{self.backend}.{ending}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One piece of work: ``work(data_dir, **about) -> dict``, all of plain values; `about` is its key."""

    work: Callable[..., dict[str, Any]]
    about: dict[str, Any]

    @property
    def key(self) -> str:
        """The name under which a finished cell is kept; other settings, another key."""
        return json.dumps([self.work.__name__, self.about], sort_keys=True)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: the paper's figure, what came out here by fold or seed, and what it should be.

    `reached` is None where there is nothing to reach, or nothing was run.
    """

    data: str
    model: str
    values: list[float]
    paper: str = ""
    aim: str = ""
    reached: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment: its cells, and what is made of their outcomes.

    Attributes
    ----------
    name, title : str
    cells : Options -> list of Cell
    rows : list of (about, outcome) -> list of Row
    draw : (list of matplotlib axes, list of (about, outcome)) -> None
    panels : (rows, columns)
        Axes that `draw` fills.
    projection : str or None
        Of the axes: None, or "3d".
    """

    name: str
    title: str
    cells: Callable[[Options], list[Cell]]
    rows: Callable[[list[tuple[dict, dict]]], list[Row]]
    draw: Callable[[Any, list[tuple[dict, dict]]], None]
    panels: tuple[int, int] = (1, 1)
    projection: str | None = None
    size: tuple[float, float] = field(default=(2.6, 2.6))


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options of every script."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--backend", default="lightgbm", help="lightgbm (default), xgboost or sklearn")
    made.add_argument("--data-dir", type=Path, metavar="FOLDER", help="the data files; without it OpenML is asked")
    made.add_argument("--folds", type=int, help="only so many folds of a cross-validation")
    made.add_argument("--seeds", type=int, help="repetitions with other random numbers")
    made.add_argument("--quick", action="store_true", help="few folds, seeds, epochs and candidates")
    made.add_argument("--out", type=Path, default=Path("paper-results"), metavar="FOLDER", help="results and pictures")
    made.add_argument("--jobs", type=int, default=1, help="cells at a time, each on one thread")
    made.add_argument("--recorded", action="store_true", help="take finished cells from the record beside the scripts")
    return made


def run(experiment: Experiment, options: Options) -> list[tuple[dict, dict]]:
    """Do the cells that are not done yet, write results and picture, and return all outcomes in order."""
    cells = experiment.cells(options)
    options.out.mkdir(parents=True, exist_ok=True)
    log = options.out / "cells.jsonl"  # one for all experiments, some of which share cells
    done = (read(options.record, pictured=True) if options.recorded else {}) | read(log)
    todo = [cell for cell in cells if cell.key not in done]
    with (
        _appended(log) as lines,
        tqdm(total=len(cells), initial=len(cells) - len(todo), desc=experiment.title, unit="cell") as bar,
    ):
        jobs = (delayed(_work)(cell, options.data_dir) for cell in todo)
        for key, outcome in Parallel(options.jobs, return_as="generator_unordered")(jobs):
            if not outcome.keys() & {"missing", "broken"}:
                lines.write(json.dumps({"cell": key, "outcome": outcome}) + "\n")
                lines.flush()
            done[key] = outcome
            bar.update()
    found = [(cell.about, done[cell.key]) for cell in cells]
    _report(experiment, options, found)
    return found


def read(log: Path, *, pictured: bool = False) -> dict[str, dict]:
    """Finished cells of a file of JSON lines; a line that was torn by an interruption counts as not done.

    With `pictured`, neither do cells that lost their pictures, see `plain`.
    """
    done = {}
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        try:
            kept = json.loads(line)
        except json.JSONDecodeError:
            continue
        if not pictured or kept["outcome"].get("pictured", True):
            done[kept["cell"]] = kept["outcome"]
    return done


def plain(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without its picture, which is large."""
    if PICTURE.isdisjoint(outcome):
        return outcome
    return {name: value for name, value in outcome.items() if name not in PICTURE} | {"pictured": False}


def _appended(log: Path) -> Any:
    """The file, open for more lines; one that was torn does not take the next one with it."""
    lines = log.open("a+b")
    if lines.tell() > 0:
        lines.seek(-1, os.SEEK_END)
        if lines.read() != b"\n":
            lines.write(b"\n")
    lines.close()
    return log.open("a", encoding="utf-8")


def _work(cell: Cell, data_dir: Path | None) -> tuple[str, dict]:
    """What came of a cell, with what it took, when, and by which code."""
    begun = time.perf_counter()
    try:
        outcome = cell.work(data_dir, **cell.about)
    except FloatingPointError as error:  # an explosion is a result
        outcome = {"failed": str(error)}
    except (FileNotFoundError, ImportError) as error:
        outcome = {"missing": str(error)}
    except Exception as error:  # one cell does not end a run of hours
        outcome = {"broken": f"{type(error).__name__}: {error}"}
    outcome |= {"seconds": round(time.perf_counter() - begun, 2)}
    outcome |= {"date": dt.date.today().isoformat(), "source": source()}
    return cell.key, json.loads(json.dumps(outcome))  # the same whether it comes from here or from the file


def _report(experiment: Experiment, options: Options, found: list[tuple[dict, dict]]) -> None:
    rows = experiment.rows(found)
    content = {
        "experiment": experiment.title,
        "backend": options.backend,
        "made": made(found),
        "machine": versions(),
        "quick": options.quick,
        "rows": [asdict(row) for row in rows],
    }
    target = options.result(experiment.name, "json")
    with atomic_write(target) as part:
        part.write_text(json.dumps(content, indent=1), encoding="utf-8")
    picture(experiment, found).savefig(options.result(experiment.name, "png"), dpi=110)


def made(found: list[tuple[dict, dict]]) -> dict[str, list[str]]:
    """The days on which cells were run, and the names of the code that ran them; "unknown" where a cell has none."""
    return {name: sorted({outcome.get(name, "unknown") for _, outcome in found}) for name in ("date", "source")}


def picture(experiment: Experiment, found: list[tuple[dict, dict]]) -> Any:
    """Draw the outcomes: a figure of matplotlib."""
    from matplotlib.figure import Figure

    down, across = experiment.panels
    width, height = experiment.size
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, subplot_kw={"projection": experiment.projection})
    experiment.draw(axes, found)
    figure.suptitle(experiment.title)
    return figure


def complaints(found: list[tuple[dict, dict]]) -> list[str]:
    """What went wrong, one line for each reason."""
    counted: dict[str, int] = {}
    for about, outcome in found:
        for what in ("failed", "missing", "broken"):
            if what in outcome:
                name = about.get("model") or about.get("settings") or about.get("shape")
                reason = outcome[what] if what == "missing" else f"{about.get('data', '')} {name}: {outcome[what]}"
                counted[reason] = counted.get(reason, 0) + 1
    return [f"{number} of {len(found)} cells: {reason.strip()}" for reason, number in counted.items()]


def markdown(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table: mean and, over several folds or seeds, standard deviation."""
    lines = ["| data | model | paper | here | to reach |", "|---|---|---|---|---|"]
    for row in rows:
        here = f"{np.mean(row.values):.5g}" if row.values else "none"
        if len(row.values) > 1:
            here += f" ± {np.std(row.values):.2g} ({len(row.values)})"
        if row.note:
            here += f", {row.note}"
        verdict = {True: f"{row.aim}: yes", False: f"{row.aim}: **no**", None: row.aim}[row.reached]
        lines.append(f"| {row.data} | {row.model} | {row.paper} | {here} | {verdict} |")
    return "\n".join(lines)


def main(experiment: Experiment, description: str | None) -> None:
    """Run one experiment from the command line."""
    options = Options(**vars(parser(description).parse_args()))
    found = run(experiment, options)
    print(markdown(experiment.rows(found)), *complaints(found), sep="\n")
    print(f"Results and picture: {options.result(experiment.name, 'json')}, .png")
