"""boostbp fit: train on a file and save the model."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from boostbp.cli import console as cli

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP

LARGE = 1 << 30  # files with more bytes of numbers are read block by block: 1 GiB. Arbitrary
TARGET_ROWS = 200_000  # rows of such a file from which the task is inferred. Arbitrary
_DATA = "CSV file with a header, Parquet file, or folder of either; those of over a gigabyte may exceed memory."


def fit_file(
    data: Annotated[Path, Argument(help=_DATA)],
    target: Annotated[str, Option("--target", "-t", help="Column to predict.")],
    model: cli.Model,
    file_options: cli.StatedOptions,
    task: cli.TaskOption = cli.Task.auto,
    backend: Annotated[str | None, Option("--backend", "-b", help="Library that grows the trees.")] = None,
    assigned: cli.Set = None,
    config: Annotated[Path | None, Option(exists=True, dir_okay=False, help="TOML file of parameters.")] = None,
    valid: Annotated[Path | None, Option(help="File that chooses the best epoch, not held-out rows of DATA.")] = None,
    categorical: cli.Categorical = None,
    numeric: cli.Numeric = None,
    drop: cli.Drop = None,
    groups: Annotated[
        str | None, Option(metavar="COLUMN", help="Column of groups, not a feature: a group is held out as a whole.")
    ] = None,
    offset: cli.Offset = None,
    init_model: Annotated[
        Path | None, Option(help="File of a model to continue; it says how columns are read.")
    ] = None,
    seed: cli.Seed = 0,
    n_jobs: cli.Jobs = 1,
    progress: Annotated[bool | None, Option(help="Show a bar of the training. Default: on a terminal.")] = None,
    quiet: cli.Quiet = False,
) -> None:
    """Train a deep model on a table in CSV or Parquet files, and save it.

    Ctrl-C saves the best state so far; the exit code is 130.
    """
    from boostbp import storage
    from boostbp.cli.assignments import implied_task, settings
    from boostbp.comparison.datasets import task_of_data
    from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
    from boostbp.inputs.files.options import FileOptions
    from boostbp.inputs.files.reading import columns_like, numbers_of, read_table, size_in_float64
    from boostbp.inputs.files.tables import ColumnRoles, open_table

    inputs = ("DATA", data), ("--valid", valid), ("--config", config), ("--init-model", init_model)
    cli.check_output("--model", model, *inputs)
    if groups is not None and valid is not None:
        raise cli.UsageError("--groups holds out rows of DATA, and --valid gives other held-out rows: use one of them.")
    if init_model is not None and (categorical or numeric):
        raise cli.UsageError("--init-model says how columns are read: leave out --categorical and --numeric.")
    known_task = task.choice or implied_task(config=config, assigned=assigned)
    offsets = offset or []
    with cli.usage_errors():
        options = FileOptions(numeric=tuple(numeric or ())).replaced(file_options)
    columns = ColumnRoles(categorical=categorical or (), numeric=numeric or (), drop=drop or (), options=options)
    columns = columns._replace(verbatim=offsets if groups is None else [groups, *offsets])
    initial = None
    if init_model is not None:
        initial = storage.load(init_model)
        known_task = _task_of(initial, task)
        options = initial.schema_.roles().options.replaced(file_options)
        columns = initial.schema_.roles()._replace(drop=columns.drop, verbatim=columns.verbatim, options=options)

    text = False if known_task == "regression" else None
    if initial is not None:
        text = hasattr(initial, "classes_") and initial.classes_.dtype.kind == "U"
    rows: dict[str, Any]  # the arguments of `fit`
    by_blocks = data.is_dir() or size_in_float64(data) > LARGE
    table = open_table(data, columns).resolve(beside=[target])
    labels, n_rows = known_task == "classification", TARGET_ROWS if by_blocks else None
    X, y, beside = read_table(table, target, text=text, labels=labels, n_rows=n_rows)
    options = table.roles.options
    if by_blocks:
        rows = {"X": table, "y": target, "groups": groups, "offset": offset}
    else:
        rows = {"X": X, "y": y, "offset": numbers_of(beside, offsets, data.name, options)}
        rows["groups"] = None if groups is None else beside[groups].to_pylist()
    learnt_task = task_of_data(y, known_task, n_offsets=len(offsets))
    estimator_type = BoostBPClassifier if learnt_task == "classification" else BoostBPRegressor
    params = settings(estimator_type, config=config, assigned=assigned, backend=backend)
    estimator = estimator_type(**{"random_state": seed, "n_jobs": n_jobs, **params})
    if valid is not None:
        # with the types of the training file, as a few rows of text may look like numbers
        typed = columns_like(X, options)._replace(verbatim=offsets)
        X_valid, y_valid, beside = read_table(valid, target, typed, text=y.dtype.kind == "U")
        rows |= {"eval_set": [(X_valid, y_valid)], "eval_offset": numbers_of(beside, offsets, valid.name, options)}
    count = "read block by block" if by_blocks else f"{len(y)} rows"
    cli.say(f"{data.name}: {count}, {X.shape[1]} features, {learnt_task} of {target!r}", quiet)

    verbose = estimator.verbose
    if verbose == "auto":  # otherwise --set has it
        estimator.set_params(verbose=0 if quiet else {None: "auto", True: 1, False: 0}[progress])
    start, interrupted = time.perf_counter(), False
    try:
        estimator.fit(init_model=initial, **rows)
    except KeyboardInterrupt:
        if not hasattr(estimator, "network_"):  # nothing to save yet
            raise
        interrupted = True
    seconds = time.perf_counter() - start
    schema = replace(estimator.schema_, file_options=options)
    estimator.model_ = replace(estimator.model_, schema=schema)
    estimator.set_params(verbose=verbose)  # the bar belongs to this command, not to the model
    storage.save(estimator, model)
    for line in (*estimator.summary().splitlines(), f"Fitted in {seconds:.1f} s and saved to {model}."):
        cli.say(line, quiet and not interrupted)
    if interrupted:
        raise Exit(cli.INTERRUPTED)


def _task_of(initial: BaseBoostBP, task: cli.Task) -> Any:
    """Return the task of the model from which training continues."""
    name = type(initial).__name__
    known = {"BoostBPClassifier": "classification", "BoostBPRegressor": "regression"}.get(name)
    if known is None:
        raise cli.UsageError(f"--init-model is a {name}: give the model of a regressor or a classifier.")
    if task.choice not in (None, known):
        raise cli.UsageError(f"--init-model is a {name}, and --task is {task}: leave --task out.")
    return known
