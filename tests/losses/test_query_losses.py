"""Losses of rankings: closed forms, memory, values, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

import boostbp
from boostbp.losses import LambdaRank, ListwiseRanking, PairwiseRanking, load_loss
from boostbp.losses.checked_loss import try_loss
from boostbp.metrics import ndcg

Floats = NDArray[np.float64]
LOSSES = [ListwiseRanking(), PairwiseRanking(sigmoid=2.0), LambdaRank(), LambdaRank(lambdarank_norm=False)]


def queries(n_queries: int, most: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return a target of queries of 1 to `most` rows, and raw outputs, (rows, 1)."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(n_queries), rng.integers(1, most + 1, n_queries))
    relevance = rng.choice(5, len(number), p=[0.5, 0.25, 0.13, 0.07, 0.05])
    return np.column_stack([relevance, number]).astype(float), rng.standard_normal((len(number), 1))


def test_a_query_of_three_rows_has_the_gradient_of_its_closed_form() -> None:
    y, h = np.array([[0.0, 7.0], [2.0, 7.0], [1.0, 7.0]]), np.array([[2.0], [1.0], [0.0]])
    best = 3.0 + 1.0 / np.log2(3)

    def pull(gain: float, first: int, second: int, distance: float) -> float:
        change = gain * (1 / np.log2(first + 1) - 1 / np.log2(second + 1)) / best
        return float(change / (1 + np.exp(distance)))

    a, b, c = pull(3, 1, 2, -1.0), pull(2, 2, 3, 1.0), pull(1, 1, 3, -2.0)  # rows 1 and 0, 1 and 2, 2 and 0
    loss = LambdaRank(lambdarank_norm=False).prepare(y, np.ones(3))
    np.testing.assert_allclose(loss.gradient(h, y)[:, 0], [a + c, -a - b, b - c], rtol=1e-13)
    assert loss.value(h, y).sum() == pytest.approx(1 - (3 / np.log2(3) + 0.5) / best, rel=1e-13)
    mass = np.array([1.0, 4.0, 2.0]) - 0.5
    share = np.exp(h[:, 0]) / np.exp(h[:, 0]).sum()
    listwise = ListwiseRanking().prepare(y, np.ones(3))
    np.testing.assert_allclose(listwise.gradient(h, y)[:, 0], share - mass / mass.sum(), rtol=1e-13)
    np.testing.assert_allclose(listwise.value(h, y), -mass / mass.sum() * np.log(share), rtol=1e-13)
    pairs = PairwiseRanking().prepare(y, np.ones(3))
    assert pairs.value(h, y).sum() == pytest.approx(sum(np.log1p(np.exp(d)) for d in (1.0, 2.0, -1.0)), rel=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivatives_do_not_depend_on_the_order_of_rows(loss: ListwiseRanking) -> None:
    y, h = queries(40, 25)
    h = np.round(h)  # ties
    for order in (np.random.default_rng(1).permutation(len(y)), np.lexsort((-y[:, 0], y[:, 1]))):
        for of_rows, of_sorted in zip(
            loss.prepare(y, np.ones(len(y))).derivatives(h, y)[1:],
            loss.prepare(y[order], np.ones(len(y))).derivatives(h[order], y[order])[1:],
            strict=True,
        ):
            np.testing.assert_allclose(of_sorted, of_rows[order], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_ranking_loss_passes_the_check_of_losses(loss: ListwiseRanking) -> None:
    report = boostbp.check_loss(loss, queries(60, 20)[0])
    assert report.curved == (not isinstance(loss, LambdaRank))
    assert "not compared" in str(report) if isinstance(loss, LambdaRank) else report.gradient_error < 1e-6
    assert report.hessian_error < 1e-6 or isinstance(loss, LambdaRank)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_queries_of_one_row_or_of_equal_grades_teach_nothing(loss: ListwiseRanking) -> None:
    y = np.array([[3, 0], [1, 1], [1, 1], [0, 2], [0, 2], [0, 2], [4, 3], [0, 3]], float)
    h = np.random.default_rng(0).standard_normal((8, 1))
    prepared = loss.prepare(y, np.ones(8))
    assert not prepared.gradient(h, y)[:6].any()
    assert prepared.gradient(h, y)[6:].all()
    assert (prepared.hessian(h, y)[:6] == 1e-6).all()
    alone = y[:6]
    tried = try_loss(loss, np.zeros(1), alone)
    assert not tried.prepared(alone, np.ones(6)).gradient(h[:6], alone).any()


def test_values_of_lambdarank_are_1_minus_ndcg() -> None:
    y, h = queries(50, 40)
    value = LambdaRank(lambdarank_truncation_level=10).prepare(y, np.ones(len(y))).value(h, y)
    by_query = np.bincount(y[:, 1].astype(int), value)
    expected = 1 - ndcg(y[:, 0], h[:, 0], qid=y[:, 1], k=10, per_query=True)
    np.testing.assert_allclose(by_query, expected, atol=1e-12)


@pytest.mark.parametrize("relevance", [-1, 0.5, 31])
def test_other_relevance_is_refused_with_its_row(relevance: float) -> None:
    y = queries(5, 10)[0]
    y[3, 0] = relevance
    with pytest.raises(ValueError, match=rf"y={relevance} in row 3.*whole number from 0 to 30; label_gain"):
        LambdaRank().check(y)


def test_gains_and_parameters_are_checked() -> None:
    LambdaRank((0.0, 1.0)).check(np.array([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match=r"y=2 in row 0.*whole number from 0 to 1;"):
        LambdaRank((0.0, 1.0)).check(np.array([[2.0, 0.0]]))
    assert LambdaRank(np.array([0, 1])) == LambdaRank((0.0, 1.0))


GAINS = ((-1.0,), (), 3.0, (1.0, 0.0), (0.0, 1e308), (0.0, 1e-308), (0.0, np.nan), (0.0, np.inf), "gain", ((0.0, 1.0),))


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        *((LambdaRank, "label_gain", gains) for gains in GAINS),
        *((LambdaRank, "sigmoid", wrong) for wrong in (0.0, np.inf, np.nan, 1e300, "1", None)),
        *((LambdaRank, "lambdarank_truncation_level", wrong) for wrong in (0, 2.5, np.nan, np.inf, True, "3")),
        (LambdaRank, "lambdarank_norm", "yes"),
        *((PairwiseRanking, "lambdarank_num_pair_per_sample", wrong) for wrong in (0, 1.5, None)),
        *((ListwiseRanking, "gamma", wrong) for wrong in (2.0, -1.0, np.nan, "0")),
    ],
)
def test_a_wrong_parameter_is_named_with_its_value_and_the_cure(kind: type, name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name}={re.escape(repr(wrong))} is not .*: (give|use) "):
        kind(**{name: wrong})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rank:ndcg", LambdaRank),
        ("lambdarank", LambdaRank),
        ("rank:pairwise", PairwiseRanking),
        ("xendcg", ListwiseRanking),
    ],
)
def test_losses_have_the_names_of_the_libraries(name: str, kind: type) -> None:
    assert isinstance(load_loss(name, n_outputs=1, task="ranking"), kind)


def test_pairs_need_the_order_of_relevance_alone() -> None:
    y, h = queries(20, 30)
    other = y.copy()
    other[:, 0] = np.exp(3.0 * y[:, 0]) - 7.5
    PairwiseRanking().check(other)
    first, second = (PairwiseRanking().prepare(target, np.ones(len(y))).derivatives(h, target) for target in (y, other))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_long_query_needs_little_memory() -> None:
    import tracemalloc

    y, h = queries(1, 2)
    y, h = np.repeat(y[:1], 5000, axis=0), np.arange(5000.0)[:, None] / 1000
    y[::7, 0] = 2.0
    for loss in LOSSES:
        prepared = loss.prepare(y, np.ones(5000))
        tracemalloc.start()
        prepared.derivatives(h, y)
        assert tracemalloc.get_traced_memory()[1] < 5e6
        tracemalloc.stop()
