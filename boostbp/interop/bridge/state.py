"""The fitted trees of a layer as tensors and plain values, for a state_dict: versioned, no code, no pickle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.interop.bridge.passes import as_floats
from boostbp.learning.layers import Layer
from boostbp.trees import packed
from boostbp.trees.basis import Basis, Elementwise, Linear
from boostbp.trees.forest import Forest

__all__ = ["State", "read", "state_of"]

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
        name: torch.tensor(part.view(np.int32) if part.dtype == np.uint32 else part, device="cpu")
        for name, part in arrays.items()
    }
    return state


class State(NamedTuple):
    """What a module takes over from a state."""

    layer: Layer | None
    baseline: NDArray[np.float64]
    in_features: int | None
    n_rows: int


def read(state: Any, module: Any) -> State:
    """The state of a module like this one, checked.

    Raises
    ------
    ValueError
        If it is none, or of another version, shape or basis, or with other categories, or damaged.
    """
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            "this is not the state of a GBDTModule: load it into a model of the structure that it was saved from."
        )
    version = state.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(f"the state has version {version}, this boostbp reads 1 to {VERSION}: update boostbp.")
    _check_alike(state, module)
    forest, baseline = _forest_of(state, module.settings.basis), as_floats(state["baseline"])
    shape = (state["in_features"], module.out_features)
    if baseline.shape != shape[1:] or (forest and (forest.n_features, forest.n_outputs) != shape):
        raise ValueError("the trees of the state have other sizes than it says: it is damaged.")
    layer = None if forest is None else Layer(forest)
    return State(layer, baseline, module.in_features or state["in_features"], int(state.get("n_rows", 0)))


def _check_alike(state: dict[str, Any], module: Any) -> None:
    """Refuse a state of another shape or with other categories than a module: ValueError."""
    for name in ("in_features", "out_features"):
        mine = getattr(module, name)
        if None not in (mine, state[name]) and mine != state[name]:
            raise ValueError(f"the state has {name}={state[name]}, and this module {name}={mine}: make it alike.")
    categorical = tuple(state.get("categorical", module.categorical))  # states of version 0.1 do not tell
    if categorical != module.categorical:
        raise ValueError(
            f"the state has categorical={categorical}, and this module categorical={module.categorical}: make it "
            "alike, or its next fit reads other columns as category codes."
        )


def _forest_of(state: dict[str, Any], basis: Basis) -> Forest | None:
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
