"""boostbp compare: the deep model beside the single-layer models, as a table."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.status import Status
from rich.text import Text
from typer import Argument, Option

from boostbp.cli import console as cli
from boostbp.runtime.atomic_write import atomic_write
from boostbp.runtime.messages import printable

_DEFAULT_DATA = ["breast_cancer", "diabetes", "robot_arm"]
_BACKEND = "Library under deep models. Repeatable. Default: lightgbm and xgboost."
_DATA = f"Data sets: names, openml:NAME, .csv or .parquet files. Default: {' '.join(_DEFAULT_DATA)}."


def compare(
    file_options: cli.StatedOptions,
    data: Annotated[list[str] | None, Argument(help=_DATA)] = None,
    target: Annotated[str | None, Option("--target", "-t", help="Column to predict, for a file.")] = None,
    task: cli.TaskOption = cli.Task.auto,
    backend: Annotated[list[str] | None, Option("--backend", "-b", help=_BACKEND)] = None,
    assigned: cli.Set = None,
    test_size: Annotated[float, Option(help="Share of the rows kept for the scores.")] = 0.25,
    folds: Annotated[int | None, Option(min=2, help="Cross-validate with so many folds instead of one split.")] = None,
    categorical: cli.Categorical = None,
    numeric: cli.Numeric = None,
    drop: cli.Drop = None,
    seed: cli.Seed = 0,
    n_jobs: cli.Jobs = 1,
    json_out: Annotated[Path | None, Option("--json", help="Write the results to this file, too.")] = None,
    html_out: Annotated[Path | None, Option("--html", help="Write a report with pictures to this single file.")] = None,
) -> None:
    """Train deep and single-layer models on the same split, and print scores, seconds, and whether depth pays.

    Every model trains on the same rows in its own process, and chooses its length on the same validation rows. Test
    rows are used only for the table. A rehearsal on few rows comes before the clock starts, so imports do not count.
    """
    from boostbp.cli.assignments import implied_task, settings
    from boostbp.cli.report import comparison, page
    from boostbp.cli.report.contenders import SINGLE_LAYER, deep
    from boostbp.cli.report.datasets import DATASETS, load_dataset
    from boostbp.cli.report.result import depth_in_words, tables_for
    from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
    from boostbp.inputs.files.options import FileOptions
    from boostbp.inputs.files.tables import ColumnRoles
    from boostbp.runtime.versions import versions

    if not 0.0 < test_size < 1.0:
        raise cli.UsageError(f"--test-size {test_size} is not between 0 and 1.")
    inputs = [("DATA", Path(source)) for source in data or () if source not in DATASETS]
    if json_out is not None:
        cli.check_output("--json", json_out, *inputs)
    if html_out is not None:
        cli.check_output("--html", html_out, *inputs, ("--json", json_out))
        page.check_report(html_out)
    with cli.usage_errors():
        options = FileOptions(numeric=tuple(numeric or ())).replaced(file_options)
    columns = ColumnRoles(categorical=categorical or (), numeric=numeric or (), drop=drop or (), options=options)
    implied = implied_task(assigned=assigned)
    jobs = []
    for source in dict.fromkeys(data or _DEFAULT_DATA):  # raise errors before hours of training
        file_task = None if source in DATASETS else implied
        dataset = load_dataset(source, target=target, task=task.choice or file_task, columns=columns)
        estimator = BoostBPClassifier if dataset.task == "classification" else BoostBPRegressor
        params = settings(estimator, assigned=assigned)
        parts = comparison.splits(dataset.X, dataset.y, dataset.task, test_size=test_size, folds=folds, seed=seed)
        jobs.append((source, dataset, params, parts))

    studies = {}
    for source, dataset, params, parts in jobs:
        models = [deep(name, params) for name in dict.fromkeys(backend or ("lightgbm", "xgboost"))] + [*SINGLE_LAYER]
        with cli.console().status("") as status:
            watch, pictures = partial(_show_progress, status, source, folds), html_out is not None
            results = comparison.compare_models(parts, models, n_jobs=n_jobs, seed=seed, evidence=pictures, watch=watch)
        rows, features = dataset.X.shape
        splitting = "one split" if folds is None else f"{folds} folds"
        facts = f"{dataset.task}, {rows} rows, {features} features, {splitting}"
        for table in tables_for(results, printable(f"{dataset.name}: {facts}"), cli.output()):
            cli.output().print(table)
        for line in depth_in_words(results):
            cli.output().print(printable(line), soft_wrap=True)
        for result in results:
            if result.state != "ran":
                cli.say(f"{result.model} {result.state}: {result.reason}")
        studies[source] = page.Study(dataset.name, facts, results)
    if json_out is not None:
        listed = {source: [result.facts() for result in study.results] for source, study in studies.items()}
        with atomic_write(json_out) as part:
            part.write_text(json.dumps({"machine": versions(), "results": listed}, indent=2), encoding="utf-8")
    if html_out is not None:
        shown = {"seed": seed, "threads": n_jobs, "folds": folds or "none", "test share": test_size, **params}
        page.write_report(html_out, list(studies.values()), {name: str(value) for name, value in shown.items()})
    failed = [f"{r.model} on {s}" for s, study in studies.items() for r in study.results if r.state == "failed"]
    if failed:
        raise cli.fail(f"failed: {', '.join(failed)}.")


def _show_progress(status: Status, source: str, folds: int | None, model: str, fold: int) -> None:
    of_folds = "" if folds is None else f", fold {fold + 1} of {folds}"
    status.update(Text(printable(f"{source}: {model}{of_folds}")))  # a status would read markup in a string
