"""Profile of one layer in one epoch: what share grows, parses, routes, sums, solves, evaluates, pulls back."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.bare import round_by_round
from benchmarks.cases import Case, bound, data, objective
from boostbp.core.binding import Loop
from boostbp.network import layers
from boostbp.network.layers import BoundInput
from boostbp.trees.leaves import Workspace, add_rows, leaves_on_paths, rows_by_leaf
from boostbp.trees.tree_fits import TreeRows, fit_together

__all__ = ["profile"]

# Functions whose time, with all that they call, makes up a share: (end of the path of a file, function); loops: "core".
_OUTER = {
    "bin": [("network/layers/bound.py", "__init__")],
    "grow": [("_lightgbm_calls.py", "update"), ("xgboost/core.py", "boost")],
    "parse": [
        ("_lightgbm_calls.py", "trees_of"),
        ("xgboost/core.py", "__getitem__"),
        ("xgboost/core.py", "save_raw"),
        ("_xgboost_ubj.py", "trees_in_ubj"),
    ],
    "pull back": [("network/layers/layer.py", "vjp")],
    "gradient": [("network/layers/bound.py", "gradient")],
    "leaves": [("core", "boost_rounds")],
}
_INNER = {
    "route": [("core", "group_block")],
    "sums": [("core", "leaf_ranges"), ("core", "leaf_sums"), ("core", "scalings")],
    "solve": [("core", "solve_leaves")],
    "evaluate": [("core", "add_values")],
}


def profile(case: Case, backend: str) -> dict[str, Any]:
    """Shares of the time of binning, one fit and one backward pass, one core.

    Rounds are grown one by one, as a call of the core for several rounds cannot be divided. The fit of the leaves is
    one call; it is divided as the time of its pieces is, when the trees of the first round are fitted by the additive
    path.
    """
    X, Y = data(case)

    def epoch() -> layers.Fit:
        with round_by_round():
            fit = layers.fit(bound(case, X, backend), objective(Y))
        fit.trace.vjp(Y)
        return fit

    whole = _seconds(epoch, _OUTER)
    pieces = _seconds(_additive(bound(case, X, backend), epoch(), np.ascontiguousarray(Y.T)), _INNER)
    total, leaves = whole.pop("total"), whole.pop("leaves")
    pieces.pop("total")
    scale = leaves / sum(pieces.values())
    shares = {name: spent / total for name, spent in whole.items()}
    shares |= {name: spent * scale / total for name, spent in pieces.items()}
    return shares | {"Python": 1.0 - sum(shares.values()), "seconds": total}


def _additive(inputs: BoundInput, fit: layers.Fit, grad: NDArray[np.float64]) -> Callable[[], None]:
    """The leaves of the first round, fitted block by block."""
    trees = fit.layer.forest.trees[: len(grad)]
    settings, leaf, out, space = inputs.settings, fit.trace.leaf, np.zeros_like(grad), Workspace()

    def work() -> None:
        for k, tree in enumerate(trees):
            leaves, own = leaves_on_paths(tree, settings.basis), slice(k, k + 1)
            blocks = rows_by_leaf(tree, leaves, inputs.table.X, inputs.Z, inputs.column_bins, leaf[k], space)
            [fitted] = fit_together([TreeRows(blocks, leaves, grad[own], inputs.weight)], settings.ridge)
            add_rows(fitted, blocks, out[own])
            for rows in blocks:
                space.take_back(rows.order, rows.values)

    return work


def _seconds(work: Callable[[], object], functions: dict[str, list[tuple[str, str]]]) -> dict[str, float]:
    work()
    profiler, in_core, call = cProfile.Profile(), Counter[str](), Loop.__call__

    def timed(loop: Loop, *args: Any) -> None:
        begun = time.perf_counter()
        call(loop, *args)
        in_core[loop.__name__] += time.perf_counter() - begun

    with mock.patch.object(Loop, "__call__", timed):  # the profiler knows them by one name
        profiler.runcall(work)
    stats: Any = pstats.Stats(profiler)
    found = {name: sum(in_core[loop] for file, loop in places if file == "core") for name, places in functions.items()}
    for (file, _, function), (_, _, _, cumulative, _) in stats.stats.items():
        for name, wanted in functions.items():
            if any(file.replace("\\", "/").endswith(end) and function == each for end, each in wanted):
                found[name] += cumulative
    return found | {"total": stats.total_tt}
