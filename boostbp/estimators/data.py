"""Data: the tables and targets of a fit, read and divided once into training and held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from boostbp.estimators.arguments import Arguments, PassedSet, names_of
from boostbp.estimators.conformal import calibrated, calibration_rows
from boostbp.estimators.held_out import Drawing, hold_out, hold_out_others
from boostbp.estimators.init_model import check_target, earlier_model
from boostbp.estimators.request import Request
from boostbp.estimators.state import fitted_attributes
from boostbp.inputs.matrices import check_numeric
from boostbp.inputs.rows import NO_OFFSET, Rows
from boostbp.inputs.schema import Schema, learn_schema, read_input
from boostbp.inputs.survival_times import read_by_kind
from boostbp.inputs.targets import label_names, read_weight
from boostbp.losses import traits_of
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.model.model import Model, Targets, units_of
from boostbp.network.monitor import EvalSet
from boostbp.runtime.arrays import Floats, TableLike
from boostbp.runtime.group import training_in, workers
from boostbp.runtime.messages import named_in_errors
from boostbp.trees.sparse import Matrix, Table

ColumnNames: TypeAlias = tuple[str, ...] | None  # names of the columns of a target
# the targets, the target as the loss reads it, (rows, columns), and the weights of the rows
Learnt: TypeAlias = tuple[Targets, Floats, Floats]


class Reader(Protocol):
    """What an estimator decides about the reading of its data."""

    def _read_target(self, values: Any, weight: Floats, earlier: Model | None, names: ColumnNames) -> Learnt: ...


@dataclass(frozen=True, slots=True)
class FitData:
    """How the data of a fit were read, and what becomes of rows that no training sees."""

    schema: Schema
    targets: Targets
    with_offset: bool
    earlier: Model | None  # model to which the trained layers are added
    others: Sequence[Callable[[], Drawing]]  # each draws other held-out rows, for a further member of an average
    calibrate: Callable[[Model], Model] | None  # on rows that are reserved for it


def read_data(estimator: Reader, request: Request) -> tuple[FitData, Drawing]:
    """Read the data of a fit; return the training rows and evaluation sets, too, in the units of the user.

    The rows of an earlier model are read as its own. The estimator gets the attributes that scikit-learn
    expects.
    """
    arguments, n_threads = request.arguments, request.n_threads
    earlier = None if arguments.init_model is None else earlier_model(request)
    schema, table = _read_table(estimator, request, earlier)
    n_rows, strata = len(table.X), None
    values: Any = table
    if request.task is not None:  # without a task the table is its own target
        values, strata = read_by_kind(arguments.y, n_rows, request.task)
    passed_weight = read_weight(arguments.sample_weight, n_rows)
    weight, reserves = passed_weight.copy(), request.values.get("calibration") is not None
    reserved = calibration_rows(request, table, passed_weight, strata) if reserves else np.arange(0)
    weight[reserved] = 0.0
    targets, target, weight = estimator._read_target(values, weight, earlier, label_names(arguments.y))
    if earlier is not None:
        check_target(earlier, targets.loss, targets.n_outputs)
    check = CheckedLoss(targets.loss).check
    check(target, weight)
    known = partial(_known_output, targets=targets, earlier=earlier, n_threads=n_threads)
    sets = list(_eval_sets(arguments, targets, partial(read_input, cast(Any, estimator), schema=schema), known))
    rows = Rows(table, target, weight, known(table.X, arguments.offset), workers())
    drawn = (rows, sets) if sets else hold_out(request, rows, strata, check=check)
    if earlier is None and targets.classes is None:
        targets = _in_units_of(targets, drawn[0])
    others, calibrate = hold_out_others(request, rows, strata, drawn[1]), None
    if reserves:
        offset = None if arguments.offset is None else targets.read_offset(arguments.offset, n_rows)[reserved]
        of_rows: Any = {"target": target[reserved], "weight": passed_weight[reserved], "offset": offset}
        calibrate = partial(calibrated, table=table.take(reserved), **of_rows, n_threads=n_threads)
    return FitData(schema, targets, arguments.offset is not None, earlier, others, calibrate), drawn


def _read_table(estimator: Any, request: Request, earlier: Model | None) -> tuple[Schema, Table]:
    X, categorical_features = request.arguments.X, cast(Any, request.values["categorical_features"])
    if earlier is None:
        return learn_schema(estimator, X, categorical_features=categorical_features)
    vars(estimator).pop("feature_names_in_", None)  # the names are those of the model, also if it has none
    vars(estimator).update(fitted_attributes(earlier))
    return earlier.schema, read_input(estimator, X, earlier.schema)


def _eval_sets(
    arguments: Arguments, targets: Targets, read: Callable[[TableLike], Table], known: Callable[..., Floats]
) -> Iterator[EvalSet]:
    """Yield the evaluation sets; one must have an offset exactly if the training rows have one."""
    with_offset = arguments.offset is not None
    for name, part in zip(names_of(arguments.sets, arguments.eval_names), arguments.sets, strict=True):
        with named_in_errors(part.source):
            table = read(part.X)
            y = _target_of(part, table, targets)
            weight = read_weight(part.weight, len(table.X))
            if (part.offset is not None) != with_offset:
                passed, other = ("offset", "eval_offset") if with_offset else ("eval_offset", "offset")
                raise ValueError(f"{passed} is given without {other}: give both, with zeros for rows without one.")
            offset = known(table.X, part.offset, name="eval_offset")
            CheckedLoss(targets.loss).check(y, weight)
        yield EvalSet(name, Rows(table, y, weight, offset))


def _target_of(part: PassedSet, table: Table, targets: Targets) -> Floats:
    """Return the target of an evaluation set, (rows, columns), which is the table for an auto-encoder."""
    if targets.is_input:
        check_numeric(table)
        return np.asarray(table.X)
    y = targets.read(part.y, len(table.X))
    if y.shape[1] != targets.n_columns:  # NumPy would broadcast it
        raise ValueError(
            f"its y has {y.shape[1]} outputs, the training target has {targets.n_columns}. Give the same outputs, in "
            "the same order."
        )
    return y


def _known_output(
    X: Matrix, offset: ArrayLike | None, targets: Targets, earlier: Model | None, n_threads: int, name: str = "offset"
) -> Floats:
    """Return the user's offset plus the raw output of an earlier model, (rows, outputs), or `NO_OFFSET`."""
    known = NO_OFFSET if offset is None else targets.read_offset(offset, X.shape[0], name)
    if earlier is None:
        return known
    return known + earlier.network.predict(X, n_jobs=n_threads) * earlier.targets.scale


def _in_units_of(targets: Targets, rows: Rows) -> Targets:
    """Return numeric targets with the units of rows."""
    with training_in(rows.group):
        units = units_of(rows.y - rows.offset, rows.weight, targets.loss)
    shift, scale = (np.repeat(unit, traits_of(targets.loss).copies or 1) for unit in units)
    return replace(targets, shift=shift, scale=scale)
