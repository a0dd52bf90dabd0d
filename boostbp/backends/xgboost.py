"""XGBoost: bind and grow, one tree per output or one vector-leaf tree for all."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boostbp.backends import _xgboost_params, _xgboost_ubj
from boostbp.backends.base import Table, TreeParams
from boostbp.backends.capabilities import Capabilities
from boostbp.backends.dialects import alike_in_float32, gradients, representable, without_small_leaves
from boostbp.backends.native_params import blamed, on_card, turn
from boostbp.backends.ranks import Ranks
from boostbp.extras import require
from boostbp.floats import Floats
from boostbp.group import SAMPLE, workers
from boostbp.trees.disk_arrays import is_on_disk, scratch_folder
from boostbp.trees.sparse import Matrix, Sparse, row_blocks
from boostbp.trees.tree import Tree, Trees

# A booster keeps every tree it grew, and a grower may live as long as the training data.
_TREES_PER_BOOSTER = 2048


def _library() -> Any:
    return require("xgboost", extra="xgboost", what="backend='xgboost'")


@dataclass
class Running:
    """A booster, the rounds it has grown and the smallest sum of hessians it allows in a leaf.

    Counted here, because asking XGBoost costs as much as growing a small tree: it never withdraws a round.
    """

    booster: Any
    rounds: int = 0
    min_weight: float = -1.0


@dataclass
class XGBoostGrower:
    """Boosters on one QuantileDMatrix, with the gradients of the caller.

    Columns that come together are grown together, which is faster, to the same trees.
    """

    table: Table
    growth: TreeParams
    params: dict[str, Any]
    ranks: Ranks  # encodes the columns of the matrix whose values float32 would merge
    matrix: Any
    # the booster of each kind of round, by (number of columns, vector leaf)
    running: dict[tuple[int, bool], Running] = field(default_factory=dict)
    _spent: int = 0

    def grow(self, grad: Floats, hess: Floats) -> Sequence[Tree]:
        """Grow one round; see `boostbp.backends.base.Grower`.

        Raises ValueError if one tree is to serve several columns and the input has categorical columns.
        """
        columns = grad.shape[1]
        g, h = gradients(grad, "XGBoost"), gradients(hess, "XGBoost")
        vector = self.growth.shared and columns > 1
        if vector and self.table.categorical:
            raise ValueError(
                f"shared=True with a gradient of {columns} columns needs numeric features, got categorical columns "
                f"{self.table.categorical}: XGBoost's vector leaves take none. Combine the columns into one first."
            )
        if not self.growth.allows_split:
            return Trees.stumps(1 if vector else columns)
        sums = np.array([np.ascontiguousarray(hess[:, j]).sum() for j in range(columns)])
        sums, n_rows = workers().sum(sums, float(len(hess)))
        weights = [float(total / n_rows) for total in sums]  # the mean hessian of all rows, the same on all workers
        if vector:
            # Vector leaves of XGBoost only lose their value where rows are few.
            tree = self._round(g, h, vector=True, weight=sum(weights) / columns)[0]
            return [without_small_leaves(tree, self.table.X, self.growth.min_samples_leaf)]
        if min(weights) == max(weights):
            return self._round(g, h, weight=weights[0])
        return [self._round(g[:, [j]], h[:, [j]], weight=weights[j])[0] for j in range(columns)]

    def take(self, rows: NDArray[np.intp]) -> XGBoostGrower:
        """A sibling on some of the rows; see `boostbp.backends.base.SubsetGrower`."""
        table = self.table.take(rows)
        with _alone_on(self.matrix):
            matrix = _binned(table, self.growth, self.ranks, like=self.matrix)
        return replace(self, table=table, matrix=matrix, running={}, _spent=0)

    def fork(self, outputs: slice, seed: int) -> XGBoostGrower:
        """A sibling with boosters of its own on the same QuantileDMatrix."""
        growth = replace(self.growth, random_state=seed)
        return replace(self, growth=growth, params=self.params | {"seed": seed}, running={}, _spent=0)

    def _round(
        self, grad: NDArray[np.float32], hess: NDArray[np.float32], *, weight: float, vector: bool = False
    ) -> Sequence[Tree]:
        """One round; `weight` is the mean hessian, the unit in which leaves are counted."""
        # The margin keeps rounding of the sums from refusing a leaf of exactly min_samples_leaf rows.
        min_weight = _parsable(self.growth.min_samples_leaf * weight * (1 - 1e-5))
        with turn(self.params), _blamed(self.growth), _alone_on(self.matrix):
            run = self._run(grad.shape[1], vector)
            if min_weight != run.min_weight:
                run.booster.set_param({"min_child_weight": min_weight})
                run.min_weight = min_weight
            run.booster.boost(self.matrix, run.rounds, grad=grad, hess=hess)
        run.rounds += 1
        return self.ranks.decode(_xgboost_ubj.trees(run.booster[run.rounds - 1 : run.rounds].save_raw("ubj")))

    def _run(self, columns: int, vector: bool) -> Running:
        kind = columns, vector
        run = self.running.get(kind)
        if run is None or run.rounds * columns >= _TREES_PER_BOOSTER:
            # Another seed for each booster, or sampling would repeat itself.
            params = self.params | {
                "num_target": columns,
                "multi_strategy": "multi_output_tree" if vector else "one_output_per_tree",
                "seed": (self.growth.random_state + 7919 * self._spent) % 2**31,
            }
            run = self.running[kind] = Running(_library().Booster(params, [self.matrix]))
            self._spent += 1
        return run


def _blamed(growth: TreeParams) -> AbstractContextManager[None]:
    return blamed("XGBoost", growth.params, _library().core.XGBoostError) if growth.params else nullcontext()


def _binned(table: Table, growth: TreeParams, ranks: Ranks, *, like: Any = None) -> Any:
    """The QuantileDMatrix of an input, in the bins of another one if there is one.

    Of more than `SAMPLE` rows bins are those of a sample, wherever the rows are: in memory, on the disk, on workers.
    """
    library, types = _library(), None
    if table.categorical:
        types = ["c" if j in table.categorical else "q" for j in range(table.X.shape[1])]
    how = {"max_bin": growth.max_bins, "enable_categorical": types is not None, "nthread": growth.n_threads}
    many = len(table.X) > SAMPLE
    if isinstance(table.X, Sparse):
        return library.QuantileDMatrix(_blocks(library, table.X, types, ranks), **how, ref=like)
    if like is None and (many or not workers().alone):
        like = _shared_bins(library, table, ranks, how | {"feature_types": types})
    in_files = many and is_on_disk() and not on_card(growth.params)
    if in_files and hasattr(library, "ExtMemQuantileDMatrix"):  # from version 3 on
        folder = mkdtemp(dir=scratch_folder(), prefix="boostbp-")
        try:
            rows = _blocks(library, table.X, types, ranks, cache_prefix=f"{folder}/bins")
            matrix = library.ExtMemQuantileDMatrix(rows, **how, ref=like)
        except BaseException:
            rmtree(folder)
            raise
        matrix.files = _BinFiles(folder)
        return matrix
    return library.QuantileDMatrix(representable(ranks.encode(table.X)), **how, feature_types=types, ref=like)


class _BinFiles:
    """The folder with the bins of a matrix, made after it: it is removed when the matrix has let go of them."""

    def __init__(self, folder: str) -> None:
        self.lock = Lock()  # XGBoost refuses to read them in two threads at a time
        self._folder, self._remove = folder, rmtree

    def __del__(self) -> None:
        self._remove(self._folder, ignore_errors=True)


def _alone_on(matrix: Any) -> AbstractContextManager[Any]:
    """Wait until no other thread reads a matrix that is in files."""
    return matrix.files.lock if hasattr(matrix, "files") else nullcontext()


def _blocks(library: Any, X: Matrix, types: Sequence[str] | None, ranks: Ranks, **cache: str) -> Any:
    """A `DataIter` over the rows of an input: dense rows in float32, a few megabytes at a time.

    XGBoost takes absent entries of a sparse matrix for missing ones, but here they are zeros. `types` are its
    ``feature_types``, and `cache` its ``cache_prefix``, if bins are kept in files.
    """
    columns = np.arange(X.shape[1])
    pieces = row_blocks(0, len(X), len(columns))

    class Blocks(library.DataIter):
        def __init__(self) -> None:
            super().__init__(**cache)
            self.reset()

        def reset(self) -> None:
            self.ahead = iter(pieces)

        def next(self, input_data: Any) -> bool:
            rows = next(self.ahead, None)
            if rows is not None:
                part = X.dense(columns, rows) if isinstance(X, Sparse) else X[rows]
                input_data(data=representable(ranks.encode(part)), feature_types=types)
            return rows is not None

    return Blocks()


def _shared_bins(library: Any, table: Table, ranks: Ranks, how: dict[str, Any]) -> Any:
    """A matrix whose bins others take, those of all workers of a group: of a sample of all rows.

    XGBoost's own sketch over workers has other cuts than that of one machine, and so other trees. A communicator
    belongs to the thread that made it: in another one a matrix is made as if there were none.
    """
    group, X, codes = workers(), table.X, list(table.categorical)
    [largest] = group.max(np.fmax.reduce(X, axis=0, initial=-np.inf))
    rows = group.spaced(len(X), SAMPLE)
    [sample] = group.of(rows).together(representable(ranks.encode(X[rows])))
    if codes:  # bins are one for each code up to the largest, which may be too rare for the sample
        last = np.full((1, X.shape[1]), np.nan, np.float32)
        last[0, codes] = np.where(np.isfinite(largest[codes]), largest[codes], np.nan)
        sample = np.concatenate([sample, last])
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(library.QuantileDMatrix, sample, **how).result()


def _parsable(number: float) -> float:
    """A number >= 0 as a parameter of XGBoost, which refuses those that float32 holds as subnormal or infinite."""
    ends = np.finfo(np.float32)
    return min(number, float(ends.max)) if number >= ends.tiny else 0.0


@dataclass(frozen=True, slots=True)
class XGBoost:
    """The backend ``"xgboost"``.

    `TreeParams.min_samples_leaf` becomes ``min_child_weight``, a sum of hessians, in units of the mean
    hessian of the column: it counts rows exactly where all hessians are equal. Native parameters
    keep XGBoost's defaults (``reg_lambda=1``). Trees grow level by level, and by largest gain where
    `TreeParams.max_leaves` is given or the depth is not limited. The bins of a sparse table are dense, two to three
    bytes for each cell, as zeros are no missing values. Columns of which float32 merges many values, such as large ids,
    are given to XGBoost as ranks (`boostbp.backends.ranks`). With the native parameter ``device`` trees may differ from
    run to run.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        missing=True,
        categories=True,
        sparse=True,
        vector_leaf=True,
        colsample_bytree="tree",
        deterministic=True,
        row_subsets=True,
        params=True,
    )

    def bind(self, table: Table, growth: TreeParams) -> XGBoostGrower:
        """Bin the input; see `boostbp.backends.base.Backend`."""
        growth.monotone_on(table)
        params = _xgboost_params.native(_library(), growth, table.X.shape[1])
        with _blamed(growth):
            _xgboost_params.check_card(_library(), growth, params)
        ranks = Ranks.of(table, alike_in_float32)
        return XGBoostGrower(table, growth, params, ranks, _binned(table, growth, ranks))


backend = XGBoost()
requires = ("xgboost",)
