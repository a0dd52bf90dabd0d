"""The bare libraries: constant-leaf trees by their own Python interface, on the bins that our layer uses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.learning.layer import BoundInput

__all__ = ["arrangements"]

Floats = NDArray[np.float64]
Grow = Callable[[BoundInput, Floats, int], None]


def arrangements(bound: BoundInput, Y: Floats, backend: str, cores: int) -> dict[str, Callable[[], None]]:
    """Ways to grow all trees on so many cores: one booster with native threads, or one booster per core."""
    grow: Grow = {"lightgbm": _lightgbm, "xgboost": _xgboost}[backend]
    found = {f"one booster, {cores} native threads": lambda: grow(bound, Y, cores)}
    if cores > 1:
        parts = [np.ascontiguousarray(Y[:, k::cores]) for k in range(min(cores, Y.shape[1]))]

        def beside() -> None:
            with ThreadPoolExecutor(len(parts)) as pool:
                list(pool.map(lambda part: grow(bound, part, 1), parts))

        found[f"{len(parts)} boosters, 1 thread each"] = beside
    return found


def _lightgbm(bound: BoundInput, Y: Floats, n_threads: int) -> None:
    import lightgbm

    grower: Any = bound.grower
    settings, columns = bound.settings, Y.shape[1]
    params = grower.params | {"learning_rate": settings.learning_rate, "num_threads": n_threads}
    booster = lightgbm.Booster(params | ({"num_class": columns} if columns > 1 else {}), grower.bins.dataset)
    target = Y if columns > 1 else Y[:, 0]
    hess = np.ones(target.shape, np.float32)
    for _ in range(settings.n_estimators):
        booster.update(fobj=lambda fit, _: ((fit - target).astype(np.float32), hess))


def _xgboost(bound: BoundInput, Y: Floats, n_threads: int) -> None:
    import xgboost

    grower: Any = bound.grower
    settings = bound.settings
    params = {
        "num_target": Y.shape[1],
        "nthread": n_threads,
        "eta": settings.learning_rate,
        "min_child_weight": float(settings.growth.min_samples_leaf),
        "base_score": 0.0,
    }
    booster = xgboost.Booster(grower.params | params, [grower.matrix])
    target = Y.astype(np.float32)
    hess = np.ones_like(target)
    for number in range(settings.n_estimators):
        fit = booster.predict(grower.matrix, output_margin=True) if number else np.zeros_like(target)
        booster.boost(grower.matrix, number, grad=fit.reshape(target.shape) - target, hess=hess)
