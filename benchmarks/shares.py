"""Profile of one layer in one epoch: what share grows, parses, routes, sums, solves, evaluates, pulls back."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

from benchmarks.cases import Case, bound, data, objective
from boostbp.learning import layer as layers
from boostbp.trees import ridge

__all__ = ["profile"]

# Functions whose time, with all that they call, makes up a share: (end of the file's path, function).
_OUTER = {
    "bin": [("learning/bound.py", "__init__")],
    "grow": [("lightgbm/basic.py", "update"), ("xgboost/core.py", "boost")],
    "parse": [
        ("lightgbm/basic.py", "model_to_string"),
        ("_lightgbm_text.py", "trees"),
        ("xgboost/core.py", "__getitem__"),
        ("xgboost/core.py", "save_raw"),
        ("_xgboost_ubj.py", "trees"),
    ],
    "pull back": [("learning/layer.py", "vjp")],
    "gradient": [("learning/objective.py", "gradient")],
    "leaves": [("kernels/fitting.py", "fit_trees")],
}
_INNER = {
    "route": [("kernels/routing.py", name) for name in ("route_near", "group_rows", "group_paths")],
    "sums": [("kernels/sums.py", "leaf_ranges"), ("kernels/sums.py", "leaf_sums"), ("kernels/sums.py", "frames")],
    "solve": [("kernels/solving.py", "solve_leaves")],
    "evaluate": [("kernels/evaluation.py", "add_values")],
}


def profile(case: Case, backend: str) -> dict[str, Any]:
    """Shares of the time of binning, one fit and one backward pass, one core.

    The compiled fit of the leaves is one call; it is divided as the time of its pieces is, when the
    same layer is fitted by the additive path, in two blocks of rows.
    """
    X, Y = data(case)

    def epoch() -> None:
        layers.fit(bound(case, X, backend), objective(Y)).trace.vjp(Y)

    whole = _seconds(epoch, _OUTER)
    block, ridge.BLOCK_ROWS = ridge.BLOCK_ROWS, min(ridge.BLOCK_ROWS, case.rows // 2 + 1)
    try:
        pieces = _seconds(epoch, _INNER)
    finally:
        ridge.BLOCK_ROWS = block
    total, leaves = whole.pop("total"), whole.pop("leaves")
    pieces.pop("total")
    if leaves == 0.0:  # more rows than a block, or more numbers than stay in cache: the pieces are what ran
        leaves = sum(pieces.values())
    scale = leaves / sum(pieces.values())
    shares = {name: spent / total for name, spent in whole.items()}
    shares |= {name: spent * scale / total for name, spent in pieces.items()}
    return shares | {"Python": 1.0 - sum(shares.values()), "seconds": total}


def _seconds(work: Callable[[], None], functions: dict[str, list[tuple[str, str]]]) -> dict[str, float]:
    work()
    profiler = cProfile.Profile()
    profiler.runcall(work)
    stats: Any = pstats.Stats(profiler)
    found = dict.fromkeys(functions, 0.0)
    for (file, _, function), (_, _, _, cumulative, _) in stats.stats.items():
        for name, wanted in functions.items():
            if any(file.replace("\\", "/").endswith(end) and function == each for end, each in wanted):
                found[name] += cumulative
    return found | {"total": stats.total_tt}
