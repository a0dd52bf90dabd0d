"""Lambdas are sums over pairs of rows of a query, in any order of the rows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

import boostbp
from boostbp.losses import LambdaRank, PairwiseRanking
from boostbp.metrics import ndcg
from tests.losses.test_query_losses import queries

Floats = NDArray[np.float64]


def lambdas_by_pairs(loss: LambdaRank, y: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Return gradient and hessian by LightGBM's formula, pair by pair."""
    gradient, hessian, top = np.zeros(len(y)), np.zeros(len(y)), loss.lambdarank_truncation_level
    gain = 2.0 ** y[:, 0] - 1 if loss.label_gain is None else np.array(loss.label_gain)[y[:, 0].astype(int)]
    for query in np.unique(y[:, 1]):
        rows = np.flatnonzero(y[:, 1] == query)
        rows = rows[np.argsort(-h[rows, 0], kind="stable")]
        best = np.sort(gain[rows])[::-1][:top] @ (1 / np.log2(np.arange(len(rows)) + 2.0))[:top]
        total = 0.0
        for (i, a), (j, b) in itertools.combinations(enumerate(rows), 2):
            if i >= top or y[a, 0] == y[b, 0] or best == 0:
                continue
            high, low = (a, b) if y[a, 0] > y[b, 0] else (b, a)
            distance = h[high, 0] - h[low, 0]
            weight = (gain[high] - gain[low]) * abs(1 / np.log2(i + 2.0) - 1 / np.log2(j + 2.0)) / best
            if loss.lambdarank_norm and h[rows[0], 0] != h[rows[-1], 0]:
                weight /= 0.01 + abs(distance)
            share = expit(-loss.sigmoid * distance)
            pull = loss.sigmoid * weight * share
            gradient[high] -= pull
            gradient[low] += pull
            hessian[[high, low]] += loss.sigmoid * pull * (1 - share)
            total += 2 * pull
        if loss.lambdarank_norm and total > 0:
            gradient[rows] *= np.log2(1 + total) / total
            hessian[rows] *= np.log2(1 + total) / total
    return gradient, hessian


def lambdas_of_lightgbm(y: Floats, h: Floats, **parameters: object) -> tuple[Floats, Floats]:
    """Return gradient and hessian of LightGBM, from the value ``-g / (h + penalty)`` of a leaf with one row."""
    lightgbm = pytest.importorskip("lightgbm")
    fixed = {"objective": "lambdarank", "num_leaves": 2, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0}
    fixed |= {"learning_rate": 1.0, "min_data_in_bin": 1, "verbose": -1, "feature_pre_filter": False} | parameters
    values: dict[float, list[float]] = {0.001: [], 1.0: []}
    for penalty, row in itertools.product(values, range(len(y))):
        X = (np.arange(len(y)) == row).astype(float)[:, None]
        sizes = np.unique(y[:, 1], return_counts=True)[1]
        data = lightgbm.Dataset(
            X, y[:, 0], group=sizes, init_score=h[:, 0], params={"verbose": -1, "min_data_in_bin": 1}
        )
        booster = lightgbm.train({**fixed, "lambda_l2": penalty}, data, 1)
        values[penalty].append(float(booster.predict(X[row : row + 1])[0]))
    small, large = (np.array(values[penalty]) for penalty in values)
    with np.errstate(invalid="ignore", divide="ignore"):
        hessian = np.nan_to_num((large - 0.001 * small) / (small - large))
    return -large * (hessian + 1.0), hessian


@pytest.mark.parametrize(
    "loss",
    [
        LambdaRank(),
        LambdaRank(lambdarank_norm=False, sigmoid=1.7),
        LambdaRank((0, 1, 1, 5, 9), 2.0, 3),
        LambdaRank((0,) * 5),
    ],
)
def test_lambdas_are_sums_over_pairs(loss: LambdaRank) -> None:
    y, h = queries(40, 25)
    order = np.random.default_rng(1).permutation(len(y))
    h[:60], y[:60, 1] = h[:60] * 400, 0  # far scores, in one query
    gradient, hessian = lambdas_by_pairs(loss, y, h)
    prepared = loss.prepare(y, np.ones(len(y)))
    np.testing.assert_allclose(prepared.gradient(h, y)[:, 0], gradient, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(prepared.hessian(h, y)[:, 0], np.maximum(hessian, 1e-6), rtol=1e-9, atol=1e-13)
    shuffled = loss.prepare(y[order], np.ones(len(y)))  # rows of a query need not be together
    np.testing.assert_allclose(shuffled.gradient(h[order], y[order])[:, 0], gradient[order], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("loss", [LambdaRank(lambdarank_truncation_level=top) for top in (1, 2, 3, 30)], ids=repr)
def test_lambdas_of_tied_scores_are_the_mean_over_their_orders(loss: LambdaRank) -> None:
    y = np.column_stack([[2.0, 0.0, 1.0, 0.0, 2.0, 0.0, 1.0], np.zeros(7)])
    h = np.array([0.5, 0.5, 0.5, -1.0, 0.1, 0.1, 0.9])[:, None]
    loss = replace(loss, lambdarank_norm=False)  # the factor of a query is of all its pairs
    expected = np.zeros((3, 7))
    orders = list(itertools.permutations(range(7)))
    for order in map(list, orders):
        rows = np.argsort(order)
        gradient, hessian = lambdas_by_pairs(loss, y[order], h[order])
        value = 1 - ndcg(y[:, 0], h[:, 0] + 1e-6 * rows, group=[7], k=loss.lambdarank_truncation_level)
        expected += np.array([np.full(7, value / 7), gradient[rows], hessian[rows]]) / len(orders)
    prepared = loss.prepare(y, np.ones(7))
    value, gradient, hessian = prepared.derivatives(h, y)
    assert value.sum() == pytest.approx(expected[0].sum(), rel=1e-12)
    np.testing.assert_allclose(gradient[:, 0], expected[1], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(hessian[:, 0], np.maximum(expected[2], 1e-6), rtol=1e-9)


@pytest.mark.parametrize("norm", [True, False])
def test_lambdas_are_those_of_lightgbm(norm: bool) -> None:
    y, h = queries(5, 8, seed=3)
    gradient, hessian = lambdas_of_lightgbm(y, h, lambdarank_norm=norm, lambdarank_truncation_level=4)
    loss = LambdaRank(lambdarank_norm=norm, lambdarank_truncation_level=4).prepare(y, np.ones(len(y)))
    # LightGBM keeps gradients in float32, and tabulates the logistic function.
    known = gradient != 0  # LightGBM does not split off a row of small gradient
    assert known.sum() >= 8
    np.testing.assert_allclose(loss.gradient(h, y)[known, 0], gradient[known], atol=1e-5)
    np.testing.assert_allclose(loss.hessian(h, y)[known, 0], hessian[known], atol=1e-4)


@pytest.mark.parametrize("relevance", ["grades", "numbers", "few"])
def test_pairs_of_long_queries_stand_for_all_pairs(relevance: str) -> None:
    rng = np.random.default_rng(0)
    h = rng.standard_normal((3000, 1))
    y = {"grades": rng.integers(0, 5, 3000), "numbers": rng.normal(size=3000), "few": h[:, 0] > 2.5}[relevance]
    target = np.column_stack([y, np.arange(3000) // 1500]).astype(float)
    of_all = PairwiseRanking(lambdarank_num_pair_per_sample=3000).prepare(target, np.ones(3000))
    value, gradient, _ = of_all.derivatives(h, target)
    for seed in range(3):
        order = rng.permutation(3000) if seed else np.arange(3000)
        prepared = PairwiseRanking().prepare(target[order], np.ones(3000))
        some_value, some_gradient, _ = prepared.derivatives(h[order], target[order])
        assert some_value.sum() == pytest.approx(value.sum(), rel=0.05)  # a sample of pairs
        assert np.corrcoef(some_gradient[:, 0], gradient[order, 0])[0, 1] > 0.99
        assert some_gradient.sum() == pytest.approx(0.0, abs=1e-8)
    few = PairwiseRanking(lambdarank_num_pair_per_sample=4)
    assert boostbp.check_loss(few, queries(3, 30)[0]).gradient_error < 1e-6
    exact = PairwiseRanking(lambdarank_num_pair_per_sample=1499).prepare(target, np.ones(3000))  # no fewer than others
    np.testing.assert_allclose(exact.derivatives(h, target)[1], gradient, rtol=1e-9, atol=1e-9)
