"""Held-out rows: training rows that are given away for early stopping, and to choose the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Table
from boostbp.ensemble.quality_levels import LEVELS
from boostbp.estimators.parameter_use import Way, way_of
from boostbp.inputs.repeats import distinct_rows, hashes_of, number_values
from boostbp.inputs.rows import Rows
from boostbp.inputs.targets import read_groups
from boostbp.network.eval_sets import EvalSet
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import SAMPLE, training_in, workers

RowNumbers = NDArray[np.intp]
# Of early_stopping="auto": below so many rows none are given away, and so many at least are given away, or a quarter.
MIN_ROWS, MIN_HELD = 36, 50
# Of early_stopping="auto" and the default share: of so many rows or more, so many at most are given away. What is
# chosen by them differs by less than the choice is worth, and the others teach.
LARGE_N, MAX_HELD = 50_000, 20_000
MAX_HELD_BY_WORKERS = 1_000_000  # of the rows of several workers: each of them holds all that are given away
SHARE = 0.1  # of the rows, where `validation` does not say how many


Drawing = tuple[Rows, list[EvalSet]]  # rows to learn from, and the evaluation sets


def hold_out_others(
    estimator: Any, rows: Rows, strata: Any, *, groups: Any = None, sets: Sequence[EvalSet]
) -> list[Callable[[], Drawing]]:
    """Return functions that hold out other rows, for further members of an average, if rows are drawn at random.

    `sets` are the evaluation sets of the first member.
    """
    drawn = isinstance(estimator.validation, Real) and len(sets) == 1 and sets[0].from_training
    if not drawn or checks.one_of("deep", estimator.deep, ("auto", True, False)) is True:
        return []
    members = LEVELS[checks.one_of("quality", estimator.quality, tuple(LEVELS))].most_members
    draw = training_in(rows.group)(partial(hold_out, estimator, rows, strata, groups=groups))
    return [partial(draw, number=number) for number in range(1, members)]


def hold_out(estimator: Any, rows: Rows, strata: Any, *, groups: Any = None, X: Any = None, number: int = 0) -> Drawing:
    """Hold some rows out, if the estimator's `early_stopping` wants it and there are enough.

    Return the others and the one evaluation set, or all rows and no set. Raises ValueError if `validation`, which says
    which rows or how many, or `groups` cannot be used, or leave no row to learn from.

    Parameters
    ----------
    rows : Rows
        All rows. Those of weight 0 are neither counted nor drawn at random.
    strata : (rows,) array or None
        Classes: each keeps its share, and at least one row to learn from.
    groups : array-like, (rows,), optional
        Rows of a group stay on one side; without it, rows that are repeated do (`boostbp.inputs.repeats`).
    X : object
        The input as the user passed it, for a splitter.
    number : int
        Other rows are drawn for each.
    """
    stopping = checks.one_of("early_stopping", estimator.early_stopping, (True, False, "auto"))
    validation = check_validation(estimator.validation)
    table, y, weight = rows.table, rows.y, rows.weight
    names = None if groups is None else read_groups(groups, len(y))
    if not stopping or (checks.whole("epochs", estimator.epochs, 0) == 0 and way_of(estimator) is Way.NETWORK):
        return rows, []
    if names is not None and not isinstance(validation, float) and not _splits(validation):
        raise ValueError(
            f"groups with validation={_said(validation)} is not supported: use a share of the groups, such as "
            "validation=0.1, or a splitter that takes groups."
        )
    fewest = MIN_ROWS if stopping == "auto" else 0
    if isinstance(validation, float):
        held = at_random(estimator, table, weight, strata, names, fewest, number)
    elif isinstance(validation, str):
        held = _last(estimator, np.flatnonzero(weight > 0), fewest)
    else:
        target = y[:, 0] if y.shape[1] == 1 else y
        train, held = _asked_for(validation, X, target if strata is None else strata, groups, len(y))
    if not workers().sum(len(held))[0]:
        return rows, []
    if isinstance(validation, str | float):
        train = np.setdiff1d(np.arange(len(y)), held)
    if not isinstance(validation, float):
        _check_sides(validation, train, held, weight, strata)
    return rows.take(train), [EvalSet("held_out", rows.take(held).gathered(), from_training=True)]


def check_validation(validation: Any) -> Any:
    """Return the parameter `validation`, if it is a share, a word, a splitter, or two sets of rows."""
    if isinstance(validation, Real) and not isinstance(validation, bool):
        return checks.between("validation", validation, 0, 1)
    if isinstance(validation, str):
        return checks.one_of("validation", validation, ("last",))
    if not _splits(validation) and not (isinstance(validation, (tuple, list)) and len(validation) == 2):
        raise ValueError(
            f"validation={checks.shown(validation)} is not known: use a share of the rows, such as 0.1, 'last', a "
            "splitter with split(X, y, groups), such as GroupShuffleSplit(), or a pair (rows to learn from, rows to "
            "hold out)."
        )
    return validation


def _splits(validation: Any) -> bool:
    """Whether it is a splitter; text has a method of that name, too."""
    return hasattr(validation, "split") and not isinstance(validation, (str, bytes))


def _said(validation: Any) -> str:
    """The parameter in a message, where rows would be too long."""
    return "(rows, rows)" if isinstance(validation, (tuple, list)) else repr(validation)


def _number_held(estimator: Any, count: int, what: str = "rows") -> int:
    """How many of so many rows, or groups of them, are given away."""
    stated = share = SHARE if isinstance(estimator.validation, str) else float(estimator.validation)
    if estimator.early_stopping == "auto":
        share = max(share, min(MIN_HELD / count, 0.25))
    n_held = int(np.ceil(share * count))
    if n_held >= count:
        raise ValueError(
            f"validation={estimator.validation!r} of {count} {what} leaves none to learn from: give a smaller share, "
            f"more {what}, or early_stopping=False."
        )
    few = stated == SHARE and estimator.early_stopping == "auto" and count >= LARGE_N
    return min(n_held, MAX_HELD) if few else n_held


def _last(estimator: Any, counted: RowNumbers, fewest: int) -> RowNumbers:
    """The last rows."""
    return counted[-_number_held(estimator, len(counted)) :] if len(counted) >= fewest else counted[:0]


def at_random(
    estimator: Any,
    table: Table,
    weight: Floats,
    strata: Any,
    groups: Any,
    fewest: int,
    number: int,
    number_held: Callable[[Any, int, str], int] = _number_held,
) -> RowNumbers:
    """RowNumbers of groups drawn at random; a group is one of the user's, or a row and what repeats it.

    All counts are of groups and weights, so that a weight of 2 is a row twice. Of fewer than `fewest` rows none are
    drawn; ``number_held(estimator, count, what)`` says how many of so many groups are. Of several workers, each gives
    what one machine would give of its rows; where these are many, by `_by_hash`.
    """
    counted = np.flatnonzero(weight > 0)
    together = workers().select_rows(counted)
    seeds = checks.random_state("random_state", estimator.random_state).randint(2**31 - 1, size=number + 1)
    seed = together.agree(int(seeds[-1]))
    here, n_rows = together.row_numbers(len(counted))
    if n_rows > SAMPLE and not together.is_single:
        return _by_hash(estimator, table, counted, strata, n_rows, seed)
    shares, *labels = together.allgather_rows(weight[counted], *([] if strata is None else [strata[counted]]))
    if groups is not None:
        group, what, enough = number_values(groups[counted]), "groups", n_rows >= fewest
    else:
        with training_in(together):
            group = distinct_rows(table if len(counted) == len(weight) else table.take(counted))
        what = "distinct rows"
        enough = group.max() + 1 >= fewest
    count = int(group.max()) + 1
    if count == 1 and groups is not None:
        raise ValueError("groups holds one group only: give at least two, or leave it out.")
    if not enough:
        return counted[:0]
    n_held = number_held(estimator, count, "rows" if count == n_rows else what)
    size: Floats = np.bincount(group, shares).astype(np.float64)
    if not labels:
        held = np.isin(group, _drawn(np.zeros(count), np.zeros(count, bool), size, n_held, seed))
        return counted[held[here]]
    classes = np.unique(labels[0], return_inverse=True)[1]
    held = np.isin(group, _drawn(_rarest(classes, group, shares), _irreplaceable(classes, group), size, n_held, seed))
    while len(lost := np.setdiff1d(classes[held], classes[~held])):
        held &= group != group[held & (classes == lost[0])][0]
    return counted[held[here]]


def _irreplaceable(classes: RowNumbers, group: RowNumbers) -> NDArray[np.bool_]:
    """Which groups, (groups,), have all rows of a class: no other would teach it."""
    n_classes = int(classes.max()) + 1
    of_group, of_class = np.divmod(np.unique(group * n_classes + classes), n_classes)
    alone = np.bincount(of_class)[of_class] == 1
    return np.bincount(of_group, alone) > 0


def _drawn(strata: NDArray[Any], stays: NDArray[np.bool_], size: Floats, n_held: int, seed: int) -> RowNumbers:
    """Some groups, by number, of strata in proportion if that can be.

    No more than half of all rows, if there is a choice; and a group that is the only one of its stratum stays, as do
    those of `stays`, (groups,).
    """
    from sklearn.model_selection import train_test_split  # brings a third of the package's time to import

    _, stratum, members = np.unique(strata, return_inverse=True, return_counts=True)
    groups = np.flatnonzero(((members[stratum] > 1) & ~stays) | (len(strata) == 1))
    n_held = min(n_held, len(groups) - 1)
    if n_held < 1:
        return groups[:0]
    cut = partial(train_test_split, groups, test_size=n_held, random_state=seed)
    try:
        held = cut(stratify=stratum[groups] if len(members) > 1 else None)[1]
    except ValueError:  # more strata than held-out groups, say
        held = cut()[1]
    held = held[np.argsort(size[held], kind="stable")]
    few = np.cumsum(size[held]) <= size.sum() / 2
    return held[few] if few.any() else groups[[np.argmin(size[groups])]]


def _rarest(classes: RowNumbers, group: RowNumbers, weight: Floats) -> RowNumbers:
    """The rarest class in each group, so that rare classes are on both sides."""
    order = np.argsort(np.bincount(classes, weight), kind="stable")
    rank = np.full(group.max() + 1, len(order))
    np.minimum.at(rank, group, np.argsort(order)[classes])
    return order[rank]


def _by_hash(estimator: Any, table: Table, counted: RowNumbers, strata: Any, n_rows: int, seed: int) -> RowNumbers:
    """Of very many rows of several workers, those whose hash is small, which only their worker need look at.

    RowNumbers that are repeated go together, and which go does not depend on how the workers share out the table.
    """
    n_held = min(_number_held(estimator, n_rows), MAX_HELD_BY_WORKERS)
    hashes = hashes_of(table.X if len(counted) == len(table.X) else table.X[counted], seed)
    held = hashes < np.uint64(n_held / n_rows * 2.0**64)
    group = workers()
    if strata is not None:  # a class of which no row is left to learn from
        kept = np.concatenate(group.gather(np.unique(strata[counted[~held]])))
        held &= np.isin(strata[counted], kept)
    n_given = int(group.sum(float(held.sum()))[0])
    if not 0 < n_given < n_rows:
        raise ValueError(
            f"validation={_said(estimator.validation)} would hold out {n_given} of {n_rows} rows, as most rows are "
            "repeated: pass an eval_set, or early_stopping=False."
        )
    return counted[held]


def _asked_for(validation: Any, X: Any, y: Any, groups: Any, n_rows: int) -> tuple[RowNumbers, RowNumbers]:
    """RowNumbers to learn from and to hold out, by the last split of a splitter, or as they are listed."""
    splits = list(validation.split(X, y, groups)) if _splits(validation) else [validation]
    if not splits:
        raise ValueError(f"validation={validation!r} gives no split.")
    train, held = (_rows_of(part, n_rows) for part in splits[-1])
    both = np.intersect1d(train, held)
    if len(both):
        raise ValueError(f"validation holds row {both[0]} on both sides: rows to learn from must not be held out.")
    return train, held


def _rows_of(part: Any, n_rows: int) -> RowNumbers:
    """RowNumbers by their numbers or by a mask, ascending."""
    rows = np.asarray(part)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows) or rows.min() < 0 or rows.max() >= n_rows:
        raise ValueError(
            f"validation holds {part!r}: give numbers of rows, 0 to {n_rows - 1}, at least one, or a mask of {n_rows} "
            "bools."
        )
    return np.unique(rows).astype(np.intp)


def _check_sides(validation: Any, train: RowNumbers, held: RowNumbers, weight: Floats, strata: Any) -> None:
    """Refuse sides that are of no use, which those at random never are."""
    for rows in (train, held):
        if not weight[rows].any():
            raise ValueError(
                f"validation={_said(validation)}: all rows of one side have weight 0. Give it rows with weight."
            )
    if strata is not None:
        lost = np.setdiff1d(strata[held[weight[held] > 0]], strata[train[weight[train] > 0]])
        if len(lost):
            raise ValueError(
                f"validation={_said(validation)} leaves no row to learn the classes {lost.tolist()!r} from: hold out "
                "other rows, or pass an eval_set."
            )
