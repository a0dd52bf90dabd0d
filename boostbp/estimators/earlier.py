"""Earlier model: a fitted one that training goes on from, on other rows; new layers learn what it leaves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from boostbp import checks
from boostbp.estimators.nested_parameters import constrained
from boostbp.floats import Floats
from boostbp.losses import Loss
from boostbp.network.fingerprint import words_of
from boostbp.network.network import Network
from boostbp.network.settings import Settings

# What says how an input, and a target, are read. An input has no names if its table had none.
_READING = ("schema_", "n_features_in_", "feature_names_in_", "_repair", "classes_", "_shift", "_scale")


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier model predicts by.

    Attributes
    ----------
    scale : (outputs,) float64
        Units of the target in one unit of the raw output.
    """

    network: Network
    loss: Loss
    scale: Floats

    def offset(self, X: Floats, n_threads: int) -> Floats:
        """Its raw output in units of the target, (rows, outputs)."""
        return self.network.predict(X, n_jobs=n_threads) * self.scale

    def check(self, loss: Loss, n_outputs: int) -> None:
        """Refuse to go on with a loss whose raw output means something else, or with other outputs."""
        if words_of(loss) != words_of(self.loss):
            raise ValueError(
                f"init_model was trained by {words_of(self.loss)}, this estimator has loss={words_of(loss)}: use the "
                "same loss, as raw outputs of both are added."
            )
        if n_outputs != len(self.scale):
            raise ValueError(f"y has {n_outputs} outputs, init_model has {len(self.scale)}: give the same outputs.")


def begin_from(estimator: Any, init_model: Any) -> Earlier | None:
    """Let an estimator read inputs and targets as a fitted one does; None if there is no such.

    Raises
    ------
    TypeError
        If `init_model` is no model of this kind.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    if init_model is None:
        return None
    kind = "BoostBPClassifier" if is_classifier(estimator) else "BoostBPRegressor"
    if isinstance(init_model, str | os.PathLike):
        path = os.fspath(init_model)
        raise TypeError(f"init_model={path!r} is a path: give the model in it, init_model=boostbp.load({path!r}).")
    known = hasattr(init_model, "_beside") and is_classifier(init_model) == is_classifier(estimator)
    if not known:
        raise TypeError(f"init_model={checks.shown(init_model)} is not supported: give a fitted {kind}.")
    check_is_fitted(init_model)
    if constrained(estimator):
        raise ValueError(
            "init_model is not supported with monotone_constraints: what it predicts need not keep to them. Train on "
            "all rows at once, or give its predictions as offset, which are not of the model then."
        )
    if not isinstance(init_model.network_, Network):
        raise TypeError(f"init_model is a {type(init_model).__name__}, which is no sum of trees: give a fitted {kind}.")
    earlier = Earlier(init_model.network_, init_model._loss, init_model._output_scale())
    read = {name: getattr(init_model, name) for name in _READING if hasattr(init_model, name)}
    for name in _READING:
        vars(estimator).pop(name, None)
    vars(estimator).update(read)
    return earlier


def check_sum(earlier: Network, settings: Settings, *, networks: bool) -> None:
    """Refuse new layers that cannot stand in one network with those of an earlier one.

    Parameters
    ----------
    settings : Settings
        Of the network that is asked for.
    networks : bool
        Whether it may be trained.
    """
    there, wanted = len(earlier.layers) - 1, len(settings.units) if networks else 0
    if there and wanted and there != wanted:
        raise ValueError(
            f"hidden_layer_sizes={settings.units!r} has {wanted} hidden layers, init_model has {there}, which cannot "
            "stand in one network: use as many, or deep=False, which adds single layers."
        )
    for old, new in zip(reversed(earlier.layers), reversed(settings.layers), strict=False):
        forest, functions = old.forest, new.basis.has_functions or old.forest.basis.has_functions
        if len(forest.leaves.column) and (forest.clip != new.clip or (functions and forest.basis != new.basis)):
            raise ValueError(
                f"init_model has leaves on {forest.basis!r} with clip={forest.clip}, this estimator on {new.basis!r} "
                f"with clip={new.clip}, which cannot stand in one network: use the same."
            )
