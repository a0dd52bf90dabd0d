"""Losses of rankings: the rows of a query are ordered by their scores, the raw outputs.

The target has two columns, the relevance of a row and the number of its query. Queries without two different grades
have no loss.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.losses.base import LEAST_HESSIAN, LinkName, Task, refuse
from boostbp.runtime.arrays import Floats

LARGEST_GRADE = 30  # with LightGBM's gains, 2^grade - 1


class Queries(NamedTuple):
    """The queries of some rows. Arrays are in the order of the queries, whose rows are together."""

    order: NDArray[np.intp]  # (rows,)
    bounds: NDArray[np.int64]  # (queries + 1,): first row of each query, and the number of rows
    number: NDArray[np.intp]  # (rows,): query of each row, from 0
    relevance: Floats  # (rows,)
    graded: NDArray[np.bool_]  # (queries,): whether a query has two different grades

    @classmethod
    def of(cls, y: Floats) -> Queries:
        """Return the queries of a target, (rows, 2)."""
        order = np.argsort(y[:, 1], kind="stable")
        relevance, query = y[order].T
        starts = np.flatnonzero(np.append(True, query[1:] != query[:-1])[: len(query)])
        bounds = np.append(starts, len(query)).astype(np.int64)
        most, least = np.maximum.reduceat(relevance, starts), np.minimum.reduceat(relevance, starts)
        number = np.repeat(np.arange(len(starts)), np.diff(bounds))
        return cls(order, bounds, number, np.ascontiguousarray(relevance), most > least)

    def by_score(self, score: Floats) -> NDArray[np.intp]:
        """Return the places of the rows in the order of their scores within the queries; ties keep their order."""
        return np.lexsort((-score, self.number))


class _Ranking:
    """Members of all losses; subclasses compute the derivatives of rows in the order of `Queries`."""

    columns: ClassVar[tuple[str, ...]] = ("relevance", "query")
    task: ClassVar[Task] = "ranking"
    joint: ClassVar[Literal["groups"]] = "groups"
    link_name: ClassVar[LinkName] = "identity"
    default_metric: ClassVar[str] = "ndcg@10"
    scale_free: ClassVar[bool] = False
    name: ClassVar[str]
    label_gain: tuple[float, ...] | None
    _prepared: ClassVar[tuple[Queries, tuple[Floats, ...]] | None] = None

    def prepare(self, y: Floats, weight: Floats) -> Self:
        """Return the loss of rows with this target; weights are the same in a query."""
        prepared, queries = copy.copy(self), Queries.of(y)
        object.__setattr__(prepared, "_prepared", (queries, self._facts(queries)))
        return prepared

    def _facts(self, queries: Queries) -> tuple[Floats, ...]:
        """Return what does not depend on scores."""
        raise NotImplementedError

    def _derivatives(self, score: Floats, queries: Queries, *facts: Floats) -> tuple[Floats, Floats, Floats]:
        raise NotImplementedError

    def derivatives(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, gradient and hessian."""
        if self._prepared is None:
            return self.prepare(y, np.ones(len(y))).derivatives(h, y)
        queries, facts = self._prepared
        value, gradient, hessian = (np.empty(len(h)) for _ in range(3))
        ordered = self._derivatives(h[queries.order, 0], queries, *facts)
        for array, of_queries in zip((value, gradient, hessian), ordered, strict=True):
            array[queries.order] = of_queries
        return value, gradient[:, None], np.maximum(hessian, LEAST_HESSIAN)[:, None]

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the loss of each row; only the sum over a query has a meaning."""
        return self.derivatives(h, y)[0]

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return the derivative."""
        return self.derivatives(h, y)[1]

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Return the Newton weight."""
        return self.derivatives(h, y)[2]

    def link(self, h: Floats) -> Floats:
        """Return the score itself."""
        return h

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return 0: a constant does not change the order."""
        return np.zeros(1)

    def check(self, y: Floats) -> None:
        """Refuse relevance other than the grades 0, 1, 2, ... that have a gain."""
        grades = y[:, :1]
        largest = LARGEST_GRADE if self.label_gain is None else len(self.label_gain) - 1
        cure = (
            f"relevance must be a whole number from 0 to {largest}; label_gain of the loss sets gains of other grades."
        )
        refuse(grades, ~((grades >= 0) & (grades <= largest) & (grades % 1 == 0)), cure)


def gains_of(relevance: Floats, label_gain: tuple[float, ...] | None) -> Floats:
    """Return the gain of each grade, ``2**grade - 1`` by default."""
    return np.exp2(relevance) - 1.0 if label_gain is None else np.asarray(label_gain, float)[relevance.astype(np.intp)]


@dataclass(frozen=True)
class ListwiseRanking(_Ranking):
    """Cross-entropy of softmax shares: ``-sum_i p_i log softmax(h)_i`` over a query, ``p_i ~ gain_i + 1 - gamma``.

    This is XE-NDCG (Bruch 2021), LightGBM's ``rank_xendcg``, which draws `gamma` anew for each row and round from
    [0, 1]. Here it is the mean, 0.5, so that the loss is convex with an exact gradient.
    """

    label_gain: tuple[float, ...] | None = None
    gamma: float = 0.5
    name: ClassVar[str] = "rank_xendcg"
    aliases: ClassVar[tuple[str, ...]] = ("xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart")

    def __post_init__(self) -> None:
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma={self.gamma!r} must be between 0 and 1.")
        _check_gains(self.label_gain)

    def _facts(self, queries: Queries) -> tuple[Floats, ...]:
        mass = gains_of(queries.relevance, self.label_gain) + 1.0 - self.gamma
        total = np.add.reduceat(mass, queries.bounds[:-1])
        return (mass * (queries.graded / np.where(total > 0, total, 1.0))[queries.number],)

    def _derivatives(self, score: Floats, queries: Queries, *facts: Floats) -> tuple[Floats, Floats, Floats]:
        [target], starts, number = facts, queries.bounds[:-1], queries.number
        score = score - np.maximum.reduceat(score, starts)[number]
        power = np.exp(score)
        total = np.add.reduceat(power, starts)
        share = power * (queries.graded / total)[number]
        return target * (np.log(total)[number] - score), share - target, share * (1.0 - share)


@dataclass(frozen=True)
class _Pairs(_Ranking):
    """Logistic loss of pairs of rows of which one is more relevant, by the compiled loop."""

    label_gain: tuple[float, ...] | None = None
    sigmoid: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.sigmoid < np.inf:
            raise ValueError(f"sigmoid={self.sigmoid!r} must be above 0.")
        _check_gains(self.label_gain)

    def _run(
        self, score: Floats, queries: Queries, gain: Floats, inverse: Floats, *, top: int, norm: bool, weighted: bool
    ) -> tuple[Floats, Floats, Floats]:
        order, longest = queries.by_score(score), int(np.diff(queries.bounds).max(initial=1))
        discount, space = 1.0 / np.log2(np.arange(longest) + 2.0), np.empty((3, longest))
        derivatives = np.empty((3, len(score)))
        ordered = score[order], gain[order], discount, inverse
        core.lambdas(queries.bounds, *ordered, top, self.sigmoid, norm, weighted, space, *derivatives)
        derivatives[:, order] = derivatives.copy()
        value, gradient, hessian = derivatives
        return value, gradient, hessian


@dataclass(frozen=True)
class PairwiseRanking(_Pairs):
    """``log(1 + exp(-sigmoid (h_i - h_j)))`` summed over the pairs of a query with row i more relevant (RankNet)."""

    name: ClassVar[str] = "rank:pairwise"
    aliases: ClassVar[tuple[str, ...]] = ("rank_pairwise", "pairlogit")

    def _facts(self, queries: Queries) -> tuple[Floats, ...]:
        return queries.relevance, np.ones(len(queries.graded))

    def _derivatives(self, score: Floats, queries: Queries, *facts: Floats) -> tuple[Floats, Floats, Floats]:
        return self._run(score, queries, *facts, top=len(score), norm=False, weighted=False)


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

    def _facts(self, queries: Queries) -> tuple[Floats, ...]:
        gain = gains_of(queries.relevance, self.label_gain)
        place = np.arange(len(gain)) - queries.bounds[queries.number]
        counts = place < self.lambdarank_truncation_level
        ideal = gain[queries.by_score(queries.relevance)] / np.log2(place + 2.0) * counts
        best = np.add.reduceat(ideal, queries.bounds[:-1])
        return gain, np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)

    def _derivatives(self, score: Floats, queries: Queries, *facts: Floats) -> tuple[Floats, Floats, Floats]:
        top, norm = self.lambdarank_truncation_level, self.lambdarank_norm
        return self._run(score, queries, *facts, top=top, norm=norm, weighted=True)


def _check_gains(label_gain: tuple[float, ...] | None) -> None:
    gains = np.asarray([0.0] if label_gain is None else label_gain, float)
    if gains.ndim != 1 or not len(gains) or not (np.isfinite(gains) & (gains >= 0)).all():
        raise ValueError(f"label_gain={label_gain!r} must hold the gain of each grade, 0 or more.")
