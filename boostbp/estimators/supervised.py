"""What the supervised estimators share: the user's evaluation sets and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import Tags

from boostbp import cautions
from boostbp.cautions import named_in_errors
from boostbp.estimators.base import BaseBoostBP
from boostbp.estimators.session import Earlier
from boostbp.floats import Floats
from boostbp.inputs.rows import NO_OFFSET, Rows
from boostbp.inputs.sources import is_frame
from boostbp.inputs.targets import read_offset, read_weight
from boostbp.losses import Loss, traits_of
from boostbp.network.eval_sets import EvalSet


class Part(NamedTuple):
    """One evaluation set as the user passed it, and what errors call it."""

    source: str
    X: Any
    y: Any
    weight: Any = None
    offset: Any = None


def listed(
    eval_set: Any, eval_X: Any = None, eval_y: Any = None, eval_sample_weight: Any = None, eval_offset: Any = None
) -> list[Part]:
    """The evaluation sets of a fit, by its arguments; ValueError if these have another form, or say the same twice."""
    by_column = eval_X is not None or eval_y is not None
    if eval_set is not None and by_column:
        raise ValueError("eval_set and eval_X, eval_y are both given: give eval_set, or eval_X and eval_y.")
    parts = _of_columns(eval_X, eval_y) if by_column else _of_pairs(eval_set)
    if eval_sample_weight is not None:
        weights = _each("eval_sample_weight", eval_sample_weight, len(parts))
        parts = [_weighted(part, weight) for part, weight in zip(parts, weights, strict=True)]
    if eval_offset is not None:
        offsets = _each("eval_offset", eval_offset, len(parts))
        parts = [part._replace(offset=offset) for part, offset in zip(parts, offsets, strict=True)]
    return parts


def tables(argument: str, value: Any) -> list[tuple[str, Any]]:
    """Tables in an argument that may hold one or several, each with what errors call it."""
    if value is None:
        return []
    several = isinstance(value, (tuple, list)) and not _is_table(value)
    return [(f"{argument}[{number}]", table) for number, table in enumerate(value if several else [value])]


def names_of(eval_set: Sequence[Any], eval_names: Sequence[str] | None) -> list[str]:
    """Names of the evaluation sets: the user's, or "valid_0", "valid_1", ..."""
    if eval_names is None:
        return [f"valid_{number}" for number in range(len(eval_set))]
    names = [eval_names] if isinstance(eval_names, str) else list(eval_names)
    if len(set(names)) < len(names) or len(names) != len(eval_set) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"eval_names={eval_names!r} must hold {len(eval_set)} different strings, one for each eval_set."
        )
    return names


def _of_pairs(eval_set: Any) -> list[Part]:
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
        parts.append(Part(f"eval_set[{number}]", *part))
    return parts


def _of_columns(eval_X: Any, eval_y: Any) -> list[Part]:
    if eval_X is None or eval_y is None:
        given, other = ("eval_X", "eval_y") if eval_y is None else ("eval_y", "eval_X")
        raise ValueError(f"{given} is given without {other}: give both, or neither.")
    several = isinstance(eval_X, (tuple, list)) and not _is_table(eval_X)
    targets = _each("eval_y", eval_y, len(eval_X)) if several else [eval_y]
    named = zip(tables("eval_X", eval_X), targets, strict=True)
    return [Part(f"{source}, {source.replace('X', 'y')}", X, y) for (source, X), y in named]


def _weighted(part: Part, weight: Any) -> Part:
    if weight is None:
        return part
    if part.weight is not None:
        raise ValueError(f"{part.source} has weights, and eval_sample_weight has others: leave one of them out.")
    return part._replace(weight=weight)


def _each(argument: str, value: Any, count: int) -> list[Any]:
    """One entry for each evaluation set."""
    listed = isinstance(value, (tuple, list)) and not all(np.ndim(part) == 0 and part is not None for part in value)
    if not listed and count == 1:
        return [value]
    if not listed or len(value) != count:
        holds = f"{len(value)} entries" if listed else f"a {type(value).__name__}"
        raise ValueError(f"{argument} holds {holds} for {count} evaluation sets: give a tuple with one for each.")
    return list(value)


def _is_table(value: Any) -> bool:
    """Whether it is one table: an array of two axes, a frame, or a list of rows."""
    if isinstance(value, (tuple, list)):
        return len(value) > 0 and isinstance(value[0], (tuple, list, np.ndarray)) and _axes(value[0]) == 1
    return issparse(value) or is_frame(value) or np.ndim(value) == 2


def _is_zero(offset: Any) -> bool:
    return isinstance(offset, Real) and not isinstance(offset, bool) and offset == 0


def _axes(row: Any) -> int:
    try:
        return np.ndim(row)
    except ValueError:  # lists of different lengths
        return 2


_ROUTED: dict[str, bool] = {"offset": True}


class Supervised(BaseBoostBP):
    """Targets and evaluation sets as the loss takes them."""

    # requested by default in every method: an offset in `fit` alone would make predictions and scores wrong
    __metadata_request__fit: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__predict: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__predict_log_proba: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__score: ClassVar[dict[str, bool]] = _ROUTED

    _fewest_hidden = 0  # a single layer is a model
    _fitted_with_offset = False
    loss: Any
    _loss: Loss

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags

    def _raw(self, X: Any, offset: Any = None) -> Floats:
        """Raw output, its offset included, (rows, outputs)."""
        return self._beside(super()._raw(X), offset)

    def _beside(self, raw: Floats, offset: Any) -> Floats:
        """Return the raw output plus the user's offset, (rows, outputs); ``offset=0`` states that there is none."""
        if offset is None and self._fitted_with_offset:
            cautions.warn(
                "The model was fitted with an offset, but none was passed: the output is for an offset of 0, such as "
                "an exposure of 1. Pass offset=... (--offset on the command line), or offset=0 if you mean it."
            )
        if offset is None or _is_zero(offset):
            return raw
        return raw + self._read_offset(offset, len(raw), self._n_targets) / self._output_scale()

    def _check_offset(self, offset: Any, method: str) -> None:
        """Refuse to compare targets that have an offset with predictions that have none."""
        if offset is None and self._fitted_with_offset:
            raise ValueError(
                f"{method} needs the offset of its rows, as the model was fitted with one: pass offset=..., or "
                "offset=0 for none. Searches and cross-validation in scikit-learn pass it after "
                "sklearn.set_config(enable_metadata_routing=True)."
            )

    @property
    def _n_targets(self) -> int:
        """Columns of the target: outputs, but for several quantiles of one."""
        return len(self.network_.baseline) if traits_of(self._loss).copies is None else 1

    def _read_offset(self, offset: Any, n_rows: int, n_outputs: int, name: str = "offset") -> Floats:
        """The user's offset, (rows, outputs); of a logarithmic link, refused where no exponential is taken."""
        known = read_offset(offset, n_rows, n_outputs, name)
        if traits_of(self._loss).link_name == "log":
            low, high = getattr(self._loss, "lowest", -np.inf), getattr(self._loss, "highest", np.inf)
            wrong = known[(known < low) | (known > high)]
            if len(wrong):
                raise ValueError(
                    f"{name} holds {wrong[0]:g}, and loss={self._loss.name!r} takes exponentials of raw outputs from "
                    f"{low:g} to {high:g}: give the logarithm of the exposure."
                )
        return known

    def _eval_sets(
        self,
        parts: Sequence[Part],
        eval_names: Sequence[str] | None,
        offset: Any,
        n_outputs: int,
        earlier: Earlier | None,
    ) -> list[EvalSet]:
        """The user's evaluation sets, read, with an offset where the training rows have one; `earlier` adds to it."""
        sets = []
        for name, part in zip(names_of(parts, eval_names), parts, strict=True):
            with named_in_errors(part.source):
                table = self._read(part.X)
                y = self._encode(part.y, len(table.X))
                if y.shape[1] != n_outputs:  # which numpy would broadcast
                    raise ValueError(
                        f"its y has {y.shape[1]} outputs, the training target has {n_outputs}. Give the same outputs, "
                        "in the same order."
                    )
                weight = read_weight(part.weight, len(table.X))
                if (part.offset is None) != (offset is None):
                    given, other = ("eval_offset", "offset") if offset is None else ("offset", "eval_offset")
                    raise ValueError(f"{given} is given without {other}: give both; zeros where there is none.")
                known = self._offset(table.X, part.offset, n_outputs, earlier, "eval_offset")
            sets.append(EvalSet(name, Rows(table, y, weight, known)))
        return sets

    def _offset(self, X: Floats, offset: Any, n_outputs: int, earlier: Earlier | None, name: str = "offset") -> Floats:
        """The user's offset and what an earlier model predicts, (rows, outputs); `NO_OFFSET` if there is neither."""
        known = NO_OFFSET if offset is None else self._read_offset(offset, len(X), n_outputs, name)
        return known if earlier is None else known + earlier.offset(X, self._n_threads())

    def _encode(self, y: Any, n_rows: int) -> Floats:
        raise NotImplementedError
