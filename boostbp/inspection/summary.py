"""Summary of the training rows of a fitted model: what importances and attributions need of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from boostbp.backends.base import Table
from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.inspection.importances import importances_over
from boostbp.network.network import Network
from boostbp.trees.sparse import Sparse

MOST_ROWS = 256  # rows that importances are measured on
STEPS = 4  # of their attributions; they are complete for any number of steps
SUMMARY = ("center", "jacobian", "attribution")  # what a file holds of it
WORK = 1 << 28  # multiplications that they may cost


class Summary:
    """Numbers for each feature, each (features,) float64.

    Importances take up to a third of the seconds of a quick fit of many classes, and most models are never asked for
    them: they are computed when they are first read, and before the model is pickled or stored.

    Attributes
    ----------
    center : weighted mean, or most frequent category; NaN if always missing
    jacobian : mean absolute Jacobian times standard deviation, as shares with sum 1
    attribution : mean absolute attribution, as shares with sum 1
    """

    def __init__(self, center: Floats, importances: Callable[[str], Floats]) -> None:
        """Take the center, and what gives importances by their kind."""
        self.center, self._importances = center, importances

    @cached_property
    def jacobian(self) -> Floats:
        """Importances by the Jacobian."""
        return self._importances("jacobian")

    @cached_property
    def attribution(self) -> Floats:
        """Importances by attributions."""
        return self._importances("attribution")

    def __getstate__(self) -> dict[str, Floats]:
        """What pickle keeps: numbers, and no rows."""
        return {name: getattr(self, name) for name in SUMMARY}


def summary_of(network: Network, table: Table, weight: Floats, *, n_threads: int = 1) -> Summary:
    """Summarise the training rows; importances come from some hundred of them, evenly spaced."""
    X = table.X
    sizes = [layer.forest.n_outputs for layer in network.layers]
    per_row = STEPS * X.shape[1] * (sizes[0] + sum(a * b for a, b in pairwise(sizes)))
    group = workers()
    [rows] = group.together(X[group.spaced(len(X), min(MOST_ROWS, max(1, WORK // per_row)))])
    sample = Table(rows, table.categorical)
    X, weight = group.sample(X, weight)
    center = _center(Table(X, table.categorical), weight)
    importances = partial(
        importances_over, network, table=sample, baseline=center[None], steps=STEPS, n_threads=n_threads
    )
    return Summary(center, importances)


def _center(table: Table, weight: Floats) -> Floats:
    X = table.X
    if isinstance(X, Sparse):
        center: Floats = (weight / weight.sum()) @ X.entries
        for j in {*np.flatnonzero(~np.isfinite(center)), *table.categorical}:
            x = X.dense(np.array([j]), slice(0, len(X)))[:, 0]
            center[j] = _most_frequent(x, weight) if j in table.categorical else _mean(x, weight)
        return center
    return np.array(
        [_most_frequent(x, weight) if j in table.categorical else _mean(x, weight) for j, x in enumerate(X.T)]
    )


def _most_frequent(codes: Floats, weight: Floats) -> float:
    present = ~np.isnan(codes)
    return float(np.bincount(codes[present].astype(np.int64), weight[present]).argmax()) if present.any() else np.nan


def _mean(x: Floats, weight: Floats) -> float:
    """Weighted mean of what is present, and never beyond it by rounding."""
    present = ~np.isnan(x)
    x, w = x[present], weight[present]
    with np.errstate(over="ignore"):  # shares that round to a sum above 1 carry the largest numbers to inf
        return float(np.clip(w / w.sum() @ x, x.min(), x.max())) if len(x) else np.nan
