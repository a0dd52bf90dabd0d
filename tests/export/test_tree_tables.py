"""Tables of trees, walked node by node in Python, give what the forest gives."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import forest_of, random_members

from boostbp.export.tree_tables import TreeTables, tables_of
from boostbp.trees.basis import BASES
from boostbp.trees.forest import Forest

N_OUTPUTS = 3


def grown(basis: str, clip: bool) -> tuple[Forest, np.ndarray]:
    """Trees of one, two or all outputs, with columns of several scales and missing cells; and the rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * [1.0, 2.0**12, 1e-20, 3.0]
    X[rng.random(X.shape) < 0.1] = np.nan
    members = random_members(rng, X, BASES[basis], (0, 1, 7, 12, 3, 30), N_OUTPUTS)
    return forest_of(members, 4, N_OUTPUTS, BASES[basis], clip), X


def value(tables: TreeTables, forest: Forest, number: int, row: np.ndarray) -> np.ndarray:
    """The value of the leaf that a row reaches under a tree of the tables."""
    node = tables.root[number]
    for _ in range(tables.n_steps):
        if (split := tables.split[node]) >= 0:
            cell = row[forest.nodes.feature[split]]
            is_left = forest.nodes.missing_left[split] if np.isnan(cell) else cell <= forest.nodes.threshold[split]
            node = tables.child[node] + (not is_left)
    assert tables.split[node] < 0
    assert tables.child[node] == node
    leaf = (tables.split[:node] < 0).sum()
    first, terms = tables.n_read[:leaf].sum(), tables.terms
    total = tables.constant[leaf].copy()
    for at in range(first, first + tables.n_read[leaf]):
        v = (row[terms.column[at]] - terms.center[at]) * terms.factor[at]
        if forest.clip:
            v = min(max(v, terms.lower[at]), terms.upper[at])
        if not np.isnan(row[terms.column[at]]):
            total += v * (terms.slope[at] + (0 if terms.square is None else v * terms.square[at]))
    return total


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("basis", ["constant", "linear", "quadratic"])
def test_a_walk_through_the_tables_gives_the_values_of_the_forest(basis: str, clip: bool) -> None:
    forest, X = grown(basis, clip)
    found = np.zeros((40, N_OUTPUTS))
    for tables in tables_of(forest):
        assert sum(count for count, _ in tables.groups) == len(tables.tree)
        for number, tree in enumerate(tables.tree):
            first, n_outputs = forest.leaves.tree_output[tree]
            for place, row in enumerate(X[:40]):
                found[place, first : first + n_outputs] += value(tables, forest, number, row)
    np.testing.assert_allclose(found, forest.predict(X[:40]), rtol=1e-10, atol=1e-10)
