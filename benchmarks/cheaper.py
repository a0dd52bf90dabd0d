"""Modes that grow fewer trees: what a layer fit costs in each, beside the fit that grows all trees on all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.cases import Case, bound, data, objective
from benchmarks.timing import alternate, ratio
from boostbp import backends
from boostbp.backends.base import TreeParams
from boostbp.network import layers
from boostbp.network.layers.cheaper_growth import FixedStructure, RowSampling
from boostbp.trees.sparse import Table

__all__ = ["kept", "sampled", "shared"]


def kept(case: Case, backend: str, *, repeats: int) -> dict[str, Any]:
    """A fit of a layer on kept structures, as a share of one that grows them, one core."""
    X, Y = data(case)
    inputs, goal = bound(case, X, backend), objective(Y)
    first = layers.fit(inputs, goal)
    replay = FixedStructure.of(first.layer.forest, shared=False)
    again = layers.BoundInput(replay, Table(X), inputs.settings, np.ones(case.rows))
    times = alternate({"full": lambda: layers.fit(inputs, goal), "kept": lambda: layers.fit(again, goal)}, repeats)
    return {"share of full": ratio(times["kept"], times["full"]), "full seconds": float(np.median(times["full"]))}


def shared(case: Case, backend: str, *, repeats: int) -> dict[str, Any]:
    """Times faster than one tree per output: one tree for all outputs, one core."""
    X, Y = data(case)
    goal = objective(Y)
    growth = TreeParams(max_depth=case.depth, min_samples_leaf=20, multi_output=True)
    each, one = bound(case, X, backend), bound(case, X, backend, growth=growth)
    works = {"each": lambda: layers.fit(each, goal), "one": lambda: layers.fit(one, goal)}
    errors = {name: float(np.mean(np.square(work().output - Y))) for name, work in works.items()}
    times = alternate(works, repeats, warm=False)
    return {
        "times faster": ratio(times["each"], times["one"]),
        "training MSE": errors,
        "one tree per output, seconds": float(np.median(times["each"])),
    }


def sampled(case: Case, backend: str, *, repeats: int, share: float = 0.1) -> dict[str, Any]:
    """Times faster than growing on all rows, binning included: structures on a tenth of the rows, one core."""
    X, Y = data(case)
    X_new, Y_new = data(replace(case, rows=min(case.rows, 20_000)), seed=1)
    goal, samples = objective(Y), round(share * case.rows)
    settings = bound(replace(case, rows=1000), X[:1000].copy(), backend).settings
    own = backends.load_backend(backend)
    growers = {
        "all": own,
        "a tenth": RowSampling(own, samples),
    }

    def fit(grower: Any) -> layers.Layer:
        return layers.fit(layers.BoundInput(grower, Table(X), settings, np.ones(case.rows)), goal).layer

    works = {name: (lambda grower=grower: fit(grower)) for name, grower in growers.items()}
    errors = {name: float(np.mean(np.square(work().predict(X_new) - Y_new))) for name, work in works.items()}
    times = alternate(works, repeats, warm=False)
    return {
        "times faster": ratio(times["all"], times["a tenth"]),
        "MSE on fresh rows": errors,
        "all rows, seconds": float(np.median(times["all"])),
    }
