"""Options of a single fit: callbacks, checkpoint, and `init_model`, the model that it continues from."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators.nested_parameters import constrained
from boostbp.losses import Loss
from boostbp.model import Model
from boostbp.network.callbacks import Checkpoint, checkpoint
from boostbp.network.fingerprint import words_of
from boostbp.network.monitor import Callback
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.runtime import checks
from boostbp.runtime.atomic_write import check_writable

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP

# Attributes of callbacks of LightGBM, XGBoost and Keras.
_FOREIGN = ("before_iteration", "after_iteration", "on_epoch_end")


@dataclass(frozen=True, slots=True)
class FitOptions:
    """Options of a single fit, which belong to the process that trains and not to the model."""

    callbacks: Sequence[Callback] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    keep_state: bool = False  # whether the estimator stores the state of training for `fit_more`
    earlier: Model | None = None  # model to which the trained layers are added

    def checked_callbacks(self) -> list[Callback]:
        """Return the user's callbacks, with the checkpoint last."""
        if callable(self.callbacks):
            raise ValueError(f"callbacks={self.callbacks!r} is a single function: give a list, such as [function].")
        if not isinstance(self.callbacks, list | tuple | None):
            raise ValueError(f"callbacks={checks.shown(self.callbacks)} is not allowed: give a list of functions.")
        callbacks = list(self.callbacks or ())
        for number, callback in enumerate(callbacks):
            _check_callback(f"callbacks[{number}]={callback!r}", callback)
        if self.checkpoint is not None:
            callbacks.append(checkpoint(checks.file("checkpoint", self.checkpoint)))
        for callback in callbacks:
            if isinstance(callback, Checkpoint):  # raise an error now, not after the first epoch
                check_writable(callback.path)
        return callbacks


def _check_callback(shown: str, callback: object) -> None:
    """Raise ValueError unless a callback, which messages call `shown`, can be called with the progress."""
    names = {*dir(type(callback)), *getattr(callback, "__dict__", ())}
    if names.intersection(_FOREIGN):
        raise ValueError(
            f"{shown} is a callback of {type(callback).__module__}, which cannot read the progress of this package: "
            "use the parameters n_iter_no_change (of backprop) and verbose, or early_stopping, log_evaluation and "
            "record of boostbp.callbacks."
        )
    if not callable(callback):
        raise ValueError(f"{shown} cannot be called: give functions of the progress.")
    try:
        inspect.signature(callback).bind(None)
    except TypeError as error:
        raise ValueError(
            f"{shown} does not take the progress as its one argument ({error}): write def callback(progress)."
        ) from error
    except ValueError:  # a compiled function without a signature
        pass


def check_target(earlier: Model, loss: Loss, n_outputs: int) -> None:
    """Raise ValueError unless an earlier model has the same loss and number of outputs."""
    if words_of(loss) != words_of(earlier.targets.loss):
        raise ValueError(
            f"init_model has loss={words_of(earlier.targets.loss)}, this estimator loss={words_of(loss)}: use the same."
        )
    if n_outputs != earlier.targets.n_outputs:
        raise ValueError(f"y has {n_outputs} outputs, init_model has {earlier.targets.n_outputs}: give as many.")


def begin_from(
    estimator: BaseBoostBP, init_model: BaseBoostBP | str | os.PathLike[str] | None, *, with_offset: bool
) -> Model | None:
    """Return the model of `init_model`, and give the estimator its feature names; None without one.

    Raises TypeError if `init_model` is not a model of the same kind, and NotFittedError if it is not fitted.
    """
    if init_model is None:
        return None
    kind = "BoostBPClassifier" if is_classifier(estimator) else "BoostBPRegressor"
    if isinstance(init_model, str | os.PathLike):
        path = os.fspath(init_model)
        raise TypeError(f"init_model={path!r} is a path: load the model, init_model=boostbp.load({path!r}).")
    if not (hasattr(init_model, "calibrate") and is_classifier(init_model) == is_classifier(estimator)):
        raise TypeError(f"init_model={checks.shown(init_model)} is not supported: give a fitted {kind}.")
    check_is_fitted(init_model)
    earlier: Model = init_model.model_
    if earlier.with_offset and not with_offset:
        raise ValueError("init_model has an offset, this fit has none: pass offset=..., 0 for rows without one.")
    if constrained(estimator):
        raise ValueError(
            "init_model is not supported with monotone_constraints, which its predictions may violate. Train on all "
            "rows at once, or pass its predictions as offset, which are not a part of the new model."
        )
    if not isinstance(earlier.network, Network):
        raise TypeError(f"init_model is a {type(init_model).__name__}, which is no sum of trees: give a fitted {kind}.")
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
