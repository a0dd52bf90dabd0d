"""`compare`: models on the same folds of one table, each in a process of its own, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_consistent_length

from boostbp.comparison.comparison import Comparison, Watch, run
from boostbp.comparison.contenders import ComparedTask
from boostbp.comparison.datasets import task_of_data
from boostbp.comparison.folds import folds_of
from boostbp.comparison.measured import ComparisonPlan
from boostbp.comparison.measures import measures_of, with_metric
from boostbp.comparison.measuring import TableData
from boostbp.comparison.models import DEFAULT_QUALITIES, ModelLike, contenders_of, reference_of
from boostbp.comparison.searches import searched
from boostbp.inputs.survival_times import read_survival
from boostbp.inputs.targets import read_groups
from boostbp.runtime.arrays import TableLike
from boostbp.runtime.messages import counted
from boostbp.runtime.threads import count


def compare(
    X: TableLike,
    y: ArrayLike,
    *,
    models: Iterable[ModelLike] | None = None,
    reference: str | None = None,
    task: ComparedTask | None = None,
    metric: str | Callable[..., float] | None = None,
    folds: int | str | Any = 5,
    repeats: int = 2,
    groups: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    tune: int = 0,
    boostbp_params: Mapping[str, Any] | None = None,
    n_jobs: int = 1,
    random_state: int = 0,
    name: str = "table",
    watch: Watch | None = None,
) -> Comparison:
    """Compare models on the same folds of a table, and say which one to use.

    Each model learns from all training rows of a fold, in a process of its own. Named models of other libraries, such
    as ``"lightgbm"``, stop early on a fifth of these rows, and are then trained again on all of them. If a model fails,
    the result says why, and the other models go on. After Ctrl-C, the result has the folds that all models completed.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix, (rows, features)
    y : array-like, (rows,) or (rows, 2)
        Labels, numbers, relevances, or survival times in a form of `BoostBPSurvival`.
    models : iterable, optional
        Names (``"lightgbm"``, ``"linear_tree"``, ``"xgboost"``, ``"catboost"``, ``"quality=1"`` to ``"quality=5"``),
        files of an estimator by joblib, whose settings are used (such a file can run any code), functions as
        ``"package.module:make_model"``, estimators of scikit-learn's interface, or tuples of a label and one of these
        estimators. The default is LightGBM, XGBoost if it is installed, and qualities 1 and 3.
    reference : str, optional
        Label of the model that others must beat. The default is LightGBM, or else the first model.
    task : {"classification", "regression", "ranking", "survival"}, optional
        The default is "ranking" with `qid`, "survival" for two columns, and otherwise inferred from `y`.
    metric : str or callable, optional
        What the verdict rests on: ``"auc"`` (default for two classes), ``"average_precision"``, ``"log_loss"`` (default
        for more), ``"brier"``, ``"balanced_accuracy"``, ``"rmse"`` (default for numbers), ``"mae"``, ``"r2"``,
        ``"pinball@0.9"``, ``"ndcg@10"``, ``"concordance"``, the name of a scorer of scikit-learn, or a scorer
        ``f(model, X, y)``, of which greater is better.
    folds : int, "time" or splitter
        Number of folds, stratified by class; ``"time"`` tests blocks that follow their training rows; or a splitter of
        scikit-learn.
    repeats : int
        Number of times that the rows are divided into folds.
    groups : array-like, (rows,), optional
        Groups of rows, which are not divided between training and test rows.
    qid : array-like, (rows,), optional
        Query of each row of a ranking.
    tune : int
        Number of random settings that named models of other libraries try. They go on until they have used as many
        seconds as the slowest of the models that are not tuned here. 0 and 1 tune nothing.
    boostbp_params : mapping, optional
        Parameters of boostbp models by name.
    n_jobs : int
        Threads of each model, also of estimators with a parameter for it.
    random_state : int
        Seed of the folds, and of models without one.
    name : str
        Name of the table in the result.
    watch : callable, optional
        Is called with a label, the number of the fold and the number of all folds before each training.

    Returns
    -------
    Comparison
        It prints as the verdict and a table; `verdict`, `scores`, `to_json`, `to_html`.

    Raises
    ------
    ValueError, TypeError
        If an argument is not usable; the message names it and the cure.
    KeyboardInterrupt
        If no fold was complete.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = compare(X, y, models=[DummyRegressor(), Ridge()], reference="DummyRegressor", repeats=1)
    >>> result.verdict.partition(" (")[0]
    'Ridge has 24 % less RMSE than DummyRegressor'
    """
    arguments = {name: value for name, value in locals().items() if name != "watch"}
    return run(planned(**arguments), watch)


def planned(
    X: TableLike,
    y: ArrayLike,
    *,
    models: Iterable[ModelLike] | None,
    reference: str | None,
    task: ComparedTask | None,
    metric: str | Callable[..., float] | None,
    folds: int | str | Any,
    repeats: int,
    groups: ArrayLike | None,
    qid: ArrayLike | None,
    tune: int,
    boostbp_params: Mapping[str, Any] | None,
    n_jobs: int,
    random_state: int,
    name: str,
) -> ComparisonPlan:
    """Return a comparison that is checked, and can run; the arguments are those of `compare`."""
    data = _data(X, y, task, groups, qid)
    contenders = contenders_of(default_models(data.task) if models is None else models, boostbp_params)
    place = [contender.label for contender in contenders].index(reference_of(contenders, reference))
    if tune > 1:
        contenders = tuple(replace(c, label=f"{c.label} tuned") if searched(c) else c for c in contenders)
    strata = data.y if data.task == "classification" else None
    is_split_by_number = qid is not None and not isinstance(folds, int)
    if is_split_by_number and (np.diff(np.unique(np.asarray(qid), return_inverse=True)[1]) < 0).any():
        raise ValueError(f"folds={folds!r} counts rows, which are put in the order of qid: sort the rows by qid first.")
    splits = folds_of(len(data.y), folds, repeats, strata=strata, groups=data.groups, seed=random_state)
    metric_name, measures = with_metric(measures_of(data.task, data.y, data.classes), metric)
    settings: dict[str, Any] = {"folds": folds, "repeats": repeats, "tune": tune, "n_jobs": n_jobs}
    settings |= {"random_state": random_state, **(boostbp_params or {})}
    judged = metric_name, measures, contenders[place].label
    return ComparisonPlan(name, data, contenders, *judged, splits, tune, count(n_jobs), random_state, settings)


def default_models(task: ComparedTask, qualities: Iterable[int] = ()) -> list[str]:
    """Return the names of LightGBM, XGBoost if it is installed, and boostbp of some qualities, 1 and 3 by default."""
    libraries = ["lightgbm"] if task != "survival" else []
    if find_spec("xgboost") is not None:
        libraries.append("xgboost")
    return [*libraries, *(f"quality={quality}" for quality in tuple(qualities) or DEFAULT_QUALITIES)]


def _data(
    X: TableLike, y: ArrayLike, task: ComparedTask | None, groups: ArrayLike | None, qid: ArrayLike | None
) -> TableData:
    """Return the rows of a comparison; rows of a query are put together."""
    table: Any = X
    if np.ndim(y) == 2 and np.shape(y)[1] == 1:
        y = np.asarray(y)[:, 0]
    if hasattr(table, "to_pandas"):  # of polars or pyarrow
        table = table.to_pandas()
    elif not hasattr(table, "shape"):
        table = np.asarray(table)
    check_consistent_length(table, y)
    n_rows = table.shape[0]
    if task is None:
        values = np.asarray(y)
        is_survival = values.dtype.names is not None or values.ndim == 2
        task = "ranking" if qid is not None else "survival" if is_survival else task_of_data(_typed(values))
    if (task == "ranking") != (qid is not None):
        raise ValueError(f"task={task!r} and qid={'given' if qid is not None else None}: qid is for rankings alone.")
    units = groups if qid is None else qid
    numbers = None if units is None else read_groups(units, n_rows, "groups" if qid is None else "qid").astype(np.intp)
    target, classes = _target(y, task, n_rows)
    if qid is None:
        return TableData(table, target, task, classes, numbers)
    assert numbers is not None  # as rows have queries
    order = np.argsort(numbers, kind="stable")
    return TableData(_safe_indexing(table, order), target[order], task, classes, numbers[order])


def _target(y: ArrayLike, task: ComparedTask, n_rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the target of a task, as `TableData` has it, and the classes, if any."""
    if task == "survival":
        lower, upper = read_survival(y, n_rows).T
        if not (np.isinf(upper) | (upper == lower)).all():
            raise ValueError("y has intervals of times: a comparison takes events and right-censored rows alone.")
        return np.where(np.isinf(upper), -lower, lower), np.array([])
    if task == "classification":
        classes, numbers = np.unique(_typed(np.asarray(y)), return_inverse=True)
        return numbers, classes
    with suppress(TypeError, ValueError):
        target = np.asarray(y, np.float64)
        if target.ndim == 1 and np.isfinite(target).all():
            return target, np.array([])
    raise ValueError(f"y must hold one finite number for each row; task={task!r}.")


def _typed(y: NDArray[Any]) -> NDArray[Any]:
    """Return labels of objects as text or numbers; raise ValueError if some are missing."""
    if y.dtype.kind in "Of" and (n_missing := sum([_is_missing(value) for value in y.ravel().tolist()])):
        raise ValueError(f"y is missing in {counted(n_missing, 'row')}: remove the rows without a target.")
    return np.array(y.tolist()) if y.dtype.kind == "O" else y


def _is_missing(value: object) -> bool:
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")
