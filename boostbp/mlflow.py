"""Fits in MLflow: parameters, scores by epoch and candidate, and the model with its signature; extra ``mlflow``.

>>> import boostbp.mlflow
>>> boostbp.mlflow.autolog()  # doctest: +SKIP
>>> BoostBPRegressor().fit(X, y)  # in the active run, or one of its own  # doctest: +SKIP
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.base import BaseBoostBP
from boostbp.extras import require
from boostbp.files.tables import open_table
from boostbp.inputs.blocks import is_blocks
from boostbp.versions import __version__

__all__ = ["autolog", "log_fit", "log_model"]

_NAME = "boostbp"  # of the integration
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_\-. :/]")
_SIGNED_ROWS = 100  # that tell the types of a signature
_LOGGED_AS_ONE: list[object] = []  # the pipeline or search whose fit is running, which is logged as a whole


def log_model(model: Any, name: str = "model", *, X: Any = None, **options: Any) -> Any:
    """Log a fitted estimator as `mlflow.sklearn.log_model` does, with what that asks for.

    It is written by skops, whose types are named as trusted, and asks for this version of boostbp.

    Parameters
    ----------
    model : BoostBPRegressor, BoostBPClassifier, BoostBPAutoencoder, or a Pipeline or search of scikit-learn with one
        Of a search the best estimator.
    name : str
    X : array-like, (rows, features), or path, optional
        Rows that tell the signature. Columns of categories are those of their values in it: MLflow takes text and whole
        numbers there, and no categories by dtype.
    **options
        Further arguments of `mlflow.sklearn.log_model`; they win.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Raises
    ------
    ImportError
        If mlflow or skops is not installed.
    sklearn.exceptions.NotFittedError
    """
    model = getattr(model, "best_estimator_", model)
    check_is_fitted(model)
    flavor, models, skops = (_required(module) for module in ("mlflow.sklearn", "mlflow.models", "skops.io"))
    if X is not None and "signature" not in options:
        rows = _rows_like(X, _estimator_in(model)) if is_blocks(X) else X[:_SIGNED_ROWS]
        rows = rows.to_pandas() if hasattr(rows, "to_pandas") else rows  # frames that MLflow does not know
        with warnings.catch_warnings():  # such as that of a missing offset
            warnings.simplefilter("ignore")
            options["signature"] = models.infer_signature(rows, model.predict(rows))
    wanted = {
        "skops_trusted_types": skops.get_untrusted_types(data=skops.dumps(model)),
        "pip_requirements": [f"boostbp=={__version__}", f"skops=={_required('skops').__version__}"],
    }
    return flavor.log_model(model, name=name, **(wanted | options))


def log_fit(model: Any, X: Any = None, *, log_models: bool = True) -> None:
    """Log what a fit was told and what it did: in the active run, or in a new one that stays active.

    Parameters, as ``get_params(deep=False)`` gives them; of each epoch, as steps, ``loss``, the metric of each
    evaluation set as ``valid_0_rmse``, ``seconds`` and what `Epoch` has of hidden layers; where networks were weighed
    against single layers, ``candidates/NAME/loss`` and ``candidates/NAME/weight``; the scores of the model as
    ``model/valid_0_rmse``. Characters that MLflow has not in names, such as commas, are left out.

    A run holds one fit: if the active one has one, a further fit is logged in a child run of it.

    Parameters
    ----------
    model : BoostBPRegressor, BoostBPClassifier, BoostBPAutoencoder, or a Pipeline or search of scikit-learn with one
        Fitted. Of a search that is the fit of the best estimator, ``best_NAME`` for each parameter that was searched,
        ``best_cv_score``, and a child run for each candidate, with its parameters and ``mean_test_score`` and its like.
    X : array-like, (rows, features), or path, optional
        Rows that tell the signature of the model.
    log_models : bool
        Whether the model itself is logged, by `log_model`.

    Raises
    ------
    ImportError
        If mlflow or skops is not installed.
    sklearn.exceptions.NotFittedError
    """
    mlflow = _required("mlflow")
    if mlflow.active_run() is None:
        mlflow.start_run()
    with _run_of_one_fit(mlflow):
        _log(model, X, log_models)


def _log(model: Any, X: Any, log_models: bool) -> None:
    """Log a fit in the active run."""
    mlflow, estimator = _required("mlflow"), _estimator_in(model)
    run = mlflow.active_run().info.run_id
    if isinstance(model, BaseSearchCV):
        _log_search(mlflow, run, model)
        if not hasattr(model, "best_estimator_"):  # refit=False
            return
    check_is_fitted(estimator)
    history = estimator.history_
    with _client() as client:
        client.set_tags(run, _tags(estimator))
        client.log_params(run, estimator.get_params(deep=False))
        for epoch in history.epochs:
            row = _defined(history.row(epoch))
            number = row.pop("epoch")
            client.log_metrics(run, row, step=number)
        of_model = {f"model/{name}_{history.metric}": score for name, score in history.scores.items()}
        for candidate in () if history.choice is None else history.choice.candidates:
            of_model |= {
                f"candidates/{candidate.name}/loss": candidate.loss,
                f"candidates/{candidate.name}/weight": candidate.weight,
            }
        client.log_metrics(run, _defined(of_model))
    if log_models:
        log_model(model, X=X)


def _log_search(mlflow: Any, run: str, search: BaseSearchCV) -> None:
    """Log what was found in the run of a search, and each candidate in a child run."""
    results, tags = search.cv_results_, _tags(_estimator_in(search))
    with _client() as client:
        client.set_tags(run, tags)
        if hasattr(search, "best_params_"):
            client.log_params(run, {f"best_{name}": value for name, value in search.best_params_.items()})
        if hasattr(search, "best_score_"):
            client.log_metrics(run, _defined({"best_cv_score": float(search.best_score_)}))
    means = [name for name in results if name.startswith(("mean_", "std_", "rank_"))]
    for number, params in enumerate(results["params"]):
        with mlflow.start_run(nested=True) as child, _client() as client:
            client.set_tags(child.info.run_id, tags)
            client.log_params(child.info.run_id, params)
            client.log_metrics(child.info.run_id, _defined({name: float(results[name][number]) for name in means}))


def autolog(*, log_models: bool = True, disable: bool = False, silent: bool = False) -> None:
    """Let each fit be logged, as `log_fit` does: in the active run, or in one of its own.

    A pipeline, or a search of scikit-learn, with one of our estimators is logged as a whole, in one run, unless
    ``mlflow.sklearn.autolog()`` is on, which does that.

    What goes wrong with the logging is a warning, as in all of MLflow's; the fit goes on. The model does not depend on
    it.

    Parameters
    ----------
    log_models : bool
        Whether models are logged, too.
    disable : bool
        Let fits be logged no more.
    silent : bool
        Leave out MLflow's warnings and messages.

    Raises
    ------
    ImportError
        If mlflow is not installed.
    """
    utils = _required("mlflow.utils.autologging_utils")

    def fit(original: Any, self: Any, *args: Any, **options: Any) -> Any:
        if _LOGGED_AS_ONE or _estimator_in(self) is None:
            return original(self, *args, **options)
        if isinstance(self, Pipeline | BaseSearchCV) and not utils.autologging_is_disabled("sklearn"):
            with _logged_as_one(self):
                return original(self, *args, **options)
        mlflow = _required("mlflow")
        with mlflow.start_run() if mlflow.active_run() is None else _run_of_one_fit(mlflow):
            with _logged_as_one(self):
                fitted = original(self, *args, **options)
            _log(self, args[0] if args else options["X"], log_models)
        return fitted

    def switched(*, disable: bool = False, silent: bool = False) -> None:
        for kind in (BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, Pipeline, BaseSearchCV):
            utils.safe_patch(_NAME, kind, "fit", fit)

    utils.autologging_integration(_NAME)(switched)(disable=disable, silent=silent)


def _estimator_in(model: Any) -> Any:
    """Return our estimator at the end of a pipeline, or in a search (its best one if fitted); None if there is none."""
    if isinstance(model, Pipeline):
        return _estimator_in(model.steps[-1][1])
    if isinstance(model, BaseSearchCV):
        return _estimator_in(getattr(model, "best_estimator_", model.estimator))
    return model if isinstance(model, BaseBoostBP) else None


@contextmanager
def _logged_as_one(model: Any) -> Iterator[None]:
    """Log one fit for all the fits within it, in any thread."""
    _LOGGED_AS_ONE.append(model)
    try:
        yield
    finally:
        _LOGGED_AS_ONE.remove(model)


@contextmanager
def _run_of_one_fit(mlflow: Any) -> Iterator[None]:
    """The active run, or a child of it if it holds a fit."""
    active = mlflow.active_run().info.run_id
    if "boostbp_version" not in mlflow.get_run(active).data.tags:
        yield
        return
    with mlflow.start_run(nested=True):
        yield


def _tags(estimator: Any) -> dict[str, str]:
    return {"estimator_name": type(estimator).__name__, "boostbp_version": __version__}


def _client() -> Any:
    """Return a function that logs in batches of the size that a server accepts."""
    return _required("mlflow.utils.autologging_utils.client").MlflowAutologgingQueueingClient()


def _rows_like(X: Any, model: BaseBoostBP) -> Any:
    """Return a row as files or blocks have it: the columns that the model reads, integers where the file has them."""
    schema = model.schema_
    cells = [schema.categories.get(number, (0.0,))[0] for number in range(schema.n_features)]
    if schema.names is None:
        return np.array([cells])
    if not isinstance(X, Iterator):
        table = open_table(X)
        whole = [str(table.type_of(name)).startswith(("int", "uint")) for name in schema.names]
        cells = [0 if cell == 0.0 and is_whole else cell for cell, is_whole in zip(cells, whole, strict=True)]
    return _required("pandas").DataFrame([cells], columns=list(schema.names))


def _defined(metrics: dict[str, float]) -> dict[str, float]:
    """Those that are numbers, by names that MLflow takes, without commas and the like.

    NaN stands for what there is none of, such as the fit of a layer that is boosted.
    """
    return {_NOT_IN_NAMES.sub("", name): value for name, value in metrics.items() if value == value}


def _required(module: str) -> Any:
    return require(module, extra="mlflow", what="boostbp.mlflow")
