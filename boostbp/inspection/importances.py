"""Importances: one number per feature, by splits, gains, slopes or attributions.

**Whole model.** Splits and gains are of trees, and a feature acts on the output through the trees of all layers.
The importance of the whole model flows down: the output layer's total is shared by the columns that it reads, the
share of a hidden unit by the columns that the unit's own trees read, and so on down to the features. The base that
a layer starts from does not count there: a ridge regression has no splits, and knots of smooth functions, which have a
gain of 0, are no choice; slopes and attributions see all of the model.
"""

from __future__ import annotations

import numpy as np

from boostbp.backends.base import Table
from boostbp.floats import Floats
from boostbp.inspection.attributions import ROOM, attribute
from boostbp.network.network import Network
from boostbp.trees.forest import Forest
from boostbp.trees.sparse import dense


def importances(network: Network, kind: str, layer: int | None = None) -> Floats:
    """Return importances by ``"split"`` or ``"gain"``, shares with sum 1.

    Parameters
    ----------
    layer : int or None
        None: of the features, for the whole model. Otherwise of the columns that T_layer reads.

    Raises
    ------
    ValueError
        If gains are asked for and the library that grew the trees did not state them.
    """
    if layer is not None:
        return shares_of(_totals(network.layers[layer].forest, kind).sum(axis=0))
    share = shares_of(_totals(network.layers[-1].forest, kind).sum(axis=0))
    direct = np.zeros(network.layers[0].forest.n_features)
    for below in reversed(network.layers[:-1]):
        totals = _totals(below.forest, kind)
        units = len(totals)
        if network.skip:
            direct += share[units:]
        share = share[:units] @ np.apply_along_axis(shares_of, 1, totals)
    return shares_of(share + direct)


def importances_over(
    network: Network, kind: str, table: Table, baseline: Floats, *, steps: int = 32, n_threads: int = 1
) -> Floats:
    """Return importances by ``"jacobian"`` or ``"attribution"`` over some rows, shares with sum 1.

    Sums over rows and outputs, in units of the network: outputs of a regression count by their standard deviations.

    Parameters
    ----------
    table : Table
        The rows. The Jacobian is multiplied by the standard deviation of their features.
    baseline : (1, features)
        Of the attributions.
    steps : int
        Of the attributions.
    """
    X = table.X
    total, moments = np.zeros(X.shape[1]), np.zeros((3, X.shape[1]))
    size = max(1, ROOM // (X.shape[1] * len(network.baseline)))
    with np.errstate(all="ignore"):  # numbers near the end of float64 leave a feature without a value
        for first in range(0, len(X), size):
            part = dense(X[first : first + size])
            if kind == "jacobian":
                values = network.jacobian(part, n_jobs=n_threads)
                from_center = part - np.nan_to_num(baseline)
                moments += [
                    (~np.isnan(part)).sum(axis=0), np.nansum(from_center, axis=0), np.nansum(from_center**2, axis=0)
                ]  # fmt: skip
            else:
                values = attribute(
                    network, part, baseline, categorical=table.categorical, steps=steps, n_threads=n_threads
                ).values
            total += np.abs(values).sum(axis=(0, 1))
        if kind == "jacobian":
            total *= np.sqrt(np.maximum(moments[2] / moments[0] - np.square(moments[1] / moments[0]), 0.0))
        return shares_of(np.nan_to_num(total, posinf=0.0))


def shares_of(values: Floats) -> Floats:
    """Return values as shares of their sum; zeros if that is 0."""
    total = values.sum()
    return values / total if total > 0 else np.zeros_like(values)


def _totals(forest: Forest, kind: str) -> Floats:
    """Return the splits or gains of the trees of each output at each column, (outputs, columns)."""
    if kind == "gain" and np.isnan(forest.gain).any():
        raise ValueError("kind='gain' is not known: the backend states no gain of its splits. Use kind='split'.")
    value = np.maximum(forest.gain, 0.0) if kind == "gain" else (forest.gain != 0.0).astype(float)
    # Splits with a gain of 0 are no choice of a library: knots of a base, and what asks for missing values.
    totals = np.zeros((forest.n_outputs, forest.n_features))
    for tree, (first, served) in enumerate(forest.leaves.tree_output):
        splits = slice(forest.tree_split[tree], forest.tree_split[tree + 1])
        of_tree = np.bincount(forest.nodes.feature[splits], value[splits], minlength=forest.n_features)
        totals[first : first + served] += of_tree / served
    return totals
