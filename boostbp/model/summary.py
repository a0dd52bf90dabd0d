"""Importances of features, and the summary of the training rows that importances and attributions need."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from boostbp.model.attributions import ROOM, attribute
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.forest import Forest
from boostbp.trees.sparse import Sparse, Table, column_of, dense, row_blocks

IMPORTANCE_ROWS = 256  # rows of the importances; arbitrary
IMPORTANCE_STEPS = 4  # steps of their attributions, which sum to the output for any number of steps
MAX_WORK = 1 << 28  # multiplications that the importances may take; arbitrary
SUMMARY = ("center", "jacobian", "attribution")  # attributes that a file holds


def split_importances(network: Network, kind: str, layer: int | None = None) -> Floats:
    """Return importances by ``"split"`` or ``"gain"``, shares with sum 1.

    They are those of the features for the whole model, or of the columns that T_layer reads. Raises ValueError for
    gains if the library reported none.
    """
    if layer is not None:
        return shares_of(_totals(network.layers[layer].forest, kind).sum(axis=0))
    # From the output layer down: the share of a unit is divided among the columns that its own trees read.
    share = shares_of(_totals(network.layers[-1].forest, kind).sum(axis=0))
    direct = np.zeros(network.layers[0].forest.n_features)
    for below in reversed(network.layers[:-1]):
        totals = _totals(below.forest, kind)
        units = len(totals)
        if network.skip:  # columns after the units are features
            direct += share[units:]
        share = share[:units] @ np.apply_along_axis(shares_of, 1, totals)
    return shares_of(share + direct)


def importances_over(
    network: Network, kind: str, table: Table, baseline: Floats, *, steps: int = 32, n_threads: int = 1
) -> Floats:
    """Return importances by ``"jacobian"`` or ``"attribution"`` over some rows, shares with sum 1.

    They are sums over rows and outputs, in units of the network: the standard deviations of a regression's outputs. The
    Jacobian is multiplied by the standard deviation of each feature over these rows. `baseline`, (1, features), and
    `steps` are those of the attributions.
    """
    X = table.X
    total, moments, unit = np.zeros(X.shape[1]), np.zeros((3, X.shape[1])), network.safe_units()
    size = max(1, ROOM // (X.shape[1] * len(network.baseline)))
    with np.errstate(all="ignore"):  # features that overflow float64 have importance 0
        for first in range(0, len(X), size):
            part = dense(X[first : first + size])
            if kind == "jacobian":
                values = network.jacobian(part, unit=unit, n_jobs=n_threads)
                # Moments around the baseline, which is near the mean, avoid cancellation.
                from_center = (part - np.nan_to_num(baseline)) / unit
                moments += [
                    (~np.isnan(part)).sum(axis=0), np.nansum(from_center, axis=0), np.nansum(from_center**2, axis=0)
                ]  # fmt: skip
            else:
                values = attribute(
                    network, part, baseline, categorical=table.categorical, steps=steps, n_threads=n_threads
                ).values
            total += np.abs(values).sum(axis=(0, 1))
        if kind == "jacobian":  # variance: E[d^2] - E[d]^2
            total *= np.sqrt(np.maximum(moments[2] / moments[0] - np.square(moments[1] / moments[0]), 0.0))
        return shares_of(np.nan_to_num(total, posinf=0.0))


def shares_of(values: Floats) -> Floats:
    """Return values as shares of their sum; zeros if that is 0."""
    total = values.sum()
    return values / total if total > 0 else np.zeros_like(values)


def _totals(forest: Forest, kind: str) -> Floats:
    """Return the splits or gains of the trees of each output at each column, (outputs, columns)."""
    if kind == "gain" and np.isnan(forest.trees.gain).any():
        raise ValueError("kind='gain' is not known: the backend states no gain of its splits. Use kind='split'.")
    value = np.maximum(forest.trees.gain, 0.0) if kind == "gain" else (forest.trees.gain != 0.0).astype(float)
    # Splits with a gain of 0 are no choice of the library, but knots of a base or splits for missing values.
    totals = np.zeros((forest.n_outputs, forest.n_features))
    for tree, (first, served) in enumerate(forest.leaves.tree_output):
        splits = slice(forest.tree_split[tree], forest.tree_split[tree + 1])
        # A tree with several outputs counts equally for each.
        of_tree = np.bincount(forest.nodes.feature[splits], value[splits], minlength=forest.n_features)
        totals[first : first + served] += of_tree / served
    return totals


class Summary:
    """Summary of each feature over the training rows.

    Importances take up to a third of the seconds of a quick fit with many classes, and few models need them. They are
    computed on first access, and before the model is pickled or stored.

    Attributes
    ----------
    center : (features,) float64
        Weighted mean, or most frequent category; NaN if always missing.
    jacobian : (features,) float64
        Mean absolute Jacobian times standard deviation, as shares with sum 1.
    attribution : (features,) float64
        Mean absolute attribution, as shares with sum 1.
    """

    def __init__(self, center: Floats, importances: Callable[[str], Floats]) -> None:
        """Take the center, and a function from a kind to its importances."""
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
        """Return the state of a pickle: the numbers without rows."""
        return {name: getattr(self, name) for name in SUMMARY}


def summary_of(network: Network, table: Table, weight: Floats, *, n_threads: int = 1) -> Summary:
    """Return the summary of the training rows; importances come from at most 256 of them, evenly spaced."""
    X = table.X
    sizes = [layer.forest.n_outputs for layer in network.layers]
    # Multiplications for a row: each step propagates the changes by all features through all layers.
    per_row = IMPORTANCE_STEPS * X.shape[1] * (sizes[0] + sum(a * b for a, b in pairwise(sizes)))
    group = workers()
    rows = group.sampled_rows(len(X), min(IMPORTANCE_ROWS, max(1, MAX_WORK // per_row)))
    sample = Table(group.select_rows(rows).allgather_rows(X[rows])[0], table.categorical)
    X, weight = group.sample(X, weight)
    center = _center(Table(X, table.categorical), weight)
    shares = partial(
        importances_over, network, table=sample, baseline=center[None], steps=IMPORTANCE_STEPS, n_threads=n_threads
    )
    return Summary(center, shares)


def _center(table: Table, weight: Floats) -> Floats:
    X, shares, categorical = table.X, weight / weight.sum(), set(table.categorical)
    # Columns with missing values, whose means are not finite here, and categories are corrected below.
    center: Floats = shares @ X.entries if isinstance(X, Sparse) else _means(X, shares)
    for j in categorical.union(np.flatnonzero(~np.isfinite(center)).tolist()):
        x = column_of(X, j)
        center[j] = _most_frequent(x, weight) if j in categorical else _mean(x, weight)
    return center


def _means(X: Floats, shares: Floats) -> Floats:
    blocks = (np.ascontiguousarray(X[:, columns].T) for columns in row_blocks(0, X.shape[1], len(X)))
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.array([shares @ x for block in blocks for x in block])
        return np.clip(means, X.min(axis=0), X.max(axis=0))


def _most_frequent(codes: Floats, weight: Floats) -> float:
    present = ~np.isnan(codes)
    return float(np.bincount(codes[present].astype(np.int64), weight[present]).argmax()) if present.any() else np.nan


def _mean(x: Floats, weight: Floats) -> float:
    """Return the weighted mean of the present values, clipped to their range in case of rounding."""
    present = ~np.isnan(x)
    x, w = x[present], weight[present]
    with np.errstate(over="ignore"):  # a rounded sum of shares may exceed 1, and the largest numbers then overflow
        return float(np.clip(w / w.sum() @ x, x.min(), x.max())) if len(x) else np.nan
