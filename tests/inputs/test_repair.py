"""Cells that contradict the rest of their row are read as it says; all else stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from boostbp.backends.base import Table
from boostbp.inputs.repair import Repair
from boostbp.trees import sparse
from boostbp.trees.sparse import Sparse

ROWS = 400
seeds = st.integers(0, 10**6)


def lengths(rng, rows=ROWS):
    """Three lengths of a thing, its weight, which is skewed, and two columns that have nothing to do with it."""
    size = np.exp(rng.normal(0, 0.2, rows))
    X = [5 * size, 5 * size, 3 * size, size**3, rng.normal(size=rows), rng.integers(0, 5, rows)]
    return np.column_stack([*(column * np.exp(rng.normal(0, 0.02, rows)) for column in X[:4]), *X[4:]])


def learnt(X, weight=None, categorical=()):
    return Repair.of(Table(X, categorical), np.ones(len(X)) if weight is None else weight)


def read(repair, X):
    return repair.read(Table(X)).X


@given(seeds, st.integers(0, 3), st.sampled_from([0.0, 0.1, 10.0, 1000.0, -1.0]))
def test_a_mistyped_cell_is_read_as_what_the_others_say(seed, column, factor):
    rng = np.random.default_rng(seed)
    X = lengths(rng)
    X[0, column] *= factor
    repair, right = learnt(X), lengths(rng, 50)
    wrong = right.copy()
    wrong[:, column] *= factor
    before = wrong.copy()
    got = read(repair, wrong)
    np.testing.assert_array_equal(wrong, before)
    np.testing.assert_array_equal(np.delete(got, column, axis=1), np.delete(right, column, axis=1))
    np.testing.assert_allclose(got[:, column], right[:, column], rtol=0.5)
    assert np.median(np.abs(got[:, column] / right[:, column] - 1)) < 0.08
    in_training = read(repair, X)
    assert list(np.argwhere(in_training != X)[:, 1]) == [column]


CLEAN = {
    "alike": lambda rng, n: lengths(rng, n),
    "normal": lambda rng, n: rng.standard_normal((n, 4)) @ [[1, 1, 1, 0], [0, 0.5, 0, 0], [0, 0, 0.5, 0], [0, 0, 0, 1]],
    "long tails": lambda rng, n: np.exp(rng.standard_normal((n, 3)) @ [[1, 1, 1], [0, 0.5, 0], [0, 0, 0.5]]),
    "sums": lambda rng, n: rng.random((n, 3)) @ np.c_[np.eye(3), np.ones(3)],
    "curved": lambda rng, n: rng.uniform(-1, 3, (n, 1)) ** [1, 2, 3],
    "same": lambda rng, n: rng.random(n).repeat(3).reshape(n, 3),
    "missing": lambda rng, n: np.where(rng.random((n, 6)) < 0.1, np.nan, lengths(rng, n)),
}


@pytest.mark.parametrize("kind", CLEAN)
def test_cells_of_clean_rows_stay(kind):
    replaced = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        repair = learnt(CLEAN[kind](rng, ROWS))
        X = CLEAN[kind](rng, 1000)
        replaced += np.count_nonzero((read(repair, X) != X) & ~np.isnan(X))
    assert replaced <= 2, f"{replaced} of {10_000 * X.shape[1]} cells"


def test_where_nothing_is_replaced_the_table_is_the_same():
    X = lengths(np.random.default_rng(0))
    table = Table(X)
    assert learnt(X).read(table) is table


@pytest.mark.parametrize("factor", [3.0, 10.0])
def test_a_row_of_another_kind_stays(factor):
    rng = np.random.default_rng(0)
    repair, X = learnt(lengths(rng)), lengths(rng, 50)
    X[:, :3] *= factor
    X[:, 3] *= factor**3
    np.testing.assert_array_equal(read(repair, X), X)


def test_a_right_cell_among_many_wrong_ones_stays():
    rng = np.random.default_rng(0)
    repair, X = learnt(lengths(rng)), lengths(rng, 50)
    X[:, :3] = 0.0  # which say that there is no weight
    np.testing.assert_array_equal(read(repair, X), X)


def test_the_zero_of_a_count_is_next_to_one():
    rng = np.random.default_rng(0)
    years = np.floor(np.exp(rng.normal(2.2, 0.7, 1000))) + 1
    X = np.column_stack([years, years**2 * np.exp(rng.normal(0, 0.1, 1000))])
    X[0] = 0.0, 1.0
    repair = learnt(X)
    assert repair.normal.determined.all()
    few = np.array([[0.0, 1.0], [0.0, 0.5], [1.0, 1.0]])
    np.testing.assert_array_equal(read(repair, few), few)
    np.testing.assert_allclose(read(repair, np.array([[0.0, 400.0], [200.0, 400.0]]))[:, 0], 20, rtol=0.3)


def test_a_column_that_nothing_else_tells_of_stays():
    rng = np.random.default_rng(0)
    repair, X = learnt(lengths(rng)), lengths(rng, 50)
    X[:, 4] = np.geomspace(1, 1e300, 50)  # such as the time, later
    X[:, 5] = 99.0
    np.testing.assert_array_equal(read(repair, X), X)


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).standard_normal((ROWS, 4)),
        lengths(np.random.default_rng(0), 99),
        lengths(np.random.default_rng(0), 1000).repeat(40, axis=1),
        np.full((ROWS, 3), 7.5),
        np.full((ROWS, 3), np.nan),
        np.arange(ROWS)[:, None] % [2, 4, 8] * 1.0,
        np.random.default_rng(0).choice([-1.0, 1.0], (ROWS, 1)).repeat(3, axis=1) * np.finfo(float).max,
        lengths(np.random.default_rng(0))[:, :1],
    ],
    ids=["independent", "few rows", "many columns", "constant", "missing", "codes", "ends of float64", "one column"],
)
def test_there_is_nothing_to_compare(X):
    assert learnt(np.ascontiguousarray(X)) is None


def test_categories_are_no_measures():
    X = lengths(np.random.default_rng(0))[:, :3].round(1)
    assert learnt(X, categorical=(0, 1)) is None
    assert list(learnt(X, categorical=(0,)).units.column) == [1, 2]


def test_missing_cells_say_nothing():
    rng = np.random.default_rng(0)
    repair, X = learnt(lengths(rng)), lengths(rng, 50)
    right = X.copy()
    X[:, 0], X[:, 1] = np.nan, 10 * X[:, 1]
    got = read(repair, X)
    assert np.isnan(got[:, 0]).all()
    np.testing.assert_allclose(got[:, 1], right[:, 1], rtol=0.25)


def test_values_at_the_ends_of_float64_are_read():
    rng = np.random.default_rng(0)
    repair, X = learnt(lengths(rng)), lengths(rng, 4)
    right = X.copy()
    X[:, 0] = np.finfo(float).max, -np.finfo(float).max, np.finfo(float).tiny, -0.0
    np.testing.assert_allclose(read(repair, X)[:, 0], right[:, 0], rtol=0.25)


def test_weights_count_as_repeated_rows():
    rng = np.random.default_rng(0)
    X, times = lengths(rng), rng.integers(0, 4, ROWS)
    once, repeated = learnt(X, times.astype(float)), learnt(np.repeat(X, times, axis=0))
    for part in ("units", "normal"):
        for name in getattr(once, part).__slots__:
            mine, other = (getattr(getattr(one, part), name) for one in (once, repeated))
            np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9, err_msg=name)


def test_a_sparse_table_is_read_as_the_dense_one():
    rng = np.random.default_rng(0)
    X = lengths(rng)
    X[:, 4] *= rng.random(ROWS) < 0.1
    X[3, 1], X[5, 0] = 0.0, 70.0
    dense, held = learnt(X), learnt(Sparse.of(sp.csr_array(X)))
    expected = read(dense, X)
    got = read(held, Sparse.of(sp.csr_array(X)))
    assert np.count_nonzero(expected != X) == 2
    np.testing.assert_array_equal(got.toarray(), expected)


def test_a_row_is_read_alike_alone_and_among_others():
    rng = np.random.default_rng(0)
    repair, X = learnt(lengths(rng)), lengths(rng, 200)
    X[:40, 0] *= 10
    X[20:50, 2] = 0
    X[10:30, 5] = X[15:20, 3] = X[100:, 4] = np.nan
    X[rng.random(X.shape) < 0.1] = np.nan
    together = read(repair, X)
    np.testing.assert_array_equal(np.concatenate([read(repair, X[[i]]) for i in range(200)]), together)


@given(seeds, st.sampled_from([1.0, 1e-3, 1e3]))
def test_the_look_at_a_few_rows_passes_over_none_that_is_suspected(seed, factor):
    rng = np.random.default_rng(seed)
    repair = learnt(lengths(rng))
    rows = lengths(rng, 60)
    rows[rng.random(rows.shape) < 0.1] *= factor
    rows[rng.random(rows.shape) < 0.1] = np.nan
    suspects = set(repair.normal.suspects(repair.units.of_values(rows)).tolist())
    found = {i for i in range(len(rows)) if repair._may_contradict(rows[i : i + 1])}
    assert found == suspects
    assert repair._may_contradict(rows) == bool(suspects)


def test_the_look_at_a_few_rows_tells_both_sides_of_a_bound():
    rng = np.random.default_rng(0)
    repair = learnt(lengths(rng))
    row, j = lengths(rng, 1), 0
    inside, outside = row[0, j], 1e6 * row[0, j]
    while outside - inside > 1e-8 * inside:  # the bound lies between them
        row[0, j] = (inside + outside) / 2
        suspected = len(repair.normal.suspects(repair.units.of_values(row))) > 0
        inside, outside = (inside, row[0, j]) if suspected else (row[0, j], outside)
    for value, expected in ((inside * (1 - 1e-6), False), (outside * (1 + 1e-6), True)):
        row[0, j] = value
        assert repair._may_contradict(row) is expected


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_what_is_read_is_the_mean_of_a_normal_given_the_other_cells(missing):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 2)) @ rng.standard_normal((2, 8)) + 0.1 * rng.standard_normal((1000, 8))
    repair = learnt(X)
    assert np.isfinite(repair.normal.most).all()
    assert not repair.units.floor.any()
    X = X[:300]
    X[rng.random(X.shape) < missing] = np.nan
    X[np.arange(300), rng.integers(0, 4, 300)] += 100
    X[np.arange(150), rng.integers(4, 8, 150)] -= 100
    got, covariance = read(repair, X), np.linalg.inv(repair.normal.precision)
    U, read_as = repair.units.of_values(X), repair.units.of_values(got)
    replaced = (got != X) & ~np.isnan(X)
    assert {0, 1, 2} >= set(replaced.sum(1)) >= {1, 2}
    for u, value, wrong in zip(U, read_as, replaced, strict=True):
        there = ~np.isnan(u) & ~wrong
        mean = covariance[np.ix_(wrong, there)] @ np.linalg.solve(covariance[np.ix_(there, there)], u[there])
        mean = np.clip(mean, repair.normal.lowest[wrong], repair.normal.highest[wrong])
        np.testing.assert_allclose(value[wrong], mean, rtol=1e-9, atol=1e-9)


def test_a_table_of_another_kind_is_read_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    repair, X = learnt(lengths(rng)), lengths(rng, 300)
    X[:, 1] *= 10
    X[:, 0] = np.where(rng.random(300) < 0.5, np.nan, X[:, 0])
    whole = read(repair, X)
    assert ((whole != X) & ~np.isnan(X)).any(1).mean() > 0.9
    monkeypatch.setattr(sparse, "CELLS", 100)
    np.testing.assert_array_equal(read(repair, X), whole)
