"""The fitted trees of a layer as a tensor for a state_dict: versioned, no code, no pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp import archive
from boostbp.extras import require
from boostbp.interop.bridge.gathered import LastFit
from boostbp.learning.layers import Layer
from boostbp.trees import packed
from boostbp.trees.basis import Basis, Elementwise, Linear
from boostbp.trees.forest import Forest

__all__ = ["State", "read", "state_of"]

Arrays = Mapping[str, NDArray[Any]]

torch: Any = require("torch", extra="torch", what="boostbp.interop.torch_bridge")

KIND, VERSION = "tree layer", 1
_NAME = "the state of a GBDTModule"
_DICTS = "boostbp.GBDTModule"  # the format of states of version 0.1, which were dicts of tensors


class State(NamedTuple):
    """What a module is saved by.

    Attributes
    ----------
    layer : Layer or None
    baseline : (outputs,) float64
    in_features : int or None
    last : LastFit
        Without its rows.
    """

    layer: Layer | None
    baseline: NDArray[np.float64]
    in_features: int | None
    last: LastFit


def state_of(state: State, module: Any) -> Any:
    """The state as one tensor, (bytes,) uint8: those of an archive of the trees, which is versioned and no pickle.

    A tensor, as other entries of a state_dict are: it may be cloned and moved with them.
    """
    arrays: dict[str, NDArray[Any]] = {"baseline": state.baseline}
    facts, own, last = None, 0, state.last
    if state.layer is not None:
        forest = state.layer.forest
        if isinstance(forest.basis, Elementwise):
            # A state holds no code. The leaves read columns, which to them are features of [1, x].
            own = forest.basis.columns_per_feature
            forest = replace(forest, basis=Linear(), n_features=forest.n_features * own)
        facts, of_forest = packed.pack(forest)
        arrays |= of_forest
    if last.complete is not None:
        arrays["complete"] = last.complete
    content = {
        "in_features": state.in_features,
        "out_features": module.out_features,
        "categorical": list(module.categorical),
        "n_rows": last.n_rows,
        "above": last.above,
        "facts": facts,
        "own": own,
    }
    data = archive.to_bytes(kind=KIND, version=VERSION, content=content, arrays=arrays)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def read(state: Any, module: Any) -> State:
    """The state of a module like this one, checked.

    Raises
    ------
    ValueError
        If it is none, or of another version, shape or basis, or with other categories, or damaged.
    """
    content, arrays = _opened(state, module)
    _check_alike(content, module)
    baseline, complete = arrays.pop("baseline"), arrays.pop("complete", None)
    forest = _forest_of(content, arrays, module.settings.basis)
    shape = (content["in_features"], module.out_features)
    sizes = complete is None or complete.shape == shape[:1]
    if baseline.shape != shape[1:] or not sizes or (forest and (forest.n_features, forest.n_outputs) != shape):
        raise ValueError("the trees of the state have other sizes than it says: it is damaged.")
    layer = None if forest is None else Layer(forest)
    last = LastFit(int(content["n_rows"]), above=bool(content["above"]), complete=complete)
    return State(layer, baseline, module.in_features or content["in_features"], last)


def _opened(state: Any, module: Any) -> archive.Archive:
    """What a state says, and its arrays."""
    if isinstance(state, torch.Tensor) and state.dtype == torch.uint8 and state.ndim == 1:
        return archive.from_bytes(state.cpu().numpy().tobytes(), _NAME, kind=KIND, version=VERSION)
    if not isinstance(state, dict) or state.get("format") != _DICTS or state.get("version") != 1:
        raise ValueError(
            "this is not the state of a GBDTModule: load it into a model of the structure that it was saved from."
        )
    arrays = {name: np.array(part.detach().cpu().numpy()) for name, part in (state["arrays"] or {}).items()}
    if "categories" in arrays:  # not every version of torch can copy uint32
        arrays["categories"] = arrays["categories"].view(np.uint32)
    content = {"categorical": module.categorical, "n_rows": 0, "above": False, **state}  # the first ones did not tell
    return archive.Archive(content, {**arrays, "baseline": np.array(state["baseline"].cpu().numpy())})


def _check_alike(state: Mapping[str, Any], module: Any) -> None:
    """Refuse a state of another shape or with other categories than a module: ValueError."""
    for name in ("in_features", "out_features"):
        mine = getattr(module, name)
        if None not in (mine, state[name]) and mine != state[name]:
            raise ValueError(f"the state has {name}={state[name]}, and this module {name}={mine}: make it alike.")
    categorical = tuple(state["categorical"])
    if categorical != module.categorical:
        raise ValueError(
            f"the state has categorical={categorical}, and this module categorical={module.categorical}: make it "
            "alike, or its next fit reads other columns as category codes."
        )


def _forest_of(state: Mapping[str, Any], arrays: Arrays, basis: Basis) -> Forest | None:
    """The forest of a state, for a module with that basis.

    Raises
    ------
    ValueError
        If the arrays do not make a forest, or belong to another basis.
    """
    if state["facts"] is None:
        return None
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
