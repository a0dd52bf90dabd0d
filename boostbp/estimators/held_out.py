"""Held-out rows: training rows that `fit` reserves for early stopping and for the choice of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.ensemble.plan import Way
from boostbp.estimators.arguments import Arguments
from boostbp.estimators.constructor import is_splitter
from boostbp.estimators.request import Request
from boostbp.inputs.repeats import distinct_rows, hashes_of, number_values
from boostbp.inputs.rows import Rows
from boostbp.inputs.targets import read_groups
from boostbp.network.monitor import EvalSet
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import SAMPLE, training_in, workers
from boostbp.trees.sparse import Table

RowNumbers = NDArray[np.intp]
# With early_stopping="auto", no rows of fewer than MIN_ROWS are held out. Of more rows, at least MIN_HELD are, or a
# quarter if that is less. Both are arbitrary.
MIN_ROWS, MIN_HELD = 36, 50
# With early_stopping="auto" and the default share, at most MAX_HELD of LARGE_N or more rows are held out. Further rows
# would hardly change the choice of the model; they improve it more as training rows.
LARGE_N, MAX_HELD = 50_000, 20_000
MAX_HELD_OF_WORKERS = 1_000_000  # each of several workers stores all held-out rows; arbitrary
SHARE = 0.1  # share of the rows that are held out by default


Drawing = tuple[Rows, list[EvalSet]]  # training rows and evaluation sets


def hold_out_others(
    request: Request,
    rows: Rows,
    strata: NDArray[Any] | None,
    sets: Sequence[EvalSet],
) -> list[Callable[[], Drawing]]:
    """Return a function for each further member of an average, which holds out other rows than the first member did.

    The list is empty unless rows are drawn at random. `sets` are the evaluation sets of the first member.
    """
    random = isinstance(request.validation, Real) and len(sets) == 1 and sets[0].from_training
    if not random or request.way in (Way.NETWORK, Way.FIXED_LAYER):
        return []
    # what the user passed would stay in memory with the training
    request = replace(request, arguments=Arguments(groups=request.arguments.groups))
    draw = training_in(rows.group)(partial(hold_out, request, rows, strata))
    most_members = max(request.level.effort(networks=networks).members for networks in (False, True))
    return [partial(draw, number=number) for number in range(1, most_members)]


def hold_out(
    request: Request,
    rows: Rows,
    strata: NDArray[Any] | None,
    *,
    number: int = 0,
    check: Callable[[Floats, Floats], None] | None = None,
) -> Drawing:
    """Hold out rows as `early_stopping` and `validation` specify; each `number` draws other rows.

    Rows of weight 0 are neither counted nor drawn at random. `strata`, (rows,), are classes, each of which keeps its
    share, and at least one training row; or (rows, labels) of 0 and 1, see `_rarest_label`. Rows of a group stay on one
    side; without groups, repeated rows do (`boostbp.inputs.repeats`). A splitter gets `X` as the user passed it.
    `check` refuses targets and weights of a side that teach nothing, such as times without an event: these hold out no
    row by default. Returns the training rows, and the held-out rows as one evaluation set, or no set. Raises ValueError
    if `validation` or `groups` cannot be used, or leave no training row.
    """
    stopping = checks.one_of("early_stopping", request.values["early_stopping"], (True, False, "auto"))
    validation, groups = request.validation, request.arguments.groups
    y, weight = rows.y, rows.weight
    names = None if groups is None else read_groups(groups, len(y))
    if not stopping or (request.epochs == 0 and request.way is Way.NETWORK):
        return rows, []
    if names is not None and not isinstance(validation, float) and not is_splitter(validation):
        raise ValueError(
            f"groups with validation={_shown(validation)} is not supported: use a share of the groups, such as "
            "validation=0.1, or a splitter that takes groups."
        )
    if isinstance(validation, float):
        held = at_random(request, rows.table, weight, strata, names, number)
    elif isinstance(validation, str):
        counted = np.flatnonzero(weight > 0)
        held = counted[-_n_held(request, len(counted)) :] if len(counted) >= _min_rows(request) else counted[:0]
    else:
        target = strata if strata is not None else y[:, 0] if y.shape[1] == 1 else y
        train, held = _from_validation(request, target)
    if not workers().sum(len(held))[0]:
        return rows, []
    if isinstance(validation, str | float):
        train = np.setdiff1d(np.arange(len(y)), held)
    if not isinstance(validation, float):
        _check_sides(validation, train, held, weight, strata if request.task == "classifier" else None)
    try:
        for side in (train, held):
            if check is not None:
                check(y[side], weight[side])
    except ValueError as error:
        if isinstance(validation, float) and stopping == "auto":
            return rows, []
        raise ValueError(f"validation={_shown(validation)}, training or held-out rows: {error}") from error
    return rows.take(train), [EvalSet("held_out", rows.take(held).gathered(), from_training=True)]


def _shown(validation: object) -> str:
    """Return `validation` as messages show it; a pair of row sets would be too long."""
    return "(rows, rows)" if isinstance(validation, (tuple, list)) else repr(validation)


def _min_rows(request: Request) -> int:
    return MIN_ROWS if request.values["early_stopping"] == "auto" else 0


def _n_held(request: Request, count: int, unit: str = "rows") -> int:
    """Return how many of `count` rows, or groups of rows, are held out."""
    validation = request.validation  # a share, or "last"
    requested = share = SHARE if isinstance(validation, str) else float(validation)
    auto = request.values["early_stopping"] == "auto"
    if auto:
        share = max(share, min(MIN_HELD / count, 0.25))
    n_held = int(np.ceil(share * count))
    if n_held >= count:
        raise ValueError(
            f"validation={validation!r} of {count} {unit} leaves none to train on: give a smaller share, "
            f"more {unit}, or early_stopping=False."
        )
    limited = requested == SHARE and auto and count >= LARGE_N
    return min(n_held, MAX_HELD) if limited else n_held


def at_random(
    request: Request,
    table: Table,
    weight: Floats,
    strata: NDArray[Any] | None,
    groups: NDArray[np.integer] | None,
    number: int,
    share: float | None = None,
) -> RowNumbers:
    """Return the numbers of the rows of randomly drawn groups.

    A group is one of the user's, or a row with its repetitions. Sizes of groups are sums of weights, so a weight of 2
    equals the row twice. `share` is the share of the groups to draw. By default it is that of `validation`, and none
    are drawn from fewer than `_min_rows` rows. Several workers together draw the rows that one machine would draw from
    their table, or use `_by_hash` if there are many.
    """
    counted = np.flatnonzero(weight > 0)
    if strata is not None and strata.ndim == 2:
        strata = _rarest_label(strata, weight)
    together = workers().select_rows(counted)
    seeds = checks.random_state("random_state", request.values["random_state"]).randint(2**31 - 1, size=number + 1)
    seed = together.agree(int(seeds[-1]))
    here, n_rows = together.row_numbers(len(counted))
    if n_rows > SAMPLE and not together.is_single:
        return _by_hash(request, table, counted, strata, n_rows, seed)
    shares, *labels = together.allgather_rows(weight[counted], *([] if strata is None else [strata[counted]]))
    if groups is not None:
        group, unit = number_values(groups[counted]), "groups"
    else:
        with training_in(together):
            group = distinct_rows(table if len(counted) == len(weight) else table.take(counted))
        unit = "distinct rows"
    count = int(group.max()) + 1
    if count == 1 and groups is not None:
        raise ValueError("groups holds only one group: give at least two, or leave it out.")
    if not share and (count if groups is None else n_rows) < _min_rows(request):
        return counted[:0]
    n_held = int(np.ceil(share * count)) if share else _n_held(request, count, "rows" if count == n_rows else unit)
    size: Floats = np.bincount(group, shares).astype(np.float64)
    classes = np.unique(labels[0], return_inverse=True)[1] if labels else np.zeros(len(group), np.intp)
    stays = _only_of_class(classes, group) if labels else np.zeros(count, bool)
    held = np.isin(group, _draw(_rarest_class(classes, group, shares), stays, size, n_held, seed))
    while labels and len(missing := np.setdiff1d(classes[held], classes[~held])):
        held &= group != group[held & (classes == missing[0])][0]
    if request.task == "survival" and not labels[0][held].any():
        # Without an event, the likelihood would rise with the predicted times without an end.
        with_event = np.unique(group[labels[0]])
        held |= np.isin(group, with_event[seed % len(with_event)]) if len(with_event) > 1 else False
    return counted[held[here]]


def _only_of_class(classes: RowNumbers, group: RowNumbers) -> NDArray[np.bool_]:
    """Return which groups, (groups,), contain all rows of a class, and so must be trained on."""
    n_classes = int(classes.max()) + 1
    group_number, class_number = np.divmod(np.unique(group * n_classes + classes), n_classes)
    in_one_group = np.bincount(class_number)[class_number] == 1
    return np.bincount(group_number, in_one_group) > 0


def _draw(strata: NDArray[Any], stays: NDArray[np.bool_], size: Floats, n_held: int, seed: int) -> RowNumbers:
    """Return the numbers of randomly drawn groups, stratified if possible.

    The drawn groups have at most half of all rows, if there are groups that small. A group that is the only one of its
    stratum is not drawn, nor are those in the mask `stays`, (groups,).
    """
    from sklearn.model_selection import train_test_split  # imported here: it takes a third of the import time

    _, stratum, members = np.unique(strata, return_inverse=True, return_counts=True)
    groups = np.flatnonzero(((members[stratum] > 1) & ~stays) | (len(strata) == 1))
    n_held = min(n_held, len(groups) - 1)
    if n_held < 1:
        return groups[:0]
    cut = partial(train_test_split, groups, test_size=n_held, random_state=seed)
    try:
        held = cut(stratify=stratum[groups] if len(members) > 1 else None)[1]
    except ValueError:  # for example, more strata than held-out groups
        held = cut()[1]
    held = held[np.argsort(size[held], kind="stable")]
    small = np.cumsum(size[held]) <= size.sum() / 2
    return held[small] if small.any() else groups[[np.argmin(size[groups])]]


def _rarest_class(classes: RowNumbers, group: RowNumbers, weight: Floats) -> RowNumbers:
    """Return the rarest class in each group, (groups,). Stratified by it, rare classes are on both sides of a split."""
    order = np.argsort(np.bincount(classes, weight), kind="stable")
    rank = np.full(group.max() + 1, len(order))
    np.minimum.at(rank, group, np.argsort(order)[classes])
    return order[rank]


def _rarest_label(labels: NDArray[Any], weight: Floats) -> RowNumbers:
    """Return the rarest label of each row, (rows,), or the number of labels for a row without any.

    Stratified by it, each of several labels nearly keeps its share, as in Sechidis, Tsoumakas and Vlahavas (2011).
    """
    has_label = labels.astype(bool)
    [rows] = workers().sum(np.count_nonzero(has_label[weight > 0], axis=0).astype(np.float64))
    order = np.argsort(rows, kind="stable")
    first = np.column_stack([has_label[:, order], np.ones(len(labels), bool)]).argmax(axis=1)
    return np.append(order, len(order))[first]


def _by_hash(
    request: Request, table: Table, counted: RowNumbers, strata: NDArray[Any] | None, n_rows: int, seed: int
) -> RowNumbers:
    """Return the numbers of the rows whose hash is small. Each worker computes the hashes of its own rows.

    Repeated rows have the same hash and stay together. The draw does not depend on how the workers divide the table.
    """
    n_held = min(_n_held(request, n_rows), MAX_HELD_OF_WORKERS)
    hashes = hashes_of(table.X if len(counted) == len(table.X) else table.X[counted], seed)
    held = hashes < np.uint64(n_held / n_rows * 2.0**64)
    group = workers()
    if strata is not None:  # a class without training rows is not held out
        train_classes = np.concatenate(group.gather(np.unique(strata[counted[~held]])))
        held &= np.isin(strata[counted], train_classes)
    n_held_out = int(group.sum(float(held.sum()))[0])
    if not 0 < n_held_out < n_rows:
        raise ValueError(
            f"validation={_shown(request.validation)} would hold out {n_held_out} of {n_rows} rows: pass an eval_set."
        )
    return counted[held]


def _from_validation(request: Request, y: NDArray[Any]) -> tuple[RowNumbers, RowNumbers]:
    """Return training and held-out rows: the last split of a splitter, or the two sets of a pair."""
    validation, passed = request.validation, request.arguments
    splits = list(validation.split(passed.X, y, passed.groups)) if is_splitter(validation) else [validation]
    if not splits:
        raise ValueError(f"validation={validation!r} yields no split: give a splitter with at least one.")
    train, held = (_rows_of(part, len(y)) for part in splits[-1])
    both = np.intersect1d(train, held)
    if len(both):
        raise ValueError(f"validation holds row {both[0]} on both sides: training and held-out rows must differ.")
    return train, held


def _rows_of(part: ArrayLike, n_rows: int) -> RowNumbers:
    """Return the row numbers in a list or mask, in ascending order."""
    rows = np.asarray(part)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows) or rows.min() < 0 or rows.max() >= n_rows:
        raise ValueError(
            f"validation holds {part!r}: give row numbers from 0 to {n_rows - 1}, or a mask of {n_rows} bools."
        )
    return np.unique(rows).astype(np.intp)


def _check_sides(
    validation: object, train: RowNumbers, held: RowNumbers, weight: Floats, strata: NDArray[Any] | None
) -> None:
    """Raise ValueError if a side has no weight, or training rows lack a class; random draws never do."""
    for rows in (train, held):
        if not weight[rows].any():
            raise ValueError(f"validation={_shown(validation)}: all rows of one side have weight 0: give it others.")
    if strata is not None and strata.ndim == 1:
        missing = np.setdiff1d(strata[held[weight[held] > 0]], strata[train[weight[train] > 0]])
        if len(missing):
            raise ValueError(
                f"validation={_shown(validation)} leaves no training row of the classes {missing.tolist()!r}: hold out "
                "other rows, or pass an eval_set."
            )
