"""Capabilities: what a backend declares, and the refusal of what it does not declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from boostbp.backends.base import Backend, Table, TreeParams
from boostbp.runtime import checks
from boostbp.trees.sparse import Sparse


class ConformanceError(AssertionError):
    """A backend breaks a duty, or cannot do what its capabilities declare."""


def one_stream_each(n_rows: int, n_outputs: int, growth: TreeParams) -> int:
    """Return as many streams of random numbers as outputs."""
    return n_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend can do beside growing trees on numbers. It is never asked for what it does not declare.

    >>> from boostbp.backends import Capabilities
    >>> Capabilities(missing=True, deterministic=True).sparse
    False

    Attributes
    ----------
    missing : bool
        Reads NaN as missing; `Tree.missing_left` tells where NaN goes.
    categories : bool
        Splits columns of category codes (`Table.categorical`) by sets of codes.
    sparse : bool
        Reads a table whose `X` is `Sparse`, to the trees of the dense one.
    vector_leaf : bool
        Grows one tree on several columns of a gradient (``TreeParams.multi_output``), of numeric features. Without
        it, such a tree is grown on one column, a random projection of the others.
    extra_trees : bool
        Draws thresholds (``TreeParams.extra_trees``).
    colsample_bytree : {"tree", "node"} or None
        Draws features (``TreeParams.colsample_bytree``) anew for each tree, or for each node.
    deterministic : bool
        Draws nothing but what `TreeParams` asks for: a tree depends on the input and on its own column of gradients
        alone, not on the trees before it or beside it, nor on the thread. Any number of outputs may then share a call
        of `grow`.
    native_leaves : bool
        Fits linear leaves itself: its growers are `NativeGrower`.
    row_subsets : bool
        Grows on some of the rows that it has binned, without binning again: its growers are `SubsetGrower`.
    params : bool
        Takes native parameters (``TreeParams.params``), and refuses those that it does not know.
    streams : callable
        ``streams(n_rows, n_outputs, growth) -> int``: the number of streams of random numbers for the outputs, where
        trees are drawn. The outputs of a stream are columns of one call of `grow`, which may save time. The trees must
        not depend on the number of threads. By default, each output has its own stream.
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
        """Return whether such trees depend on random numbers; native parameters may draw, too."""
        random_growth = growth.extra_trees or growth.colsample_bytree < 1.0 or bool(growth.params)
        return random_growth or not self.deterministic


def capabilities_of(backend: Backend) -> Capabilities:
    """Return what a backend declares; the cautious defaults if it declares nothing.

    Raises
    ------
    TypeError
        If it declares something else.
    """
    declared = getattr(backend, "capabilities", None)
    if declared is None:
        return Capabilities()
    if not isinstance(declared, Capabilities):
        raise TypeError(
            f"backend={backend!r} has capabilities={checks.shown(declared)}: let it be a "
            "boostbp.backends.Capabilities, such as Capabilities(missing=True)."
        )
    return declared


def check_supported(backend: Backend, table: Table, growth: TreeParams) -> None:
    """Refuse what a backend does not declare.

    Raises
    ------
    ValueError
        With the word that is missing among its capabilities, and what to do instead.
    """
    declared = capabilities_of(backend)
    share, params = growth.colsample_bytree, checks.shown(dict(growth.params))
    # capability: (whether it is needed, what needs it, what to do without it)
    needs = {
        "sparse": (isinstance(table.X, Sparse), "X is sparse", "Pass X.toarray()"),
        "categories": (
            bool(table.categorical),
            f"columns {list(table.categorical)} of X are categorical",
            "Encode them (one-hot)",
        ),
        "extra_trees": (growth.extra_trees, "extra_trees=True", "Use extra_trees=False"),
        "colsample_bytree": (share < 1.0, f"colsample_bytree={share}", "Use 1.0"),
        "params": (bool(growth.params), f"backend_params={params}", "Leave it out"),
        "missing": (not declared.missing and table.any_missing, "X has missing values", "Impute them"),
    }
    for word, (is_needed, what, cure) in needs.items():
        if is_needed and not getattr(declared, word):
            raise ValueError(
                f"{what}, which is not supported by backend={backend!r}: its capabilities do not say {word!r}. "
                f"{cure}, or use another backend, such as 'lightgbm'."
            )
