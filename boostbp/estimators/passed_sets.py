"""Evaluation sets as a user passes them to `fit`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from boostbp.inputs.sources import is_frame


class PassedSet(NamedTuple):
    """One evaluation set as the user passed it, and the name of the argument for errors."""

    source: str
    X: Any
    y: Any
    weight: Any = None
    offset: Any = None


def listed(
    eval_set: Any, eval_X: Any = None, eval_y: Any = None, eval_sample_weight: Any = None, eval_offset: Any = None
) -> list[PassedSet]:
    """Return the evaluation sets in the arguments of `fit`; raise ValueError if their form is wrong or they overlap."""
    by_column = eval_X is not None or eval_y is not None
    if eval_set is not None and by_column:
        raise ValueError("eval_set and eval_X, eval_y are both given: give eval_set, or eval_X and eval_y.")
    parts = _of_columns(eval_X, eval_y) if by_column else _of_pairs(eval_set)
    if eval_sample_weight is not None:
        weights = _entries("eval_sample_weight", eval_sample_weight, len(parts))
        parts = [_weighted(part, weight) for part, weight in zip(parts, weights, strict=True)]
    if eval_offset is not None:
        offsets = _entries("eval_offset", eval_offset, len(parts))
        parts = [part._replace(offset=offset) for part, offset in zip(parts, offsets, strict=True)]
    return parts


def tables(argument: str, value: Any) -> list[tuple[str, Any]]:
    """Return the tables in an argument that holds one or several, each with its name for errors."""
    if value is None:
        return []
    several = isinstance(value, (tuple, list)) and not _is_table(value)
    return [(f"{argument}[{number}]", table) for number, table in enumerate(value if several else [value])]


def names_of(eval_set: Sequence[Any], eval_names: Sequence[str] | None) -> list[str]:
    """Return the names of the evaluation sets: the user's, or "valid_0", "valid_1", ..."""
    if eval_names is None:
        return [f"valid_{number}" for number in range(len(eval_set))]
    names = [eval_names] if isinstance(eval_names, str) else list(eval_names)
    if len(set(names)) < len(names) or len(names) != len(eval_set) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"eval_names={eval_names!r} must hold {len(eval_set)} different strings, one for each eval_set."
        )
    return names


def _of_pairs(eval_set: Any) -> list[PassedSet]:
    if eval_set is None:
        return []
    if isinstance(eval_set, tuple) and len(eval_set) in (2, 3) and _is_table(eval_set[0]):
        eval_set = [eval_set]
    elif _is_table(eval_set) or isinstance(eval_set, (str, Mapping)) or not isinstance(eval_set, Iterable):
        raise ValueError(
            f"eval_set is a {type(eval_set).__name__}: give pairs (X, y) or triples (X, y, sample_weight), such as "
            "eval_set=[(X_valid, y_valid)]."
        )
    parts = []
    for number, part in enumerate(eval_set):
        if not isinstance(part, (tuple, list)) or len(part) not in (2, 3):
            raise ValueError(
                f"eval_set[{number}] is a {type(part).__name__}: give pairs (X, y), or triples (X, y, sample_weight)."
            )
        parts.append(PassedSet(f"eval_set[{number}]", *part))
    return parts


def _of_columns(eval_X: Any, eval_y: Any) -> list[PassedSet]:
    if eval_X is None or eval_y is None:
        passed, other = ("eval_X", "eval_y") if eval_y is None else ("eval_y", "eval_X")
        raise ValueError(f"{passed} is given without {other}: give both, or neither.")
    several = isinstance(eval_X, (tuple, list)) and not _is_table(eval_X)
    targets = _entries("eval_y", eval_y, len(eval_X)) if several else [eval_y]
    named = zip(tables("eval_X", eval_X), targets, strict=True)
    return [PassedSet(f"{source}, {source.replace('X', 'y')}", X, y) for (source, X), y in named]


def _weighted(part: PassedSet, weight: Any) -> PassedSet:
    if weight is None:
        return part
    if part.weight is not None:
        raise ValueError(f"{part.source} has weights, and eval_sample_weight has others: leave one of them out.")
    return part._replace(weight=weight)


def _entries(argument: str, value: Any, count: int) -> list[Any]:
    """Return the entries of an argument, one for each evaluation set."""
    several = isinstance(value, (tuple, list)) and not all(np.ndim(part) == 0 and part is not None for part in value)
    if not several and count == 1:
        return [value]
    if not several or len(value) != count:
        holds = f"{len(value)} entries" if several else f"a {type(value).__name__}"
        raise ValueError(f"{argument} holds {holds} for {count} evaluation sets: give a tuple with one for each.")
    return list(value)


def _is_table(value: Any) -> bool:
    """Return whether `value` is one table: an array with two axes, a frame, or a list of rows."""
    if isinstance(value, (tuple, list)):
        return len(value) > 0 and isinstance(value[0], (tuple, list, np.ndarray)) and _axes(value[0]) == 1
    return issparse(value) or is_frame(value) or np.ndim(value) == 2


def _axes(row: Any) -> int:
    try:
        return np.ndim(row)
    except ValueError:  # lists of different lengths
        return 2
