"""Parameters of an estimator that say how its model is put together, as settings of the ensemble."""

from __future__ import annotations

from typing import Any

from boostbp.ensemble.problem import EnsembleSettings
from boostbp.network.callbacks import Checkpoint

__all__ = ["check_single_layers", "ensemble_settings_of"]


def ensemble_settings_of(estimator: Any) -> EnsembleSettings:
    """Settings of the ensemble, of parameters that are checked; what needs its hidden layers is the network alone."""
    deep = True if estimator._fewest_hidden else estimator.deep
    return EnsembleSettings("auto" if deep == "auto" else bool(deep), bool(estimator.refit))


def check_single_layers(estimator: Any) -> None:
    """Refuse what speaks of a network where ``deep=False`` trains none.

    Raises
    ------
    ValueError
        If the estimator is made of its hidden layers, or is to keep the state of their training.
    """
    if isinstance(estimator.deep, str) or estimator.deep:
        return
    if estimator._fewest_hidden:
        raise ValueError(
            f"deep=False is not supported by {type(estimator).__name__}, which is made of its hidden layers: leave it "
            "'auto'. BoostBPRegressor and BoostBPClassifier can do without."
        )
    callbacks = estimator.callbacks if isinstance(estimator.callbacks, list | tuple) else ()
    kept = {"checkpoint": estimator.checkpoint, "warm_start": estimator.warm_start}
    kept |= {f"callbacks[{number}]": one for number, one in enumerate(callbacks) if isinstance(one, Checkpoint)}
    for name, value in kept.items():
        if value:
            raise ValueError(
                f"{name}={value!r} with deep=False is not supported: it keeps the training of a network, and none is "
                f"trained. Leave out {name}, or use deep='auto'."
            )
