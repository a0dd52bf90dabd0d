"""Each library's own leaf assignment, and the rows on which it is easy to go another way."""

from __future__ import annotations

from typing import Any

import numpy as np

from boostbp.backends import _xgboost_ubj
from boostbp.backends.base import Table
from boostbp.backends.nodes import Numbering
from boostbp.trees.tree import Tree

LARGEST = float(np.finfo(np.float32).max)
ANYWHERE = (np.nan, 0.0, -0.0, 1e300, -1e300, 1e-300, -1e-300, 1e-45, -1e-45, 1e-35, -1e-35, LARGEST, -LARGEST)


def table(rng: np.random.Generator, rows: int, *, numeric: int = 4, categories: tuple[int, ...] = ()) -> Table:
    """Numeric columns of several scales, ties and missing values, and one column per number of categories."""
    X = rng.normal(size=(rows, numeric)) * 10.0 ** rng.integers(-3, 4, numeric)
    X[:, 0] = np.round(X[:, 0] / X[:, 0].std(), 1)
    for j in range(1, numeric, 2):
        X[rng.random(rows) < 0.1, j] = np.nan
    codes = [rng.integers(0, n, rows).astype(float) for n in categories]
    for column in codes:
        column[rng.random(rows) < 0.05] = np.nan
    return Table(np.column_stack([X, *codes]), tuple(range(numeric, numeric + len(categories))))


def target(rng: np.random.Generator, data: Table) -> np.ndarray:
    """A gradient, (rows, 1), to which every column matters, at any scale."""
    total = 0.1 * rng.normal(size=len(data.X))
    for column in data.X.T:
        values, which = np.unique(column, return_inverse=True)
        effect = rng.normal(size=min(len(values), 12))
        total += effect[which * len(effect) // len(values)]
    return total[:, None]


def adversarial(tree: Tree, data: Table, rng: np.random.Generator, each: int = 3) -> np.ndarray:
    """Rows that reach each split of a tree with a value on which it is easy to go wrong."""
    rows = [data.X]
    leaf = tree.leaf_of(data.X)
    for split in range(len(tree.feature)):
        here = np.flatnonzero(np.isin(leaf, _leaves_below(tree, split)))
        values = (
            _codes(data.X[:, tree.feature[split]]) if tree.cat_start[split] >= 0 else _around(tree.threshold[split])
        )
        taken = np.repeat(data.X[rng.choice(here, each)], len(values), axis=0)
        taken[:, tree.feature[split]] = np.tile(values, each)
        rows.append(taken)
    return np.ascontiguousarray(np.concatenate(rows))


def library_leaf(grower: Any, rows: np.ndarray) -> np.ndarray:
    """The leaf that the library gives each row under the tree that `grower` grew last, from one column."""
    module = type(grower).__module__.rpartition(".")[2]
    return _ORACLES[module](grower, rows)


def _lightgbm(grower: Any, rows: np.ndarray) -> np.ndarray:
    last = grower.booster.current_iteration() - 1
    leaf = grower.booster.predict(rows, start_iteration=last, num_iteration=1, pred_leaf=True, num_threads=1)
    return leaf.astype(int).ravel()


def _xgboost(grower: Any, rows: np.ndarray) -> np.ndarray:
    import xgboost

    [(kind, run)] = grower.running.items()
    booster = run.booster[run.rounds - 1 : run.rounds]
    categorical = grower.table.categorical
    types = ["c" if j in categorical else "q" for j in range(rows.shape[1])]
    seen = xgboost.DMatrix(np.clip(rows, -LARGEST, LARGEST), feature_types=types, enable_categorical=True, nthread=1)
    node = booster.predict(seen, pred_leaf=True).astype(int).ravel()
    [node_of_leaf] = _xgboost_ubj.node_of_leaf(booster.save_raw("ubj"))
    assert kind[0] == 1
    return np.searchsorted(node_of_leaf, node)


def _sklearn(grower: Any, rows: np.ndarray) -> np.ndarray:
    [model] = grower.models
    with np.errstate(over="ignore", invalid="ignore"):  # its check of the input sums large numbers
        node = model.apply(np.clip(rows, -LARGEST, LARGEST))
    return np.searchsorted(Numbering.of(model.tree_.children_left).leaves, node)


_ORACLES = {"lightgbm": _lightgbm, "xgboost": _xgboost, "sklearn": _sklearn}


def _leaves_below(tree: Tree, split: int) -> list[int]:
    leaves, ahead = [], [split]
    while ahead:
        at = ahead.pop()
        if at < 0:
            leaves.append(~at)
        else:
            ahead += [int(tree.left[at]), int(tree.right[at])]
    return leaves


def _around(threshold: float) -> np.ndarray:
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


def _codes(column: np.ndarray) -> np.ndarray:
    seen = np.unique(column[~np.isnan(column)])
    return np.concatenate([seen[:60], seen[-3:], seen[-1] + np.array([1, 2, 31, 32, 33, 10_000]), [-1, -7, np.nan]])
