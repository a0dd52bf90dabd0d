"""How time and memory of a layer fit grow with the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import bare
from benchmarks.cases import Case, bound, data, objective
from benchmarks.timing import alternate
from boostbp.comparison.measuring import Peak
from boostbp.network import layers

__all__ = ["growth", "memory"]


def growth(case: Case, backend: str, *, rows: tuple[int, ...], repeats: int) -> dict[str, Any]:
    """Exponent of the time in the rows: slope of a line through the logarithms."""
    found = {}
    for n in rows:
        X, Y = data(replace(case, rows=n))
        inputs, goal = bound(replace(case, rows=n), X, backend), objective(Y)
        times = alternate({"fit": lambda inputs=inputs, goal=goal: layers.fit(inputs, goal)}, repeats)
        found[n] = float(np.median(times["fit"]))
    exponent = float(np.polyfit(np.log(list(found)), np.log(list(found.values())), 1)[0])
    return {"exponent": exponent, "seconds by rows": found}


def memory(case: Case, backend: str) -> dict[str, Any]:
    """Peak memory above the input matrix and the targets, binning included, one thread."""
    tiny = replace(case, rows=1000, rounds=2)
    X, Y = data(tiny)
    inputs = bound(tiny, X, backend)
    layers.fit(inputs, objective(Y))  # imports modules
    X, Y = data(case)

    gradients = bare.gradients_of(bound(case, X, backend), objective(Y))

    def alone() -> None:
        [grow] = bare.arrangements(bound(case, X, backend), gradients, backend, 1).values()
        grow()

    def ours() -> None:
        layers.fit(bound(case, X, backend), objective(Y))

    peaks = {}
    for name, work in (("bare", alone), ("ours", ours)):
        peak = Peak()
        work()
        peaks[name] = peak.bytes() or 0
    trees = case.outputs * case.rounds
    return {
        "ratio": peaks["ours"] / max(peaks["bare"], 1),
        "our megabytes": peaks["ours"] / 1e6,
        "bare megabytes": peaks["bare"] / 1e6,
        "of which trace (rows x trees bytes)": case.rows * trees / 1e6,
    }
