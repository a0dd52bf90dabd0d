"""init_model: the fitted model to which a fit adds layers, and whether both suit each other."""

from __future__ import annotations

import os

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators.request import Request
from boostbp.losses import Loss
from boostbp.model.model import Model
from boostbp.network.fingerprint import words_of
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.runtime import checks


def earlier_model(request: Request) -> Model:
    """Return the model of `init_model`.

    Raises TypeError if `init_model` is not a model of the same kind, and NotFittedError if it is not fitted.
    """
    init_model, classes = request.arguments.init_model, request.task == "classifier"
    kind = "BoostBPClassifier" if classes else "BoostBPRegressor"
    if isinstance(init_model, str | os.PathLike):
        path = os.fspath(init_model)
        raise TypeError(f"init_model={path!r} is a path: load the model, init_model=boostbp.load({path!r}).")
    if not (hasattr(init_model, "calibrate") and is_classifier(init_model) == classes):
        raise TypeError(f"init_model={checks.shown(init_model)} is not supported: give a fitted {kind}.")
    check_is_fitted(init_model)
    earlier: Model = init_model.model_
    if earlier.with_offset and request.arguments.offset is None:
        raise ValueError("init_model has an offset, this fit has none: pass offset=..., 0 for rows without one.")
    if request.constrained:
        raise ValueError(
            "init_model is not supported with monotone_constraints, which its predictions may violate. Train on "
            "all rows at once, or pass its predictions as offset, which are not a part of the new model."
        )
    if not isinstance(earlier.network, Network):
        raise TypeError(f"init_model is a {type(init_model).__name__}, not a sum of trees: give a fitted {kind}.")
    return earlier


def check_target(earlier: Model, loss: Loss, n_outputs: int) -> None:
    """Raise ValueError unless an earlier model has the same loss and number of outputs."""
    if words_of(loss) != words_of(earlier.targets.loss):
        raise ValueError(
            f"init_model has loss={words_of(earlier.targets.loss)}, this estimator loss={words_of(loss)}: use the same."
        )
    if n_outputs != earlier.targets.n_outputs:
        raise ValueError(f"y has {n_outputs} outputs, init_model has {earlier.targets.n_outputs}: give as many.")


def check_sum(earlier: Network, settings: Settings, *, networks: bool) -> None:
    """Raise ValueError if new layers, with `networks` or without, cannot be in one network with the earlier ones."""
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
