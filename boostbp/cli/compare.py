"""boostbp compare: the deep model beside the single-layer models, as a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.status import Status
from rich.text import Text

from boostbp.atomic_write import atomic_write
from boostbp.cautions import printable
from boostbp.cli.console import (
    Categorical,
    Drop,
    Jobs,
    Missing,
    Numeric,
    Seed,
    Set,
    Task,
    check_written,
    console,
    fail,
    one_line_errors,
    output,
    say,
)

if TYPE_CHECKING:
    from boostbp.report.page import Study
    from boostbp.report.result import Result

_SHIPPED = ["breast_cancer", "digits", "diabetes"]


@one_line_errors
def compare(
    data: Annotated[
        list[str] | None,
        typer.Argument(help=f"Data sets: names, openml:NAME, .csv or .parquet files. Default: {' '.join(_SHIPPED)}."),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column to predict, for a file.")] = None,
    task: Annotated[Task, typer.Option(help="auto: by the target.")] = Task.auto,
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", "-b", help="Library under deep models. Repeatable. Default: lightgbm and xgboost."),
    ] = None,
    assigned: Set = None,
    test_size: Annotated[float, typer.Option(help="Share of the rows kept for the scores.")] = 0.25,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate: so many folds in the place of one split.")
    ] = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    drop: Drop = None,
    missing: Missing = None,
    seed: Seed = 0,
    n_jobs: Jobs = 1,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write the results here, too.")] = None,
    html_out: Annotated[
        Path | None, typer.Option("--html", help="Write a report with pictures here: one file, without network.")
    ] = None,
) -> None:
    """Train deep and single-layer models on the same split, and print score, seconds and memory.

    Every model trains on the same rows in a process of its own and chooses its length on the same
    validation rows. The test rows serve the table alone. Times come after a rehearsal on few rows,
    so that compiling is not counted.
    """
    from boostbp.cli.assignments import settings, task_told
    from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
    from boostbp.files.tables import ColumnRoles
    from boostbp.report import comparison, page
    from boostbp.report.datasets import NAMES, load
    from boostbp.versions import versions

    if not 0.0 < test_size < 1.0:
        raise fail(f"--test-size {test_size} is not between 0 and 1.", 2)
    read = [("DATA", Path(source)) for source in data or () if source not in NAMES]
    if json_out is not None:
        check_written("--json", json_out, *read)
    if html_out is not None:
        check_written("--html", html_out, *read, ("--json", json_out))
        page.check(html_out)
    columns = ColumnRoles(categorical=categorical or (), numeric=numeric or (), drop=drop or (), missing=missing or ())
    outcomes: dict[str, list[Result]] = {}
    studies: list[Study] = []
    datasets = {}
    by_params = task_told(assigned=assigned or ())
    for source in data or _SHIPPED:  # what cannot be compared is refused before hours of training
        wanted = task.given or (None if source in NAMES else by_params)
        dataset = load(source, target=target, task=wanted, columns=columns)
        estimator = BoostBPClassifier if dataset.task == "classification" else BoostBPRegressor
        try:
            params = settings(estimator, assigned=assigned or ())
        except ValueError as error:
            raise fail(str(error), 2) from error
        comparison.check(dataset.X, dataset.y, task=dataset.task, test_size=test_size, folds=folds, seed=seed)
        datasets[source] = dataset, params
    for source, (dataset, params) in datasets.items():
        with console().status(_doing(source, "splitting")) as status:
            outcomes[source] = comparison.compare(
                dataset.X,
                dataset.y,
                task=dataset.task,
                backends=backend or ("lightgbm", "xgboost"),
                params=params,
                test_size=test_size,
                folds=folds,
                n_jobs=n_jobs,
                seed=seed,
                evidence=html_out is not None,
                watch=_watch(status, source),
            )
        rows, features = dataset.X.shape
        how = "one split" if folds is None else f"{folds} folds"
        facts = f"{dataset.task}, {rows} rows, {features} features, {how}"
        _show(outcomes[source], f"{dataset.name}: {facts}")
        studies.append(page.Study(dataset.name, facts, outcomes[source]))
    if json_out is not None:
        listed = {source: [result.facts() for result in results] for source, results in outcomes.items()}
        with atomic_write(json_out) as part:
            part.write_text(json.dumps({"machine": versions(), "results": listed}, indent=2), encoding="utf-8")
    if html_out is not None:
        told = {"seed": seed, "threads": n_jobs, "folds": folds or "none", "test share": test_size, **params}
        page.write(html_out, studies, {name: str(value) for name, value in told.items()})
    failed = [f"{r.model} on {source}" for source, results in outcomes.items() for r in results if r.state == "failed"]
    if failed:
        raise fail(f"failed: {', '.join(failed)}.")


def _watch(status: Status, source: str) -> Callable[[str], None]:
    return lambda model: status.update(_doing(source, model))


def _doing(source: str, what: str) -> Text:
    return Text(printable(f"{source}: {what}"))  # a status would read markup in a string


def _show(results: list[Result], title: str) -> None:
    from boostbp.report.table import tables

    for part in tables(results, printable(title), output()):
        output().print(part)
    for result in results:
        if result.state != "ran":
            say(f"{result.model} {result.state}: {result.reason}")
