"""Capabilities that a backend declares, and checks of the trees that it returns.

The core checks no bounds, so trees of a backend, which may be the user's own, are checked before rows are routed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

from boostbp.backends.base import Backend, TreeParams
from boostbp.runtime import checks
from boostbp.trees.packed import check_nodes
from boostbp.trees.sparse import Sparse, Table
from boostbp.trees.tree import Tree, Trees, as_trees


def one_stream_each(n_rows: int, n_outputs: int, growth: TreeParams) -> int:
    """Return as many streams of random numbers as outputs."""
    return n_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Abilities of a backend beyond growing trees on numbers. Only declared ones are ever requested from it.

    >>> from boostbp.backends import Capabilities
    >>> Capabilities(missing=True, deterministic=True).sparse
    False

    Attributes
    ----------
    missing : bool
        Reads NaN as missing; `Tree.missing_left` has the side of NaN.
    categories : bool
        Splits columns of category codes (`Table.categorical`) by sets of codes.
    sparse : bool
        Reads a table whose `X` is `Sparse`, and grows the trees of the dense one.
    vector_leaf : bool
        Grows one tree on several columns of a gradient (``TreeParams.multi_output``), of numeric features. Without
        it, such a tree is grown on one column, a random projection of the others.
    extra_trees : bool
        Draws thresholds (``TreeParams.extra_trees``).
    colsample_bytree : {"tree", "node"} or None
        Draws features (``TreeParams.colsample_bytree``) anew for each tree, or for each node.
    deterministic : bool
        Makes no random draws except those that `TreeParams` requests: a tree depends only on the input and on its own
        column of gradients, not on earlier trees, other columns or the thread. Any number of outputs may then share a
        call of `grow`.
    native_leaves : bool
        Fits linear leaves itself: its growers are `NativeGrower`.
    row_subsets : bool
        Grows on some of its binned rows without binning again: its growers are `SubsetGrower`.
    params : bool
        Takes native parameters (``TreeParams.params``), and refuses those that it does not know.
    streams : callable
        ``streams(n_rows, n_outputs, growth) -> int``: the number of random streams among which outputs are divided, if
        trees depend on random draws. The outputs of a stream are columns of one call of `grow`, which may save time.
        The number must not depend on threads. By default, each output has its own stream.
    """

    missing: bool = False
    categories: bool = False
    sparse: bool = False
    vector_leaf: bool = False
    extra_trees: bool = False
    colsample_bytree: Literal["tree", "node"] | None = None
    deterministic: bool = False
    native_leaves: bool = False
    row_subsets: bool = False
    params: bool = False
    streams: Callable[[int, int, TreeParams], int] = one_stream_each

    def draws(self, growth: TreeParams) -> bool:
        """Return whether trees with these parameters depend on random draws, as native parameters may cause, too."""
        return not self.deterministic or growth.extra_trees or growth.colsample_bytree < 1.0 or bool(growth.params)


def capabilities_of(backend: Backend) -> Capabilities:
    """Return the declared capabilities of a backend, by default none; raise TypeError if they are something else."""
    declared = getattr(backend, "capabilities", None)
    if declared is None:
        return Capabilities()
    if not isinstance(declared, Capabilities):
        cure = "let it be a boostbp.backends.Capabilities, such as Capabilities(missing=True)"
        raise TypeError(f"backend={backend!r} has capabilities={checks.shown(declared)}: {cure}.")
    return declared


def check_supported(backend: Backend, table: Table, growth: TreeParams) -> None:
    """Refuse what a backend does not declare; the ValueError names the missing capability and an alternative."""
    declared, share, codes = capabilities_of(backend), growth.colsample_bytree, list(table.categorical)
    # capability: (whether it is needed, what needs it, what to do without it)
    needs = {
        "sparse": (isinstance(table.X, Sparse), "X is sparse", "Pass X.toarray()"),
        "categories": (codes, f"columns {codes} of X are categorical", "Encode them (one-hot)"),
        "extra_trees": (growth.extra_trees, "extra_trees=True", "Use extra_trees=False"),
        "colsample_bytree": (share < 1.0, f"colsample_bytree={share}", "Use 1.0"),
        "params": (growth.params, f"backend_params={checks.shown(dict(growth.params))}", "Leave it out"),
        "missing": (not declared.missing and table.any_missing, "X has missing values", "Impute them"),
    }
    for word, (is_needed, what, cure) in needs.items():
        if is_needed and not getattr(declared, word):
            fault = f"{what}, which is not supported by backend={backend!r}: its capabilities lack {word!r}"
            raise ValueError(f"{fault}. {cure}, or use another backend, such as 'lightgbm'.")


def accepted_trees(grown: object, count: int, table: Table, growth: TreeParams) -> Trees:
    """Return trees of a backend like `checked_trees`, without checks if boostbp itself read the arrays."""
    # a `Tree` of the user is not a sequence of trees
    return grown if type(grown) is Trees and len(grown) == count else checked_trees(grown, count, table, growth)


def checked_trees(grown: object, count: int, table: Table, growth: TreeParams) -> Trees:
    """Return trees of a backend in flat arrays; raise ValueError unless they are `count` valid trees."""
    received = list(grown) if isinstance(grown, Sequence) and not isinstance(grown, Tree) else None
    if received is None or len(received) != count:
        what = checks.shown(grown) if received is None else f"{len(received)} trees"
        raise ValueError(f"the backend grew {what} instead of {count}: `grow` must return a sequence of {count} trees.")
    for tree in received:
        if not isinstance(tree, Tree):
            raise ValueError(f"the backend grew {checks.shown(tree)}: `grow` must return objects of Tree.of(...).")
    trees, n_features = as_trees(received), table.X.shape[1]
    feature = trees.feature
    if (wrong := feature[(feature < 0) | (feature >= n_features)]).size:
        raise ValueError(f"the backend splits feature {wrong[0]}, of {n_features}: number features from 0.")
    try:
        check_nodes(trees.nodes, trees.tree_split, n_features)
    except ValueError as error:
        numbers = "Split 0 is the root; each other split 1, 2, ... and each leaf ~0, ~1, ... is a child once"
        cure = "see boostbp.trees.tree.Tree.of. boostbp.backends.dialects.Numbering numbers mixed splits and leaves"
        raise ValueError(f"the backend grew a tree that is not consistent. {error} {numbers}, {cure}.") from error
    check_leaves(trees, growth.leaves, growth)
    return trees


def check_leaves(trees: Trees, most: int, growth: TreeParams) -> None:
    """Refuse trees of more leaves than `most`, whose numbers would overflow and give wrong results."""
    split = trees.tree_split
    leaves = (len(trees.feature) if len(trees) == 1 else int((split[1:] - split[:-1]).max(initial=0))) + 1
    if leaves > most:
        raise ValueError(f"the backend grew {leaves} leaves: `TreeParams.leaves` allows {growth.leaves}.")


def check_streams(count: object, n_outputs: int) -> None:
    """Refuse a number of random streams from `Capabilities.streams` that does not fit the outputs."""
    if not isinstance(count, Integral) or not 1 <= int(count) <= n_outputs:
        fault = f"the streams of the backend's capabilities returned {checks.shown(count)} for {n_outputs} outputs"
        raise ValueError(f"{fault}: return a whole number from 1 to {n_outputs}.")
