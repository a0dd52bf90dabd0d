"""boostbp fit: train on a file and save the model."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boostbp.cli.console import (
    INTERRUPTED,
    Categorical,
    Drop,
    Jobs,
    Missing,
    Model,
    Numeric,
    Offset,
    Quiet,
    Seed,
    Set,
    Task,
    TaskOption,
    UsageError,
    check_output,
    say,
)

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP

LARGE = 1 << 30  # files with more bytes of numbers are read block by block: 1 GiB. Arbitrary
TARGET_ROWS = 200_000  # rows of such a file from which the task is inferred. Arbitrary


def fit_file(
    data: Annotated[
        Path,
        typer.Argument(
            help="CSV file with a header, Parquet file, or folder of either. A folder, and a file of more than a "
            "gigabyte of numbers, is read block by block, and may be larger than memory."
        ),
    ],
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")],
    model: Model,
    task: TaskOption = Task.auto,
    backend: Annotated[str | None, typer.Option("--backend", "-b", help="Library that grows the trees.")] = None,
    assigned: Set = None,
    config: Annotated[
        Path | None, typer.Option("--config", exists=True, dir_okay=False, help="TOML file of parameters.")
    ] = None,
    valid: Annotated[
        Path | None, typer.Option(help="File that chooses the best epoch; by default a part of DATA is held out.")
    ] = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    drop: Drop = None,
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of groups, not a feature: a group is held out as a whole."),
    ] = None,
    offset: Offset = None,
    init_model: Annotated[
        Path | None,
        typer.Option(help="File of a model that training continues on these rows. It decides how columns are read."),
    ] = None,
    missing: Missing = None,
    seed: Seed = 0,
    n_jobs: Jobs = 1,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Show a bar of the training. Default: on a terminal."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train a deep model on a table in CSV or Parquet files, and save it.

    Ctrl-C saves the best state so far; the exit code is 130.
    """
    from boostbp import storage
    from boostbp.cli.assignments import implied_task, settings
    from boostbp.cli.report.datasets import task_of_data
    from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
    from boostbp.inputs.files.reading import columns_like, first_rows, numbers_of, read_table, size_in_float64
    from boostbp.inputs.files.tables import ColumnRoles, open_table

    inputs = ("DATA", data), ("--valid", valid), ("--config", config), ("--init-model", init_model)
    check_output("--model", model, *inputs)
    if groups is not None and valid is not None:
        raise UsageError("--groups holds out rows of DATA, and --valid gives other held-out rows: use one of them.")
    if init_model is not None and (categorical or numeric):
        raise UsageError("--categorical and --numeric say how columns are read, as --init-model does: leave them out.")
    known_task = task.choice or implied_task(config=config, assigned=assigned)
    offsets = offset or []
    verbatim = offsets if groups is None else [groups, *offsets]
    columns = ColumnRoles(
        categorical=categorical or (), numeric=numeric or (), verbatim=verbatim, drop=drop or (), missing=missing or ()
    )
    initial = None if init_model is None else storage.load(init_model)
    if initial is not None:
        known_task = _task_of(initial, task)
        schema = initial.schema_.roles()
        columns = columns._replace(features=schema.features, categorical=schema.categorical, numeric=schema.numeric)

    rows: dict[str, Any]  # the arguments of `fit`
    by_blocks = data.is_dir() or size_in_float64(data) > LARGE
    if by_blocks:
        table = open_table(data, columns).resolve(beside=[target])
        X, y = first_rows(table, target, TARGET_ROWS)
        rows = {"X": table, "y": target, "groups": groups, "offset": offset}
    else:
        text = None if initial is None else hasattr(initial, "classes_") and initial.classes_.dtype.kind == "U"
        X, y, beside = read_table(data, target, columns, text=text)
        rows = {"X": X, "y": y, "offset": numbers_of(beside, offsets, data.name)}
        rows["groups"] = None if groups is None else beside[groups].to_pylist()
    learnt_task = task_of_data(y, known_task, n_offsets=len(offsets))
    estimator_type = BoostBPClassifier if learnt_task == "classification" else BoostBPRegressor
    params = settings(estimator_type, config=config, assigned=assigned, backend=backend)
    estimator = estimator_type(**{"random_state": seed, "n_jobs": n_jobs, **params})
    if valid is not None:
        # with the types of the training file, as a few rows of text may look like numbers
        typed = columns_like(X, missing or ())._replace(verbatim=offsets)
        X_valid, y_valid, beside = read_table(valid, target, typed, text=y.dtype.kind == "U")
        rows |= {"eval_set": [(X_valid, y_valid)], "eval_offset": numbers_of(beside, offsets, valid.name)}
    count = "read block by block" if by_blocks else f"{len(y)} rows"
    say(f"{data.name}: {count}, {X.shape[1]} features, {learnt_task} of {target!r}", quiet)

    has_bar = estimator.verbose == 0 and not quiet and (sys.stderr.isatty() if progress is None else progress)
    if has_bar:
        estimator.set_params(verbose=1)
    start, interrupted = time.perf_counter(), False
    try:
        estimator.fit(init_model=initial, **rows)
    except KeyboardInterrupt:
        if not hasattr(estimator, "network_"):  # nothing to save yet
            raise
        interrupted = True
    seconds = time.perf_counter() - start
    if has_bar:
        estimator.set_params(verbose=0)  # the bar belongs to this command, not to the model
    storage.save(estimator, model)
    for line in (*estimator.summary().splitlines(), f"Fitted in {seconds:.1f} s and saved to {model}."):
        say(line, quiet and not interrupted)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _task_of(initial: BaseBoostBP, task: Task) -> Any:
    """Return the task of the model from which training continues."""
    name = type(initial).__name__
    known = {"BoostBPClassifier": "classification", "BoostBPRegressor": "regression"}.get(name)
    if known is None:
        raise UsageError(f"--init-model is a {name}: give the model of a regressor or a classifier.")
    if task.choice not in (None, known):
        raise UsageError(f"--init-model is a {name}, and --task is {task}: leave --task out.")
    return known
