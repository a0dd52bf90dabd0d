"""Losses of rankings: the rows of a query are ordered by their scores, the raw outputs.

The target has two columns, the relevance of a row and the number of its query. Queries without two different grades
have no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.losses.base import LEAST_HESSIAN, Task, refuse
from boostbp.losses.joint import JointLoss
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers

LARGEST_GRADE = 30  # with LightGBM's gains, 2^grade - 1
LARGEST_GAIN = 1e100  # and the inverse of the smallest: sums and quotients then fit float64
Gains: TypeAlias = "tuple[float, ...] | Literal['relevance'] | None"
# Value, gradient and hessian of scores, (rows,) each, in the order of `Queries`.
Derivatives = Callable[[Floats], Iterable[Floats]]


class Queries(NamedTuple):
    """The queries of some rows. Arrays are in the order of the queries, whose rows are together."""

    order: NDArray[np.intp]  # (rows,)
    bounds: NDArray[np.int64]  # (queries + 1,): first row of each query, and the number of rows
    number: NDArray[np.intp]  # (rows,): query of each row, from 0
    relevance: Floats  # (rows,)

    @classmethod
    def of(cls, y: Floats, *keys: Floats) -> Queries:
        """Return the queries of a target, (rows, 2); rows of a query are in the order of `keys`, the last one first."""
        order = np.lexsort((*keys, y[:, 1]))
        relevance, query = y[order].T
        starts = np.flatnonzero(np.append(True, query[1:] != query[:-1])[: len(query)])
        bounds = np.append(starts, len(query)).astype(np.int64)
        number = np.repeat(np.arange(len(starts)), np.diff(bounds))
        return cls(order, bounds, number, np.ascontiguousarray(relevance))

    def by_score(self, score: Floats) -> NDArray[np.intp]:
        """Return the places of the rows in the order of their scores within the queries; ties keep their order."""
        return np.lexsort((-score, self.number))


def equal_neighbours(*columns: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of each row among groups of neighbouring rows that are equal in all columns, (rows,)."""
    differs = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.cumsum(np.append(False, differs)[: len(columns[0])])


def mean_of_equal(values: NDArray[Any], number: NDArray[np.intp]) -> Floats:
    """Return the mean of the group of each row, (rows,), by the numbers of the groups."""
    return (np.bincount(number, values) / np.bincount(number))[number]


def checked_gains(gains: Any) -> Gains:
    """Return `label_gain`; raise ValueError unless it is None, "relevance", or has ascending gains of the grades."""
    if gains is None or (isinstance(gains, str) and gains == "relevance"):
        return None if gains is None else "relevance"
    try:
        numbers = np.asarray(gains, float)
        are_gains = (numbers == 0) | ((numbers >= 1 / LARGEST_GAIN) & (numbers <= LARGEST_GAIN))
        usable = numbers.ndim == 1 and len(numbers) > 0 and are_gains.all() and (np.diff(numbers) >= 0).all()
    except (TypeError, ValueError):  # text, or rows of different lengths
        usable = False
    if not usable:
        cure = 'the gain of each grade, 0 or from 1e-100 to 1e100, none below that of a lower grade; or "relevance"'
        raise checks.not_allowed("label_gain", gains, cure)
    return tuple(numbers.tolist())


def lacks_gain(relevance: Floats, gains: Gains) -> NDArray[np.bool_]:
    """Return which relevance is no grade that has a gain."""
    largest = np.inf if gains == "relevance" else LARGEST_GRADE if gains is None else len(gains) - 1
    return (gains != "relevance") & ~((relevance >= 0) & (relevance <= largest) & (relevance % 1 == 0))


def gains_of(relevance: Floats, gains: Gains, bounds: NDArray[Any]) -> Floats:
    """Return the gain of each row, (rows,), where `bounds` has the first row of each query, and the number of rows."""
    if gains is None:
        return np.exp2(relevance) - 1.0
    if isinstance(gains, str):
        return relevance - np.repeat(np.minimum.reduceat(relevance, bounds[:-1]), np.diff(bounds))
    return np.asarray(gains, float)[relevance.astype(np.intp)]


@dataclass(frozen=True)
class _Ranking(JointLoss):
    """Members of all losses; subclasses compute the derivatives."""

    label_gain: Gains = None
    columns: ClassVar[tuple[str, ...]] = ("relevance", "query")
    task: ClassVar[Task] = "ranking"
    joint: ClassVar[Literal["groups"]] = "groups"
    default_metric: ClassVar[str] = "ndcg@10"
    needs_gains: ClassVar[bool] = True
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "label_gain", checked_gains(self.label_gain))

    def prepare(self, y: Floats, weight: Floats) -> JointLoss:
        """Return the loss of rows with this target; weights are the same in a query."""
        queries = Queries.of(y)
        return _OfQueries(queries.order, self._derivatives(queries))

    def _derivatives(self, queries: Queries) -> Derivatives:
        raise NotImplementedError

    def _learnt(self, queries: Queries) -> Floats:
        """Return what orders the rows, (rows,): their gains."""
        return gains_of(queries.relevance, self.label_gain, queries.bounds)

    def check(self, y: Floats) -> None:
        """Refuse relevance other than the grades 0, 1, 2, ... that have a gain, and queries without any order."""
        if self.needs_gains or self.label_gain is not None:
            largest = LARGEST_GRADE if self.label_gain is None else len(self.label_gain) - 1
            cure = f"relevance must be a whole number from 0 to {largest}; label_gain of the loss sets gains of others."
            refuse(y[:, :1], lacks_gain(y[:, :1], self.label_gain), cure)
        queries = Queries.of(y)
        learnt = self._learnt(queries)
        if not workers().max(float((np.diff(learnt) != 0)[np.diff(queries.number) == 0].any()))[0]:
            fault = f"y has no query with rows of different relevance in n_samples={len(y)}"
            raise ValueError(f"{fault}, so no order can be learnt: give other grades, or check group or qid.")


@dataclass(frozen=True, slots=True, eq=False)
class _OfQueries(JointLoss):
    """The loss of rows in the order of their queries."""

    order: NDArray[np.intp]  # (rows,)
    ordered: Derivatives

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        value, gradient, hessian = derivatives = [np.empty(len(h)) for _ in range(3)]
        for array, of_queries in zip(derivatives, self.ordered(h[self.order, 0]), strict=True):
            array[self.order] = of_queries
        return value, gradient[:, None], np.maximum(hessian, LEAST_HESSIAN)[:, None]


@dataclass(frozen=True)
class ListwiseRanking(_Ranking):
    """Cross-entropy of softmax shares: ``-sum_i p_i log softmax(h)_i`` over a query, ``p_i ~ gain_i + 1 - gamma``.

    This is XE-NDCG (Bruch 2021), LightGBM's ``rank_xendcg``, which draws `gamma` anew for each row and round from
    [0, 1]. Here it is the mean, 0.5, so that the loss is convex with an exact gradient.
    """

    gamma: float = 0.5
    name: ClassVar[str] = "rank_xendcg"
    aliases: ClassVar[tuple[str, ...]] = ("xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart")

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least("gamma", self.gamma, 0, 1)

    def _derivatives(self, queries: Queries) -> Derivatives:
        starts, relevance = queries.bounds[:-1], queries.relevance
        mass = self._learnt(queries) + 1.0 - self.gamma
        graded = np.maximum.reduceat(relevance, starts) > np.minimum.reduceat(relevance, starts)
        total = np.add.reduceat(mass, starts)
        target = mass * (graded / np.where(total > 0, total, 1.0))[queries.number]
        return partial(self._shares, queries, graded, target)

    def _shares(self, queries: Queries, graded: NDArray[Any], target: Floats, score: Floats) -> Iterable[Floats]:
        starts, number = queries.bounds[:-1], queries.number
        score = score - np.maximum.reduceat(score, starts)[number]
        power = np.exp(score)
        total = np.add.reduceat(power, starts)
        share = power * (graded / total)[number]
        return target * (np.log(total)[number] - score), share - target, share * (1.0 - share)


@dataclass(frozen=True)
class _Pairs(_Ranking):
    """Logistic loss of pairs of rows of which one is more relevant, by the compiled loops."""

    sigmoid: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least("sigmoid", self.sigmoid, 1 / checks.LARGEST_SCALE, checks.LARGEST_SCALE)


@dataclass(frozen=True)
class PairwiseRanking(_Pairs):
    """``log(1 + exp(-sigmoid (h_i - h_j)))`` summed over the pairs of a query with row i more relevant (RankNet).

    Pairs need only the order of the relevance, which may be any numbers; `label_gain` is for the NDCG. A query of up to
    twice `lambdarank_num_pair_per_sample` rows has all its pairs. In a longer one, each row is paired with that many
    rows of another relevance, evenly spaced in the order of relevance, and the pairs have weights, so that their sum is
    an estimate without bias of that over all pairs. XGBoost's parameter has this name.
    """

    lambdarank_num_pair_per_sample: int = 64
    name: ClassVar[str] = "rank:pairwise"
    aliases: ClassVar[tuple[str, ...]] = ("rank_pairwise", "pairlogit")
    needs_gains: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("lambdarank_num_pair_per_sample", self.lambdarank_num_pair_per_sample, 1, checks.LARGEST_INT)

    def _learnt(self, queries: Queries) -> Floats:
        return queries.relevance

    def _derivatives(self, queries: Queries) -> Derivatives:
        size, relevance = np.diff(queries.bounds), queries.relevance
        is_long = (size > 2 * self.lambdarank_num_pair_per_sample)[queries.number]
        # In long queries rows of one relevance are in a random order, as that of the file may tell something.
        drawn = np.random.default_rng(0).permutation(len(relevance))
        rank = np.empty(len(relevance))
        rank[np.lexsort((drawn, relevance))] = np.arange(len(relevance))
        return partial(self._of_pairs, queries, is_long, rank, int(size.max(initial=1)))

    def _of_pairs(
        self, queries: Queries, is_long: NDArray[np.bool_], rank: Floats, longest: int, score: Floats
    ) -> Floats:
        order = queries.by_score(np.where(is_long, -rank, score))
        space, derivatives = np.empty((3, longest)), np.empty((3, len(score)))
        ordered = score[order], queries.relevance[order]
        n_partners = int(self.lambdarank_num_pair_per_sample)
        core.pairs(queries.bounds, *ordered, n_partners, self.sigmoid, space, *derivatives)
        derivatives[:, order] = derivatives.copy()
        return derivatives


@dataclass(frozen=True)
class LambdaRank(_Pairs):
    """LightGBM's ``lambdarank`` (Burges 2010): pairs are weighted by the change of NDCG if their rows swapped places.

    The gradient is that of LightGBM, and its mean over the orders of tied rows, which LightGBM leaves in the order of
    the file. It is not the derivative of the value, 1 - NDCG at the truncation level, which is constant between changes
    of the order. A query has as many pairs as rows times the truncation level.
    """

    lambdarank_truncation_level: int = 30
    lambdarank_norm: bool = True
    name: ClassVar[str] = "lambdarank"
    aliases: ClassVar[tuple[str, ...]] = ("rank:ndcg", "rank_ndcg")
    exact_gradient: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("lambdarank_truncation_level", self.lambdarank_truncation_level, 1, checks.LARGEST_INT)
        checks.one_of("lambdarank_norm", self.lambdarank_norm, (True, False))

    def prepare(self, y: Floats, weight: Floats) -> JointLoss:
        """Return the loss of rows with this target; weights are the same in a query."""
        queries = Queries.of(y, y[:, 0])  # tied scores then keep the order of their gains
        return _OfQueries(queries.order, self._derivatives(queries))

    def _derivatives(self, queries: Queries) -> Derivatives:
        gain = self._learnt(queries)
        place = np.arange(len(gain)) - queries.bounds[queries.number]
        counted = place < self.lambdarank_truncation_level
        ideal = gain[queries.by_score(queries.relevance)] / np.log2(place + 2.0) * counted
        best = np.add.reduceat(ideal, queries.bounds[:-1])
        inverse = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)
        return partial(self._lambdas, queries, gain, inverse, _Places.of(place, counted))

    def _lambdas(
        self, queries: Queries, gain: Floats, inverse: Floats, places: _Places, score: Floats
    ) -> Iterable[Floats]:
        order = queries.by_score(score)
        tie = equal_neighbours(queries.number, score[order])
        front, chance, discount, within = places.of_ties(tie)
        # Rows of one score and gain are one cell, as they have the same derivatives.
        cell = equal_neighbours(tie, gain[order])
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        parts = (part[first] for part in (score[order], gain[order], front, chance, discount, within))
        bounds, size = np.searchsorted(first, queries.bounds), np.bincount(cell).astype(np.float64)
        space, derivatives = np.empty((2, len(first))), np.empty((2, len(first)))
        cells = tie[first], *parts, size
        core.lambdas(bounds, cells, inverse, self.sigmoid, self.lambdarank_norm, space, *derivatives)
        of_rows, n_rows = np.empty((3, len(score))), np.diff(queries.bounds)[queries.number]
        best = inverse[queries.number]
        of_rows[0, order] = np.where(best > 0, 1.0 / n_rows - gain[order] * front * best, 0.0)
        of_rows[1:, order] = derivatives[:, cell]
        return of_rows


class _Places(NamedTuple):
    """The places of rows in the order of their scores, (rows,) each."""

    place: NDArray[np.intp]  # 0, 1, ... in each query
    counted: NDArray[np.bool_]  # whether it is above the truncation level
    discount: Floats
    until: Floats  # sum of the discounts of the query up to this place

    @classmethod
    def of(cls, place: NDArray[np.intp], counted: NDArray[np.bool_]) -> _Places:
        """Return the places with their discounts."""
        table = 1.0 / np.log2(np.arange(place.max(initial=0) + 1) + 2.0)
        return cls(place, counted, table[place], np.cumsum(table)[place])

    def of_ties(self, tie: NDArray[np.intp]) -> tuple[Floats, Floats, Floats, Floats]:
        """Return means over the orders of tied rows, (rows,) each, of what weights the pairs of a row.

        The discount if the place counts, or else 0; whether it counts; the discount; and the difference of the
        discounts of two tied rows, if the first of them counts.
        """
        front = self.discount * self.counted
        last = np.searchsorted(tie, tie, side="right") - 1
        behind, size = last - np.arange(len(tie)), np.bincount(tie)[tie]
        falls = front * behind - self.counted * (self.until[last] - self.until)
        means = [mean_of_equal(values, tie) for values in (front, self.counted, self.discount, falls)]
        return means[0], means[1], means[2], 2.0 * means[3] / np.maximum(size - 1, 1)
