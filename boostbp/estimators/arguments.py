"""Arguments of `fit`: its rows, evaluation sets, a model to continue, callbacks and a checkpoint."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from boostbp.inputs.sources import is_frame
from boostbp.network.callbacks import Checkpoint, checkpoint
from boostbp.network.monitor import Callback
from boostbp.runtime import checks
from boostbp.runtime.arrays import TableLike
from boostbp.runtime.atomic_write import check_writable

# Attributes of callbacks of LightGBM, XGBoost and Keras.
_FOREIGN = ("before_iteration", "after_iteration", "on_epoch_end")


class PassedSet(NamedTuple):
    """One evaluation set as the user passed it, and the name of the argument for errors."""

    source: str
    X: TableLike
    y: Any = None
    weight: ArrayLike | None = None
    offset: ArrayLike | None = None


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a single fit, as they were passed."""

    X: Any = None
    y: Any = None
    sample_weight: ArrayLike | None = None
    offset: ArrayLike | None = None
    groups: ArrayLike | None = None
    init_model: Any = None  # estimator to which the trained layers are added
    sets: Sequence[PassedSet] = ()
    eval_names: Sequence[str] | None = None
    eval_metric: Any = None  # in place of the parameter
    callbacks: Sequence[Callback] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    keep_state: bool = False  # whether the estimator stores the state of training for `fit_more`

    def __post_init__(self) -> None:
        if callable(self.callbacks):
            raise ValueError(f"callbacks={self.callbacks!r} is a single function: give a list, such as [function].")
        if not isinstance(self.callbacks, list | tuple | None):
            raise ValueError(f"callbacks={checks.shown(self.callbacks)} is not allowed: give a list of functions.")

    def checked_callbacks(self) -> list[Callback]:
        """Return the user's callbacks, with the checkpoint last."""
        callbacks = list(self.callbacks or ())
        for number, callback in enumerate(callbacks):
            _check_callback(f"callbacks[{number}]={callback!r}", callback)
        if self.checkpoint is not None:
            callbacks.append(checkpoint(checks.file("checkpoint", self.checkpoint)))
        for callback in callbacks:
            if isinstance(callback, Checkpoint):  # raise an error now, not after the first epoch
                check_writable(callback.path)
        return callbacks

    @property
    def of_networks(self) -> dict[str, Any]:
        """The arguments that store the training of a network, by name."""
        callbacks = self.callbacks or ()
        stored = {f"callbacks[{i}]": call for i, call in enumerate(callbacks) if isinstance(call, Checkpoint)}
        return {"checkpoint": self.checkpoint, "keep_state": self.keep_state} | stored


NO_ARGUMENTS = Arguments()


def _check_callback(shown: str, callback: object) -> None:
    """Raise ValueError unless a callback, which messages call `shown`, can be called with the progress."""
    names = {*dir(type(callback)), *getattr(callback, "__dict__", ())}
    if names.intersection(_FOREIGN):
        raise ValueError(
            f"{shown} is a callback of {type(callback).__module__}, which cannot read the progress of this package: "
            "use the parameters n_iter_no_change (of backprop) and verbose, or early_stopping, log_evaluation and "
            "record of boostbp.callbacks."
        )
    if not callable(callback):
        raise ValueError(f"{shown} cannot be called: give functions of the progress.")
    try:
        inspect.signature(callback).bind(None)
    except TypeError as error:
        raise ValueError(
            f"{shown} does not take the progress as its one argument ({error}): write def callback(progress)."
        ) from error
    except ValueError:  # a compiled function without a signature
        pass


# (X, y) or (X, y, weight)
Pair: TypeAlias = tuple[TableLike, ArrayLike | None] | tuple[TableLike, ArrayLike | None, ArrayLike | None]
EvalSets: TypeAlias = Pair | Iterable[Pair]
OneOrMore: TypeAlias = TableLike | Sequence[TableLike | None]  # for one evaluation set, or an entry for each


def listed(
    eval_set: EvalSets | None,
    eval_X: OneOrMore | None = None,
    eval_y: OneOrMore | None = None,
    eval_sample_weight: OneOrMore | None = None,
    eval_offset: OneOrMore | None = None,
) -> list[PassedSet]:
    """Return the evaluation sets in the arguments of `fit`; raise ValueError if their form is wrong or they overlap."""
    by_column = eval_X is not None or eval_y is not None
    if eval_set is not None and by_column:
        raise ValueError("eval_set and eval_X, eval_y are both given: give eval_set, or eval_X and eval_y.")
    parts = _of_columns(eval_X, eval_y) if by_column else _of_pairs(eval_set)
    for number, weight in enumerate(entries("eval_sample_weight", eval_sample_weight, len(parts))):
        if weight is not None and parts[number].weight is not None:
            source = parts[number].source
            raise ValueError(f"{source} has weights, and eval_sample_weight has others: leave one of them out.")
        parts[number] = parts[number] if weight is None else parts[number]._replace(weight=weight)
    offsets = entries("eval_offset", eval_offset, len(parts))
    return [part._replace(offset=offset) for part, offset in zip(parts, offsets, strict=True)]


def named_tables(argument: str, value: OneOrMore | None) -> list[tuple[str, TableLike]]:
    """Return the tables in an argument that holds one or several, each with its name for errors."""
    if value is None:
        return []
    several = list(value) if isinstance(value, (tuple, list)) and not _is_table(value) else [value]
    return [(f"{argument}[{number}]", table) for number, table in enumerate(several)]


def names_of(eval_set: Sequence[object], eval_names: Sequence[str] | None) -> list[str]:
    """Return the names of the evaluation sets: the user's, or "valid_0", "valid_1", ..."""
    if eval_names is None:
        return [f"valid_{number}" for number in range(len(eval_set))]
    names = [eval_names] if isinstance(eval_names, str) else list(eval_names)
    if len(set(names)) < len(names) or len(names) != len(eval_set) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"eval_names={eval_names!r} must hold {len(eval_set)} different strings, one for each set.")
    return names


def _of_pairs(eval_set: Any) -> list[PassedSet]:
    if eval_set is None:
        return []
    if isinstance(eval_set, tuple) and len(eval_set) in (2, 3) and _is_table(eval_set[0]):
        eval_set = [eval_set]
    elif _is_table(eval_set) or isinstance(eval_set, (str, Mapping)) or not isinstance(eval_set, Iterable):
        raise ValueError(f"eval_set is a {type(eval_set).__name__}: give pairs (X, y), such as [(X_valid, y_valid)].")
    parts = []
    for number, part in enumerate(eval_set):
        if not isinstance(part, (tuple, list)) or len(part) not in (2, 3):
            raise ValueError(f"eval_set[{number}] is a {type(part).__name__}: give (X, y) or (X, y, sample_weight).")
        parts.append(PassedSet(f"eval_set[{number}]", *part))
    return parts


def _of_columns(eval_X: Any, eval_y: Any) -> list[PassedSet]:
    if eval_X is None or eval_y is None:
        passed, other = ("eval_X", "eval_y") if eval_y is None else ("eval_y", "eval_X")
        raise ValueError(f"{passed} is given without {other}: give both, or neither.")
    several = isinstance(eval_X, (tuple, list)) and not _is_table(eval_X)
    targets = entries("eval_y", eval_y, len(eval_X)) if several else [eval_y]
    named = zip(named_tables("eval_X", eval_X), targets, strict=True)
    return [PassedSet(f"{source}, {source.replace('X', 'y')}", X, y) for (source, X), y in named]


def entries(argument: str, value: OneOrMore, count: int) -> list[Any]:
    """Return the entries of an argument, one for each evaluation set; None for each if it is not given."""
    if value is None:
        return [None] * count
    entries: list[Any] | None = list(value) if isinstance(value, (tuple, list)) else None
    if entries is not None and all(np.ndim(part) == 0 and part is not None for part in entries):
        entries = None  # numbers of the rows of one set
    if entries is None and count == 1:
        return [value]
    if entries is None or len(entries) != count:
        holds = f"a {type(value).__name__}" if entries is None else f"{len(entries)} entries"
        raise ValueError(f"{argument} holds {holds} for {count} evaluation sets: give a tuple with one for each.")
    return entries


def _is_table(value: Any) -> bool:
    """Return whether `value` is one table: an array with two axes, a frame, or a list of rows."""
    if isinstance(value, (tuple, list)):
        return len(value) > 0 and isinstance(value[0], (tuple, list, np.ndarray)) and _axes(value[0]) == 1
    return issparse(value) or is_frame(value) or np.ndim(value) == 2


def _axes(row: ArrayLike) -> int:
    try:
        return np.ndim(row)
    except ValueError:  # lists of different lengths
        return 2
