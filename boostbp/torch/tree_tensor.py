"""The fitted trees of a layer as a tensor for a state_dict: versioned, no code, no pickle."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp import archive
from boostbp.archive import Arrays, MismatchError, take
from boostbp.extras import require
from boostbp.layers import Layer
from boostbp.torch.gathered import LastFit
from boostbp.trees import interrupts, packed
from boostbp.trees.basis import Basis
from boostbp.trees.forest import Forest

torch: Any = require("torch", extra="torch", what="boostbp.torch")

KIND, VERSION = "tree layer", 5
OLDEST = 5  # earlier versions were other archives
_NAME = "the state of a GBDTModule"
_KEYS = {"in_features", "out_features", "categorical", "n_rows", "above", "facts"}
_MOST = 1 << 31


class State(NamedTuple):
    """What a module is saved by."""

    layer: Layer | None
    baseline: NDArray[np.float64]  # (outputs,) float64
    in_features: int | None
    last: LastFit  # without its rows


def state_of(state: State, module: Any) -> Any:
    """The state as one tensor, (bytes,) uint8: those of an archive of the trees, which is versioned and no pickle.

    A tensor, as other entries of a state_dict are: it may be cloned and moved with them.
    """
    arrays: Arrays = {"baseline": state.baseline}
    facts, last = None, state.last
    if state.layer is not None:
        facts, of_forest = packed.pack(state.layer.forest, functions=True)
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
    }
    data = archive.to_bytes(kind=KIND, version=VERSION, content=content, arrays=arrays)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


@interrupts.deferred()  # what a handler raises is no fault of the state
def read(state: Any, module: Any) -> State:
    """The state of a module like this one, checked.

    Raises ValueError if it is none, or of another version, shape or basis, or with other categories, or damaged.
    """
    if not isinstance(state, torch.Tensor) or state.dtype != torch.uint8 or state.ndim != 1:
        raise ValueError(
            "this is not the state of a GBDTModule: load it into a model of the structure that it was saved from."
        )
    data = state.cpu().numpy().tobytes()
    return archive.from_bytes(data, _NAME, partial(_built, module=module), kind=KIND, version=VERSION, oldest=OLDEST)


def _built(content: Any, arrays: Arrays, *, module: Any) -> State:
    """What a state describes, for a module like this one."""
    if not isinstance(content, dict) or set(content) != _KEYS:
        raise ValueError(f"it says {content!r:.999}")
    _check_alike(content, module)
    in_features, n_rows = content["in_features"], content["n_rows"]
    if (
        not (in_features is None or _is_count(in_features))
        or not _is_count(n_rows)
        or type(content["above"]) is not bool
    ):
        raise ValueError(f"it says in_features={in_features!r:.99}, n_rows={n_rows!r:.99}")
    baseline = take(arrays, "baseline", float, (module.out_features,))
    complete = take(arrays, "complete", bool, (in_features,)) if "complete" in arrays else None
    forest = None if content["facts"] is None else _forest(content["facts"], arrays, module.settings.basis)
    if forest is not None and (forest.n_features, forest.n_outputs) != (in_features, module.out_features):
        raise ValueError("its trees have other sizes than it says")
    layer = None if forest is None else Layer(forest)
    last = LastFit(n_rows, above=content["above"], complete=complete)
    return State(layer, baseline, module.in_features or in_features, last)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _check_alike(state: Mapping[str, Any], module: Any) -> None:
    """Refuse a state of another shape or with other categories than a module: ValueError."""
    for name in ("in_features", "out_features"):
        current = getattr(module, name)
        if current is not None and state[name] is not None and current != state[name]:
            raise MismatchError(f"the state has {name}={state[name]}, and this module {name}={current}: make it alike.")
    categorical = tuple(state["categorical"])
    if categorical != module.categorical:
        raise MismatchError(
            f"the state has categorical={categorical}, and this module categorical={module.categorical}: make it "
            "alike, or its next fit reads other columns as category codes."
        )


def _forest(facts: Any, arrays: Arrays, basis: Basis) -> Forest:
    """The forest of a state, for a module with that basis; ValueError if it is on another."""
    functions = packed.facts_of(basis)
    if isinstance(facts, dict) and any(name in facts and facts[name] != functions[name] for name in functions):
        stated = {name: facts.get(name) for name in functions}
        raise MismatchError(
            f"the trees of the state have {stated}, and this module {functions}: make it with the same basis."
        )
    return packed.unpack(facts, arrays, functions=basis)
