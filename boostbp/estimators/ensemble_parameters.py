"""Parameters of an estimator that say how its model is put together, as settings of the ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np

from boostbp import checks
from boostbp.ensemble.ladder import RUNGS, Rung
from boostbp.ensemble.problem import EnsembleSettings
from boostbp.estimators.nested_parameters import constrained
from boostbp.estimators.session import Run
from boostbp.network.callbacks import Checkpoint


def rung_of(estimator: Any) -> Rung:
    """What the quality of an estimator may cost; its parameters may not be checked yet."""
    return RUNGS[checks.one_of("quality", estimator.quality, tuple(RUNGS))]


def ensemble_settings_of(estimator: Any, run: Run | None = None) -> EnsembleSettings:
    """Settings of the ensemble, of parameters that are checked; what needs its hidden layers is the network alone."""
    deep = True if estimator._fewest_hidden else estimator.deep
    if constrained(estimator) and np.size(estimator.hidden_layer_sizes):  # hidden units mix features
        deep = False
    wanted = run is not None and bool(run.callbacks or any(_kept(run).values()))
    return EnsembleSettings("auto" if deep == "auto" else bool(deep), int(estimator.quality), wanted)


def _kept(run: Run) -> dict[str, Any]:
    """What is asked for that keeps the training of a network, by the name in `fit`."""
    callbacks = run.callbacks if isinstance(run.callbacks, list | tuple) else ()
    kept = {"checkpoint": run.checkpoint, "keep_state": run.keep_state}
    return kept | {
        f"callbacks[{number}]": each for number, each in enumerate(callbacks) if isinstance(each, Checkpoint)
    }


def check_single_layers(estimator: Any) -> None:
    """Refuse ``deep=False`` where an estimator is made of its hidden layers.

    Raises
    ------
    ValueError
        If it is.
    """
    if estimator._fewest_hidden and not isinstance(estimator.deep, str) and not estimator.deep:
        raise ValueError(
            f"deep=False is not supported by {type(estimator).__name__}, which is made of its hidden layers: leave it "
            "'auto'. BoostBPRegressor and BoostBPClassifier can do without."
        )


def check_run(estimator: Any, run: Run) -> None:
    """Refuse to keep the training of a network where ``deep=False``, ``quality=1`` or constraints train none.

    Raises
    ------
    ValueError
        If it is asked for.
    """
    deep = checks.one_of("deep", estimator.deep, ("auto", True, False))
    if deep is True or (deep == "auto" and rung_of(estimator).networks and not constrained(estimator)):
        return
    why = "monotone_constraints" if constrained(estimator) else f"quality={estimator.quality}"
    why = "deep=False" if deep is False else why
    for name, value in _kept(run).items():
        if value:
            raise ValueError(
                f"{name}={value!r} with {why} is not supported: it keeps the training of a network, and none is "
                f"trained. Leave out {name}, or use deep='auto' and quality=2 or more."
            )
