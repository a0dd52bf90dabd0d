"""boostbp compare: which model for a table, and whether the difference is real."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.status import Status
from rich.text import Text
from typer import Argument, Exit, Option

from boostbp.cli import console as cli
from boostbp.runtime.atomic_write import atomic_write
from boostbp.runtime.messages import printable

_DEFAULT_DATA = ["breast_cancer", "diabetes", "robot_arm"]
_DATA = f"Data sets: names, openml:NAME, .csv or .parquet files. Default: {' '.join(_DEFAULT_DATA)}."
_WITH = "Another model: catboost, linear_tree, package.module:make_model, or file.joblib for its settings. Repeatable."
_METRIC = "What the verdict rests on: auc, average_precision, log_loss, brier, rmse, mae, r2, pinball@0.9, ndcg@10, ..."
_TUNE = "Let other libraries try so many random settings, and as many seconds as boostbp takes."
_QUALITY = "Quality of boostbp. Repeatable. Default: 1 and 3."


def compare_file(
    file_options: cli.StatedOptions,
    data: Annotated[list[str] | None, Argument(help=_DATA)] = None,
    target: Annotated[str | None, Option("--target", "-t", help="Column to predict, for a file.")] = None,
    task: cli.TaskOption = cli.Task.auto,
    quality: Annotated[list[int] | None, Option("--quality", "-q", min=1, max=5, help=_QUALITY)] = None,
    others: Annotated[list[str] | None, Option("--with", "-w", metavar="MODEL", help=_WITH)] = None,
    reference: Annotated[str | None, Option(help="Model that others must beat. Default: LightGBM.")] = None,
    metric: Annotated[str | None, Option(help=_METRIC)] = None,
    tune: Annotated[int, Option(min=0, help=_TUNE)] = 0,
    backend: Annotated[str | None, Option("--backend", "-b", help="Library under boostbp.")] = None,
    assigned: cli.Set = None,
    folds: Annotated[str, Option(help="Number of folds, or 'time': test rows follow training rows.")] = "5",
    repeats: Annotated[
        int | None, Option(min=1, help="Times that rows are divided into folds. Default: 2; 1 without DATA.")
    ] = None,
    groups: Annotated[
        str | None, Option(metavar="COLUMN", help="Column of groups, not a feature, that folds do not divide.")
    ] = None,
    query: Annotated[str | None, Option(metavar="COLUMN", help="Column of queries: compare rankings.")] = None,
    event: Annotated[
        str | None, Option(metavar="COLUMN", help="Column of events, 1 or 0: the target is a survival time.")
    ] = None,
    categorical: cli.Categorical = None,
    numeric: cli.Numeric = None,
    drop: cli.Drop = None,
    seed: cli.Seed = 0,
    n_jobs: cli.Jobs = 1,
    json_out: Annotated[Path | None, Option("--json", help="Write the results to this file, too.")] = None,
    html_out: Annotated[Path | None, Option("--html", help="Write a report with pictures to this single file.")] = None,
) -> None:
    """Compare LightGBM, XGBoost, boostbp and models of yours on the same folds, and say which one to use.

    Each model runs in a process of its own, and learns from the same rows. The verdict counts chance: it names a model
    only if its paired differences from the reference are larger than chance explains.
    """
    from boostbp import estimators
    from boostbp.cli.assignments import implied_task, settings
    from boostbp.comparison import page, rendering
    from boostbp.comparison.comparing import default_models, planned
    from boostbp.comparison.comparison import run
    from boostbp.comparison.datasets import DATASETS, load_dataset
    from boostbp.inputs.files.options import FileOptions
    from boostbp.inputs.files.tables import ColumnRoles
    from boostbp.runtime.versions import versions

    inputs = [("DATA", Path(source)) for source in data or () if source not in DATASETS]
    if json_out is not None:
        cli.check_output("--json", json_out, *inputs)
    if html_out is not None:
        cli.check_output("--html", html_out, *inputs, ("--json", json_out))
        page.check_report(html_out)
    with cli.usage_errors():
        options = FileOptions(numeric=tuple(numeric or ())).replaced(file_options)
    columns = ColumnRoles(categorical=categorical or (), numeric=numeric or (), drop=drop or (), options=options)
    columns = columns._replace(verbatim=[name for name in (groups, query, event) if name is not None])
    known_task = task.choice or implied_task(assigned=assigned)
    kind: Any = "ranking" if query is not None else "survival" if event is not None else None
    shared: dict[str, Any] = {"reference": reference, "metric": metric, "tune": tune, "n_jobs": n_jobs}
    shared |= {"folds": int(folds) if folds.isdecimal() else folds, "repeats": repeats or (2 if data else 1)}
    plans = {}
    for source in dict.fromkeys(data or _DEFAULT_DATA):  # raise errors before hours of training
        file_task = task.choice if source in DATASETS else "regression" if kind else known_task
        dataset = load_dataset(source, target=target, task=file_task, columns=columns)
        compared = kind or dataset.task
        estimator = {"classification": "Classifier", "ranking": "Ranker", "survival": "Survival"}.get(compared)
        params = settings(getattr(estimators, f"BoostBP{estimator or 'Regressor'}"), assigned=assigned, backend=backend)
        if "quality" in params:
            raise cli.UsageError("--set quality is --quality here, which may be repeated.")
        beside: dict[str, Any] = {"groups": dataset.beside.get(groups or ""), "qid": dataset.beside.get(query or "")}
        models = [*default_models(compared, quality or ()), *(others or ())]
        more: dict[str, Any] = {"task": compared, "boostbp_params": params, "name": dataset.name, **beside, **shared}
        y = dataset.y if event is None else dataset.with_events(event, target)
        plans[source] = planned(dataset.X, y, models=models, random_state=seed, **more)

    results = {}
    for source, plan in plans.items():
        with cli.console().status("") as status:
            results[source] = result = run(plan, partial(_show_progress, status, source))
        cli.output().print(printable(f"{plan.name}: {result.verdict}"), soft_wrap=True)
        for table in rendering.tables_for(result, cli.output()):
            cli.output().print(table)
        for note in result.notes:
            cli.say(note)
        if result.interrupted:
            break
    if json_out is not None:
        listed = {source: result.to_dict() for source, result in results.items()}
        with atomic_write(json_out) as part:
            part.write_text(json.dumps({"machine": versions(), "results": listed}, indent=2), encoding="utf-8")
    if html_out is not None:
        page.write_report(html_out, list(results.values()))
    failed = [
        f"{model} on {source}"
        for source, result in results.items()
        for model, state in result.states.items()
        if state.startswith("failed")
    ]
    if any(result.interrupted for result in results.values()):
        raise Exit(cli.INTERRUPTED)
    if failed:
        raise cli.fail(f"failed: {', '.join(failed)}.")


def _show_progress(status: Status, source: str, model: str, fold: int, folds: int) -> None:
    # a status would read markup in a string
    status.update(Text(printable(f"{source}: fold {fold + 1} of {folds}, {model}")))
