"""Fingerprint: what a training learns from and how, in a few words that tell it from any other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Table
from boostbp.learning.metrics import Metric
from boostbp.learning.settings import Settings
from boostbp.learning.watch import EvalSet
from boostbp.trees.sparse import Sparse

__all__ = ["fingerprint"]

# They say when training ends or how fast it is, not where it goes.
_FREE = frozenset(("epochs", "n_iter_no_change", "max_time", "n_threads"))
_SEEDS = frozenset(("seed", "random_state"))


def fingerprint(
    table: Table,
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    eval_sets: Sequence[EvalSet],
    *,
    settings: Settings,
    backend: Any,
    loss: Any,
    metric: Metric | None,
) -> Mapping[str, str]:
    """Name -> the value in words, or ``sha256:`` and a digest of the bytes.

    The same in every process; the parameters that only say when training ends are left out.
    """
    watched = [part for one in eval_sets for part in (one.name, one.X, one.y, one.weight)]
    found = {
        "X": _digest(table.X, repr(table.categorical)),
        "y": _digest(y),
        "sample_weight": _digest(weight),
        "eval_set": _digest(*watched),
        "backend": _named(backend),
        "random_state": _digest(settings.seed),
        "loss": _named(loss),
        "eval_metric": "None" if metric is None else metric.name,
    }
    for field in fields(settings):
        if field.name not in {"layers", *_SEEDS, *_FREE}:
            found[field.name] = _named(getattr(settings, field.name))
    for field in fields(settings.layers[0]):
        values = [getattr(layer, field.name) for layer in settings.layers]
        if field.name != "growth":
            found[field.name] = f"[{', '.join(map(_named, values))}]"
            continue
        for part in fields(values[0]):
            if part.name not in _FREE | _SEEDS:
                found[part.name] = f"[{', '.join(_named(getattr(growth, part.name)) for growth in values)}]"
    return found


def _digest(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Sparse):
            digest.update(_digest("sparse", part.shape, *part.arrays).encode())
        elif isinstance(part, np.ndarray):
            digest.update(repr((part.shape, part.dtype.str)).encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode())
    return f"sha256:{digest.hexdigest()}"


def _named(value: Any) -> str:
    """Words for a value; an object's address, which its `repr` may hold, is not among them."""
    if is_dataclass(value) or (type(value).__module__ == "builtins" and not callable(value)):
        return repr(value)
    return str(getattr(value, "__name__", type(value).__name__))
