"""Work: what a piece of training costs, counted in the same way on every machine, so that a fit can be repeated.

The unit is a million of the table's cells that a search for splits looks at. The constants were fitted to the seconds
of the candidates on ten tables of 250 to 2,700 rows (``docs/research/journal.md``, "A fit that is good whenever it
stops"); they need be right within a factor of two, as they only order what is done.
"""

from __future__ import annotations

import math

from boostbp.layers import LayerSettings
from boostbp.network.settings import Settings

ROUND, TREE = 0.07, 0.03  # of a round and of each of its trees, however few the rows
LEAF_ROW = 10e-6  # of a row in a leaf regression
KEPT = 0.6  # of a round whose structures are kept for some epochs


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
    levels = max(math.log2(min(growth.leaves, n_rows)), 1.0)
    split_row = 1e-6 * max(growth.colsample_bytree * n_features, 1.0) * levels
    leaf_row = LEAF_ROW if settings.basis.columns_per_feature or one_structure else 0.0
    calls = grown + (1.0 - grown) * KEPT
    rows = structures * grown * split_row + trees * leaf_row
    return calls * (ROUND + structures * TREE) + rows * n_rows


def epoch_work(settings: Settings, n_rows: int, n_features: int, n_outputs: int) -> float:
    """Return the work of one epoch of back-propagation, on average: structures are grown in some epochs only."""
    total, seen = 0.0, n_features
    for layer, units in zip(settings.layers, (*settings.units, n_outputs), strict=True):
        total += layer.n_estimators * round_work(layer, n_rows, seen, units, 1.0 / settings.structure_epochs)
        seen = units + settings.skip * n_features
    return total
