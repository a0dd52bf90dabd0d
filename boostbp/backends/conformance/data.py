"""What a backend is tried on: small tables, gradients, and rows on which a tree is easily read wrongly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Table
from boostbp.floats import Floats
from boostbp.trees.tree import Tree

LARGEST = float(np.finfo(np.float32).max)
REPEATS = 3  # rows by which each value is tried
# Zeros, and numbers that float32 rounds to 0 or to infinity
ANYWHERE = (0.0, -0.0, 1e300, -1e300, 1e-300, -1e-300, 1e-45, -1e-45, 1e-35, -1e-35, LARGEST, -LARGEST)


def mixed(
    rng: np.random.Generator, rows: int, *, numeric: int = 4, categories: tuple[int, ...] = (), missing: bool = True
) -> Table:
    """Numeric columns of several scales, with ties and missing values, and one column per number of categories."""
    X = rng.normal(size=(rows, numeric)) * 10.0 ** rng.integers(-3, 4, numeric)
    X[:, 0] = np.round(X[:, 0] / (X[:, 0].std() or 1.0), 1)
    codes = [rng.integers(0, n, rows).astype(float) for n in categories]
    if missing:
        for j in range(1, numeric, 2):
            X[rng.random(rows) < 0.1, j] = np.nan
        for column in codes:
            column[rng.random(rows) < 0.05] = np.nan
    return Table(np.column_stack([X, *codes]), tuple(range(numeric, numeric + len(categories))))


def gradient(rng: np.random.Generator, table: Table, columns: int = 1) -> Floats:
    """Gradients, (rows, columns), to which every column of the table matters, at any scale."""
    return np.column_stack([_gradient(rng, table) for _ in range(columns)])


def _gradient(rng: np.random.Generator, table: Table) -> Floats:
    total = 0.1 * rng.normal(size=len(table.X))
    for column in table.X.T:
        values, which = np.unique(column, return_inverse=True)
        effect = rng.normal(size=min(len(values), 12))  # of a few intervals of values, or of codes
        total += effect[which * len(effect) // len(values)]
    return total


def switches(rng: np.random.Generator, rows: int, features: int) -> Table:
    """Columns of 0 and 1: every threshold between parts the rows alike, whether it is drawn or the best one."""
    return Table(rng.integers(0, 2, (rows, features)).astype(float))


def loss_left(tree: Tree, X: Floats, grad: Floats, hess: Floats) -> float:
    """Share of the quadratic loss of one column that Newton steps in the leaves of a tree leave."""
    leaf = tree.leaf_of(X)
    g, h = (np.bincount(leaf, weights=column.ravel(), minlength=tree.n_leaves) for column in (grad, hess))
    gained = np.divide(g**2, h, out=np.zeros_like(g), where=h > 0).sum()
    most = np.divide(grad**2, hess, out=np.zeros_like(grad), where=hess > 0).sum()
    return float(1.0 - gained / most)


def same(tree: Tree, other: Tree) -> bool:
    """Whether two trees are the same to the bit, but for what they say of gains."""
    return all(
        np.array_equal(getattr(tree, name), getattr(other, name), equal_nan=True)
        for name in tree.__dataclass_fields__
        if name != "gain"
    )


def adversarial(
    tree: Tree, table: Table, rng: np.random.Generator, *, missing: bool = True, repeats: int = 3
) -> Floats:
    """Rows that reach each split of a tree with a value on which it is easy to go wrong.

    They are the threshold and its neighbours in both precisions, zeros, the ends of float32, codes never seen.
    """
    rows = [table.X]
    leaf = tree.leaf_of(table.X)
    for split in range(len(tree.feature)):
        column = table.X[:, tree.feature[split]]
        values = _codes(column) if tree.cat_start[split] >= 0 else _around(tree.threshold[split])
        values = np.append(values, np.nan) if missing else values
        reached = np.flatnonzero(np.isin(leaf, _leaves_below(tree, split)))
        chosen = np.repeat(table.X[rng.choice(reached, REPEATS)], len(values), axis=0)
        chosen[:, tree.feature[split]] = np.tile(values, REPEATS)
        rows.append(chosen)
    return np.ascontiguousarray(np.concatenate(rows))


def _leaves_below(tree: Tree, split: int) -> list[int]:
    leaves, ahead = [], [split]
    while ahead:
        node = ahead.pop()
        if node < 0:
            leaves.append(~node)
        else:
            ahead += [int(tree.left[node]), int(tree.right[node])]
    return leaves


def _around(threshold: float) -> Floats:
    """The threshold, its neighbours in both precisions, the midpoints between those of float32, and the rest."""
    with np.errstate(over="ignore"):
        single = [np.float32(np.clip(threshold, -LARGEST, LARGEST))]
        for _ in range(2):
            below, above = (np.nextafter(single[i], np.float32(end)) for i, end in ((0, -np.inf), (-1, np.inf)))
            single = [below, *single, above]
        wide = np.clip(np.array(single, np.float64), -2 * LARGEST, 2 * LARGEST)
        points = np.concatenate([wide, (wide[1:] + wide[:-1]) / 2, [threshold]])
        points = np.concatenate([points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf)])
    return np.concatenate([points[np.isfinite(points)], ANYWHERE])


def _codes(column: NDArray[np.float64]) -> Floats:
    codes = np.unique(column[~np.isnan(column)])
    return np.concatenate([codes[:60], codes[-3:], codes[-1] + np.array([1, 2, 31, 32, 33, 10_000]), [-1, -7]])
