"""Fits in MLflow: parameters, scores by epoch and candidate, and the model with its signature; extra ``mlflow``.

>>> import boostbp.mlflow
>>> boostbp.mlflow.autolog()  # doctest: +SKIP
>>> BoostBPRegressor().fit(X, y)  # in the active run, or one of its own  # doctest: +SKIP
"""

from __future__ import annotations

import re
from typing import Any

from sklearn.utils.validation import check_is_fitted

from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.base import BaseBoostBP
from boostbp.extras import require
from boostbp.versions import __version__

__all__ = ["autolog", "log_fit", "log_model"]

_NAME = "boostbp"  # of the integration
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_\-. :/]")
_SIGNED_ROWS = 100  # that tell the types of a signature


def log_model(model: BaseBoostBP, name: str = "model", *, X: Any = None, **options: Any) -> Any:
    """Log a fitted estimator as `mlflow.sklearn.log_model` does, with what that asks for.

    It is written by skops, whose types are named as trusted, and asks for this version of boostbp.

    Parameters
    ----------
    model : BoostBPRegressor, BoostBPClassifier or BoostBPAutoencoder
    name : str
    X : array-like, (rows, features), optional
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
    check_is_fitted(model)
    flavor, models, skops = (_required(module) for module in ("mlflow.sklearn", "mlflow.models", "skops.io"))
    if X is not None and "signature" not in options:
        rows = X[:_SIGNED_ROWS]
        rows = rows.to_pandas() if hasattr(rows, "to_pandas") else rows  # frames that MLflow does not know
        options["signature"] = models.infer_signature(rows, model.predict(rows))
    wanted = {
        "skops_trusted_types": skops.get_untrusted_types(data=skops.dumps(model)),
        "pip_requirements": [f"boostbp=={__version__}", f"skops=={_required('skops').__version__}"],
    }
    return flavor.log_model(model, name=name, **(wanted | options))


def log_fit(model: BaseBoostBP, X: Any = None, *, log_models: bool = True) -> None:
    """Log what a fit was told and what it did: in the active run, or in a new one that stays active.

    Parameters, as ``get_params(deep=False)`` gives them; of each epoch, as steps, ``loss``, the metric of each
    evaluation set as ``valid_0_rmse``, ``seconds`` and what `Epoch` has of hidden layers; where networks were weighed
    against single layers, ``candidates/NAME/loss`` and ``candidates/NAME/weight``; the scores of the model as
    ``model/valid_0_rmse``. Characters that MLflow has not in names, such as commas, are left out.

    Parameters
    ----------
    model : BoostBPRegressor, BoostBPClassifier or BoostBPAutoencoder
        Fitted.
    X : array-like, (rows, features), optional
        Rows that tell the signature of the model.
    log_models : bool
        Whether the model itself is logged, by `log_model`.

    Raises
    ------
    ImportError
        If mlflow or skops is not installed.
    sklearn.exceptions.NotFittedError
    """
    check_is_fitted(model)
    mlflow, client_of = _required("mlflow"), _required("mlflow.utils.autologging_utils.client")
    run = (mlflow.active_run() or mlflow.start_run()).info.run_id
    history = model.history_
    with client_of.MlflowAutologgingQueueingClient() as client:  # in batches of the size that a server takes
        client.set_tags(run, {"estimator_name": type(model).__name__, "boostbp_version": __version__})
        client.log_params(run, model.get_params(deep=False))
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


def autolog(*, log_models: bool = True, disable: bool = False, silent: bool = False) -> None:
    """Let each fit be logged, as `log_fit` does: in the active run, or in one of its own.

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
        fitted = original(self, *args, **options)
        log_fit(self, args[0] if args else options["X"], log_models=log_models)
        return fitted

    def switched(*, disable: bool = False, silent: bool = False) -> None:
        for kind in (BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor):
            utils.safe_patch(_NAME, kind, "fit", fit, manage_run=True)

    utils.autologging_integration(_NAME)(switched)(disable=disable, silent=silent)


def _defined(metrics: dict[str, float]) -> dict[str, float]:
    """Those that are numbers, by names that MLflow takes, without commas and the like.

    NaN stands for what there is none of, such as the fit of a layer that is boosted.
    """
    return {_NOT_IN_NAMES.sub("", name): value for name, value in metrics.items() if value == value}


def _required(module: str) -> Any:
    return require(module, extra="mlflow", what="boostbp.mlflow")
