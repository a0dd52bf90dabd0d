"""Single layer with linear leaves against LightGBM's `linear_tree`: training, many rows, one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.cases import Case, bound, data, objective
from benchmarks.timing import alternate, ratio
from boostbp import layers
from boostbp.trees.basis import Polynomial

__all__ = ["prediction"]


def prediction(case: Case, *, rows: int, repeats: int) -> dict[str, Any]:
    """Ratios of our time to LightGBM's, one thread each, one output; predictions by the very same trees."""
    import lightgbm

    X, Y = data(case)
    Y = Y[:, :1].copy()
    params = {
        "objective": "regression", "linear_tree": True, "linear_lambda": 1.0, "num_leaves": 2**case.depth,
        "max_depth": case.depth, "min_data_in_leaf": 20, "learning_rate": 0.1, "num_threads": 1, "verbosity": -1,
        "force_col_wise": True, "boost_from_average": False,
    }  # fmt: skip
    theirs = lightgbm.Dataset(X, Y[:, 0], params=params).construct()
    inputs, goal = bound(case, X, "lightgbm", basis=Polynomial(1)), objective(Y)
    training = alternate(
        {
            "theirs": lambda: lightgbm.train(params, theirs, case.rounds),
            "ours": lambda: layers.fit(inputs, goal),
        },
        repeats,
    )
    kept: list[Any] = []
    booster_class = lightgbm.Booster

    class Kept(booster_class):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            kept.append(self)

    lightgbm.Booster = Kept
    try:
        layer = layers.fit(bound(case, X, "lightgbm", leaves="native", basis=Polynomial(1)), goal).layer
    finally:
        lightgbm.Booster = booster_class
    booster = kept[-1]
    fresh = np.random.default_rng(1).standard_normal((rows, case.features))
    many = alternate(
        {"theirs": lambda: booster.predict(fresh, num_threads=1), "ours": lambda: layer.predict(fresh)}, repeats
    )
    one = alternate(
        {
            "theirs": lambda: [booster.predict(fresh[i : i + 1], num_threads=1) for i in range(50)],
            "ours": lambda: [layer.predict(fresh[i : i + 1]) for i in range(50)],
        },
        repeats,
    )
    return {
        "training ratio": ratio(training["ours"], training["theirs"]),
        f"ratio for {rows} rows": ratio(many["ours"], many["theirs"]),
        "ratio for one row": ratio(one["ours"], one["theirs"]),
        "our microseconds for one row": float(np.median(one["ours"])) / 50 * 1e6,
    }
