"""Options of a single fit: callbacks, checkpoint, and the model that it continues from."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from boostbp.model import Model
from boostbp.network.callbacks import Checkpoint, checkpoint
from boostbp.network.monitor import Callback
from boostbp.runtime import checks
from boostbp.runtime.atomic_write import check_writable

# Attributes of callbacks of LightGBM, XGBoost and Keras.
_FOREIGN = ("before_iteration", "after_iteration", "on_epoch_end")


@dataclass(frozen=True, slots=True)
class FitOptions:
    """Options of a single fit, which belong to the process that trains and not to the model."""

    callbacks: Any = None
    checkpoint: Any = None
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
            _check_callback(number, callback)
        if self.checkpoint is not None:
            callbacks.append(checkpoint(checks.file("checkpoint", self.checkpoint)))
        for callback in callbacks:
            if isinstance(callback, Checkpoint):  # raise an error now, not after the first epoch
                check_writable(callback.path)
        return callbacks


def _check_callback(number: int, callback: Any) -> None:
    """Raise ValueError unless a callback can be called with the progress."""
    names = {*dir(type(callback)), *getattr(callback, "__dict__", ())}
    if names.intersection(_FOREIGN):
        raise ValueError(
            f"callbacks[{number}]={callback!r} is a callback of {type(callback).__module__}, which cannot read "
            "the progress of this package: use the parameters n_iter_no_change (of backprop) and verbose, or "
            "early_stopping, log_evaluation and record of boostbp.callbacks."
        )
    if not callable(callback):
        raise ValueError(f"callbacks[{number}]={callback!r} cannot be called: give functions of the progress.")
    try:
        inspect.signature(callback).bind(None)
    except TypeError as error:
        raise ValueError(
            f"callbacks[{number}]={callback!r} does not take the progress as its one argument ({error}): write "
            "def callback(progress)."
        ) from error
    except ValueError:  # a compiled function without a signature
        pass
