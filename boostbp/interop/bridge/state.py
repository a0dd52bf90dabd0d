"""The fitted trees of a layer as tensors and plain values, for a state_dict: versioned, no code, no pickle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from boostbp.extras import require
from boostbp.trees import packed
from boostbp.trees.basis import Basis, Elementwise, Linear
from boostbp.trees.forest import Forest

__all__ = ["forest_of", "read", "state_of"]

torch: Any = require("torch", extra="torch", what="boostbp.interop.torch_bridge")

FORMAT, VERSION = "boostbp.GBDTModule", 1


def state_of(forest: Forest | None, **values: Any) -> dict[str, Any]:
    """The state of a layer: that of `packed.pack` with tensors for arrays, and `values` beside it."""
    state: dict[str, Any] = {"format": FORMAT, "version": VERSION, **values, "facts": None, "arrays": None, "own": 0}
    if forest is None:
        return state
    if isinstance(forest.basis, Elementwise):
        # A state holds no code. The leaves read columns, which to them are features of [1, x].
        n_functions = forest.basis.columns_per_feature
        forest = replace(forest, basis=Linear(), n_features=forest.n_features * n_functions)
        state["own"] = n_functions
    state["facts"], arrays = packed.pack(forest)
    # not every version of torch can copy uint32
    state["arrays"] = {
        name: torch.tensor(part.view(np.int32) if part.dtype == np.uint32 else part) for name, part in arrays.items()
    }
    return state


def read(state: Any) -> dict[str, Any]:
    """Check that a state is one of ours, of a version that is known."""
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            "this is not the state of a GBDTModule: load it into a model of the structure that it was saved from."
        )
    if state["version"] > VERSION:
        raise ValueError(
            f"the state has version {state['version']}, this boostbp reads 1 to {VERSION}: update boostbp."
        )
    return state


def forest_of(state: dict[str, Any], basis: Basis) -> Forest | None:
    """The forest of a state, for a module with that basis.

    Raises
    ------
    ValueError
        If the arrays do not make a forest, or belong to another basis.
    """
    if state["facts"] is None:
        return None
    arrays = {name: np.array(tensor.detach().cpu().numpy()) for name, tensor in state["arrays"].items()}
    arrays["categories"] = arrays["categories"].view(np.uint32)
    forest = packed.unpack(state["facts"], arrays)
    own = basis.columns_per_feature if isinstance(basis, Elementwise) else 0
    if own != state["own"] or not (own or type(forest.basis) is type(basis)):
        theirs = f"{state['own']} functions of one's own" if state["own"] else repr(state["facts"]["basis"])
        raise ValueError(f"the state was saved with another basis ({theirs}): make the module with the same.")
    if own:
        forest = replace(forest, basis=basis, n_features=forest.n_features // own)
        if (forest.nodes.feature >= forest.n_features).any():
            raise ValueError("This is not a forest: a split looks at a feature that is not there.")
    return forest
