"""LightGBM: bind, grow, and its own linear leaves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from threading import Lock, local
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boostbp import checks
from boostbp.backends import _lightgbm_calls, _lightgbm_params, _lightgbm_text
from boostbp.backends._lightgbm_calls import Turn, exactly_summed, hold_threads, networked, was_told, with_threads
from boostbp.backends.base import FEW_ROWS, TOGETHER, Gradient, LinearLeaves, Table, TreeParams
from boostbp.backends.capabilities import Capabilities
from boostbp.backends.dialects import gradients
from boostbp.backends.native_params import blamed, on_card, turn
from boostbp.backends.ranks import Ranks
from boostbp.extras import require
from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.trees.sparse import Sparse
from boostbp.trees.tree import Tree, Trees

# A booster keeps every tree it grew, and a grower may live as long as the training data.
_TREES_PER_BOOSTER = 2048
_CHEAP_ROWS = 10_000  # up to which a call costs as much as the trees that it grows


def _library() -> Any:
    return require("lightgbm", extra="all", what="backend='lightgbm'")


@dataclass
class Bins:
    """The Datasets of one input, shared by all growers on it."""

    table: Table
    ranks: Ranks  # encodes the columns of `dataset` whose values LightGBM would merge
    dataset: Any  # for growing structures
    # whether any column can be split on; if none (all zero, or categories all missing), LightGBM makes no booster
    usable: bool
    _linear: Any = None
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, table: Table, params: dict[str, Any]) -> Bins:
        """Bin the input."""
        ranks = Ranks.of(table, _lightgbm_text.alike)
        dataset = _construct(Table(ranks.encode(table.X), table.categorical), params)
        return cls(table, ranks, dataset, any(dataset.feature_num_bin(j) > 0 for j in range(table.X.shape[1])))

    def take(self, rows: NDArray[np.intp], n_threads: int) -> Bins:
        """Some of the rows, in the same bins."""
        with with_threads(n_threads):
            some = self.dataset.subset(rows if len(rows) else [0])
            return Bins(self.table.take(rows), self.ranks, some.construct(), self.usable)

    def linear(self, params: dict[str, Any]) -> Any:
        """The Dataset for linear trees, which holds the raw numbers too: made on first use."""
        with self._lock:
            if self._linear is None:
                _check_range(self.table, self.ranks)
                self._linear = _construct(self.table, params)
            return self._linear


def _construct(table: Table, params: dict[str, Any]) -> Any:
    X = table.X.entries if isinstance(table.X, Sparse) else table.X
    how = {"categorical_feature": list(table.categorical), "params": params}
    with with_threads(params["num_threads"]):
        if workers().alone:
            return _library().Dataset(X, **how).construct()
        [sample] = workers().sample(X)  # whose bins are those of all workers; each would have its own
        bins = _library().Dataset(sample, **how).construct()
        return _library().Dataset(_one_at_least(X, np.nan), reference=bins, **how).construct()


def _one_at_least(rows: NDArray[Any], value: float) -> NDArray[Any]:
    """Rows, or one in the place of none, which LightGBM does not take: a worker may have none."""
    return rows if len(rows) else np.full_like(rows, value, shape=(1, *rows.shape[1:]))


@dataclass
class LightGBMGrower:
    """Boosters on one constructed Dataset, with the gradients of the caller."""

    bins: Bins
    growth: TreeParams
    params: dict[str, Any]
    # the booster of the last round; None before the first. Its last trees are the last ones grown (unless none had a
    # split: LightGBM withdraws such a round).
    booster: Any = None
    _columns: int = 0
    _spent: int = 0
    _held: local = field(default_factory=local)  # the threads in which LightGBM was told how many to use

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one tree per column; see `boostbp.backends.base.Grower`.

        Raises ValueError if one tree is to serve several columns: LightGBM's leaves hold one number.
        """
        if self.growth.shared and grad.shape[1] != 1:
            raise ValueError(
                f"shared=True needs a gradient of one column here, got {grad.shape[1]}: LightGBM has no vector "
                f"leaves. Combine the columns into one first."
            )
        if not self._may_split():
            return Trees.stumps(grad.shape[1])
        with turn(self.params), Turn(self.growth.n_threads), _blamed(self.growth):
            if not (getattr(self._held, "here", False) and was_told(self.growth.n_threads)):
                hold_threads(self.growth.n_threads)
                self._held.here = True
            if not self.growth.params:
                return self._grow_together(grad, hess)
            return [tree for j in range(grad.shape[1]) for tree in self._grow_together(grad[:, [j]], hess[:, [j]])]

    def fork(self, outputs: slice, seed: int) -> LightGBMGrower:
        """A sibling with a booster of its own on the same Dataset."""
        growth = replace(self.growth, random_state=seed)
        return replace(
            self, growth=growth, params=self.params | {"seed": seed}, booster=None, _columns=0, _spent=0, _held=local()
        )

    def take(self, rows: NDArray[np.intp]) -> LightGBMGrower:
        """A sibling on some of the rows; see `boostbp.backends.base.SubsetGrower`."""
        bins = self.bins.take(rows, self.growth.n_threads)
        return replace(self, bins=bins, booster=None, _columns=0, _spent=0, _held=local())

    def boost(self, gradient: Gradient, n_rounds: int, learning_rate: float, reg_lambda: float) -> list[LinearLeaves]:
        """Train linear trees natively; see `boostbp.backends.base.NativeGrower`.

        Rounds in which LightGBM finds no split give no tree, so the list may be shorter than `n_rounds`; with a
        learning rate of 0, which LightGBM refuses, it is empty. Raises ValueError if the input exceeds the range of
        float32, in which LightGBM fits its linear leaves, or trees are to grow on a card, where it fits none.
        """
        if on_card(self.params):
            raise ValueError(
                f"leaves='native' is not supported with backend_params={checks.shown(dict(self.growth.params))}: "
                "LightGBM grows linear trees on the CPU alone. Use leaves='refit', or leave the device out."
            )
        if learning_rate == 0.0 or not self._may_split():
            return []
        params = self.params | {"linear_tree": True, "linear_lambda": reg_lambda, "learning_rate": learning_rate}
        with _blamed(self.growth):
            dataset = self.bins.linear(params)
        with with_threads(self.growth.n_threads), _blamed(self.growth):
            booster = _library().Booster(params, dataset)
            # LightGBM's first linear tree is always constant, so a tree of value 0 goes first.
            ones = np.ones(len(self.bins.table.X), np.float32)
            booster.update(fobj=lambda prediction, data: (np.zeros_like(ones), ones))

        def derivatives(prediction: Floats, data: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            grad, hess = _float32(*gradient(prediction.copy()))
            hold_threads(self.growth.n_threads)  # last, for the caller's gradient may use LightGBM itself
            return grad, hess

        for _ in range(n_rounds):
            with Turn(self.growth.n_threads), _blamed(self.growth):
                booster.update(fobj=derivatives)
        return _lightgbm_text.linear_leaves(booster.model_to_string(num_iteration=-1))[1:]

    def _may_split(self) -> bool:
        return self.bins.usable and self.growth.allows_split

    def _grow_together(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """One tree for each column, as one round of as many classes: the library is called once for all."""
        columns = grad.shape[1]
        g, h = _float32(grad.T, hess.T)  # LightGBM holds one class after the other
        if not workers().alone:
            [n_rows] = workers().sum(len(grad))
            g, h = (exactly_summed(part, n_rows) for part in (g, h))
            if not len(grad):
                g = h = np.zeros((columns, 1), np.float32)
        library = _library()
        with networked(library, empty=not len(grad)):
            booster, before = self._booster(library, columns)
            _lightgbm_calls.update(library, booster, g, h)
        if _lightgbm_calls.iterations(library, booster) == before:  # no split: LightGBM withdraws the round
            return Trees.stumps(columns)
        text = _lightgbm_calls.text_of(library, booster, before, 1)
        return self.bins.ranks.decode(_lightgbm_text.trees(text))

    def _booster(self, library: Any, columns: int) -> tuple[Any, int]:
        """The booster of the next round, and the number of rounds that it has."""
        fresh = self.booster is None or self._columns != columns
        before = 0 if fresh else _lightgbm_calls.iterations(library, self.booster)
        if fresh or before * columns >= _TREES_PER_BOOSTER:
            # Another seed for each booster, or sampling would repeat itself.
            seed = (self.growth.random_state + 7919 * self._spent) % 2**31
            several: dict[str, Any] = {"num_class": columns} if columns > 1 else {}
            if workers().size > 1:
                several |= {"tree_learner": "data", "num_machines": workers().size}
            self.booster = library.Booster(self.params | {"seed": seed} | several, self.bins.dataset)
            self.booster.reset_parameter({"objective": "none"})  # as `Booster.update` does: features are drawn anew
            self._columns = columns
            self._spent += 1
            before = 0
        return self.booster, before


def _blamed(growth: TreeParams) -> AbstractContextManager[None]:
    return blamed("LightGBM", growth.params, _library().basic.LightGBMError) if growth.params else nullcontext()


def _check_range(table: Table, ranks: Ranks) -> None:
    """Refuse columns whose values LightGBM merges: its linear leaves need values, not ranks."""
    for column in ranks.edges:
        raise ValueError(
            f"column {column} holds numbers that LightGBM merges, such as those nearer to zero than 1e-35: "
            "scale the column, or let boostbp fit the leaves, leaves='refit'."
        )
    with np.errstate(invalid="ignore"):
        largest = np.nanmax(np.abs(table.X), axis=0, initial=0.0)
    for j in np.flatnonzero(largest > np.finfo(np.float32).max):
        if j not in table.categorical:
            raise ValueError(
                f"column {j} holds {largest[j]:.3g}, beyond the range of float32, in which LightGBM fits linear "
                f"leaves: scale the column, or let boostbp fit the leaves."
            )


def _float32(grad: Floats, hess: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return gradients(grad, "LightGBM"), gradients(hess, "LightGBM")


def _streams(n_rows: int, n_outputs: int, growth: TreeParams) -> int:
    """Among how many boosters outputs are shared out where they draw: each its own if native parameters do, by rounds.

    Two threads take longer than one for few rows: most of a round is Python, where they wait for each other.
    """
    if growth.params or n_rows > _CHEAP_ROWS:
        return n_outputs
    groups = -(-n_outputs // TOGETHER)
    return groups if n_rows <= FEW_ROWS else min(2 * groups, n_outputs)


@dataclass(frozen=True, slots=True)
class LightGBM:
    """The backend ``"lightgbm"``.

    `TreeParams.min_samples_leaf` is LightGBM's ``min_data_in_leaf``, which counts rows by their hessian:
    it is exact where all hessians are equal. Native parameters keep LightGBM's defaults
    (``lambda_l2=0``, ``min_sum_hessian_in_leaf=1e-3``). ``bagging_freq`` counts trees, not rounds. Columns with many
    numbers nearer to zero than 1e-35, which LightGBM takes for zero, are given to it as ranks.

    Trees do not depend on `TreeParams.n_threads`: histograms are built column by column, in a fixed order. With the
    native parameter ``device_type`` they may differ from run to run.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        missing=True,
        categories=True,
        sparse=True,
        extra_trees=True,
        colsample_bytree="tree",
        deterministic=True,
        native_leaves=True,
        row_subsets=True,
        params=True,
        streams=_streams,
    )

    def bind(self, table: Table, growth: TreeParams) -> LightGBMGrower:
        """Bin the input; see `boostbp.backends.base.Backend`."""
        growth.monotone_on(table)
        [n_rows] = workers().sum(len(table.X))
        params = _lightgbm_params.native(_library(), growth, (int(n_rows), table.X.shape[1]))
        with turn(params), _blamed(growth):
            return LightGBMGrower(Bins.of(table, params), growth, params)


backend = LightGBM()
requires = ("lightgbm",)
