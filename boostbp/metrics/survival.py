"""Concordance of risks with survival times, with the name, arguments and values of scikit-survival, and weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from boostbp.metrics.survival_curves import numbers_of_rows, read_events, weights_of_rows
from boostbp.runtime.arrays import Floats

Ranks = NDArray[np.intp]


class Concordance(NamedTuple):
    """The concordance index, and the numbers of pairs that it counts; with weights, sums of products of weights."""

    cindex: float
    concordant: float
    discordant: float
    tied_risk: float
    tied_time: float


def concordance_index_censored(
    event_indicator: ArrayLike,
    event_time: ArrayLike,
    estimate: ArrayLike,
    tied_tol: float = 1e-8,
    *,
    sample_weight: ArrayLike | None = None,
) -> Concordance:
    """Return Harrell's concordance index: the share of pairs in which the row of larger risk has the earlier event.

    A pair is comparable if the earlier row has an event; of equal times, one with an event is earlier than one without.
    A pair of tied risks counts one half. n rows take n log n steps. ValueError if no pair is comparable.

    Parameters
    ----------
    event_indicator, event_time : (rows,)
        Whether each row has an event, and its time.
    estimate : (rows,)
        Predicted risks, the larger the earlier the event.
    tied_tol : float
        Largest difference of tied risks.
    sample_weight : (rows,)
        Weights of the rows; a pair has the product of theirs, so a row of weight 2 counts as two rows.
    """
    event, time = read_events(event_indicator, "event_indicator"), numbers_of_rows(event_time, "event_time")
    risk, weight = numbers_of_rows(estimate, "estimate"), weights_of_rows(sample_weight, len(time))
    check_consistent_length(event, time, risk)
    order = np.lexsort((~event, time))  # at the same time, events are earlier
    event, time, risk, weight = event[order], time[order], risk[order], weight[order]
    rows = np.flatnonzero(event)
    # Rows from `start` on are comparable with a row, and those until `end` have its time.
    first, end = (np.searchsorted(time, time[rows], side) for side in ("left", "right"))
    start = first + np.diff(np.append(0, np.cumsum(event))[[first, end]], axis=0)[0]
    levels, rank = np.unique(risk, return_inverse=True)
    limits = np.concatenate([bound[rank[rows]] for bound in _tied_ranks(levels, tied_tol)])
    below, not_above = np.split(_sums_below(rank, weight, np.tile(start, 2), limits), 2)
    until = np.append(0, np.cumsum(weight))
    comparable, tied, event_weight = until[-1] - until[start], not_above - below, weight[rows]
    if not (total := event_weight @ comparable) > 0:
        raise ValueError("no two rows are comparable: an event with a weight, and a later row, are needed.")
    cindex = event_weight @ (below + tied / 2) / total
    counted = below, comparable - not_above, tied, until[end] - until[start]
    return Concordance(float(cindex), *((event_weight @ weights).item() for weights in counted))


def _tied_ranks(levels: Floats, tied_tol: float) -> tuple[Ranks, Ranks]:
    """Return the first level that is tied with each level, and the first above all that are."""
    low = np.searchsorted(levels, levels - tied_tol)
    # What counts is the difference of two levels. That above is rounded, and may be one level away.
    low -= (low > 0) & (levels - levels[low - 1] <= tied_tol)
    low += levels - levels[low] > tied_tol
    return low, np.searchsorted(low, np.arange(len(levels)), side="right")


def _sums_below(rank: Ranks, weight: NDArray[Any], start: Ranks, limit: Ranks) -> NDArray[Any]:
    """Return for each query the sum of the weights of rows from `start` on whose rank is below `limit`.

    A wavelet matrix: rows are parted by one bit of their rank after another, from the highest, and queries follow.
    """
    end, sums = np.full(len(start), len(rank)), np.zeros(len(start), weight.dtype)
    for bit in reversed(range(int(max(rank.max(), limit.max(initial=0))).bit_length())):
        is_low, goes_high = (rank >> bit) & 1 == 0, (limit >> bit) & 1 == 1
        n_low, low_weight = (np.append(0, np.cumsum(values)) for values in (is_low, weight * is_low))
        sums += np.where(goes_high, low_weight[end] - low_weight[start], 0)
        start, end = (np.where(goes_high, n_low[-1] + at - n_low[at], n_low[at]) for at in (start, end))
        order = np.argsort(~is_low, kind="stable")
        rank, weight = rank[order], weight[order]
    return sums
