"""LightGBM: bind, grow, and its own linear leaves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from threading import Lock, local
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boostbp.backends import _lightgbm_calls
from boostbp.backends._lightgbm_calls import (
    exactly_summed,
    hold_threads,
    in_float32,
    networked,
    thread_gate,
    with_threads,
)
from boostbp.backends._lightgbm_params import n_streams, native_of
from boostbp.backends.base import (
    TREES_PER_BOOSTER,
    CoreCalls,
    Gradient,
    LinearLeaves,
    TreeParams,
)
from boostbp.backends.capabilities import Capabilities
from boostbp.backends.dialects import Ranks
from boostbp.backends.native_params import (
    NO_DEVICE,
    device_turn,
    naming_params,
    on_card,
)
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.runtime.messages import require
from boostbp.trees.sparse import Sparse, Table
from boostbp.trees.tree import Tree, Trees

if TYPE_CHECKING:
    from lightgbm import Booster, Dataset

# From this number of columns on, columns that are mostly not 0 are not tried in bundles, of which they form none: the
# trials take most of the time of binning. Arbitrary.
WIDE_COLUMNS = 1000
# Parameters of `_native` that do not affect a Dataset unless native ones are given
_OF_TREES = {
    *("feature_fraction", "extra_trees", "num_leaves", "max_depth", "min_data_in_leaf", "min_data_per_group"),
    "num_threads",
}


def _library() -> ModuleType:
    return require("lightgbm", extra="all", what="backend='lightgbm'")


def _naming_params(growth: TreeParams) -> AbstractContextManager[None]:
    return naming_params("LightGBM", growth.params, _library().basic.LightGBMError)


@dataclass
class Bins:
    """LightGBM's Datasets of some rows of an input, which all growers on them share."""

    table: Table
    ranks: Ranks  # encodes the columns of `dataset` whose values LightGBM would merge
    dataset: Dataset  # for growing structures
    # whether any column can be split; without one (all zero, or missing categories), LightGBM creates no booster
    usable: bool
    rows: NDArray[np.intp] | None = None  # the rows of `table` that are binned; None means all
    _linear: Dataset | None = None
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, table: Table, params: dict[str, Any]) -> Bins:
        """Bin the input."""
        ranks = Ranks.of(table, _lightgbm_calls.alike)
        dataset = _construct(Table(ranks.encode(table.X), table.categorical), params)
        return cls(table, ranks, dataset, any(dataset.feature_num_bin(j) > 0 for j in range(table.X.shape[1])))

    def take(self, rows: NDArray[np.intp], n_threads: int) -> Bins:
        """Return some of the rows, in the same bins."""
        with with_threads(n_threads):
            dataset = self.dataset.subset(rows if len(rows) else [0]).construct()  # type: ignore[arg-type]
        numbers = rows if self.rows is None else self.rows[rows]
        return Bins(self.table, self.ranks, dataset, self.usable, numbers)

    def linear(self, params: dict[str, Any]) -> Dataset:
        """Return the Dataset for linear trees, which also contains the raw numbers; created on first use."""
        with self._lock:
            if self._linear is None:
                table = self.table if self.rows is None else self.table.take(self.rows)
                _check_range(table, self.ranks)
                self._linear = _construct(table, params)
            return self._linear


def _construct(table: Table, params: dict[str, Any]) -> Dataset:
    X = table.X.entries if isinstance(table.X, Sparse) else table.X
    options = {"categorical_feature": list(table.categorical), "params": params}
    with with_threads(params["num_threads"]):
        if workers().is_single:
            return _library().Dataset(X, **options).construct()
        [sample] = workers().sample(X)  # all workers use the bins of a common sample
        bins = _library().Dataset(sample, **options).construct()
        if not len(X):  # a worker may have no rows, but LightGBM does not accept empty tables
            X = np.full_like(X, np.nan, shape=(1, X.shape[1]))
        return _library().Dataset(X, reference=bins, **options).construct()


def _check_range(table: Table, ranks: Ranks) -> None:
    """Refuse columns whose values LightGBM merges: its linear leaves need values, not ranks."""
    wrong = {column: "numbers that LightGBM merges, such as those nearer to zero than 1e-35" for column in ranks.edges}
    largest = np.nanmax(np.abs(table.X), axis=0, initial=0.0)
    for j in np.setdiff1d(np.flatnonzero(largest > np.finfo(np.float32).max), table.categorical):
        wrong.setdefault(j, f"{largest[j]:.3g}, beyond the range of float32, in which LightGBM fits linear leaves")
    for column, what in wrong.items():
        cure = "scale the column, or let boostbp fit the leaves, leaves='refit'"
        raise ValueError(f"column {column} holds {what}: {cure}.")


@dataclass
class LightGBMGrower:
    """Boosters on one constructed Dataset, with the gradients of the caller."""

    bins: Bins
    growth: TreeParams
    params: dict[str, Any]
    # state: `dataclasses.replace` begins with the defaults
    booster: Booster | None = field(default=None, init=False)  # of the last round, without rounds that had no split
    _columns: int = field(default=0, init=False)  # columns of the gradient in the rounds of `booster`
    _n_boosters: int = field(default=0, init=False)
    _thread: local = field(default_factory=local, init=False)  # `is_set` in the threads in which LightGBM was set up

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one tree per column; refuse to grow one for several, as LightGBM's leaves have one number."""
        columns, n_threads = grad.shape[1], self.growth.n_threads
        if self.growth.multi_output and columns != 1:
            raise ValueError(f"multi_output=True needs a gradient of one column, not {columns}: combine them.")
        if not self._may_split():
            return Trees.stumps(columns)
        if not self.growth.params:
            with thread_gate(n_threads):
                return self._round(grad, hess)
        # Native parameters may cause random draws, which classes of one round would share.
        with device_turn(self.params), thread_gate(n_threads), _naming_params(self.growth):
            return [tree for j in range(columns) for tree in self._round(grad[:, [j]], hess[:, [j]])]

    @contextmanager
    def core_calls(self, columns: int) -> Iterator[CoreCalls | None]:
        """Let the core grow rounds; see `boostbp.backends.base.CoreGrower`."""
        if self.growth.params or self.bins.ranks.edges or not self._may_split():
            yield None
            return
        library = _library()
        with thread_gate(self.growth.n_threads):
            self._hold_threads()
            booster, before = self._booster(library, columns)
            n_rounds = -(-(TREES_PER_BOOSTER - before * columns) // columns)
            yield CoreCalls(
                _lightgbm_calls.addresses(library, booster),
                n_rounds,
                self._pause,
                partial(_lightgbm_calls.raise_fault, library),
            )

    def fork(self, outputs: slice, seed: int) -> LightGBMGrower:
        """Return a grower with its own booster on the same Dataset."""
        return replace(self, growth=replace(self.growth, random_state=seed), params=self.params | {"seed": seed})

    def take(self, rows: NDArray[np.intp]) -> LightGBMGrower:
        """Return a grower on some of the rows; see `boostbp.backends.base.SubsetGrower`."""
        return replace(self, bins=self.bins.take(rows, self.growth.n_threads))

    def boost(self, gradient: Gradient, n_rounds: int, learning_rate: float, reg_lambda: float) -> list[LinearLeaves]:
        """Train linear trees natively; see `boostbp.backends.base.NativeGrower`.

        Rounds without a split add no tree. With a learning rate of 0, which LightGBM refuses, there is none. Raises
        ValueError if the input exceeds the range of float32, or trees would grow on a card: no linear leaves there.
        """
        if on_card(self.params):
            cure = "LightGBM grows linear trees on the CPU alone. Use leaves='refit', or leave the device out"
            given = checks.shown(dict(self.growth.params))
            raise ValueError(f"leaves='native' is not supported with backend_params={given}: {cure}.")
        if learning_rate == 0.0 or not self._may_split():
            return []
        params = self.params | {"linear_tree": True, "linear_lambda": reg_lambda, "learning_rate": learning_rate}
        with _naming_params(self.growth):
            dataset = self.bins.linear(params)
        with with_threads(self.growth.n_threads), _naming_params(self.growth):
            booster = _library().Booster(params, dataset)
            # LightGBM's first linear tree is always constant, so the first round grows a tree of value 0.
            ones = np.ones(dataset.num_data(), np.float32)
            booster.update(fobj=lambda prediction, data: (np.zeros_like(ones), ones))

        def derivatives(prediction: Floats, data: Dataset) -> tuple[NDArray[np.float32], ...]:
            float32 = in_float32(*gradient(prediction.copy()))
            hold_threads(self.growth.n_threads)  # last, as the caller's gradient may use LightGBM itself
            return float32

        for _ in range(n_rounds):
            with thread_gate(self.growth.n_threads), _naming_params(self.growth):
                booster.update(fobj=derivatives)
        return _lightgbm_calls.linear_leaves(booster.model_to_string(num_iteration=-1))[1:]

    def _may_split(self) -> bool:
        return self.bins.usable and self.growth.allows_split

    @contextmanager
    def _pause(self) -> Iterator[None]:
        with _lightgbm_calls.paused_gate(self.growth.n_threads):
            yield
        self._hold_threads()

    def _hold_threads(self) -> None:
        if not (getattr(self._thread, "is_set", False) and _lightgbm_calls.same_threads(self.growth.n_threads)):
            hold_threads(self.growth.n_threads)
            self._thread.is_set = True

    def _round(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one tree for each column in a single call, as one round of that many classes."""
        self._hold_threads()
        columns, empty = grad.shape[1], not len(grad)
        g, h = in_float32(grad.T, hess.T)  # LightGBM stores class by class
        if not workers().is_single:
            [n_rows] = workers().sum(len(grad))
            g, h = (exactly_summed(part, n_rows) for part in (g, h))
            if empty:
                g = h = np.zeros((columns, 1), np.float32)
        library = _library()
        with networked(library, empty=empty):
            booster, before = self._booster(library, columns)
            _lightgbm_calls.update(library, booster, g, h)
        if booster.current_iteration() == before:  # no split: LightGBM removes the round
            return Trees.stumps(columns)
        return self.bins.ranks.decode(_lightgbm_calls.trees_of(library, booster, before, columns))

    def _booster(self, library: ModuleType, columns: int) -> tuple[Booster, int]:
        """Return the booster of the next round, and its number of rounds so far."""
        if self.booster is not None and self._columns == columns:
            before = self.booster.current_iteration()
            if before * columns < TREES_PER_BOOSTER:
                return self.booster, before
        params = self.params | {"seed": self.growth.fresh_seed(self._n_boosters)}
        if columns > 1:
            params["num_class"] = columns
        if workers().size > 1:
            params |= {"tree_learner": "data", "num_machines": workers().size}
        self.booster = booster = library.Booster(params, self.bins.dataset)
        booster.reset_parameter({"objective": "none"})  # as `Booster.update` does: features are drawn anew
        self._columns = columns
        self._n_boosters += 1
        return booster, 0


@dataclass(frozen=True, slots=True)
class LightGBM:
    """The backend ``"lightgbm"``.

    `TreeParams.min_samples_leaf` becomes ``min_data_in_leaf``, which LightGBM estimates from the hessians of a leaf:
    the count is exact if all hessians are equal. Native parameters keep LightGBM's defaults
    (``lambda_l2=0``, ``min_sum_hessian_in_leaf=1e-3``). ``bagging_freq`` counts trees, not rounds. Columns with many
    numbers nearer to zero than 1e-35, which LightGBM takes for zero, are given to it as ranks.

    Trees do not depend on `TreeParams.n_threads`: histograms are built column by column, in a fixed order. With the
    native parameter ``device_type`` they may differ from run to run.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        missing=True, categories=True, sparse=True, extra_trees=True, colsample_bytree="tree", deterministic=True,
        native_leaves=True, row_subsets=True, params=True, streams=n_streams,
    )  # fmt: skip

    def bind(self, table: Table, growth: TreeParams) -> LightGBMGrower:
        """Bin the input; see `boostbp.backends.base.Backend`."""
        growth.check_monotone(table)
        [n_rows] = workers().sum(len(table.X))
        params = native_of(growth, int(n_rows), table.X.shape[1])
        if (
            table.X.shape[1] > WIDE_COLUMNS
            and not isinstance(table.X, Sparse)
            and np.count_nonzero(table.X) > table.X.size / 2
        ):
            params.setdefault("enable_bundle", False)
        if on_card(params):
            refuse_fatal_card(str(params["device_type"]))
        of_trees = _OF_TREES if not growth.params else ()
        of_bins = [(name, repr(value)) for name, value in params.items() if name not in of_trees]
        with device_turn(params), _naming_params(growth):
            bins = table.once(("lightgbm", *of_bins), lambda: Bins.of(table, params))
        return LightGBMGrower(bins, growth, params)


def grow_on_card(device: str) -> None:
    """Grow a small tree on a card; some builds of LightGBM end the process here."""
    table, growth = Table(np.arange(100.0)[:, None]), TreeParams(params={"device_type": device})
    params = native_of(growth, *table.X.shape)
    LightGBMGrower(Bins.of(table, params), growth, params).grow(table.X, np.ones_like(table.X))


@cache
def refuse_fatal_card(device: str) -> None:
    """Raise ValueError if LightGBM ends a process of its own in which it grows a tree on a card."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import grow_on_card; grow_on_card({device!r})"
    child = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True)
    if child.returncode not in (0, 1):  # 1: an error of Python, which is raised here, too
        reason = child.stderr.decode(errors="replace").strip().rpartition("\n")[2].strip()
        fault = f"LightGBM ends the process (status {child.returncode}) if a tree grows on device_type={device!r}"
        raise ValueError(f"{fault}: {reason}. {NO_DEVICE}")


backend = LightGBM()
requires = ("lightgbm",)
