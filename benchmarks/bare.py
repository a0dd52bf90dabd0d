"""The bare libraries: constant-leaf trees by their own Python interface, on the bins that our layer uses.

They are driven by the gradients that our fit of the layer had, so they grow the trees that we grow: driven by residuals
of their own constant leaves, which stay coarser, they grow other trees, smaller by up to an eighth.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from boostbp.network import layers
from boostbp.network.layers import BoundInput, SquaredObjective

__all__ = ["GROW", "Gradients", "arrangements", "gradients_of", "round_by_round"]

Floats = NDArray[np.float64]
Gradients = NDArray[np.float32]  # (rounds, outputs, rows)


def round_by_round() -> AbstractContextManager[Any]:
    """Have rounds grown by one call each, of functions in Python, instead of several by the core."""
    return mock.patch("boostbp.network.layers.boosting.Boosting.boost_in_core", return_value=False)


def gradients_of(bound: BoundInput, goal: SquaredObjective) -> Gradients:
    """The gradients of every round of our fit."""
    shape = bound.settings.n_estimators, goal.n_outputs, len(goal.target)
    found, rounds = np.empty(shape, np.float32), [0] * goal.n_outputs

    class Listening(SquaredObjective):
        def gradient(self, fit: Floats, outputs: slice) -> tuple[Floats, Floats]:
            grad, hess = SquaredObjective.gradient(self, fit, outputs)
            found[rounds[outputs.start], outputs] = grad.T
            rounds[outputs.start] += 1
            return grad, hess

    with round_by_round():
        layers.fit(bound, Listening(goal.target, goal.weight))
    return found


def arrangements(bound: BoundInput, gradients: Gradients, backend: str, cores: int) -> dict[str, Callable[[], None]]:
    """Ways to grow all trees on so many cores: one booster with native threads, or one booster per core."""
    grow = GROW[backend]
    found = {f"one booster, {cores} native threads": lambda: grow(bound, gradients, cores)}
    if cores > 1:
        parts = [np.ascontiguousarray(gradients[:, k::cores]) for k in range(min(cores, gradients.shape[1]))]

        def beside() -> None:
            with ThreadPoolExecutor(len(parts)) as pool:
                list(pool.map(lambda part: grow(bound, part, 1), parts))

        found[f"{len(parts)} boosters, 1 thread each"] = beside
    return found


def _lightgbm(bound: BoundInput, gradients: Gradients, n_threads: int) -> Any:
    import lightgbm

    grower: Any = bound.grower
    columns = gradients.shape[1]
    params = grower.params | {"learning_rate": bound.settings.learning_rate, "num_threads": n_threads}
    booster = lightgbm.Booster(params | ({"num_class": columns} if columns > 1 else {}), grower.bins.dataset)
    hess = np.ones_like(gradients[0])
    for grad in gradients:
        pair = (grad.T, hess.T) if columns > 1 else (grad[0], hess[0])
        booster.update(fobj=lambda fit, _, pair=pair: pair)
    return booster


def _xgboost(bound: BoundInput, gradients: Gradients, n_threads: int) -> Any:
    import xgboost

    grower: Any = bound.grower
    settings = bound.settings
    params = {
        "num_target": gradients.shape[1],
        "nthread": n_threads,
        "eta": settings.learning_rate,
        "min_child_weight": float(settings.growth.min_samples_leaf),
        "base_score": 0.0,
    }
    booster = xgboost.Booster(grower.params | params, [grower.matrix])
    hess = np.ones_like(gradients[0].T)
    for number, grad in enumerate(gradients):
        # A custom objective is shown the prediction so far, needed or not.
        booster.update(grower.matrix, number, fobj=lambda fit, _, grad=grad: (grad.T, hess))
    return booster


GROW = {"lightgbm": _lightgbm, "xgboost": _xgboost}
