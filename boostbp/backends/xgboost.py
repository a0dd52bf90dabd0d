"""XGBoost: bind and grow, one tree per output or one vector-leaf tree for all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.backends import _xgboost_ubj
from boostbp.backends.base import TREES_PER_BOOSTER, CoreCalls, TreeParams
from boostbp.backends.capabilities import Capabilities
from boostbp.backends.dialects import Ranks, alike_in_float32, gradients, representable, without_small_leaves
from boostbp.backends.native_params import NO_DEVICE, XGBOOST, column_groups, device_turn, naming_params, on_card
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats, is_on_disk, scratch_folder
from boostbp.runtime.group import SAMPLE, workers
from boostbp.runtime.messages import require
from boostbp.trees.sparse import Matrix, Sparse, Table, row_blocks
from boostbp.trees.tree import Tree, Trees, as_trees

if TYPE_CHECKING:
    from xgboost import Booster, DataIter, QuantileDMatrix


def _library() -> ModuleType:
    return require("xgboost", extra="xgboost", what="backend='xgboost'")


def _naming_params(growth: TreeParams) -> AbstractContextManager[None]:
    if not growth.params:
        return nullcontext()
    return naming_params("XGBoost", growth.params, _library().core.XGBoostError)


# Bytes up to which a whole model is written to read its last round: XGBoost writes 70 kB in the time of a slice.
_WHOLE = 1 << 16


@dataclass
class Running:
    """A booster, its rounds, the smallest sum of hessians it allows in a leaf, and its bytes when last read.

    Rounds are counted here, because querying XGBoost costs as much as growing a small tree. It never removes a round.
    """

    booster: Booster
    rounds: int = 0
    min_weight: float = -1.0
    n_bytes: int = 0

    def last_round(self, n_trees: int) -> Trees:
        """Return the trees of the last round."""
        if self.n_bytes <= _WHOLE:
            raw = self.booster.save_raw("ubj")
            self.n_bytes = len(raw)
        else:
            raw = self.booster[self.rounds - 1 : self.rounds].save_raw("ubj")
        return _xgboost_ubj.trees_in_ubj(raw, n_trees)


@dataclass
class XGBoostGrower:
    """Boosters on one QuantileDMatrix. Columns of a call grow together, which is faster and gives the same trees."""

    table: Table
    growth: TreeParams
    params: dict[str, Any]
    ranks: Ranks  # encodes the columns of the matrix whose values float32 would merge
    matrix: QuantileDMatrix
    # state: `dataclasses.replace` begins with the defaults
    running: dict[tuple[int, bool], Running] = field(default_factory=dict, init=False)  # by columns, vector leaf
    _n_boosters: int = field(default=0, init=False)

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one round; raise ValueError if one tree must serve several columns on a categorical input."""
        columns = grad.shape[1]
        if self._is_vector(columns) and self.table.categorical:
            fault = f"XGBoost's vector leaves take no categorical columns {self.table.categorical}"
            raise ValueError(f"multi_output=True with {columns} columns: {fault}. Combine the gradient's columns.")
        g, h = _in_float32(grad.T, hess.T)
        if not self.growth.allows_split:
            return Trees.stumps(1 if self._is_vector(columns) else columns)
        return self._grown(g, h)

    def core_calls(self, columns: int) -> AbstractContextManager[CoreCalls | None]:
        """Let the core fit the leaves of rounds; see `boostbp.backends.base.CoreGrower`."""
        return nullcontext(CoreCalls(self._grown, refuse=_refuse) if self.growth.allows_split else None)

    def _is_vector(self, columns: int) -> bool:
        return self.growth.multi_output and columns > 1

    def _grown(self, grad: NDArray[np.float32], hess: NDArray[np.float32]) -> Trees:
        """Grow a round by derivatives of so many columns, (columns, rows)."""
        sums, n_rows = workers().sum(hess.sum(axis=1, dtype=np.float64), float(hess.shape[1]))
        weights = [float(total / n_rows) for total in sums]  # the mean hessian of all rows, the same on all workers
        if self._is_vector(len(grad)):
            tree = self._round(grad, hess, sum(weights) / len(grad))[0]
            # XGBoost keeps vector leaves of too few rows, with a value of 0.
            return as_trees([without_small_leaves(tree, self.table.X, self.growth.min_samples_leaf)])
        if min(weights) == max(weights):
            return self._round(grad, hess, weights[0])
        columns = [slice(j, j + 1) for j in range(len(grad))]
        return Trees.concat([self._round(grad[j], hess[j], weights[j.start]) for j in columns])

    def take(self, rows: NDArray[np.intp]) -> XGBoostGrower:
        """Return a grower on some of the rows; see `boostbp.backends.base.SubsetGrower`."""
        table = self.table.take(rows)
        with _matrix_turn(self.matrix):
            return replace(self, table=table, matrix=_binned(table, self.growth, self.ranks, ref=self.matrix))

    def fork(self, outputs: slice, seed: int) -> XGBoostGrower:
        """Return a grower with its own boosters on the same QuantileDMatrix."""
        return replace(self, growth=replace(self.growth, random_state=seed))

    def _round(self, grad: NDArray[np.float32], hess: NDArray[np.float32], weight: float) -> Trees:
        """Grow one round; `weight` is the mean hessian, which counts as one row."""
        # Without the margin, rounding errors of sums could refuse a leaf of exactly min_samples_leaf rows.
        columns, vector = len(grad), self._is_vector(len(grad))
        min_weight = _parsable(self.growth.min_samples_leaf * weight * (1 - 1e-5))
        with device_turn(self.params), _naming_params(self.growth), _matrix_turn(self.matrix):
            run = self._run(columns, vector)
            if min_weight != run.min_weight:
                run.booster.set_param({"min_child_weight": min_weight})
                run.min_weight = min_weight
            run.booster.boost(self.matrix, run.rounds, grad=grad.T, hess=hess.T)
        run.rounds += 1
        return self.ranks.decode(run.last_round(1 if vector else columns))

    def _run(self, columns: int, vector: bool) -> Running:
        """Return the booster of the next round with so many columns, and with vector leaves or without."""
        run = self.running.get((columns, vector))
        if run is None or run.rounds * columns >= TREES_PER_BOOSTER:
            strategy = "multi_output_tree" if vector else "one_output_per_tree"
            seed = self.growth.fresh_seed(self._n_boosters)
            params = self.params | {"num_target": columns, "multi_strategy": strategy, "seed": seed}
            run = self.running[columns, vector] = Running(_library().Booster(params, [self.matrix]))
            self._n_boosters += 1
        return run


_in_float32 = partial(gradients, "XGBoost")


def _refuse(fault: int, grad: Floats, hess: Floats) -> None:
    """Raise the error of a fault of the core."""
    if fault == core.STOPPED:
        _in_float32(grad, hess)
    if fault == core.NOT_READ:
        raise ValueError(_xgboost_ubj.UNKNOWN_MODEL)


def _binned(table: Table, growth: TreeParams, ranks: Ranks, *, ref: QuantileDMatrix | None = None) -> QuantileDMatrix:
    """Return the QuantileDMatrix of an input, in the bins of `ref` or, of more than `SAMPLE` rows, of a sample."""
    library, types = _library(), None
    if table.categorical:
        types = ["c" if j in table.categorical else "q" for j in range(table.X.shape[1])]
    options = {"max_bin": growth.max_bins, "enable_categorical": types is not None, "nthread": growth.n_threads}
    many = len(table.X) > SAMPLE
    if isinstance(table.X, Sparse):
        return library.QuantileDMatrix(_blocks(library, table.X, types, ranks), **options, ref=ref)
    if ref is None and (many or not workers().is_single):
        ref = _bins_of_sample(library, table, ranks, options | {"feature_types": types})
    in_files = many and is_on_disk() and not on_card(growth.params)
    if not (in_files and hasattr(library, "ExtMemQuantileDMatrix")):  # from version 3 on
        rows = representable(ranks.encode(table.X))
        return library.QuantileDMatrix(rows, **options, feature_types=types, ref=ref)
    blocks = partial(_blocks, library, table.X, types, ranks)
    return _matrix_in_files(library)(lambda prefix: blocks(cache_prefix=prefix), **options, ref=ref)


@cache
def _matrix_in_files(library: ModuleType) -> type[QuantileDMatrix]:
    """Return a class of matrices with bins in a folder, which is removed once XGBoost has closed its files."""

    class MatrixInFiles(library.ExtMemQuantileDMatrix):  # type: ignore[name-defined]
        def __init__(self, blocks: Callable[[str], DataIter], **options: Any) -> None:
            self.lock = Lock()  # XGBoost refuses to read them in two threads at the same time
            self.folder, self.remove = mkdtemp(dir=scratch_folder(), prefix="boostbp-"), rmtree
            super().__init__(blocks(f"{self.folder}/bins"), **options)

        def __del__(self) -> None:
            super().__del__()
            self.remove(self.folder, ignore_errors=True)

    return MatrixInFiles


def _matrix_turn(matrix: QuantileDMatrix) -> AbstractContextManager[Any]:
    """Wait until no other thread reads a matrix in files."""
    return getattr(matrix, "lock", None) or nullcontext()


def _blocks(library: ModuleType, X: Matrix, types: Sequence[str] | None, ranks: Ranks, **cache: str) -> DataIter:
    """Return a `DataIter` over dense rows in float32, as XGBoost would read absent entries as missing, not as zeros.

    `types` are its ``feature_types``, and `cache` has its ``cache_prefix`` if bins are in files.
    """
    columns = np.arange(X.shape[1])
    base: Any = library.DataIter

    class Blocks(base):
        def __init__(self) -> None:
            super().__init__(**cache)
            self.reset()

        def reset(self) -> None:
            self.ahead = iter(row_blocks(0, len(X), len(columns)))

        def next(self, input_data: Callable[..., None]) -> bool:
            rows = next(self.ahead, None)
            if rows is not None:
                part = X.dense(columns, rows) if isinstance(X, Sparse) else X[rows]
                input_data(data=representable(ranks.encode(part)), feature_types=types)
            return rows is not None

    return Blocks()


def _bins_of_sample(library: ModuleType, table: Table, ranks: Ranks, options: dict[str, Any]) -> QuantileDMatrix:
    """Return a matrix of a sample of all rows, whose bins are those of all workers of a group.

    XGBoost's sketch over workers has other cuts than on one machine. In a new thread it has no communicator.
    """
    group, X, codes = workers(), table.X, list(table.categorical)
    [largest] = group.max(np.fmax.reduce(X, axis=0, initial=-np.inf))
    rows = group.sampled_rows(len(X), SAMPLE)
    [sample] = group.select_rows(rows).allgather_rows(representable(ranks.encode(X[rows])))
    if codes:  # there is one bin for each code up to the largest, which may be missing in the sample
        last = np.full((1, X.shape[1]), np.nan, np.float32)
        last[0, codes] = np.where(np.isfinite(largest[codes]), largest[codes], np.nan)
        sample = np.concatenate([sample, last])
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(library.QuantileDMatrix, sample, **options).result()


def _native(growth: TreeParams, n_columns: int) -> dict[str, Any]:
    """Return the parameters of a Booster, except the number of targets; raise ValueError if one is refused."""
    native = XGBOOST.checked(growth.params, interaction_constraints=column_groups(growth, n_columns))
    if "interaction_constraints" in native:  # XGBoost reads lists as lists of names
        native["interaction_constraints"] = json.dumps(native["interaction_constraints"])
    if growth.monotone:
        native["monotone_constraints"] = f"({','.join(map(str, growth.monotone))})"
    if on_card(native):
        native["fail_on_invalid_gpu_id"] = True
        _check_card(growth, native)
    leafwise = growth.max_leaves is not None or growth.max_depth < 0
    return {
        "grow_policy": "lossguide" if leafwise else "depthwise",
        "colsample_bytree": max(growth.colsample_bytree, 1e-30),  # XGBoost refuses subnormal float32 numbers
        **native,
        "tree_method": "hist",
        "base_score": 0.0,
        "max_depth": max(growth.max_depth, 0),
        "max_leaves": growth.leaves if leafwise else 0,
        "min_child_weight": growth.min_samples_leaf,
        "max_bin": growth.max_bins,
        "nthread": growth.n_threads,
        "seed": growth.random_state,
        "seed_per_iteration": True,
    }


def _check_card(growth: TreeParams, native: dict[str, Any]) -> None:
    """Refuse a card that does not exist: XGBoost would only warn, and grow on the CPU."""
    params = {"num_feature": 1, "tree_method": "hist", "device": native["device"], "fail_on_invalid_gpu_id": True}
    with _library().config_context(verbosity=0):
        config = json.loads(_library().Booster(params).save_config())
    if config["learner"]["generic_param"]["device"] == "cpu":
        raise ValueError(f"XGBoost finds no card for backend_params={checks.shown(dict(growth.params))}. {NO_DEVICE}")


def _parsable(number: float) -> float:
    """Return a number >= 0 that XGBoost can read: it refuses numbers that are subnormal or infinite in float32."""
    ends = np.finfo(np.float32)
    return min(number, float(ends.max)) if number >= ends.tiny else 0.0


@dataclass(frozen=True, slots=True)
class XGBoost:
    """The backend ``"xgboost"``.

    `TreeParams.min_samples_leaf` becomes ``min_child_weight``, a sum of hessians, in units of the mean hessian of the
    column. The count is exact if all hessians are equal. Native parameters keep XGBoost's defaults (``reg_lambda=1``).
    Trees grow level by level, or by largest gain if `TreeParams.max_leaves` is set or the depth is not limited. The
    bins of a sparse table are dense, two to three bytes for each cell, because zeros are not missing values. Columns of
    which float32 merges many values, such as large ids, are passed to XGBoost as ranks (`boostbp.backends.dialects`).
    With the native parameter ``device`` trees may differ from run to run.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        missing=True, categories=True, sparse=True, vector_leaf=True, colsample_bytree="tree", deterministic=True,
        row_subsets=True, params=True,
    )  # fmt: skip

    def bind(self, table: Table, growth: TreeParams) -> XGBoostGrower:
        """Bin the input; see `boostbp.backends.base.Backend`."""
        growth.check_monotone(table)
        with _naming_params(growth):
            params = _native(growth, table.X.shape[1])

        def binned() -> tuple[Ranks, QuantileDMatrix]:
            ranks = Ranks.of(table, alike_in_float32)
            return ranks, _binned(table, growth, ranks)

        of_bins = "xgboost", growth.max_bins, growth.n_threads, params.get("device")
        return XGBoostGrower(table, growth, params, *table.once(of_bins, binned))


backend = XGBoost()
requires = ("xgboost",)
