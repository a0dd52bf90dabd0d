"""Compiled loops over plain arrays: route, sum, solve, evaluate, differentiate, attribute changes.

Nothing here allocates per row, draws random numbers or starts threads; every kernel releases the
interpreter lock, so callers run row blocks or outputs in threads of their own.

An array is copied into a slice of another by a loop: numba compiles an assignment, a concatenation or a difference of
whole arrays together with the texts of its errors, which takes longer than the kernel around it.
"""

from __future__ import annotations

from boostbp.core import (
    add_values,
    changes,
    common_scalings,
    evaluate,
    fit_trees,
    group_block,
    group_paths,
    group_rows,
    jacobian,
    leaf_ranges,
    leaf_sums,
    paths_of,
    put_in_bins,
    rescale,
    route,
    scale_weights,
    scalings,
    solve_leaves,
    solve_monotone,
    vjp,
)
from boostbp.trees.kernels.few_rows import predict_flat, predict_short
from boostbp.trees.kernels.records import Leaves, Nodes

__all__ = [
    "Leaves",
    "Nodes",
    "add_values",
    "changes",
    "common_scalings",
    "evaluate",
    "fit_trees",
    "group_block",
    "group_paths",
    "group_rows",
    "jacobian",
    "leaf_ranges",
    "leaf_sums",
    "paths_of",
    "predict_flat",
    "predict_short",
    "put_in_bins",
    "rescale",
    "route",
    "scale_weights",
    "scalings",
    "solve_leaves",
    "solve_monotone",
    "vjp",
]
