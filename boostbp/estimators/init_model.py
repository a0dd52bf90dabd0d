"""Checks of `init_model`, the model that a fit continues from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators.nested_parameters import constrained
from boostbp.losses import Loss
from boostbp.model import Model
from boostbp.network.fingerprint import words_of
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.runtime import checks

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP


def check_target(earlier: Model, loss: Loss, n_outputs: int) -> None:
    """Raise ValueError unless an earlier model has the same loss and number of outputs."""
    if words_of(loss) != words_of(earlier.targets.loss):
        raise ValueError(
            f"init_model was trained with loss={words_of(earlier.targets.loss)}, this estimator has "
            f"loss={words_of(loss)}: use the same loss, as the raw outputs of both are added."
        )
    if n_outputs != earlier.targets.n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, init_model has {earlier.targets.n_outputs}: give the same outputs."
        )


def begin_from(estimator: BaseBoostBP, init_model: Any, *, with_offset: bool) -> Model | None:
    """Return the model of `init_model`, and give the estimator its feature names; None without one.

    Raises TypeError if `init_model` is not a model of the same kind, and NotFittedError if it is not fitted.
    """
    if init_model is None:
        return None
    kind = "BoostBPClassifier" if is_classifier(estimator) else "BoostBPRegressor"
    if isinstance(init_model, str | os.PathLike):
        path = os.fspath(init_model)
        raise TypeError(f"init_model={path!r} is a path: load the model, init_model=boostbp.load({path!r}).")
    if not (hasattr(init_model, "_with_offset") and is_classifier(init_model) == is_classifier(estimator)):
        raise TypeError(f"init_model={checks.shown(init_model)} is not supported: give a fitted {kind}.")
    check_is_fitted(init_model)
    earlier: Model = init_model.model_
    if earlier.with_offset and not with_offset:
        raise ValueError(
            "init_model was fitted with an offset, but this fit has none: pass offset=..., with 0 for rows without one."
        )
    if constrained(estimator):
        raise ValueError(
            "init_model is not supported with monotone_constraints, which its predictions may violate. Train on all "
            "rows at once, or pass its predictions as offset, which are not a part of the new model."
        )
    if not isinstance(earlier.network, Network):
        raise TypeError(
            f"init_model is a {type(init_model).__name__}, which is not a sum of trees: give a fitted {kind}."
        )
    for name in ("n_features_in_", "feature_names_in_"):  # without names if its table had none
        estimator.__dict__.pop(name, None)
        if hasattr(init_model, name):
            setattr(estimator, name, getattr(init_model, name))
    return earlier


def check_sum(earlier: Network, settings: Settings, *, networks: bool) -> None:
    """Raise ValueError if new layers with these settings cannot be in one network with the earlier layers.

    `networks` states whether the fit may train a network.
    """
    n_earlier, n_new = len(earlier.layers) - 1, len(settings.units) if networks else 0
    if n_earlier and n_new and n_earlier != n_new:
        raise ValueError(
            f"hidden_layer_sizes={settings.units!r} has {n_new} hidden layers, init_model has {n_earlier}, which "
            "cannot be in one network: use as many, or deep=False, which adds single layers."
        )
    for old, new in zip(reversed(earlier.layers), reversed(settings.layers), strict=False):
        forest, functions = old.forest, new.basis.has_functions or old.forest.basis.has_functions
        if len(forest.leaves.column) and (forest.clip != new.clip or (functions and forest.basis != new.basis)):
            raise ValueError(
                f"init_model has leaves on {forest.basis!r} with clip={forest.clip}, this estimator on {new.basis!r} "
                f"with clip={new.clip}, which cannot be in one network: use the same."
            )
