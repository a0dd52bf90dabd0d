"""Work: the cost of a piece of training, counted alike on every machine, which makes a fit repeatable.

The unit is a million cells of the table that a search for splits reads. The constants were fitted to the seconds of the
candidates on ten tables of 250 to 2,700 rows (``docs/research/journal.md``, "A fit that is good whenever it stops").
They must be right within a factor of two, as they only order the work.
"""

from __future__ import annotations

import math

from boostbp.layers import LayerSettings
from boostbp.network.settings import Settings

ROUND, TREE = 0.07, 0.03  # a round and each of its trees, without the work for their rows
LEAF_ROW = 10e-6  # a row in a leaf regression
KEPT = 0.6  # a round that keeps its structures, as a share of one that grows them


def round_work(
    settings: LayerSettings,
    n_rows: int,
    n_features: int,
    n_outputs: int,
    grown: float = 1.0,
    one_structure: bool = False,
) -> float:
    """Return the work of one round of a layer.

    Parameters
    ----------
    grown : float
        Share of the rounds that grow their structures.
    one_structure : bool
        Whether the trees of a round share one structure.
    """
    growth = settings.growth
    trees = 1 if growth.multi_output else n_outputs
    structures = 1 if one_structure else trees
    # Each level of a tree reads all rows of the sampled features.
    levels = max(math.log2(min(growth.leaves, n_rows)), 1.0)
    split_row = 1e-6 * max(growth.colsample_bytree * n_features, 1.0) * levels
    leaf_row = LEAF_ROW if settings.basis.columns_per_feature or one_structure else 0.0
    calls = grown + (1.0 - grown) * KEPT
    rows = structures * grown * split_row + trees * leaf_row
    return calls * (ROUND + structures * TREE) + rows * n_rows


def epoch_work(settings: Settings, n_rows: int, n_features: int, n_outputs: int) -> float:
    """Return the mean work of an epoch of back-propagation: structures are grown in some epochs only."""
    total, layer_features = 0.0, n_features
    for layer, units in zip(settings.layers, (*settings.units, n_outputs), strict=True):
        total += layer.n_estimators * round_work(layer, n_rows, layer_features, units, 1.0 / settings.structure_epochs)
        layer_features = units + settings.skip * n_features
    return total
