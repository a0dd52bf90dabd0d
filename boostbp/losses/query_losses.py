"""Losses of rankings: the rows of a query are ordered by their scores, the raw outputs.

The target has two columns, the relevance of a row and the number of its query. Queries without two different grades
have no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.losses.base import LEAST_HESSIAN, Task, refuse
from boostbp.losses.joint import JointLoss
from boostbp.runtime.arrays import Floats

LARGEST_GRADE = 30  # with LightGBM's gains, 2^grade - 1
# Value, gradient and hessian of scores, (rows,) each, in the order of `Queries`.
Derivatives = Callable[[Floats], Iterable[Floats]]


class Queries(NamedTuple):
    """The queries of some rows. Arrays are in the order of the queries, whose rows are together."""

    order: NDArray[np.intp]  # (rows,)
    bounds: NDArray[np.int64]  # (queries + 1,): first row of each query, and the number of rows
    number: NDArray[np.intp]  # (rows,): query of each row, from 0
    relevance: Floats  # (rows,)

    @classmethod
    def of(cls, y: Floats) -> Queries:
        """Return the queries of a target, (rows, 2)."""
        order = np.argsort(y[:, 1], kind="stable")
        relevance, query = y[order].T
        starts = np.flatnonzero(np.append(True, query[1:] != query[:-1])[: len(query)])
        bounds = np.append(starts, len(query)).astype(np.int64)
        number = np.repeat(np.arange(len(starts)), np.diff(bounds))
        return cls(order, bounds, number, np.ascontiguousarray(relevance))

    def by_score(self, score: Floats) -> NDArray[np.intp]:
        """Return the places of the rows in the order of their scores within the queries; ties keep their order."""
        return np.lexsort((-score, self.number))


@dataclass(frozen=True)
class _Ranking(JointLoss):
    """Members of all losses; subclasses compute the derivatives."""

    label_gain: tuple[float, ...] | None = None
    columns: ClassVar[tuple[str, ...]] = ("relevance", "query")
    task: ClassVar[Task] = "ranking"
    joint: ClassVar[Literal["groups"]] = "groups"
    default_metric: ClassVar[str] = "ndcg@10"
    name: ClassVar[str]

    def __post_init__(self) -> None:
        gains = np.asarray([0.0] if self.label_gain is None else self.label_gain, float)
        if gains.ndim != 1 or not len(gains) or not (np.isfinite(gains) & (gains >= 0)).all():
            raise ValueError(f"label_gain={self.label_gain!r} must hold the gain of each grade, 0 or more.")

    def prepare(self, y: Floats, weight: Floats) -> JointLoss:
        """Return the loss of rows with this target; weights are the same in a query."""
        queries = Queries.of(y)
        return _OfQueries(queries.order, self._derivatives(queries))

    def _derivatives(self, queries: Queries) -> Derivatives:
        raise NotImplementedError

    def _gain(self, queries: Queries) -> Floats:
        """Return the gain of each row, ``2**grade - 1`` by default."""
        if self.label_gain is None:
            return np.exp2(queries.relevance) - 1.0
        return np.asarray(self.label_gain, float)[queries.relevance.astype(np.intp)]

    def check(self, y: Floats) -> None:
        """Refuse relevance other than the grades 0, 1, 2, ... that have a gain."""
        grades = y[:, :1]
        largest = LARGEST_GRADE if self.label_gain is None else len(self.label_gain) - 1
        cure = f"relevance must be a whole number from 0 to {largest}; label_gain of the loss sets gains of others."
        refuse(grades, ~((grades >= 0) & (grades <= largest) & (grades % 1 == 0)), cure)


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
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma={self.gamma!r} must be between 0 and 1.")

    def _derivatives(self, queries: Queries) -> Derivatives:
        starts, relevance, mass = queries.bounds[:-1], queries.relevance, self._gain(queries) + 1.0 - self.gamma
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
    """Logistic loss of pairs of rows of which one is more relevant, by the compiled loop."""

    sigmoid: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.sigmoid < np.inf:
            raise ValueError(f"sigmoid={self.sigmoid!r} must be above 0.")

    def _lambdas(
        self, queries: Queries, gain: Floats, inverse: Floats, top: int, norm: bool, weighted: bool, score: Floats
    ) -> Floats:
        order, longest = queries.by_score(score), int(np.diff(queries.bounds).max(initial=1))
        ordered = score[order], gain[order], 1.0 / np.log2(np.arange(longest) + 2.0), inverse
        space, derivatives = np.empty((3, longest)), np.empty((3, len(score)))
        core.lambdas(queries.bounds, *ordered, top, self.sigmoid, norm, weighted, space, *derivatives)
        derivatives[:, order] = derivatives.copy()
        return derivatives


@dataclass(frozen=True)
class PairwiseRanking(_Pairs):
    """``log(1 + exp(-sigmoid (h_i - h_j)))`` summed over the pairs of a query with row i more relevant (RankNet)."""

    name: ClassVar[str] = "rank:pairwise"
    aliases: ClassVar[tuple[str, ...]] = ("rank_pairwise", "pairlogit")

    def _derivatives(self, queries: Queries) -> Derivatives:
        inverse, n_rows = np.ones(len(queries.bounds) - 1), len(queries.order)
        return partial(self._lambdas, queries, queries.relevance, inverse, n_rows, False, False)


@dataclass(frozen=True)
class LambdaRank(_Pairs):
    """LightGBM's ``lambdarank`` (Burges 2010): pairs are weighted by the change of NDCG if their rows swapped places.

    The gradient is that of LightGBM. It is not the derivative of the value, 1 - NDCG at the truncation level, which is
    constant between changes of the order.
    """

    lambdarank_truncation_level: int = 30
    lambdarank_norm: bool = True
    name: ClassVar[str] = "lambdarank"
    aliases: ClassVar[tuple[str, ...]] = ("rank:ndcg", "rank_ndcg")
    exact_gradient: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lambdarank_truncation_level < 1:
            raise ValueError(f"lambdarank_truncation_level={self.lambdarank_truncation_level!r} must be at least 1.")

    def _derivatives(self, queries: Queries) -> Derivatives:
        gain, top = self._gain(queries), self.lambdarank_truncation_level
        place = np.arange(len(gain)) - queries.bounds[queries.number]
        ideal = gain[queries.by_score(queries.relevance)] / np.log2(place + 2.0) * (place < top)
        best = np.add.reduceat(ideal, queries.bounds[:-1])
        inverse = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)
        return partial(self._lambdas, queries, gain, inverse, top, self.lambdarank_norm, True)
