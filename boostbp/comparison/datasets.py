"""Data sets by name: those of scikit-learn, synthetic ones, files of the user, OpenML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from boostbp.comparison.contenders import Table
from boostbp.inputs.categories import EACH, refuse_numbers_as_text
from boostbp.inputs.files.parts import is_table
from boostbp.inputs.files.reading import read_table
from boostbp.inputs.files.tables import ColumnRoles
from boostbp.losses.base import Task
from boostbp.runtime.messages import require

_MAX_CLASSES = 20  # limit on distinct whole numbers that count as labels, not as an amount. Arbitrary
_MANY_CLASSES = 1000  # more classes take too long to train unasked. Arbitrary
_EVENT, _NO_EVENT = ("1", "1.0", "true"), ("0", "0.0", "false")
_TASK = "or say --task regression, which reads numbers so, or --task classification for labels"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table with a target."""

    name: str  # for a file without its folder
    X: Table  # (rows, features): float64, and categories of a data frame
    y: NDArray[Any]  # (rows,) array: labels, or float64
    task: Task
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # (rows,): columns of a file that are no features

    def with_events(self, event: str, target: str | None) -> NDArray[Any]:
        """Return survival times, (rows,): the `target`, negative where the column `event` has no event."""
        words = [str(value).strip().lower() for value in self.beside[event].tolist()]
        if wrong := sorted(set(words) - {*_EVENT, *_NO_EVENT}):
            raise ValueError(f"event={event!r}: the column holds {wrong[0]!r}: use 1 for an event and 0 for no event.")
        if (earliest := self.y.min()) < 0:
            cure = "write times from 0 on, or leave these rows out"
            raise ValueError(f"target={target!r}: the column holds the time {earliest:g}, which is negative: {cure}.")
        return np.where(np.isin(words, _EVENT), self.y, -self.y)


def task_of_data(y: NDArray[Any], task: Task | None = None, *, n_offsets: int = 0) -> Task:
    """Return `task`, or by default classification for text and at most 20 distinct whole numbers, else regression.

    If rows have offsets, whole numbers are classes only if their number agrees: two classes have one column of offsets,
    more classes have one each.
    """
    if task == "regression" and y.dtype.kind not in "fiu":
        raise ValueError(f"task='regression' needs numbers, but the target holds text such as {str(y[0])!r}.")
    if task is not None:
        return task
    if y.dtype.kind == "f":
        return "regression"
    values, counts = np.unique(y, return_counts=True)
    n_values = len(values)
    if y.dtype.kind == "U":
        refuse_numbers_as_text(values.tolist(), counts.tolist(), "The target", otherwise=_TASK)
        if n_values > max(_MAX_CLASSES, min(_MANY_CLASSES, len(y) / EACH)):
            cure = "name another column, or say --task classification if these are its classes"
            raise ValueError(f"The target holds {n_values} distinct texts in {len(y)} rows, such as {y[0]!r}: {cure}.")
    n_outputs = n_values if n_values > 2 else 1
    is_amount = n_values > _MAX_CLASSES or n_offsets not in (0, n_outputs)
    return "regression" if y.dtype.kind in "iu" and is_amount else "classification"


def robot_arm(n_rows: int = 1500) -> tuple[Table, NDArray[Any]]:
    """Return the angles of the eight joints of a robot's arm, (rows, 8), and its reach with some noise.

    The reach depends on sums of angles, so hidden layers pay.
    """
    rng = np.random.default_rng(0)
    angles = rng.uniform(-np.pi / 4, np.pi / 4, (n_rows, 8))
    directions = np.cumsum(angles, axis=1)
    reach = np.hypot(np.cos(directions).sum(axis=1), np.sin(directions).sum(axis=1))
    return angles, reach + 0.05 * rng.standard_normal(n_rows)


# Name -> function that returns X and y, and the task.
_LOADERS: dict[str, tuple[Callable[[], tuple[Table, NDArray[Any]]], Task]] = {
    "breast_cancer": (partial(datasets.load_breast_cancer, return_X_y=True), "classification"),
    "diabetes": (partial(datasets.load_diabetes, return_X_y=True), "regression"),
    "digits": (partial(datasets.load_digits, return_X_y=True), "classification"),
    "friedman1": (partial(datasets.make_friedman1, 2000, noise=1.0, random_state=0), "regression"),
    "iris": (partial(datasets.load_iris, return_X_y=True), "classification"),
    "robot_arm": (robot_arm, "regression"),
    "wine": (partial(datasets.load_wine, return_X_y=True), "classification"),
}
DATASETS = tuple(_LOADERS)


def load_dataset(
    source: str, *, target: str | None = None, task: Task | None = None, columns: ColumnRoles | None = None
) -> Dataset:
    """Load a data set: a name of `DATASETS`, ``openml:NAME`` or ``openml:NUMBER``, or a path of a CSV or Parquet file.

    `target` is the column to predict: required for a file, with a default for OpenML.
    """
    beside: dict[str, NDArray[Any]] = {}
    if columns is not None and columns.verbatim and not is_table(Path(source)):
        raise ValueError(f"{source!r} has no columns {columns.verbatim} of groups, queries or events: give a file.")
    if source in _LOADERS:
        loader, known_task = _LOADERS[source]
        if target is not None or task not in (None, known_task):
            raise ValueError(f"{source!r} has its own target and task: leave out target={target!r} and task={task!r}.")
        return Dataset(source, *loader(), known_task)
    if source.startswith("openml:"):
        X, y = _openml(source.removeprefix("openml:"), target)
    elif is_table(Path(source)):
        if target is None:
            raise ValueError(f"target=None: {source} needs the name of the column that is predicted.")
        text = False if task == "regression" else None
        X, y, verbatim = read_table(Path(source), target, columns, text=text, labels=task == "classification")
        beside = {name: np.asarray(verbatim[name].to_pylist()) for name in (columns.verbatim if columns else ())}
    else:
        cure = f"give one of {', '.join(DATASETS)}, openml:NAME, or the path of a .csv or .parquet file"
        raise ValueError(f"source={source!r} is not a data set: {cure}.")
    task = task_of_data(y, task)
    return Dataset(Path(source).name, X, y.astype(np.float64) if task == "regression" else y, task, beside)


def _openml(name: str, target: str | None) -> tuple[Table, NDArray[Any]]:
    pandas = require("pandas", extra="frames", what=f"openml:{name}")
    request = {"data_id": int(name)} if name.isdecimal() else {"name": name, "version": "active"}
    try:
        bunch = datasets.fetch_openml(**request, target_column=target or "default-target", as_frame=True, parser="auto")
    except OSError as error:
        raise ConnectionError(f"openml:{name} needs the network, which gave: {error}") from error
    if not isinstance(bunch.target, pandas.Series):
        raise ValueError(f"openml:{name} has no single target: name one of its columns as target.")
    X = bunch.data.copy()
    for column in X.columns:
        if not isinstance(X[column].dtype, pandas.CategoricalDtype):
            text = not pandas.api.types.is_numeric_dtype(X[column])
            X[column] = X[column].astype("category" if text else np.float64)
    known = bunch.target.notna().to_numpy()
    y = bunch.target[known]
    return X[known], y.astype(str if isinstance(y.dtype, pandas.CategoricalDtype) else y.dtype).to_numpy()
