"""Fingerprint: the data and parameters of a training as words and digests, which identify it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from boostbp.inputs.repeats import splitmix64
from boostbp.losses import Loss
from boostbp.network.monitor import NetworkTask
from boostbp.runtime.group import workers
from boostbp.trees.sparse import Matrix, Sparse

# Fields that change no epoch of a training: they set its end, its speed, checks, and other parts of the model.
_FREE = {"epochs", "n_iter_no_change", "max_time", "n_threads", "is_whole_model", "given"}
_APART = {"layers", "growth", "seed", "random_state"}  # fields with entries of their own
# Packages whose functions are identified by name.
_KNOWN = frozenset(("boostbp", "numpy", "scipy", "sklearn"))
# Rows that are hashed at a time, and the number of last bits of a mantissa (of 52) that are ignored in rounded sums.
_BLOCK, _LAST_BITS = 65_536, np.uint64(36)
# Limit on the depth of nested objects, which ends circular references. Arbitrary.
MAX_DEPTH = 4


def fingerprint(task: NetworkTask, loss: Loss) -> Mapping[str, str]:
    """Return each part of a training by name, the same in every process: words, or ``sha256:`` and a digest."""
    rows, settings, metric, watched = task.rows, task.settings, task.evaluation.metric, list[object]()
    for part in task.evaluation.sets:
        watched += [part.name, part.rows.X, part.rows.y, part.rows.weight]
    watched += [part.rows.offset for part in task.evaluation.sets if part.rows.offset.ndim]
    digests = {
        "X": _digest(_rows(rows.X), repr(rows.table.categorical)),
        "y": _digest(_rows(rows.y, rounded=True)),
        "sample_weight": _digest(_rows(rows.weight, rounded=True)),
        "eval_set": _digest(*watched),
        "backend": words_of(task.backend),
        "random_state": _digest(settings.seed),
        "loss": words_of(loss),
        "eval_metric": "None" if metric is None else f"{metric.name} {words_of(metric.function)}",
    }
    if rows.offset.ndim:
        digests["offset"] = _digest(_rows(rows.offset, rounded=True))
    digests |= {name: words_of(getattr(settings, name)) for name in _counted(settings)}
    for records in (settings.layers, [layer.growth for layer in settings.layers]):
        digests |= {name: words_of([getattr(record, name) for record in records]) for name in _counted(records[0])}
    return digests


def _counted(settings: Any) -> list[str]:
    return [field.name for field in fields(settings) if field.name not in _FREE | _APART]


def _rows(array: Matrix, *, rounded: bool = False) -> object:
    """Return the rows, or a hash of the rows of all workers in a group.

    The hash is a sum over rows, so it does not depend on how workers share them. If `rounded`, the last bits are
    ignored: in numbers that were scaled by sums over rows, they depend on the number of workers.
    """
    group = workers()
    if group.is_single:
        return array
    numbers, total = group.row_numbers(len(array))
    columns = np.ascontiguousarray(array, np.float64).reshape(len(array), array.size // max(len(array), 1))
    places, found = splitmix64(np.arange(columns.shape[1], dtype=np.uint64)), np.zeros((), np.uint64)
    for start in range(0, len(array), _BLOCK):
        bits = columns[start : start + _BLOCK].view(np.uint64)
        if rounded:
            bits = (bits + (np.uint64(1) << (_LAST_BITS - np.uint64(1)))) >> _LAST_BITS
        of_rows = splitmix64(bits + places).sum(axis=1, dtype=np.uint64)
        number = numbers[start : start + _BLOCK].astype(np.uint64)
        found += splitmix64(of_rows + splitmix64(number)).sum(dtype=np.uint64)
    return total, [int(np.sum(group.gather(found), dtype=np.uint64))]


def _digest(*parts: object) -> str:
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


def words_of(value: object, depth: int = 0) -> str:
    """Return words for a value, the same in every process: an object's class and attributes, a function's code."""
    if isinstance(value, np.ndarray | Sparse):
        return _digest(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {words_of(item, depth)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        opened, closed = "[]" if isinstance(value, list) else "()"
        return f"{opened}{', '.join(words_of(item, depth) for item in value)}{closed}"
    if isinstance(value, partial):
        return words_of((value.func, value.args, value.keywords), depth)
    if isinstance(value, type) or (type(value).__module__ == "builtins" and not callable(value)):
        return value.__qualname__ if isinstance(value, type) else repr(value)
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__ + _code_of(value, depth)
    known = fields(value) if is_dataclass(value) else ()
    inside = {field.name: getattr(value, field.name) for field in known if field.init} or _attributes(value)
    if depth >= MAX_DEPTH:
        return type(value).__name__
    words = ", ".join(f"{name}={words_of(item, depth + 1)}" for name, item in inside.items())
    return f"{type(value).__name__}({words})"


def _attributes(value: object) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    attributes = {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})
    return dict(sorted(attributes.items()))


def _code_of(function: Callable[..., object], depth: int) -> str:
    """Return the digest of a user's function, of its code and of the values that it closes over."""
    code = getattr(function, "__code__", None)
    if code is None or str(function.__module__).split(".")[0] in _KNOWN or depth >= MAX_DEPTH:
        return ""
    plain = [constant for constant in code.co_consts if isinstance(constant, int | float | str | bytes | tuple | None)]
    closed = [words_of(cell.cell_contents, depth + 1) for cell in function.__closure__ or ()]
    return f" {_digest(code.co_code, code.co_names, plain, closed)}"
