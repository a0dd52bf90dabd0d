"""BackendTrial of a backend: small tables, checked trees, and errors that say how to repair a backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, TreeParams
from boostbp.backends.capabilities import Capabilities, capabilities_of, checked_trees
from boostbp.runtime.arrays import Floats, read_only, refuse_writes
from boostbp.runtime.checks import ConformanceError
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Tree

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
REPEATS = 3  # number of rows with each value. Arbitrary
# Zeros, and numbers that round to 0 or infinity in float32
EXTREMES = (0.0, -0.0, 1e300, -1e300, 1e-300, -1e-300, 1e-45, -1e-45, 1e-35, -1e-35, LARGEST_FLOAT32, -LARGEST_FLOAT32)


def demand(condition: object, fault: str, cure: str) -> None:
    """Raise a ConformanceError with the fault and its cure, unless a condition holds."""
    if not condition:
        raise ConformanceError(f"{fault} {cure}")


@dataclass(frozen=True, slots=True)
class BackendTrial:
    """A backend under trial."""

    backend: Backend

    @property
    def capabilities(self) -> Capabilities:
        """What the backend declares."""
        return capabilities_of(self.backend)

    def run(self, check: Callable[[BackendTrial], None], cure: str = "") -> None:
        """Run a check; raise ConformanceError with its fault, or with the error of the backend and a cure."""
        try:
            check(self)
        except ConformanceError as error:
            raise ConformanceError(f"{error} Or {cure}." if cure else str(error)) from error
        except Exception as error:
            cure = f"Mend it, or {cure}." if cure else "See the traceback: no backend may raise here."
            raise ConformanceError(f"it raised {type(error).__name__}: {error} {cure}") from error

    def mixed(self, rng: np.random.Generator, rows: int, **columns: Any) -> Table:
        """Return a table, with missing values if the backend reads them; see `mixed`."""
        return mixed(rng, rows, **dict[str, Any](missing=self.capabilities.missing) | columns)

    def fork(self, table: Table, growth: TreeParams, columns: int = 1, seed: int = 0) -> Grower:
        """Return a fork for some columns, after binding the table."""
        return self.backend.bind(table, growth).fork(slice(0, columns), seed)

    def grow(
        self, table: Table, grad: Floats, hess: Floats | None = None, *, seed: int = 0, **growth: Any
    ) -> Sequence[Tree]:
        """Bind a table, and return the checked trees of the first round.

        Rows per leaf are checked only if all hessians are equal, as libraries may count rows by their hessians.
        """
        params = TreeParams(**growth)
        hess = np.ones_like(grad) if hess is None else hess
        if isinstance(table.X, np.ndarray):
            table = Table(read_only(table.X), table.categorical)
        with refuse_writes("the backend writes into X, grad or hess: work on a copy."):
            grown = self.fork(table, params, grad.shape[1], seed).grow(read_only(grad), read_only(hess))
        count = 1 if params.multi_output else grad.shape[1]
        check_trees(grown, count, table, params, counts=bool(np.ptp(hess) == 0.0))
        return grown


def check_trees(grown: Sequence[Tree], count: int, table: Table, growth: TreeParams, counts: bool = True) -> None:
    """Demand trees that layers accept, of the requested sizes, with rows per leaf if it `counts` them."""
    try:
        checked_trees(grown, count, table, growth)
    except ValueError as error:
        raise ConformanceError(str(error)) from error
    for tree in grown:
        columns, of_codes = list(table.categorical), np.isin(tree.feature, table.categorical)
        fault = f"a tree has category sets for columns {tree.feature[tree.cat_start >= 0]}, not for {columns}."
        cure = "Split a categorical column by a set of codes (cat_start, cat_words, categories), others by a threshold."
        demand(np.array_equal(tree.cat_start >= 0, of_codes), fault, cure)
        fault = f"a tree of {len(tree.feature)} splits has the gains {tree.gain.tolist()}."
        cure = "Leave them out (NaN), or return by how much each split reduces the loss."
        demand(len(tree.gain) == len(tree.feature) and not (tree.gain < 0).any(), fault, cure)
    for tree in grown:
        rows = np.bincount(tree.leaf_of(table.X), minlength=tree.n_leaves).min()
        demand(
            tree.n_leaves == 1 or not counts or rows >= growth.min_samples_leaf,
            f"min_samples_leaf={growth.min_samples_leaf} was asked for, and Tree.leaf_of sends {rows} to a leaf.",
            "If the library sent them elsewhere, mend missing_left or the threshold (boostbp.backends.dialects knows "
            "float32). If it counts no rows, take out such splits by boostbp.backends.dialects.without_small_leaves.",
        )
        depth = _depth(tree, 0 if len(tree.feature) else -1)
        fault = f"max_depth={growth.max_depth} was asked for, and a tree has the depth {depth}."
        demand(not 0 <= growth.max_depth < depth, fault, "Keep to TreeParams.max_depth; 0 is a tree of one leaf.")


def _depth(tree: Tree, node: int) -> int:
    return 0 if node < 0 else 1 + max(_depth(tree, tree.left[node]), _depth(tree, tree.right[node]))


def mixed(
    rng: np.random.Generator, rows: int, *, numeric: int = 4, categories: tuple[int, ...] = (), missing: bool = True
) -> Table:
    """Return numeric columns of several scales, with ties, and a column for each number of categories."""
    # Rounding the first column causes ties; every second column has missing values.
    X = rng.normal(size=(rows, numeric)) * 10.0 ** rng.integers(-3, 4, numeric)
    X[:, 0] = np.round(X[:, 0] / (X[:, 0].std() or 1.0), 1)
    codes = [rng.integers(0, n, rows).astype(float) for n in categories]
    if missing:
        for j in range(1, numeric, 2):
            X[rng.random(rows) < 0.1, j] = np.nan
        for column in codes:
            column[rng.random(rows) < 0.05] = np.nan
    return Table(np.column_stack([X, *codes]), tuple(range(numeric, numeric + len(categories))))


def switches(rng: np.random.Generator, rows: int, features: int) -> Table:
    """Return columns of 0 and 1, in which every threshold separates the same rows."""
    return Table(rng.integers(0, 2, (rows, features)).astype(float))


def gradient(rng: np.random.Generator, table: Table, columns: int = 1) -> Floats:
    """Return gradients, (rows, columns), that depend on every column of the table, for any scale."""
    total = np.empty((len(table.X), columns))
    for j in range(columns):
        total[:, j] = 0.1 * rng.normal(size=len(table.X))
        for column in table.X.T:
            values, which = np.unique(column, return_inverse=True)
            effect = rng.normal(size=min(len(values), 12))  # effects of some intervals of values, or of codes
            total[:, j] += effect[which * len(effect) // len(values)]
    return total


def loss_left(tree: Tree, X: Floats, grad: Floats, hess: Floats | float = 1.0) -> float:
    """Return the share of the quadratic loss of one column that remains after Newton steps in the leaves of a tree.

    A step reduces the loss by g^2 / 2h, with sums g and h over a leaf. The maximum is that of a step for each row.
    """
    leaf, hess = tree.leaf_of(X), np.broadcast_to(hess, grad.shape)
    g, h = (np.bincount(leaf, weights=column.ravel(), minlength=tree.n_leaves) for column in (grad, hess))
    gain = np.divide(g**2, h, out=np.zeros_like(g), where=h > 0).sum()
    largest_gain = np.divide(grad**2, hess, out=np.zeros_like(grad), where=hess > 0).sum()
    return float(1.0 - gain / largest_gain)


def grow_rounds(fork: Grower, grad: Floats, count: int) -> list[Tree]:
    """Return the trees of some rounds of one column, with gradients of three scales in turn."""
    return [fork.grow(grad * (1 + number % 3), np.ones_like(grad))[0] for number in range(count)]


def same(tree: Tree, other: Tree) -> bool:
    """Return whether two trees have the same bits, except for gains."""
    names = tree.__dataclass_fields__.keys() - {"gain"}
    return all(np.array_equal(getattr(tree, name), getattr(other, name), equal_nan=True) for name in names)


def adversarial(tree: Tree, table: Table, rng: np.random.Generator, *, missing: bool = True) -> Floats:
    """Return rows that reach each split with difficult values: its threshold, neighbours, extremes, unknown codes."""
    rows, leaf = [table.X], tree.leaf_of(table.X)
    for split in range(len(tree.feature)):
        column = table.X[:, tree.feature[split]]
        values = _codes(column) if tree.cat_start[split] >= 0 else _around(tree.threshold[split])
        values = np.append(values, np.nan) if missing else values
        reached = np.flatnonzero(np.isin(leaf, _leaves_below(tree, split)))
        chosen = np.repeat(table.X[rng.choice(reached, REPEATS)], len(values), axis=0)
        chosen[:, tree.feature[split]] = np.tile(values, REPEATS)
        rows.append(chosen)
    return np.ascontiguousarray(np.concatenate(rows))


def _leaves_below(tree: Tree, node: int) -> list[int]:
    if node < 0:
        return [~node]
    return _leaves_below(tree, int(tree.left[node])) + _leaves_below(tree, int(tree.right[node]))


def _around(threshold: float) -> Floats:
    """Return the threshold, its neighbours in both precisions, midpoints between those of float32, and extremes."""
    with np.errstate(over="ignore"):
        single = [np.float32(np.clip(threshold, -LARGEST_FLOAT32, LARGEST_FLOAT32))]
        for _ in range(2):
            below, above = (np.nextafter(single[i], np.float32(end)) for i, end in ((0, -np.inf), (-1, np.inf)))
            single = [below, *single, above]
        wide = np.clip(np.array(single, np.float64), -2 * LARGEST_FLOAT32, 2 * LARGEST_FLOAT32)
        points = np.concatenate([wide, (wide[1:] + wide[:-1]) / 2, [threshold]])
        points = np.concatenate([points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf)])
    return np.concatenate([points[np.isfinite(points)], EXTREMES])


def _codes(column: NDArray[np.float64]) -> Floats:
    codes = np.unique(column[~np.isnan(column)])
    return np.concatenate([codes[:60], codes[-3:], codes[-1] + np.array([1, 2, 31, 32, 33, 10_000]), [-1, -7]])
