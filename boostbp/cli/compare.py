"""boostbp compare: the deep model beside the single-layer models, as a table."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.status import Status
from rich.text import Text

from boostbp.cli.console import (
    Categorical,
    Drop,
    Jobs,
    Missing,
    Numeric,
    Seed,
    Set,
    Task,
    TaskOption,
    UsageError,
    check_output,
    console,
    fail,
    output,
    say,
)
from boostbp.inputs.files.tables import ColumnRoles
from boostbp.runtime.atomic_write import atomic_write
from boostbp.runtime.messages import printable

_DEFAULT_DATA = ["breast_cancer", "digits", "diabetes"]


def compare(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Data sets: names, openml:NAME, .csv or .parquet files. Default: {' '.join(_DEFAULT_DATA)}."
        ),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column to predict, for a file.")] = None,
    task: TaskOption = Task.auto,
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", "-b", help="Library under deep models. Repeatable. Default: lightgbm and xgboost."),
    ] = None,
    assigned: Set = None,
    test_size: Annotated[float, typer.Option(help="Share of the rows kept for the scores.")] = 0.25,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate with this number of folds instead of one split.")
    ] = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    drop: Drop = None,
    missing: Missing = None,
    seed: Seed = 0,
    n_jobs: Jobs = 1,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write the results to this file, too.")] = None,
    html_out: Annotated[
        Path | None,
        typer.Option("--html", help="Write a report with pictures to this one file, which needs no network."),
    ] = None,
) -> None:
    """Train deep and single-layer models on the same split, and print score, seconds and memory.

    Every model trains on the same rows in its own process, and chooses its length on the same validation rows. Test
    rows are used only for the table. A rehearsal on few rows comes before the clock starts, so imports do not count.
    """
    from boostbp.cli.assignments import implied_task, settings
    from boostbp.cli.report import comparison, page
    from boostbp.cli.report.contenders import SINGLE_LAYER, deep
    from boostbp.cli.report.datasets import NAMES, load_dataset
    from boostbp.cli.report.result import tables_for
    from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
    from boostbp.runtime.versions import versions

    if not 0.0 < test_size < 1.0:
        raise UsageError(f"--test-size {test_size} is not between 0 and 1.")
    inputs = [("DATA", Path(source)) for source in data or () if source not in NAMES]
    if json_out is not None:
        check_output("--json", json_out, *inputs)
    if html_out is not None:
        check_output("--html", html_out, *inputs, ("--json", json_out))
        page.check_report(html_out)
    columns = ColumnRoles(categorical=categorical or (), numeric=numeric or (), drop=drop or (), missing=missing or ())
    implied = implied_task(assigned=assigned)
    jobs = []
    for source in dict.fromkeys(data or _DEFAULT_DATA):  # raise errors before hours of training
        file_task = None if source in NAMES else implied
        dataset = load_dataset(source, target=target, task=task.choice or file_task, columns=columns)
        estimator = BoostBPClassifier if dataset.task == "classification" else BoostBPRegressor
        params = settings(estimator, assigned=assigned)
        parts = comparison.splits(dataset.X, dataset.y, dataset.task, test_size=test_size, folds=folds, seed=seed)
        jobs.append((source, dataset, params, parts))

    studies = {}
    for source, dataset, params, parts in jobs:
        contenders = [deep(name, params) for name in dict.fromkeys(backend or ("lightgbm", "xgboost"))]
        with console().status("") as status:
            show, models = partial(_show_progress, status, source, folds), [*contenders, *SINGLE_LAYER]
            results = comparison.compare_models(
                parts, models, n_jobs=n_jobs, seed=seed, evidence=html_out is not None, watch=show
            )
        rows, features = dataset.X.shape
        splitting = "one split" if folds is None else f"{folds} folds"
        facts = f"{dataset.task}, {rows} rows, {features} features, {splitting}"
        for table in tables_for(results, printable(f"{dataset.name}: {facts}"), output()):
            output().print(table)
        for result in results:
            if result.state != "ran":
                say(f"{result.model} {result.state}: {result.reason}")
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
        raise fail(f"failed: {', '.join(failed)}.")


def _show_progress(status: Status, source: str, folds: int | None, model: str, fold: int) -> None:
    of_folds = "" if folds is None else f", fold {fold + 1} of {folds}"
    status.update(Text(printable(f"{source}: {model}{of_folds}")))  # a status would read markup in a string
