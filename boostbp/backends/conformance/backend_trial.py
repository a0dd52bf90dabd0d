"""A trial of a backend: trees grown on demand, and the error that tells which duty is broken and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from boostbp.backends.base import Backend, Grower, Table, TreeParams
from boostbp.backends.capabilities import Capabilities, ConformanceError, capabilities_of
from boostbp.floats import Floats
from boostbp.trees.tree import Tree


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

    @contextmanager
    def declared(self, word: str) -> Iterator[None]:
        """What is tried only because a backend says that it can."""
        try:
            yield
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
        "boostbp.backends.nodes.Numbering makes these numbers of arrays in which splits and leaves are mixed.",
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
        "If the library went another way with them, mend the threshold or missing_left (boostbp.backends.float32 has "
        "the thresholds of libraries that compare in float32). If it counts no rows, take out such splits by "
        "boostbp.backends.nodes.without_small_leaves.",
    )
    demand(
        tree.n_leaves <= growth.leaves,
        f"max_leaves={growth.max_leaves} and max_depth={growth.max_depth} allow {growth.leaves} leaves, and a tree has "
        f"{tree.n_leaves}.",
        "Keep to TreeParams.leaves.",
    )
    depth = _depth(tree)
    demand(
        growth.max_depth < 0 or depth <= growth.max_depth,
        f"max_depth={growth.max_depth} was asked for, and a tree has the depth {depth}.",
        "Keep to TreeParams.max_depth; 0 is a tree of one leaf.",
    )


def _depth(tree: Tree) -> int:
    deepest, ahead = 0, [(0, 0)] if len(tree.feature) else []
    while ahead:
        split, depth = ahead.pop()
        deepest = max(deepest, depth + 1)
        ahead += [(int(child), depth + 1) for child in (tree.left[split], tree.right[split]) if child >= 0]
    return deepest
