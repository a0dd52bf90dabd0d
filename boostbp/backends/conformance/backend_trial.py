"""A trial of a backend: tables, trees grown on demand, and the error that tells which duty is broken, and its cure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, Table, TreeParams
from boostbp.backends.capabilities import Capabilities, ConformanceError, capabilities_of
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


def adversarial(tree: Tree, table: Table, rng: np.random.Generator, *, missing: bool = True) -> Floats:
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


def _leaves_below(tree: Tree, node: int) -> list[int]:
    return [~node] if node < 0 else [leaf for child in _children(tree, node) for leaf in _leaves_below(tree, child)]


def _children(tree: Tree, split: int) -> tuple[int, int]:
    return int(tree.left[split]), int(tree.right[split])


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


def demand(holds: Any, broken: str, cure: str) -> None:
    """Raise an error that says what is broken and how to mend it, unless a promise is kept."""
    if not holds:
        raise ConformanceError(f"{broken} {cure}")


@dataclass(frozen=True, slots=True)
class Trial:
    """A backend under trial."""

    backend: Backend

    @property
    def able(self) -> Capabilities:
        """What it says that it can do."""
        return capabilities_of(self.backend)

    def fork(self, table: Table, growth: TreeParams, columns: int = 1, seed: int = 0) -> Grower:
        """A fork for some columns, on a table bound anew."""
        return self.backend.bind(table, growth).fork(slice(0, columns), seed)

    def grow(
        self, table: Table, grad: Floats, hess: Floats | None = None, *, seed: int = 0, **growth: Any
    ) -> Sequence[Tree]:
        """The first round on a table bound anew, each tree checked.

        Rows per leaf are counted where all hessians are equal: libraries may count rows by these.
        """
        settings = TreeParams(**growth)
        hess = np.ones_like(grad) if hess is None else hess
        arrays = {"X": table.X, "grad": grad, "hess": hess}
        before = {name: array.copy() for name, array in arrays.items() if isinstance(array, np.ndarray)}
        trees = self.fork(table, settings, grad.shape[1], seed).grow(grad, hess)
        for name, copy in before.items():
            demand(np.array_equal(arrays[name], copy, equal_nan=True), f"{name} was written to.", "Work on a copy.")
        count = 1 if settings.shared else grad.shape[1]
        demand(
            isinstance(trees, Sequence) and len(trees) == count,
            f"grow() returned {trees!r:.200} for a gradient of {grad.shape[1]} columns with shared={settings.shared}.",
            f"Let it return a list of {count} Tree.",
        )
        for tree in trees:
            well_formed(tree, table)
            sized(tree, table, settings, count_rows=bool(np.ptp(hess) == 0.0))
        return trees

    def try_declared(self, word: str, capability: Callable[[Trial], None]) -> None:
        """Try what a backend says that it can do."""
        try:
            capability(self)
        except ConformanceError as error:
            raise ConformanceError(f"{error} Or leave {word!r} out of its capabilities.") from error
        except Exception as error:
            raise ConformanceError(
                f"its capabilities say {word!r}, but it raised {type(error).__name__}: {error} "
                f"Mend it, or leave {word!r} out of its capabilities."
            ) from error


def well_formed(tree: Any, table: Table) -> None:
    """Demand a tree that routing can trust: kernels do not look where they read."""
    demand(isinstance(tree, Tree), f"grow() returned {tree!r:.200} among its trees.", "Make them by Tree.of(...).")
    n_splits, n_features = len(tree.feature), table.X.shape[1]
    arrays = ("threshold", "left", "right", "missing_left", "cat_start", "cat_words", "gain")
    lengths = {name: len(getattr(tree, name)) for name in arrays}
    demand(
        set(lengths.values()) == {n_splits},
        f"a tree of {n_splits} splits has arrays of the lengths {lengths}.",
        "Give one number for each split; leaves are no rows of these arrays.",
    )
    children = np.sort(np.concatenate([tree.left, tree.right]))
    demand(
        np.array_equal(children, np.r_[-tree.n_leaves : 0, 1:n_splits] if n_splits else []),
        f"a tree of {n_splits} splits has the children {children.tolist()}.",
        "Split 0 is the root; each other split 1, 2, ... and each leaf ~0, ~1, ... is a child once. "
        "boostbp.backends.dialects.Numbering makes these numbers of arrays in which splits and leaves are mixed.",
    )
    demand(
        np.all((tree.feature >= 0) & (tree.feature < n_features)),
        f"a tree splits the features {np.unique(tree.feature).tolist()}, of {n_features}.",
        "They count from 0, in the order of the table's columns.",
    )
    is_set = tree.cat_start >= 0
    demand(
        np.array_equal(is_set, np.isin(tree.feature, table.categorical))
        and not np.isnan(tree.threshold[~is_set]).any(),
        f"a tree has the thresholds {tree.threshold.tolist()} and the category sets {tree.cat_start.tolist()} for the "
        f"features {tree.feature.tolist()}, of which {list(table.categorical)} are categorical.",
        "Split a categorical column by a set of codes (cat_start, cat_words, categories), any other by a threshold.",
    )
    end = (tree.cat_start + tree.cat_words)[is_set].max(initial=0)
    demand(
        end <= len(tree.categories),
        f"a category set ends at word {end} of {len(tree.categories)}.",
        "Code c is in a set if bit c % 32 of its word c // 32 is set.",
    )
    demand(
        not (tree.gain < 0).any(),
        f"a tree has the gains {tree.gain.tolist()}.",
        "Leave them out (NaN), or let them be what a split takes from the loss.",
    )


def sized(tree: Tree, table: Table, growth: TreeParams, *, count_rows: bool = True) -> None:
    """Demand a tree of the sizes that were asked for, counted on the rows as we route them."""
    rows = np.bincount(tree.leaf_of(table.X), minlength=tree.n_leaves)
    demand(
        tree.n_leaves == 1 or not count_rows or rows.min() >= growth.min_samples_leaf,
        f"min_samples_leaf={growth.min_samples_leaf} was asked for, and Tree.leaf_of sends {rows.min()} to a leaf.",
        "If the library went another way with them, mend the threshold or missing_left (boostbp.backends.dialects has "
        "the thresholds of libraries that compare in float32). If it counts no rows, take out such splits by "
        "boostbp.backends.dialects.without_small_leaves.",
    )
    demand(
        tree.n_leaves <= growth.leaves,
        f"max_leaves={growth.max_leaves} and max_depth={growth.max_depth} allow {growth.leaves} leaves, and a tree has "
        f"{tree.n_leaves}.",
        "Keep to TreeParams.leaves.",
    )
    depth = _depth(tree, 0 if len(tree.feature) else -1)
    demand(
        growth.max_depth < 0 or depth <= growth.max_depth,
        f"max_depth={growth.max_depth} was asked for, and a tree has the depth {depth}.",
        "Keep to TreeParams.max_depth; 0 is a tree of one leaf.",
    )


def _depth(tree: Tree, node: int) -> int:
    return 0 if node < 0 else 1 + max(_depth(tree, child) for child in _children(tree, node))
