"""The model that a fit goes on from: what it must have in common with the estimator."""

from __future__ import annotations

import os
from typing import Any

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators.nested_parameters import constrained
from boostbp.losses import Loss
from boostbp.model import Model
from boostbp.network.fingerprint import words_of
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.runtime import checks


def check_target(earlier: Model, loss: Loss, n_outputs: int) -> None:
    """Refuse to go on from a model with a loss whose raw output means something else, or with other outputs."""
    if words_of(loss) != words_of(earlier.targets.loss):
        raise ValueError(
            f"init_model was trained by {words_of(earlier.targets.loss)}, this estimator has loss={words_of(loss)}: "
            "use the same loss, as raw outputs of both are added."
        )
    if n_outputs != earlier.targets.n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, init_model has {earlier.targets.n_outputs}: give the same outputs."
        )


def begin_from(estimator: Any, init_model: Any, *, offset_given: bool) -> Model | None:
    """Return the model of a fitted estimator, whose inputs and targets an estimator then reads; None without one.

    Raises TypeError if `init_model` is no model of this kind, and NotFittedError if it is not fitted.
    """
    if init_model is None:
        return None
    kind = "BoostBPClassifier" if is_classifier(estimator) else "BoostBPRegressor"
    if isinstance(init_model, str | os.PathLike):
        path = os.fspath(init_model)
        raise TypeError(f"init_model={path!r} is a path: give the model in it, init_model=boostbp.load({path!r}).")
    known = hasattr(init_model, "_with_offset") and is_classifier(init_model) == is_classifier(estimator)
    if not known:
        raise TypeError(f"init_model={checks.shown(init_model)} is not supported: give a fitted {kind}.")
    check_is_fitted(init_model)
    earlier: Model = init_model.model_
    if earlier.with_offset and not offset_given:
        raise ValueError(
            "init_model was fitted with an offset, but this fit has none: pass offset=..., with 0 for rows without one."
        )
    if constrained(estimator):
        raise ValueError(
            "init_model is not supported with monotone_constraints: what it predicts need not keep to them. Train on "
            "all rows at once, or give its predictions as offset, which are not of the model then."
        )
    if not isinstance(earlier.network, Network):
        raise TypeError(f"init_model is a {type(init_model).__name__}, which is no sum of trees: give a fitted {kind}.")
    for name in ("n_features_in_", "feature_names_in_"):  # an input has no names if its table had none
        vars(estimator).pop(name, None)
        if hasattr(init_model, name):
            setattr(estimator, name, getattr(init_model, name))
    return earlier


def check_sum(earlier: Network, settings: Settings, *, networks: bool) -> None:
    """Refuse new layers, by the settings of their network, that cannot stand in one with those of an earlier one.

    `networks` says whether that network may be trained.
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
