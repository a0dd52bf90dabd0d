"""Capabilities: what a backend declares that it can do, and what is refused where it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from boostbp import checks
from boostbp.backends.base import Backend, Table, TreeParams
from boostbp.trees.sparse import Sparse


class ConformanceError(AssertionError):
    """A backend breaks a duty, or cannot do what its capabilities declare."""


def one_stream_each(n_rows: int, n_outputs: int, growth: TreeParams) -> int:
    """As many streams of random numbers as outputs."""
    return n_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend can do beside growing trees on numbers. What it does not declare is never asked of it.

    >>> from boostbp.backends import Capabilities
    >>> Capabilities(missing=True, deterministic=True).sparse
    False

    Attributes
    ----------
    missing : bool
        Reads NaN as missing; `Tree.missing_left` says where it goes.
    categories : bool
        Splits columns of category codes (`Table.categorical`) by sets of codes.
    sparse : bool
        Reads a table whose `X` is `Sparse`, to the trees of the dense one.
    vector_leaf : bool
        Grows one tree on several columns of a gradient (``TreeParams.shared``), of numeric features. Without, such a
        tree is grown on one column, a projection of the others.
    extra_trees : bool
        Draws thresholds (``TreeParams.extra_trees``).
    colsample_bytree : {"tree", "node"} or None
        Draws features (``TreeParams.colsample_bytree``) anew for each tree, or for each node.
    deterministic : bool
        Draws nothing but what `TreeParams` asks for: a tree depends on the input and on its own column of gradients
        alone, whatever was grown before, beside it or in which thread. Its outputs may then go together in any number.
    native_leaves : bool
        Fits linear leaves itself: its growers are `NativeGrower`.
    row_subsets : bool
        Grows on some of the rows that it has binned, without binning them again: its growers are `SubsetGrower`.
    params : bool
        Takes native parameters (``TreeParams.params``), and refuses those that it does not know.
    streams : callable
        ``streams(n_rows, n_outputs, growth) -> int``: among how many streams of random numbers the outputs are shared
        out where trees are drawn. The outputs of a stream are columns of one call of `grow`, which may save time; which
        trees they get must not depend on the number of threads. By default, each output has its own.
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
        """Whether random numbers decide trees that are grown so; native parameters may draw, too."""
        random_growth = growth.extra_trees or growth.colsample_bytree < 1.0 or bool(growth.params)
        return random_growth or not self.deterministic


def capabilities_of(backend: Backend) -> Capabilities:
    """What a backend declares; the cautious defaults if it declares nothing.

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
    """Refuse what a backend does not say that it can do.

    Raises
    ------
    ValueError
        With the word that is missing among its capabilities, and what to do instead.
    """
    able = capabilities_of(backend)
    cure = "use another backend, such as 'lightgbm'"
    needs = {
        "sparse": (isinstance(table.X, Sparse), "X is sparse", f"{cure}, or pass X.toarray()"),
        "categories": (
            bool(table.categorical),
            f"columns {list(table.categorical)} of X are categorical",
            f"encode them (one-hot), or {cure}",
        ),
        "extra_trees": (growth.extra_trees, "extra_trees=True", f"use extra_trees=False, or {cure}"),
        "colsample_bytree": (
            growth.colsample_bytree < 1.0,
            f"colsample_bytree={growth.colsample_bytree}",
            f"use 1.0, or {cure}",
        ),
        "params": (
            bool(growth.params),
            f"backend_params={checks.shown(dict(growth.params))}",
            f"leave it out, or {cure}",
        ),
        "missing": (not able.missing and table.any_missing, "X has missing values", f"impute them, or {cure}"),
    }
    for word, (is_needed, what, instead) in needs.items():
        if is_needed and not getattr(able, word):
            raise ValueError(
                f"{what}, which is not supported by backend={backend!r}: its capabilities do not say {word!r}. "
                f"{instead[0].upper()}{instead[1:]}."
            )
