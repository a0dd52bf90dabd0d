"""States of training in a torch model: the trees of a layer as a tensor, and the progress of its steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbp.network.layers import Layer, LayerSettings
from boostbp.runtime import archive, interrupts
from boostbp.runtime.archive import Arrays, MismatchError, take
from boostbp.runtime.arrays import Floats
from boostbp.torch.gathered import LastFit, Momentum
from boostbp.torch.tensors import Tensor, torch
from boostbp.trees import packed
from boostbp.trees.basis import Basis
from boostbp.trees.forest import Forest

LAYER_KIND, LAYER_VERSION, OLDEST_LAYER_VERSION = "tree layer", 5, 5  # earlier versions have another format
_KEYS = {"in_features", "out_features", "categorical", "n_rows", "above", "facts"}
_TOO_MANY = 1 << 31  # limit on rows and features, which are int32
# Training state of a layer except its trees: rows of the last fit, momentum, random numbers, expected rows.
Progress: TypeAlias = "tuple[LastFit, Momentum | None, np.random.Generator, int | None]"


class TreeModule(Protocol):
    """What states read of a `boostbp.torch.GBDTModule`."""

    layer: Layer | None
    baseline: Floats
    in_features: int | None
    out_features: int
    categorical: tuple[int, ...]
    settings: LayerSettings
    expected_rows: int | None
    _last: LastFit
    _momentum: Momentum | None
    _random: np.random.Generator

    @property
    def n_rows(self) -> int:
        """Number of rows of the last fit."""
        ...


class TreeState(NamedTuple):
    """The saved attributes of a module."""

    layer: Layer | None
    baseline: Floats  # (outputs,) float64
    in_features: int | None
    last: LastFit  # without its rows


def tensor_of(module: TreeModule) -> Tensor:
    """Return the trees of a module as one tensor, (bytes,) uint8: a versioned archive, without pickle."""
    arrays: Arrays = {"baseline": module.baseline}
    facts, last = None, module._last
    if module.layer is not None:
        facts, of_forest = packed.pack(module.layer.forest, functions=True)
        arrays |= of_forest
    if last.complete is not None:
        arrays["complete"] = last.complete
    content = {name: getattr(module, name) for name in ("in_features", "out_features", "n_rows", "categorical")}
    content |= {"above": last.above, "facts": facts}
    data = archive.to_bytes(kind=LAYER_KIND, version=LAYER_VERSION, content=content, arrays=arrays)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


@interrupts.deferred()  # an exception of a signal handler must not look like a fault of the state
def tree_state(state: object, module: TreeModule) -> TreeState:
    """Return the checked state of a module like this one; ValueError for any other."""
    if not isinstance(state, torch.Tensor) or state.dtype != torch.uint8 or state.ndim != 1:
        raise ValueError("this is not the state of a GBDTModule: load it into a model of the same structure.")
    data = state.cpu().numpy().tobytes()
    build, name = partial(_built, module=module), "the state of a GBDTModule"
    return archive.from_bytes(data, name, build, kind=LAYER_KIND, version=LAYER_VERSION, oldest=OLDEST_LAYER_VERSION)


def _built(content: object, arrays: Arrays, *, module: TreeModule) -> TreeState:
    if not isinstance(content, dict) or set(content) != _KEYS:
        raise ValueError(f"it says {content!r:.999}")
    _check_shape(content, module)
    in_features, n_rows, above = content["in_features"], content["n_rows"], content["above"]
    counts = [n_rows] if in_features is None else [n_rows, in_features]
    if any(type(count) is not int or not 0 <= count < _TOO_MANY for count in counts) or type(above) is not bool:
        raise ValueError(f"it says in_features={in_features!r:.99}, n_rows={n_rows!r:.99}")
    baseline = take(arrays, "baseline", float, (module.out_features,))
    complete = take(arrays, "complete", bool, (in_features,)) if "complete" in arrays else None
    layer, last = None, LastFit(n_rows, above=above, complete=complete)
    if content["facts"] is not None:
        forest = _forest(content["facts"], arrays, module.settings.basis)
        if (forest.n_features, forest.n_outputs) != (in_features, module.out_features):
            raise ValueError("its trees have other sizes than it says")
        layer = Layer(forest)
    return TreeState(layer, baseline, module.in_features or in_features, last)


def _check_shape(state: Mapping[str, Any], module: TreeModule) -> None:
    """Raise ValueError if a state has another shape or other categories than a module."""
    for name in ("in_features", "out_features"):
        stated, current = state[name], getattr(module, name)
        if None not in (stated, current) and current != stated:
            raise MismatchError(f"the state has {name}={stated}, and this module {name}={current}: make it the same.")
    categorical = tuple(state["categorical"])
    if categorical != module.categorical:
        columns = f"the state has categorical={categorical}, and this module categorical={module.categorical}"
        raise MismatchError(f"{columns}: make it the same.")


def _forest(facts: Mapping[str, Any], arrays: Arrays, basis: Basis) -> Forest:
    """Return the forest of a state; raise ValueError if it is on another basis than that of the module."""
    functions = packed.facts_of(basis)
    if isinstance(facts, dict) and any(name in facts and facts[name] != functions[name] for name in functions):
        stated = {name: facts.get(name) for name in functions}
        raise MismatchError(f"the trees of the state have {stated}, and this module {functions}: use the same basis.")
    return packed.unpack(facts, arrays, functions=basis)


def progress_record(layer: TreeModule) -> dict[str, Any]:
    """Return the progress of a layer as plain values and tensors."""
    last, (m, m_rows) = layer._last, layer._momentum or (None, None)
    hashes = None if last.hashes is None else last.hashes.view(np.int64)
    arrays = {"row_hashes": hashes, "rows": last.rows, "momentum": m, "momentum_rows": m_rows}
    return {
        "n_rows": last.n_rows,
        "expected_rows": layer.expected_rows,
        "random": json.dumps(layer._random.bit_generator.state),
        **{name: None if array is None else torch.tensor(array, device="cpu") for name, array in arrays.items()},
    }


def progress_of(layer: TreeModule, record: Mapping[str, Any]) -> Progress:
    """Return the checked progress of a layer from its record."""
    n_rows, expected = record["n_rows"], record["expected_rows"]
    if expected is not None and (type(expected) is not int or expected < 1):
        raise ValueError(f"the state expects {expected!r:.99} rows.")
    if n_rows != layer.n_rows:
        raise ValueError(f"the state is of {n_rows} rows, these trees of {layer.n_rows}: load the model first.")
    names = [name for name in ("row_hashes", "rows", "momentum", "momentum_rows") if record[name] is not None]
    arrays = {name: record[name].cpu().numpy().copy() for name in names}
    hashes, rows = (_taken(arrays, name, "i8", n_rows) for name in ("row_hashes", "rows"))
    m = _taken(arrays, "momentum", "f8", None, layer.out_features)
    m_rows = _taken(arrays, "momentum_rows", "i8", 0 if m is None else len(m))
    if any(part is not None and (np.diff(part) <= 0).any() for part in (rows, m_rows)):
        raise ValueError("the state has row numbers that do not ascend.")
    if m is not None and not np.isfinite(m).all():
        raise ValueError("the state has momentum that is not finite.")
    random = np.random.default_rng()
    random.bit_generator.state = json.loads(record["random"])
    last = layer._last._replace(hashes=None if hashes is None else hashes.view(np.uint64), rows=rows)
    return last, None if m is None else Momentum(m, m_rows), random, expected


def _taken(arrays: Arrays, name: str, dtype: str, *shape: int | None) -> NDArray[Any] | None:
    return take(arrays, name, dtype, shape) if name in arrays else None
