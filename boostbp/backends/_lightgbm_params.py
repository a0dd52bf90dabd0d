"""LightGBM's parameters of a layer's trees."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from boostbp.backends.base import FEW_ROWS, OUTPUTS_PER_CALL, TreeParams
from boostbp.backends.native_params import LIGHTGBM, Natives, column_groups
from boostbp.runtime.messages import require

_CHEAP_ROWS = 10_000  # up to this number of rows, a call costs as much as growing its trees


@cache
def natives() -> Natives:
    """Return the allow-list of native parameters, with the aliases of the installed LightGBM."""
    aliases = require("lightgbm", extra="all", what="backend='lightgbm'").basic._ConfigAliases._get_all_param_aliases()
    return replace(LIGHTGBM, aliases={alias: name for name, group in aliases.items() for alias in group})


def native_of(growth: TreeParams, n_rows: int, n_columns: int) -> dict[str, Any]:
    """Return the parameters of Dataset and Booster; raise ValueError if one is refused, see `Natives`."""
    native = natives().checked(growth.params, interaction_constraints=column_groups(growth, n_columns))
    if not {"force_row_wise", "force_col_wise"} & set(native):
        # By default LightGBM times both layouts and takes the faster one, so trees could depend on the clock. By rows
        # is a little faster with one thread, but every booster then has a copy of the bins. CUDA supports only rows.
        native["force_row_wise" if native.get("device_type") == "cuda" else "force_col_wise"] = True
    if growth.extra_trees:
        # With extra_trees LightGBM tries a single group of categories, and by default none of fewer than 100 rows, so
        # columns of rarer categories would never be split. A group may become a leaf, and needs as many rows as one.
        native.setdefault("min_data_per_group", growth.min_samples_leaf)
    if growth.monotone:
        native["monotone_constraints"] = list(growth.monotone)
    return {
        "deterministic": True,
        "feature_pre_filter": False,
        "feature_fraction": growth.colsample_bytree,
        **native,
        "extra_trees": growth.extra_trees,
        "objective": "none",
        # A booster allocates memory for all allowed leaves, 3 kB each.
        "num_leaves": max(min(growth.leaves, n_rows), 2),
        "max_depth": growth.max_depth,
        "min_data_in_leaf": growth.min_samples_leaf,
        "max_bin": growth.max_bins,
        "num_threads": growth.n_threads,
        "seed": growth.random_state % 2**31,
        # LightGBM's scores are not used, but goss begins to sample only after 1 / learning_rate trees.
        "learning_rate": 1.0,
        "verbosity": -1,
    }


def n_streams(n_rows: int, n_outputs: int, growth: TreeParams) -> int:
    """Return the number of boosters, each with its random stream, among which outputs are divided.

    Native parameters may draw once per round. On few rows two threads, which wait for each other, take longer than one.
    """
    if growth.params or n_rows > _CHEAP_ROWS:
        return n_outputs
    groups = -(-n_outputs // OUTPUTS_PER_CALL)
    return groups if n_rows <= FEW_ROWS else min(2 * groups, n_outputs)
