"""What a layer costs beside the bare trees: refitted and native leaves, backward pass, threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import bare
from benchmarks.cases import Case, bound, data, objective
from benchmarks.timing import alternate, ratio
from boostbp.network import layers
from boostbp.runtime import threads
from boostbp.trees.basis import Polynomial

__all__ = ["native", "overhead", "two_threads", "vjp"]


def overhead(case: Case, backend: str, *, repeats: int, cores: int | None = None) -> dict[str, Any]:
    """Our fit of a layer against the fastest arrangement in which the library alone grows the same trees."""
    cores = cores or threads.count(-1)
    X, Y = data(case)
    inputs, goal = bound(case, X, backend), objective(Y)
    theirs = bare.arrangements(inputs, bare.gradients_of(inputs, goal), backend, cores)
    first = alternate(theirs, 2, warm=False)
    fastest = min(first, key=lambda name: min(first[name]))
    times = alternate(
        {"bare": theirs[fastest], "ours": lambda: layers.fit(inputs, goal, n_threads=cores)}, repeats
    )  # fmt: skip
    return {
        "ratio": ratio(times["ours"], times["bare"]),
        "bare seconds": float(np.median(times["bare"])),
        "our seconds": float(np.median(times["ours"])),
        "bare arrangement": fastest,
        "cores": cores,
    }


def native(case: Case, *, repeats: int) -> dict[str, Any]:
    """LightGBM's own linear leaves, native and then parsed, against the same trees with constant leaves, one core."""
    X, Y = data(case)
    constant, linear = (
        bound(case, X, "lightgbm"),
        bound(case, X, "lightgbm", leaves="native", basis=Polynomial(1)),
    )
    goal = objective(Y)
    [theirs] = bare.arrangements(constant, bare.gradients_of(linear, goal), "lightgbm", 1).values()
    times = alternate({"bare": theirs, "ours": lambda: layers.fit(linear, goal)}, repeats)
    return {"ratio": ratio(times["ours"], times["bare"]), "our seconds": float(np.median(times["ours"]))}


def vjp(case: Case, backend: str, *, repeats: int) -> dict[str, Any]:
    """The backward pass of all rows as a share of the fit, one core."""
    X, Y = data(case)
    inputs, goal = bound(case, X, backend), objective(Y)
    trace = layers.fit(inputs, goal).trace
    times = alternate({"fit": lambda: layers.fit(inputs, goal), "vjp": lambda: trace.vjp(Y)}, repeats)
    return {"share of fit": ratio(times["vjp"], times["fit"])}


def two_threads(case: Case, backend: str, *, repeats: int) -> dict[str, Any]:
    """Time with one thread over time with two, and whether the models are the same to the bit."""
    X, Y = data(case)
    inputs, goal = bound(case, X, backend), objective(Y)
    fits = [layers.fit(inputs, goal, n_threads=n) for n in (1, 2)]
    works = {str(n): (lambda n=n: layers.fit(inputs, goal, n_threads=n)) for n in (1, 2)}
    times = alternate(works, repeats)
    weights = [fit.layer.forest.leaves.weight for fit in fits]
    return {"times faster": ratio(times["1"], times["2"]), "same bits": bool(np.array_equal(*weights))}
