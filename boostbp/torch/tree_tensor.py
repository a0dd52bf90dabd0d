"""The fitted trees of a layer as a tensor for a state_dict: versioned, no code, no pickle."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from boostbp import archive
from boostbp.archive import Arrays, MismatchError, take
from boostbp.layers import Layer
from boostbp.runtime import interrupts
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import require
from boostbp.torch.gathered import LastFit
from boostbp.trees import packed
from boostbp.trees.basis import Basis
from boostbp.trees.forest import Forest

if TYPE_CHECKING:
    import torch

    from boostbp.torch.module import GBDTModule
else:
    torch = require("torch", extra="torch", what="boostbp.torch")

KIND, VERSION = "tree layer", 5
OLDEST = 5  # earlier versions were other archives
_NAME = "the state of a GBDTModule"
_KEYS = {"in_features", "out_features", "categorical", "n_rows", "above", "facts"}
_TOO_MANY = 1 << 31  # rows and features are counted in int32


class TreeState(NamedTuple):
    """The saved attributes of a module."""

    layer: Layer | None
    baseline: Floats  # (outputs,) float64
    in_features: int | None
    last: LastFit  # without its rows


def state_of(state: TreeState, module: GBDTModule) -> torch.Tensor:
    """Return the state as one tensor, (bytes,) uint8: an archive of the trees, versioned and without pickle.

    Like the other entries of a state_dict, a tensor may be cloned and moved.
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


@interrupts.deferred()  # an exception of a signal handler is no fault of the state
def read(state: Any, module: GBDTModule) -> TreeState:
    """Return the state of a module like this one, checked.

    Raises ValueError if it is none, or of another version, shape or basis, or with other categories, or damaged.
    """
    if not isinstance(state, torch.Tensor) or state.dtype != torch.uint8 or state.ndim != 1:
        raise ValueError(
            "this is not the state of a GBDTModule: load it into a model of the structure that it was saved from."
        )
    data = state.cpu().numpy().tobytes()
    return archive.from_bytes(data, _NAME, partial(_built, module=module), kind=KIND, version=VERSION, oldest=OLDEST)


def _built(content: Any, arrays: Arrays, *, module: GBDTModule) -> TreeState:
    if not isinstance(content, dict) or set(content) != _KEYS:
        raise ValueError(f"it says {content!r:.999}")
    _check_shape(content, module)
    in_features, n_rows, above = content["in_features"], content["n_rows"], content["above"]
    if not (in_features is None or _is_count(in_features)) or not _is_count(n_rows) or type(above) is not bool:
        raise ValueError(f"it says in_features={in_features!r:.99}, n_rows={n_rows!r:.99}")
    baseline = take(arrays, "baseline", float, (module.out_features,))
    complete = take(arrays, "complete", bool, (in_features,)) if "complete" in arrays else None
    layer = None
    if content["facts"] is not None:
        forest = _forest(content["facts"], arrays, module.settings.basis)
        if (forest.n_features, forest.n_outputs) != (in_features, module.out_features):
            raise ValueError("its trees have other sizes than it says")
        layer = Layer(forest)
    return TreeState(
        layer, baseline, module.in_features or in_features, LastFit(n_rows, above=above, complete=complete)
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _TOO_MANY


def _check_shape(state: Mapping[str, Any], module: GBDTModule) -> None:
    """Refuse a state of another shape or with other categories than a module: ValueError."""
    for name in ("in_features", "out_features"):
        current = getattr(module, name)
        if current is not None and state[name] is not None and current != state[name]:
            raise MismatchError(
                f"the state has {name}={state[name]}, and this module {name}={current}: make it the same."
            )
    categorical = tuple(state["categorical"])
    if categorical != module.categorical:
        raise MismatchError(
            f"the state has categorical={categorical}, and this module categorical={module.categorical}: make it the "
            "same, or the next fit reads other columns as category codes."
        )


def _forest(facts: Any, arrays: Arrays, basis: Basis) -> Forest:
    """Return the forest of a state, for a module with that basis; ValueError if it is on another."""
    functions = packed.facts_of(basis)
    if isinstance(facts, dict) and any(name in facts and facts[name] != functions[name] for name in functions):
        stated = {name: facts.get(name) for name in functions}
        raise MismatchError(
            f"the trees of the state have {stated}, and this module {functions}: make it with the same basis."
        )
    return packed.unpack(facts, arrays, functions=basis)
