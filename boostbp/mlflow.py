"""Fits in MLflow: parameters, scores by epoch and candidate, and the model with its signature; extra ``mlflow``.

>>> import boostbp.mlflow
>>> boostbp.mlflow.autolog()  # doctest: +SKIP
>>> BoostBPRegressor().fit(X, y)  # in the active run, or in a new one  # doctest: +SKIP
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from numpy.typing import ArrayLike
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators import (
    BoostBPAutoencoder,
    BoostBPClassifier,
    BoostBPRanker,
    BoostBPRegressor,
    BoostBPSurvival,
)
from boostbp.estimators.base import BaseBoostBP
from boostbp.inputs.sources import is_blocks
from boostbp.runtime.messages import require
from boostbp.runtime.versions import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["autolog", "log_fit", "log_model"]

_INTEGRATION = "boostbp"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_\-. :/]")
Model: TypeAlias = BaseBoostBP | Pipeline | BaseSearchCV
Table: TypeAlias = "ArrayLike | DataFrame"
_SIGNATURE_ROWS = 100  # rows from which the types of a signature are inferred. Arbitrary


def log_model(model: Model, name: str = "model", *, X: Table | None = None, **options: object) -> Any:
    """Log a fitted estimator with `mlflow.sklearn.log_model`.

    The model is written by skops, with its types as trusted ones, and requires this version of boostbp.

    Parameters
    ----------
    model : BoostBPRegressor or another estimator of boostbp, or a Pipeline or search of scikit-learn with one
        A search logs its best estimator.
    name : str
    X : array-like, (rows, features), optional
        Rows from which the signature is inferred. A categorical column has the type of its values, text or whole
        numbers, as MLflow has no categorical type. No signature is inferred from files and blocks of rows.
    **options
        Further arguments of `mlflow.sklearn.log_model`, which override those of this function.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Raises
    ------
    ImportError
        If mlflow or skops is not installed.
    sklearn.exceptions.NotFittedError
    """
    model = cast(Any, getattr(model, "best_estimator_", model))
    check_is_fitted(model)
    flavor, models, skops = (_required(module) for module in ("mlflow.sklearn", "mlflow.models", "skops.io"))
    if not (X is None or is_blocks(X) or "signature" in options):
        rows: Any = cast(Any, X)[:_SIGNATURE_ROWS]
        rows = rows.to_pandas() if hasattr(rows, "to_pandas") else rows  # frames that MLflow does not support
        with warnings.catch_warnings():  # such as the warning of a missing offset
            warnings.simplefilter("ignore")
            options["signature"] = models.infer_signature(rows, model.predict(rows))
    defaults = {
        "skops_trusted_types": skops.get_untrusted_types(data=skops.dumps(model)),
        "pip_requirements": [f"boostbp=={__version__}", f"skops=={_required('skops').__version__}"],
    }
    return flavor.log_model(model, name=name, **(defaults | options))


def log_fit(model: Model, X: Table | None = None, *, log_models: bool = True) -> None:
    """Log the parameters and the results of a fit, in the active run or in a new one that stays active.

    - The parameters are those of ``get_params(deep=False)``.
    - Each epoch is a step, with ``loss``, the metric of each evaluation set as ``valid_0_rmse``, ``seconds``, and the
      numbers of `Epoch` on hidden layers.
    - Candidates of an average: ``candidates/NAME/loss`` and ``candidates/NAME/weight``.
    - Scores of the model: ``model/valid_0_rmse``.

    Names are logged without characters that MLflow does not allow, such as commas. A run has one fit: if the active run
    has one already, a further fit is logged in a child run.

    Parameters
    ----------
    model : BoostBPRegressor or another estimator of boostbp, or a Pipeline or search of scikit-learn with one
        Fitted. Of a search, the fit of its best estimator is logged.
    X : array-like, (rows, features), optional
        Rows from which the signature of the model is inferred, as in `log_model`.
    log_models : bool
        Whether the model itself is also logged, with `log_model`.

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


def _log(model: Model, X: Table | None, log_models: bool) -> None:
    """Log a fit in the active run."""
    mlflow, estimator = _required("mlflow"), _estimator_in(model)
    check_is_fitted(estimator)
    run, history = mlflow.active_run().info.run_id, estimator.history_
    tags = {"estimator_name": type(estimator).__name__, "boostbp_version": __version__}
    queue = _required("mlflow.utils.autologging_utils.client").MlflowAutologgingQueueingClient
    with queue() as client:  # which logs in batches of the size that servers accept
        client.set_tags(run, tags)
        client.log_params(run, estimator.get_params(deep=False))
        for epoch in history.epochs:
            row = _defined(history.row(epoch))
            number = row.pop("epoch")
            client.log_metrics(run, row, step=number)
        of_model = {f"model/{name}_{history.metric}": score for name, score in history.scores.items()}
        for candidate in () if history.choice is None else history.choice.candidates:
            facts = {"loss": candidate.loss, "weight": candidate.weight}
            of_model |= {f"candidates/{candidate.name}/{name}": value for name, value in facts.items()}
        client.log_metrics(run, _defined(of_model))
    if log_models:
        log_model(model, X=X)


def autolog(*, log_models: bool = True, disable: bool = False, silent: bool = False) -> None:
    """Log each fit from now on like `log_fit`, in the active run or in a new one that ends with the fit.

    A pipeline with an estimator of boostbp is logged as a whole, and a search of scikit-learn as the fit of its best
    estimator. With ``mlflow.sklearn.autolog()``, MLflow logs both itself, with a child run for each candidate.

    An error in logging becomes a warning, and the fit continues. Logging does not change the model.

    Parameters
    ----------
    log_models : bool
        Whether models are also logged.
    disable : bool
        Stop logging fits.
    silent : bool
        Suppress MLflow's warnings and messages.

    Raises
    ------
    ImportError
        If mlflow is not installed.
    """
    utils = _required("mlflow.utils.autologging_utils")
    sessions = _required("mlflow.utils.autologging_utils.safety")._AutologgingSessionManager
    running: list[object] = []  # fits that are logged as a whole, in any thread; fits inside them are not logged

    def fit(original: Callable[..., Model], self: Model, *args: Table, **options: Any) -> Model:
        is_logged_by_mlflow = sessions.active_session().integration != _INTEGRATION
        if running or is_logged_by_mlflow or _estimator_in(self) is None:
            return original(self, *args, **options)
        mlflow = _required("mlflow")
        with mlflow.start_run() if mlflow.active_run() is None else _run_of_one_fit(mlflow):
            running.append(self)
            try:
                fitted = original(self, *args, **options)
            finally:
                running.remove(self)
            _log(self, args[0] if args else options["X"], log_models)
        return fitted

    def switched(*, disable: bool = False, silent: bool = False) -> None:
        estimators = (BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival)
        for kind in (*estimators, Pipeline, BaseSearchCV):
            utils.safe_patch(_INTEGRATION, kind, "fit", fit)

    utils.autologging_integration(_INTEGRATION)(switched)(disable=disable, silent=silent)


def _estimator_in(model: Model) -> Any:
    """Return the estimator of boostbp at the end of a pipeline, or in a search (the best one if fitted), or None."""
    if isinstance(model, Pipeline):
        return _estimator_in(model.steps[-1][1])
    if isinstance(model, BaseSearchCV):
        return _estimator_in(getattr(model, "best_estimator_", model.estimator))
    return model if isinstance(model, BaseBoostBP) else None


@contextmanager
def _run_of_one_fit(mlflow: ModuleType) -> Iterator[None]:
    """Enter a child of the active run if that already has a fit."""
    tags = mlflow.get_run(mlflow.active_run().info.run_id).data.tags
    with mlflow.start_run(nested=True) if "boostbp_version" in tags else nullcontext():
        yield


def _defined(metrics: dict[str, float]) -> dict[str, float]:
    """Return the metrics that are not NaN, without the characters that MLflow does not allow in names."""
    return {_NOT_IN_NAMES.sub("", name): value for name, value in metrics.items() if value == value}


def _required(module: str) -> ModuleType:
    return require(module, extra="mlflow", what="boostbp.mlflow")
