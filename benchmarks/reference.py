"""The plain reference of the tests (numpy and scikit-learn's trees) against a layer of ours on each backend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.cases import Case, bound, data, objective
from benchmarks.timing import seconds
from boostbp import backends
from boostbp.network import layers
from tests.support.reference import PlainGBDT

__all__ = ["reference"]


def reference(case: Case, *, rounds: int) -> dict[str, Any]:
    """Seconds of an epoch of one layer, fit and backward pass, one core: measured on some rounds, counted for all."""
    X, Y = data(case)
    some = replace(case, rounds=rounds)

    def plain() -> None:
        layer = PlainGBDT(rounds, 0.1, case.depth, 20, 1.0).fit(X, Y)
        np.einsum("nkd,nk->nd", layer.jacobian(X), Y)

    found = {"plain reference": seconds(plain)}
    for name in backends.available():
        inputs, goal = bound(some, X, name), objective(Y)
        layers.fit(inputs, goal).trace.vjp(Y)  # imports modules
        found[name] = seconds(lambda inputs=inputs, goal=goal: layers.fit(inputs, goal).trace.vjp(Y))
    return {f"{name}: seconds": spent * case.rounds / rounds for name, spent in found.items()}
