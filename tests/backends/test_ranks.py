"""Columns that a library's numbers cannot hold grow the trees that their order deserves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from leaf_oracles import ORACLES, adversarial, library_leaf
from thread_workers import in_group

import boostbp
from boostbp import BoostBPRegressor
from boostbp.backends import available, load_backend, xgboost
from boostbp.backends.base import TreeParams
from boostbp.backends.dialects import Ranks, alike_in_float32
from boostbp.inputs.disk_arrays import on_disk
from boostbp.runtime.group import workers
from boostbp.trees.sparse import Sparse, Table

KNOWN = [name for name in available() if name in ORACLES]
# Strictly increasing in whole numbers 0 .. 999.
HARD = {
    "seconds of a day": lambda t: 1.7e9 + t,
    "ids of 16 digits": lambda t: 1e15 + t,
    "ids with a gap": lambda t: np.where(t < 500, t, 1e12 + t),
    "metres on a map": lambda t: 4_512_345.0 + t / 1000,
    "below zero": lambda t: -1e15 + t,
    "subnormal numbers of float32": lambda t: t * 1e-43,
    "beneath float32": lambda t: (t - 300) * 1e-300,
    "beyond float32": lambda t: 1e200 * (1 + t),
    "the end of float64": lambda t: 1e305 * (t - 500),
    "nanometres": lambda t: t * 1e-12,
}
ORDINARY = {
    "normal": lambda rng: rng.normal(size=6000),
    "counts": lambda rng: rng.poisson(2.0, 6000).astype(float),
    "amounts": lambda rng: np.round(np.exp(rng.normal(8, 2, 6000)), 2),
    "sums that differ by rounding": lambda rng: rng.choice([0.3, 0.1 + 0.2, 0.7, 0.1 * 7], 6000),
    "mostly zero": lambda rng: np.where(rng.random(6000) < 0.9, 0.0, rng.normal(size=6000)),
    "a year": lambda rng: 1.7e9 + rng.integers(0, 31_536_000, 6000),
    "missing": lambda rng: np.full(6000, np.nan),
    "constant": lambda rng: np.full(6000, 1e15),
}


def numbers(rng, n_rows=1500):
    """Whole numbers in whose order there is something to learn, and its gradient."""
    t = rng.integers(0, 1000, n_rows).astype(float)
    return t, -np.sin(t / 60)[:, None] - 0.1 * rng.normal(size=(n_rows, 1))


def plain(kind, t):
    """Small numbers in the same order as a hard column, on the same sides of zero."""
    values = HARD[kind](np.arange(1000.0))
    zero = np.searchsorted(values, 0.0)
    return t - zero + (0.0 if 0.0 in values else 0.5)


def with_missing(rng, column):
    X = np.column_stack([column, rng.normal(size=len(column))])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def first_tree(name, X, grad, **how):
    growth = TreeParams(max_depth=6, min_samples_leaf=5, **how)
    grower = load_backend(name).bind(Table(X), growth)
    return grower, grower.grow(grad, np.ones_like(grad))[0]


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("kind", HARD)
def test_a_column_is_split_as_the_whole_numbers_in_its_order(name, kind):
    rng = np.random.default_rng(0)
    t, grad = numbers(rng)
    hard = with_missing(rng, HARD[kind](t))
    easy = hard.copy()
    easy[:, 0] = np.where(np.isnan(hard[:, 0]), np.nan, plain(kind, t))
    _, expected = first_tree(name, easy, grad)
    grower, tree = first_tree(name, hard, grad)
    assert tree.n_leaves == expected.n_leaves > 8
    assert (expected.feature == 0).any()
    np.testing.assert_array_equal(tree.leaf_of(hard), expected.leaf_of(easy))
    rows = adversarial(tree, Table(hard), rng)
    np.testing.assert_array_equal(tree.leaf_of(rows), library_leaf(grower, rows))


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_columns_are_given_as_they_are(name, kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([ORDINARY[kind](rng), rng.normal(size=6000)])
    grower = load_backend(name).bind(Table(X), TreeParams())
    ranks = grower.bins.ranks if hasattr(grower, "bins") else grower.ranks
    assert not ranks.edges
    assert ranks.encode(X) is X


@pytest.mark.parametrize("name", KNOWN)
def test_sparse_columns_are_ranked_and_stay_sparse(name):
    rng = np.random.default_rng(0)
    t, grad = numbers(rng)
    column = np.where(rng.random(len(t)) < 0.3, 0.0, HARD["ids of 16 digits"](t + 1))
    X = np.column_stack([column, rng.normal(size=len(t))]) if name == "sklearn" else with_missing(rng, column)
    _, expected = first_tree(name, X, grad)
    _, tree = first_tree(name, Sparse.of(sp.csr_matrix(X)), grad)
    assert expected.n_leaves > 8
    np.testing.assert_array_equal(tree.leaf_of(X), expected.leaf_of(X))
    ranks = Ranks.of(Table(Sparse.of(sp.csr_matrix(X))), alike_in_float32)
    encoded = ranks.encode(Sparse.of(sp.csr_matrix(X)))
    np.testing.assert_array_equal(encoded.toarray(), ranks.encode(X))
    assert encoded.entries.nnz == np.count_nonzero(X)


@pytest.mark.parametrize("name", KNOWN)
def test_ranked_columns_rise_like_others(name):
    rng = np.random.default_rng(0)
    t, grad = numbers(rng)
    X = with_missing(rng, t) if name != "sklearn" else np.column_stack([t, rng.normal(size=len(t))])
    hard = X.copy()
    hard[:, 0] = HARD["ids of 16 digits"](X[:, 0])
    X[:, 0] = plain("ids of 16 digits", X[:, 0])
    _, expected = first_tree(name, X, grad, monotone=(1, 0))
    _, tree = first_tree(name, hard, grad, monotone=(1, 0))
    assert expected.n_leaves > 4
    np.testing.assert_array_equal(tree.leaf_of(hard), expected.leaf_of(X))


@pytest.mark.parametrize("name", [name for name in KNOWN if load_backend(name).capabilities.row_subsets])
def test_some_of_the_rows_keep_the_ranks_of_all(name):
    rng = np.random.default_rng(0)
    t, grad = numbers(rng)
    X, rows = HARD["ids of 16 digits"](t)[:, None], np.arange(0, len(t), 2)
    grower = load_backend(name).bind(Table(X), TreeParams(min_samples_leaf=5)).take(rows)
    [tree] = grower.grow(grad[rows], np.ones((len(rows), 1)))
    assert tree.n_leaves > 8
    np.testing.assert_array_equal(tree.leaf_of(X), library_leaf(grower, X))


@pytest.mark.skipif("xgboost" not in KNOWN, reason="needs xgboost")
def test_xgboost_reads_ranks_from_files_and_from_samples(tune):
    rng = np.random.default_rng(0)
    t, grad = numbers(rng, 4000)
    X = HARD["ids of 16 digits"](t)[:, None]
    _, expected = first_tree("xgboost", t[:, None], grad)
    tune(xgboost, SAMPLE=3000)
    with on_disk():
        grower, tree = first_tree("xgboost", X, grad)
    assert hasattr(grower.matrix, "folder")
    assert tree.n_leaves > 8
    assert np.var(grad - means(tree, X, grad)) == pytest.approx(
        np.var(grad - means(expected, t[:, None], grad)), rel=0.1
    )
    np.testing.assert_array_equal(tree.leaf_of(X), library_leaf(grower, X))


def means(tree, X, grad):
    leaf = tree.leaf_of(X)
    return (np.bincount(leaf, grad[:, 0]) / np.bincount(leaf))[leaf][:, None]


def test_all_workers_have_the_same_ranks():
    rng = np.random.default_rng(0)
    t, _ = numbers(rng, 3000)
    X = np.column_stack([HARD["ids with a gap"](t), rng.normal(size=3000)])
    alone = Ranks.of(Table(X), alike_in_float32)
    together = in_group(3, lambda rows: (Ranks.of(Table(rows), alike_in_float32), workers().size), X)
    assert list(alone.edges) == [0]
    for ranks, size in together:
        assert size == 3
        assert list(ranks.edges) == [0]
        np.testing.assert_array_equal(ranks.edges[0], alone.edges[0])


def test_neighbours_in_float64_are_told_apart():
    values = np.nextafter(1e16, np.inf) + 2.0 * np.arange(40.0)  # one unit in the last place apart
    X = np.repeat(values, 20)[:, None]
    ranks = Ranks.of(Table(X), alike_in_float32)
    np.testing.assert_array_equal(ranks.encode(X), np.repeat(np.arange(40.0), 20)[:, None])


@pytest.mark.parametrize("name", KNOWN)
def test_a_model_learns_from_ids_and_its_file_keeps_them(name, tmp_path):
    rng = np.random.default_rng(0)
    t, _ = numbers(rng, 1200)
    y = np.sin(t / 60)
    X = np.column_stack([HARD["ids of 16 digits"](t), rng.normal(size=len(t))])
    model = BoostBPRegressor(backend=name, quality=1, deep=False, random_state=0).fit(X[:900], y[:900])
    assert model.score(X[900:], y[900:]) > 0.95
    boostbp.save(model, tmp_path / "model")
    np.testing.assert_array_equal(boostbp.load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.skipif("lightgbm" not in KNOWN, reason="needs lightgbm")
def test_leaves_of_lightgbm_refuse_what_it_takes_for_zero_by_name():
    rng = np.random.default_rng(0)
    t, _ = numbers(rng, 300)
    X = np.column_stack([rng.normal(size=300), t * 1e-40])
    with pytest.raises(ValueError, match=r"column 1 .* nearer to zero than 1e-35: .* leaves='refit'"):
        BoostBPRegressor((), deep=True, output={"leaves": "native"}).fit(X, np.sin(t / 60))
