"""boostbp fit: train on a file and save the model."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from boostbp.cli.console import (
    INTERRUPTED,
    Backend,
    Categorical,
    Config,
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
    check_written,
    fail,
    one_line_errors,
    say,
)

LARGE = 1 << 30  # bytes of numbers from which on a file is read block by block
TOLD_BY = 200_000  # rows that tell what the target is, where not all are in memory


@one_line_errors
def fit(
    data: Annotated[
        Path,
        typer.Argument(
            help="CSV file with a header, Parquet file, or folder of either. A folder, and a file of more than a "
            "gigabyte of numbers, is read block by block, and may be larger than memory."
        ),
    ],
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")],
    model: Model,
    task: Annotated[Task, typer.Option(help="auto: by the target.")] = Task.auto,
    backend: Backend = None,
    assigned: Set = None,
    config: Config = None,
    valid: Annotated[
        Path | None, typer.Option(help="File to choose the best epoch by; by default a part of DATA is held out.")
    ] = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    drop: Drop = None,
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column, no feature, whose rows of one value are held out together."),
    ] = None,
    offset: Offset = None,
    init_model: Annotated[
        Path | None,
        typer.Option(
            "--init-model",
            help="File of a model that training goes on from, on these rows. It reads the columns as that model does.",
        ),
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
    import numpy as np

    from boostbp import storage
    from boostbp.cli.assignments import settings, task_told
    from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
    from boostbp.files.reading import columns_like, first_rows, numbers_of, read_table, size_in_float64
    from boostbp.files.tables import ColumnRoles, open_table
    from boostbp.report.datasets import task_of

    files = ("DATA", data), ("--valid", valid), ("--config", config), ("--init-model", init_model)
    check_written("--model", model, *files)
    if groups is not None and valid is not None:
        raise fail("--groups is of rows held out of DATA, and --valid is held out already: leave one of them out.", 2)
    columns = ColumnRoles(
        categorical=categorical or (),
        numeric=numeric or (),
        verbatim=[*([] if groups is None else [groups]), *(offset or ())],
        drop=drop or (),
        missing=missing or (),
    )
    try:
        told = task.given or task_told(config=config, assigned=assigned or ())
    except ValueError as error:
        raise fail(str(error), 2) from error
    if init_model is not None and (categorical or numeric):
        raise fail("--categorical and --numeric say how columns are read, as --init-model does: leave them out.", 2)
    earlier = None if init_model is None else storage.load(init_model)
    if earlier is not None:
        known = earlier.schema_.roles()
        columns = columns._replace(features=known.features, categorical=known.categorical, numeric=known.numeric)
    by_blocks = data.is_dir() or size_in_float64(data) > LARGE
    rows: dict[str, Any] = {"init_model": earlier}
    if by_blocks:
        table = open_table(data, columns).resolve(beside=[target])
        X, y = first_rows(table, target, TOLD_BY)
        rows |= {"X": table, "y": target, "groups": groups, "offset": offset}
    else:
        text = None if earlier is None else np.asarray(getattr(earlier, "classes_", 0)).dtype.kind == "U"
        X, y, beside = read_table(data, target, columns, text=text)
        of_groups = None if groups is None else beside[groups].to_pylist()
        rows |= {"X": X, "y": y, "groups": of_groups, "offset": numbers_of(beside, offset or (), data.name)}
    kind: str = task_of(y, told, n_offsets=len(offset or ())) if earlier is None else _task_of(earlier, task)
    estimator_type = BoostBPClassifier if kind == "classification" else BoostBPRegressor
    try:
        params = settings(estimator_type, config=config, assigned=assigned or (), backend=backend)
    except ValueError as error:
        raise fail(str(error), 2) from error
    estimator = estimator_type(**{"random_state": seed, "n_jobs": n_jobs, **params})
    if valid is not None:
        # typed as the training file: few rows of text may look like numbers
        as_trained = columns_like(X, missing or ())._replace(verbatim=offset or ())
        *pair, beside = read_table(valid, target, as_trained, text=y.dtype.kind == "U")
        rows |= {"eval_set": [tuple(pair)], "eval_offset": numbers_of(beside, offset or (), valid.name)}
    if not quiet:
        count = "read block by block" if by_blocks else f"{len(y)} rows"
        say(f"{data.name}: {count}, {X.shape[1]} features, {kind} of {target!r}")
    interrupted, begun = False, time.perf_counter()
    shows = estimator.verbose == 0 and not quiet and (sys.stderr.isatty() if progress is None else progress)
    try:
        estimator.set_params(verbose=1 if shows else estimator.verbose).fit(**rows)
    except KeyboardInterrupt:
        if not hasattr(estimator, "network_"):  # nothing to save yet
            raise
        interrupted = True
    seconds = time.perf_counter() - begun
    if shows:
        estimator.set_params(verbose=0)  # a matter of this command, not of the model
    storage.save(estimator, model)
    if interrupted or not quiet:
        for line in (*estimator.summary().splitlines(), f"Fitted in {seconds:.1f} s and saved to {model}."):
            say(line)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _task_of(earlier: Any, task: Task) -> str:
    """The task of a model that training goes on from."""
    kinds = {"BoostBPClassifier": "classification", "BoostBPRegressor": "regression"}
    kind, what = kinds.get(type(earlier).__name__), f"--init-model is a {type(earlier).__name__}"
    if kind is None:
        raise fail(f"{what}: give the model of a regressor or a classifier.", 2)
    if task.given not in (None, kind):
        raise fail(f"{what}, and --task is {task.value}: leave --task out.", 2)
    return kind
