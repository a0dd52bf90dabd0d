"""Cases of the speed suites: sizes, data, and layers ready to be fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boostbp import backends
from boostbp.backends.base import TreeParams
from boostbp.network.layers import BoundInput, LayerSettings, SquaredObjective
from boostbp.trees.sparse import Table

__all__ = ["CASES", "Case", "bound", "data", "objective"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """Size of one layer fit."""

    rows: int
    features: int
    outputs: int
    rounds: int
    depth: int

    def quick(self) -> Case:
        """The same shape with fewer rounds, and rows up to 100,000."""
        return replace(self, rows=min(self.rows, 100_000), rounds=min(self.rounds, 5))


CASES = {
    "small": Case(1_500, 8, 16, 40, 4),
    "paper": Case(6_000, 32, 32, 40, 6),
    "middle": Case(50_000, 50, 16, 40, 6),
    "large": Case(1_000_000, 20, 4, 20, 6),
}


def data(case: Case, seed: int = 0) -> tuple[Floats, Floats]:
    """Gaussian input, and smooth functions of it, the same for every seed, with some noise."""
    W = np.random.default_rng(case.features).standard_normal((case.features, case.outputs)) / np.sqrt(case.features)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((case.rows, case.features))
    return X, np.tanh(X @ W) + np.sin(X @ np.roll(W, 1, 0)) + 0.1 * rng.standard_normal((case.rows, case.outputs))


def bound(case: Case, X: Floats, backend: str, **changes: object) -> BoundInput:
    """The binned input of a layer: quadratic phi and refitted leaves, unless `changes` say otherwise."""
    growth = TreeParams(max_depth=case.depth, min_samples_leaf=20)
    settings = LayerSettings(n_estimators=case.rounds, learning_rate=0.1, growth=growth)
    settings = replace(settings, **changes)  # type: ignore[arg-type]
    return BoundInput(backends.load_backend(backend), Table(X), settings, np.ones(len(X)))


def objective(Y: Floats) -> SquaredObjective:
    """Squared error without weights."""
    return SquaredObjective(Y, np.ones(len(Y)))
