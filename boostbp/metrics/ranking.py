"""Metrics of rankings: NDCG and mean average precision.

Rows of a query are ordered by score. The value of tied rows is the mean over their orders, as in scikit-learn's
`ndcg_score`; LightGBM and XGBoost leave them in the order of the file, and without ties the values are theirs. A query
without a relevant row counts 1, in LightGBM and XGBoost; XGBoost's names with a minus, such as ``ndcg@5-``, and
`ndcg_score` count 0, which is ``without_relevant=0.0`` here. XGBoost's ``ndcg`` and ``map`` without a number are those
at 32. LightGBM with weights gives such queries the weight 1 in NDCG, and here they keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from boostbp.losses.query_losses import (
    LARGEST_GRADE,
    checked_gains,
    equal_neighbours,
    gains_of,
    lacks_gain,
    mean_of_equal,
)
from boostbp.metrics.survival_curves import numbers_of_rows, weights_of_rows
from boostbp.runtime.arrays import Floats
from boostbp.runtime.checks import whole

Places = NDArray[np.intp]


def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    group: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    k: int | None = None,
    label_gain: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    without_relevant: float = 1.0,
    per_query: bool = False,
) -> Any:
    """Return the mean over queries of the normalised discounted cumulative gain, or the values of all queries.

    The gain of the row at position 1, 2, ... is divided by ``log2(1 + position)``. The sum over the first `k` rows is
    divided by the same of the rows ordered by grade.

    Parameters
    ----------
    y_true : (rows,)
        Grades: whole numbers from 0; see `label_gain`.
    y_score : (rows,)
        Predicted scores, the largest first.
    group : (queries,)
        Numbers of rows of the queries, whose rows are together; or else `qid`.
    qid : (rows,)
        Query of each row; rows of a query are together.
    k : int
        Number of first rows that count; None: all.
    label_gain : (grades,) or "relevance"
        Gain of each grade, ascending; None: ``2**grade - 1``. ``"relevance"``: `y_true` holds any numbers, and the gain
        is their distance from the least relevant row of the query.
    sample_weight : (rows,)
        Weights. The weight of a query in the mean is the mean of its rows, as in LightGBM.
    without_relevant : float
        Value for a query without gain.
    per_query : bool
        Whether to return the value of each query, (queries,), instead of the mean.
    """
    grade, score, bounds, query, position = _rows(y_true, y_score, group, qid)
    gains = checked_gains(label_gain)
    if lacks_gain(grade, gains).any():
        largest = LARGEST_GRADE if gains is None else len(gains) - 1
        raise ValueError(f"y_true must hold whole grades from 0 to {largest}: label_gain sets gains of others.")
    gain = gains_of(grade, gains, bounds)
    discount = (position < _first_rows(k)) / np.log2(position + 2.0)
    order = np.lexsort((gain, -score, query))
    tied = mean_of_equal(gain[order], equal_neighbours(query, score[order]))
    found, ideal = (np.bincount(query, ordered * discount) for ordered in (tied, gain[np.lexsort((-gain, query))]))
    return _of_queries(found, ideal, bounds, sample_weight, without_relevant, per_query)


def mean_average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    group: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    k: int | None = None,
    sample_weight: ArrayLike | None = None,
    without_relevant: float = 1.0,
    per_query: bool = False,
) -> Any:
    """Return the mean over queries of the average precision, or the values of all queries, with parameters of `ndcg`.

    The precisions at the relevant rows among the first `k`, those of a grade above 0.5, are summed and divided by the
    number of relevant rows, or by `k` if it is smaller. XGBoost takes grades 0 and 1 only.
    """
    grade, score, bounds, query, position = _rows(y_true, y_score, group, qid)
    order = np.lexsort((-score, query))
    relevant = (grade > 0.5)[order]
    tie = equal_neighbours(query, score[order])
    share, size, first = mean_of_equal(relevant, tie), np.bincount(tie)[tie], np.searchsorted(tie, tie)
    # Mean number of relevant rows of the query up to a relevant one: before its ties, itself, and of those before it.
    until = np.append(0, np.cumsum(relevant))
    others = (share * size - 1.0) / np.maximum(size - 1, 1)
    count = until[first] - until[bounds[:-1]][query] + 1.0 + (np.arange(len(tie)) - first) * others
    sums = np.bincount(query, share * count / (position + 1) * (position < _first_rows(k)))
    n_relevant = np.minimum(np.diff(until[bounds]), _first_rows(k))
    return _of_queries(sums, n_relevant, bounds, sample_weight, without_relevant, per_query)


def by_query(function: Callable[..., float], prediction: Floats, y: Floats, weight: Floats) -> float:
    """Return a metric of scores, (rows, 1), for a target of relevance and query, (rows, 2), in any order of rows."""
    order = np.argsort(y[:, 1], kind="stable")
    relevance, query = y[order].T
    return function(relevance, prediction[order, 0], qid=query, sample_weight=weight[order])


def query_bounds(n_rows: int, group: ArrayLike | None = None, qid: ArrayLike | None = None) -> Places:
    """Return the first row of each query, and the number of rows, (queries + 1,), from sizes of queries or their ids.

    Raises ValueError if neither or both are given, sizes do not sum to the rows, or rows of a query are not together.
    """
    if (group is None) == (qid is None):
        raise ValueError("give either group, the sizes of the queries, or qid, the query of each row.")
    if group is not None:
        sizes = np.asarray(group)
        if sizes.ndim != 1 or not (sizes >= 1).all() or (sizes % 1 != 0).any() or sizes.sum() != n_rows:
            raise ValueError(f"group must hold sizes of queries, of 1 or more rows, that sum to {n_rows}.")
        return np.append(0, np.cumsum(sizes.astype(np.intp)))
    ids = np.asarray(qid)
    if ids.shape != (n_rows,):
        raise ValueError(f"qid has shape {ids.shape}: give the query of each row, ({n_rows},).")
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    if len(np.unique(ids)) != len(starts):
        raise ValueError("qid has a query whose rows are not together: sort the rows by it.")
    return np.append(starts, n_rows)


def _rows(
    y_true: ArrayLike, y_score: ArrayLike, group: ArrayLike | None, qid: ArrayLike | None
) -> tuple[Floats, Floats, Places, Places, Places]:
    """Return grades, scores and bounds of the queries, and query and position of each place of the ordered rows."""
    grade, score = numbers_of_rows(np.ravel(y_true), "y_true"), numbers_of_rows(np.ravel(y_score), "y_score")
    check_consistent_length(grade, score)
    bounds = query_bounds(len(grade), group, qid)
    query = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return grade, score, bounds, query, np.arange(len(grade)) - bounds[query]


def _first_rows(k: int | None) -> float:
    return np.inf if k is None else whole("k", k, 1)


def _of_queries(
    sums: NDArray[Any], best: NDArray[Any], bounds: Places, weight: ArrayLike | None, without: float, per_query: bool
) -> Any:
    """Return the sums as shares of the best ones, `without` where these are 0; or their weighted mean."""
    values = np.divide(sums, best, out=np.full(len(sums), float(without)), where=best > 0)
    if per_query:
        return values
    of_queries = np.add.reduceat(weights_of_rows(weight, bounds[-1]), bounds[:-1]) / np.diff(bounds)
    return float(np.average(values, weights=of_queries))
