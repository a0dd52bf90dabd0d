"""Metrics of survival times, with the names, arguments and values of scikit-survival.

Outcomes are as in `survival_curves`. Estimates are risks, the larger the earlier the event, except for Brier scores,
which take probabilities of survival. A row of weight 2 counts as two rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length

from boostbp.metrics.survival_curves import (
    Bools,
    event_and_time,
    kaplan_meier_estimator,
    numbers_of_rows,
    read_events,
    survival_at,
    weights_of_rows,
)
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
        Predicted risks.
    tied_tol : float
        Largest difference of tied risks.
    sample_weight : (rows,)
        Weights of the rows; a pair has the product of theirs.
    """
    event, time = read_events(event_indicator, "event_indicator"), numbers_of_rows(event_time, "event_time")
    return _concordance(event, time, estimate, np.ones(len(time)), weights_of_rows(sample_weight, len(time)), tied_tol)


def concordance_index_ipcw(
    survival_train: ArrayLike,
    survival_test: ArrayLike,
    estimate: ArrayLike,
    tau: float | None = None,
    tied_tol: float = 1e-8,
    *,
    sample_weight: ArrayLike | None = None,
) -> Concordance:
    """Return Uno's concordance index, which does not depend on the distribution of censoring.

    Each pair is weighted by the inverse square of the probability that the earlier row is still uncensored. The numbers
    of pairs are without these weights, as in scikit-survival.

    Parameters
    ----------
    survival_train, survival_test : structured array, or (rows, 2)
        Outcomes that estimate the distribution of censoring, and those that are compared.
    estimate : (rows,)
        Predicted risks of the latter.
    tau : float
        Pairs count whose event is before `tau`; None: all. Needed where events are later than all training times.
    tied_tol : float
        Largest difference of tied risks.
    sample_weight : (rows,)
        Weights of the compared rows; a pair has the product of theirs.
    """
    event, time = event_and_time(survival_test, "survival_test")
    weight = weights_of_rows(sample_weight, len(time))
    counted = event & (weight > 0) & (time < (np.inf if tau is None else tau))
    uncensored = _inverse_probabilities(survival_train, time, counted)
    return _concordance(event, time, estimate, uncensored**2, weight, tied_tol)


def brier_score(
    survival_train: ArrayLike,
    survival_test: ArrayLike,
    estimate: ArrayLike,
    times: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Return the distinct times, and at each the squared error of probabilities of survival, weighted for censoring.

    Parameters
    ----------
    survival_train, survival_test : structured array, or (rows, 2)
        Outcomes that estimate the distribution of censoring, and those that are predicted.
    estimate : (rows, times)
        Predicted probabilities of survival of the latter; one time may have (rows,).
    times : (times,)
        Times of the columns, from the first test time to before the last.
    sample_weight : (rows,)
        Weights of the predicted rows.
    """
    estimate = np.atleast_2d(np.transpose(estimate)).T
    _, time, weight, counted, survival, points = _at_times(survival_test, estimate, times, sample_weight)
    uncensored = _inverse_probabilities(survival_train, time, counted, zero_allowed=True)
    at = _inverse_probabilities(survival_train, points, np.full(len(points), True), zero_allowed=True)
    # of rows that are censored before, and so unknown, `uncensored` is 0
    columns = zip(points, survival.T, at, strict=True)
    errors = (np.where(time <= t, p**2 * uncensored, (1.0 - p) ** 2 * inverse) for t, p, inverse in columns)
    return points, np.array([np.average(error, weights=weight) for error in errors])


def integrated_brier_score(
    survival_train: ArrayLike,
    survival_test: ArrayLike,
    estimate: ArrayLike,
    times: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean of `brier_score`, which has the parameters, over the time from the first to the last of `times`.

    Between times the score is linear.
    """
    points, scores = brier_score(survival_train, survival_test, estimate, times, sample_weight=sample_weight)
    if len(points) < 2:
        raise ValueError("times holds 1 time, and an integral needs 2 or more: use brier_score.")
    return float(np.trapezoid(scores, points) / (points[-1] - points[0]))


def cumulative_dynamic_auc(
    survival_train: ArrayLike,
    survival_test: ArrayLike,
    estimate: ArrayLike,
    times: ArrayLike,
    tied_tol: float = 1e-8,
    *,
    sample_weight: ArrayLike | None = None,
) -> tuple[Floats, float]:
    """Return the AUC at each time, of rows with an event until then against later rows, and the mean AUC.

    Events are weighted by the inverse probability of being uncensored. The AUC is NaN at a time before the first event.
    The mean is weighted by the decrease of the Kaplan-Meier estimate of the test rows.

    Parameters
    ----------
    survival_train, survival_test : structured array, or (rows, 2)
        Outcomes that estimate the distribution of censoring, and those that are predicted.
    estimate : (rows,) or (rows, times)
        Predicted risks of the latter, for all times or for each.
    times : (times,)
        Distinct times, from the first test time to before the last.
    tied_tol : float
        Largest difference of neighbouring risks that are tied.
    sample_weight : (rows,)
        Weights of the predicted rows.
    """
    event, time, weight, counted, risk, points = _at_times(survival_test, estimate, times, sample_weight)
    case = weight * _inverse_probabilities(survival_train, time, counted)
    of_all = _tied_groups(risk, tied_tol) if risk.ndim == 1 else None
    auc = np.empty(len(points))
    for k, t in enumerate(points):
        rank = _tied_groups(risk[:, k], tied_tol) if of_all is None else of_all
        # scikit-learn's roc_auc_score would sort the rows again for each time
        cases = np.bincount(rank, np.where(time <= t, case, 0.0))
        controls = np.bincount(rank, np.where(time > t, weight, 0))
        total = cases.sum() * controls.sum()
        auc[k] = cases @ (np.cumsum(controls) - controls / 2) / total if total > 0 else np.nan
    if len(points) == 1:
        return auc, float(auc[0])
    decrease = -np.diff(survival_at(kaplan_meier_estimator(event, time, sample_weight=weight), points), prepend=1.0)
    return auc, float(np.nansum(auc * decrease) / decrease.sum()) if decrease.any() else np.nan


def _concordance(
    event: Bools, time: Floats, estimate: ArrayLike, of_event: Floats, weight: NDArray[Any], tied_tol: float
) -> Concordance:
    """Return the concordance where pairs have the weight `of_event` of the row with the event, (rows,)."""
    risk = numbers_of_rows(estimate, "estimate")
    check_consistent_length(event, time, risk)
    order = np.lexsort((~event, time))  # at the same time, events are earlier
    event, time, risk, of_event, weight = event[order], time[order], risk[order], of_event[order], weight[order]
    rows = np.flatnonzero(event)
    # Rows from `start` on are comparable with a row, and those until `end` have its time.
    first, end = (np.searchsorted(time, time[rows], side) for side in ("left", "right"))
    start = first + np.diff(np.append(0, np.cumsum(event))[[first, end]], axis=0)[0]
    levels, rank = np.unique(risk, return_inverse=True)
    limits = np.concatenate([bound[rank[rows]] for bound in _tied_ranks(levels, tied_tol)])
    below, not_above = np.split(_sums_below(rank, weight, np.tile(start, 2), limits), 2)
    until = np.append(0, np.cumsum(weight))
    comparable, tied, own_weight = until[-1] - until[start], not_above - below, weight[rows]
    of_pairs = of_event[rows] * own_weight
    if not (total := of_pairs @ comparable) > 0:
        raise ValueError("no two rows are comparable: an event with a weight, and a later row, are needed.")
    cindex = of_pairs @ (below + tied / 2) / total
    counted = below, comparable - not_above, tied, until[end] - until[start]
    return Concordance(float(cindex), *((own_weight @ weights).item() for weights in counted))


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


def _tied_groups(risk: Floats, tied_tol: float) -> Ranks:
    """Return the rank of each row among groups of tied risks; neighbours in the order of risks are tied."""
    order = np.argsort(risk)
    rank = np.empty(len(risk), np.intp)
    rank[order] = np.append(0, np.cumsum(np.diff(risk[order]) > tied_tol))
    return rank


def _inverse_probabilities(train: Any, time: Floats, counted: Bools, *, zero_allowed: bool = False) -> Floats:
    """Return 1 / P(uncensored at its time) of the counted rows, and 0 of others, or where the probability is 0."""
    event, time_exit = event_and_time(train, "survival_train")
    probability = np.zeros(len(time))
    probability[counted] = survival_at(kaplan_meier_estimator(event, time_exit, reverse=True), time[counted])
    if not (zero_allowed or probability[counted].all()):
        raise ValueError("survival_train has no rows as late as some events: lower tau, or the largest of times.")
    return np.divide(1.0, probability, out=probability, where=probability > 0)


def _at_times(
    test: ArrayLike, estimate: ArrayLike, times: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Bools, Floats, NDArray[Any], Bools, Floats, Floats]:
    """Return events, times and weights of the test rows, and which of them have a weight and an event until then.

    Also the estimate, (rows,) or (rows, times), and its times, ascending and distinct.
    """
    event, time = event_and_time(test, "survival_test")
    values = check_array(estimate, ensure_2d=False, dtype=np.float64, input_name="estimate")
    points, column = np.unique(numbers_of_rows(np.atleast_1d(times), "times"), return_index=True)
    check_consistent_length(time, values)
    if points[0] < time.min() or points[-1] >= time.max():
        raise ValueError(f"times must be from {time.min():g} to below {time.max():g}, the test times.")
    if values.ndim > 1:
        if values.shape[1] != np.size(times):
            wrong = f"estimate has {values.shape[1]} columns, and times are {np.size(times)}"
            raise ValueError(f"{wrong}: give a column for each time.")
        values = values[:, column]
    weight = weights_of_rows(sample_weight, len(time))
    return event, time, weight, event & (weight > 0) & (time <= points[-1]), values, points
