"""Metrics of rankings against LightGBM, XGBoost and scikit-learn."""

from __future__ import annotations

import itertools

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from boostbp import metrics
from boostbp.metrics.ranking import query_bounds

PLACES = (1, 3, 10, 1000)
PARAMS = {"num_leaves": 3, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, "metric": ["ndcg", "map"]}
GAINS = [0.0, 1.0, 2.0, 5.0, 50.0]


def queries(seed, *, weighted=False):
    """Return X, grades, sizes of queries and weights; some queries have no relevant row, or nothing else."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 60, size=60)
    query = np.repeat(np.arange(60), sizes)
    y = rng.integers(0, 5, size=len(query)).astype(float)
    y[query % 9 == 0], y[query % 17 == 1] = 0.0, 4.0
    if weighted:
        y[query_bounds(len(y), sizes)[:-1]] = 1.0  # LightGBM gives queries without relevant rows the weight 1
    X = y[:, None] + rng.normal(size=(len(y), 3))
    return X, y, sizes, rng.integers(1, 5, size=len(y)) / 4 if weighted else None


@pytest.mark.parametrize("gains", [None, GAINS])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_what_lightgbm_reports_without_ties(gains, weighted):
    X, y, sizes, weight = queries(0, weighted=weighted)
    params = {**PARAMS, "objective": "lambdarank", "eval_at": PLACES, **({"label_gain": gains} if gains else {})}
    start = np.random.default_rng(1).normal(size=len(y))  # LightGBM leaves tied scores in the order of the rows
    data, reported = lightgbm.Dataset(X, y, group=sizes, weight=weight, init_score=start), {}
    booster = lightgbm.train(params, data, 3, [data], ["train"], callbacks=[lightgbm.record_evaluation(reported)])
    score = start + booster.predict(X)
    near = 1e-7 if weighted else 1e-13  # LightGBM keeps weights of queries in float32
    for k in PLACES:
        of = {"group": sizes, "k": k, "sample_weight": weight}
        ndcg = metrics.ndcg(y, score, label_gain=gains, **of)
        np.testing.assert_allclose(ndcg, reported["train"][f"ndcg@{k}"][-1], rtol=near)
        np.testing.assert_allclose(
            metrics.mean_average_precision(y, score, **of), reported["train"][f"map@{k}"][-1], rtol=near
        )


@pytest.mark.parametrize("minus", ["", "-"])
@pytest.mark.parametrize(("name", "metric"), [("ndcg", metrics.ndcg), ("map", metrics.mean_average_precision)])
def test_values_are_what_xgboost_reports(name, metric, minus):
    xgboost = pytest.importorskip("xgboost")
    X, y, sizes, _ = queries(1)
    y, query = np.minimum(y, 1.0) if name == "map" else y, np.repeat(np.arange(len(sizes)), sizes)
    start = np.random.default_rng(1).normal(size=len(y))
    data, reported = xgboost.DMatrix(X, y, qid=query, base_margin=start), {}
    named = {k: f"{name}@{k}{minus}" for k in PLACES} | {32: name + minus}  # XGBoost's limit without a number
    params = {"objective": "rank:ndcg", "eval_metric": [*named.values()], "max_depth": 2, "nthread": 1}
    booster = xgboost.train(params, data, 3, evals=[(data, "train")], evals_result=reported, verbose_eval=False)
    for k, key in named.items():
        ours = metric(y, booster.predict(data), qid=query, k=k, without_relevant=0.0 if minus else 1.0)
        np.testing.assert_allclose(ours, reported["train"][key][-1], rtol=1e-7, err_msg=key)


@pytest.mark.parametrize("digits", [0, 1, 15])
def test_values_of_queries_are_those_of_scikit_learn(digits):
    _, y, sizes, _ = queries(2)
    score = np.round(np.random.default_rng(2).normal(size=len(y)), digits)
    rows = [range(*ends) for ends in np.lib.stride_tricks.sliding_window_view(query_bounds(len(y), sizes), 2)]
    long = [query for query in rows if len(query) > 1]  # scikit-learn takes no single rows
    where = sizes > 1
    for k in (4, None):
        of = {"group": sizes, "k": k, "without_relevant": 0.0, "per_query": True}
        ndcg = metrics.ndcg(y, score, label_gain=np.arange(5), **of)[where]
        np.testing.assert_allclose(ndcg, [ndcg_score([y[q]], [score[q]], k=k) for q in long], rtol=1e-13, atol=0)
    if digits < 15:  # its average precision is that at the thresholds
        return
    relevant = [q for q in rows if y[q].any()]
    precision = metrics.mean_average_precision(y, score, group=sizes, per_query=True)
    np.testing.assert_allclose(
        precision[[y[q].any() for q in rows]], [average_precision_score(y[q] > 0, score[q]) for q in relevant]
    )
    assert (precision[[not y[q].any() for q in rows]] == 1.0).all()


@pytest.mark.parametrize("k", [1, 2, 4, None])
def test_the_value_of_tied_rows_is_the_mean_over_their_orders(k):
    y, score = np.array([2.0, 0.0, 1.0, 0.0, 0.0, 3.0]), np.array([0.5, 0.5, 0.5, 0.1, 0.9, 0.1])
    for metric in (metrics.ndcg, metrics.mean_average_precision):
        values = [  # scores that differ by less than the others, in each order
            metric(y, score + 1e-3 * np.array(order), group=[6], k=k) for order in itertools.permutations(range(6))
        ]
        assert metric(y, score, group=[6], k=k) == pytest.approx(np.mean(values), rel=1e-13)


@given(st.integers(0, 10_000), st.sampled_from([1, 3, 10, None]))
def test_the_order_of_the_rows_of_a_query_has_no_part(seed, k):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(5), rng.integers(1, 9, 5))
    y, score = rng.integers(0, 4, len(query)).astype(float), rng.integers(0, 3, len(query)) / 2
    order = np.lexsort((rng.random(len(query)), query))
    for metric in (metrics.ndcg, metrics.mean_average_precision):
        value = metric(y, score, qid=query, k=k)
        assert metric(y[order], score[order], qid=query, k=k) == pytest.approx(value, rel=1e-13)
        best_first = np.lexsort((-y, query))
        assert metric(y[best_first], score[best_first], qid=query, k=k) == pytest.approx(value, rel=1e-13)


def test_gains_may_be_the_relevance_itself():
    y, score = np.array([-1.5, 30.0, 2.5, 7.0, 7.0]), np.array([0.1, 0.4, 0.4, 0.9, 0.2])
    of = {"group": [3, 2], "label_gain": "relevance", "per_query": True}
    assert metrics.ndcg(y, score, **of).tolist() == [pytest.approx(ndcg_score([y[:3] + 1.5], [score[:3]])), 1.0]


def test_sizes_and_ids_of_queries_are_the_same():
    _, y, sizes, _ = queries(3)
    score = np.random.default_rng(3).normal(size=len(y))
    names = np.repeat(np.random.default_rng(3).permutation(len(sizes)), sizes).astype(str)
    assert metrics.ndcg(y, score, group=sizes, k=5) == metrics.ndcg(y, score, qid=names, k=5)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "either group"),
        ({"group": [3], "qid": [0, 0, 0]}, "either group"),
        ({"group": [1, 1]}, "sum to 3"),
        ({"group": [3, 0]}, "1 or more rows"),
        ({"qid": [1, 2, 1]}, "sort the rows"),
        ({"qid": [1, 2]}, r"qid has shape \(2,\)"),
        ({"group": [3], "k": 0}, "k=0"),
        ({"group": [3], "label_gain": [0, 1]}, "whole grades from 0 to 1"),
        (
            {"group": [3], "label_gain": [9, 1, 0]},
            r"label_gain=\[9, 1, 0\] is not allowed: give the gain of each grade",
        ),
        ({"group": [3], "label_gain": [0, 1, 1e308]}, "label_gain"),
        ({"group": [3], "sample_weight": [1.0]}, "inconsistent numbers of samples"),
    ],
)
def test_errors_name_the_cure(more, message):
    with pytest.raises(ValueError, match=message):
        metrics.ndcg([0, 1, 2], [0.3, 0.2, 0.1], **more)
