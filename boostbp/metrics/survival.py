"""Harrell's concordance of risks with survival times, as in scikit-survival, with weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from boostbp.metrics.survival_curves import numbers_of_rows, read_events, weights_of_rows
from boostbp.runtime.arrays import Floats

Ranks = NDArray[np.intp]
TIED = 1e-8  # largest difference of tied risks, as in scikit-survival


def concordance_index(
    event: ArrayLike, time: ArrayLike, risk: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return Harrell's concordance index: the share of pairs in which the row of larger risk has the earlier event.

    A pair is comparable if the earlier row has an event; of equal times, one with an event is earlier than one without.
    A pair of tied risks counts one half. n rows take n log n steps. ValueError if no pair is comparable.

    Parameters
    ----------
    event, time : (rows,)
        Whether each row has an event, and its time.
    risk : (rows,)
        Predicted risks, the larger the earlier the event.
    sample_weight : (rows,)
        Weights of the rows; a pair has the product of theirs, so a row of weight 2 counts as two rows.
    """
    events, times, risks = read_events(event, "event"), numbers_of_rows(time, "time"), numbers_of_rows(risk, "risk")
    weight = weights_of_rows(sample_weight, len(times))
    check_consistent_length(events, times, risks)
    order = np.lexsort((~events, times))  # at the same time, events are earlier
    events, times, risks, weight = events[order], times[order], risks[order], weight[order]
    rows = np.flatnonzero(events)
    # Rows from `start` on are comparable with a row: later ones, and those without an event at its time.
    first, end = (np.searchsorted(times, times[rows], side) for side in ("left", "right"))
    start = first + np.diff(np.append(0, np.cumsum(events))[[first, end]], axis=0)[0]
    levels, rank = np.unique(risks, return_inverse=True)
    limits = np.concatenate([bound[rank[rows]] for bound in _tied_ranks(levels)])
    below, not_above = np.split(_sums_below(rank, weight, np.tile(start, 2), limits), 2)
    until = np.append(0, np.cumsum(weight))
    if not (total := weight[rows] @ (until[-1] - until[start])) > 0:
        raise ValueError("no two rows are comparable: an event with a weight, and a later row, are needed.")
    return float(weight[rows] @ (below + (not_above - below) / 2) / total)


def _tied_ranks(levels: Floats) -> tuple[Ranks, Ranks]:
    """Return the first level that is tied with each level, and the first above all that are."""
    low = np.searchsorted(levels, levels - TIED)
    # What counts is the difference of two levels. That above is rounded, and may be one level away.
    low -= (low > 0) & (levels - levels[low - 1] <= TIED)
    low += levels - levels[low] > TIED
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
