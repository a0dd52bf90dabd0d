"""A layer keeps to its monotone constraints, whatever the library, the leaves, the base and the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import BACKENDS, ONE_AT_ONCE, WITH_CATEGORIES
from hypothesis import given, settings
from hypothesis import strategies as st
from monotone import thresholds_of, violations

from boostbp import Elementwise, fit_layer
from boostbp.backends import load_backend
from boostbp.backends.base import TreeParams
from boostbp.estimators.request import signs_of
from boostbp.network.layers import BoundInput, SquaredObjective, fit
from boostbp.network.layers.layer_spec import OUTPUT, settings_of
from boostbp.trees.leaves import BLOCK_ROWS
from boostbp.trees.sparse import Sparse, Table

SIGNS = (1, 0, -1, 0)


def data(rows=600, *, missing=False, categorical=False, seed=0):
    """Rises and falls in the constrained columns by themselves, with noise, and through products with the others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    y = np.tanh(2 * X[:, 0]) + 0.7 * X[:, 0] * X[:, 1] - np.maximum(X[:, 2], 0) * X[:, 3] + np.sin(3 * X[:, 2])
    y += rng.normal(size=rows) * 0.3
    if categorical:
        X[:, 3] = rng.integers(0, 7, rows)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def probed(layer, X, signs=SIGNS, **how):
    return violations(lambda Z: layer.predict(Z), X, signs, thresholds_of(layer.forest), **how)


@pytest.mark.parametrize("missing", [False, True], ids=["known", "missing"])
@pytest.mark.parametrize("basis", ["constant", "linear", "quadratic"])
@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_no_probe_finds_a_violation(backend, basis, missing):
    X, y = data(missing=missing)
    how = {"n_estimators": 60, "learning_rate": 0.2, "basis": basis}
    constrained = fit_layer(X, y, how | {"monotone_constraints": SIGNS}, backend=backend)
    assert probed(constrained, X) == 0
    assert probed(fit_layer(X, y, how, backend=backend), X) > 0.01


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_no_probe_finds_a_violation_beside_categories(backend):
    X, y = data(missing=True, categorical=True)
    layer = fit_layer(X, y, {"monotone_constraints": SIGNS}, backend=backend, categorical=(3,))
    assert (layer.forest.trees.nodes.cat_start >= 0).any()
    assert probed(layer, X, categorical=(3,)) == 0


@given(
    seed=st.integers(0, 2**16),
    rows=st.integers(40, 400),
    signs=st.lists(st.sampled_from([-1, 0, 1]), min_size=4, max_size=4).filter(any),
    depth=st.sampled_from([1, 2, 4, 7, -1]),
    basis=st.sampled_from(["constant", "linear", "quadratic"]),
    rate=st.sampled_from([0.1, 1.0]),
    penalty=st.sampled_from([0.0, 1.0, 30.0]),
    base=st.sampled_from(["ridge", "zero"]),
    rounded=st.booleans(),
    weighted=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_no_probe_finds_a_violation_of_any_layer(
    seed, rows, signs, depth, basis, rate, penalty, base, rounded, weighted
):
    X, y = data(rows, missing=bool(seed % 2), seed=seed)
    X = np.round(X) if rounded else X
    weight = np.random.default_rng(seed).exponential(size=rows) if weighted else None
    spec = {"n_estimators": 20, "max_depth": depth, "min_samples_leaf": 3, "basis": basis, "learning_rate": rate}
    spec |= {"reg_lambda": penalty, "base": base, "monotone_constraints": signs}
    layer = fit_layer(X, 10.0 ** (seed % 7 - 3) * y, spec, sample_weight=weight)
    assert probed(layer, X, signs, probes=2000, seed=seed) == 0


def test_a_layer_is_as_good_where_the_function_is_monotone():
    rng = np.random.default_rng(1)
    X, Z = rng.uniform(size=(2, 1500, 3))
    f = lambda x: 2 * x[:, 0] ** 2 + np.tanh(4 * x[:, 1] - 2) * (0.5 + x[:, 0]) + np.sin(6 * x[:, 2])  # noqa: E731
    y = f(X) + rng.normal(size=len(X)) * 0.5
    how = {"n_estimators": 200, "learning_rate": 0.05}
    free, constrained = (
        np.square(fit_layer(X, y, how | {"monotone_constraints": signs}).predict(Z)[:, 0] - f(Z)).mean()
        for signs in (None, (1, 1, 0))
    )
    assert constrained < free  # what it may not be is noise alone


def test_a_base_reads_what_is_free():
    X, y = data()
    free, constrained = (
        fit_layer(X, y, {"n_estimators": 0, "monotone_constraints": signs}).forest.leaves for signs in (None, SIGNS)
    )
    np.testing.assert_array_equal(constrained.weight[1:], np.where(np.array(SIGNS) == 0, free.weight[1:], 0.0))
    assert constrained.weight[0] == free.weight[0]


def test_threads_and_sparse_rows_change_no_bit():
    X, y = data(BLOCK_ROWS + 500)
    X[np.abs(X) < 0.5] = 0.0
    spec = {"n_estimators": 5, "monotone_constraints": SIGNS}
    one, two = (fit_layer(X, y, spec, n_jobs=n_jobs).predict(X) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
    how, weight = settings_of(OUTPUT, "lightgbm", seed=0, signs=SIGNS), np.ones(len(X))
    how, objective = replace(how, n_estimators=5), SquaredObjective(y[:, None], weight)
    dense, sparse = (
        fit(BoundInput(load_backend("lightgbm"), Table(table), how, weight), objective).output
        for table in (X, Sparse.of(sp.csc_matrix(X)))
    )
    np.testing.assert_array_equal(dense, sparse)


def test_no_signs_are_no_constraints():
    X, y = data()
    free, zeros = (fit_layer(X, y, {"monotone_constraints": signs}).predict(X) for signs in (None, (0, 0, 0, 0)))
    np.testing.assert_array_equal(free, zeros)


@pytest.mark.parametrize(
    ("spec", "cure"),
    [
        ({"leaves": "native"}, "leaves='native' is not supported with monotone_constraints=.*'refit'"),
        ({"basis": Elementwise([np.sin], [np.cos])}, "basis=.* is not supported with monotone_constraints"),
        ({"base": "additive"}, "base='additive' is not supported with monotone_constraints=.*'ridge'"),
        ({"clip": False}, "clip=False is not supported with monotone_constraints"),
        ({"standardize": False}, "standardize=False is not supported with monotone_constraints"),
        ({"multi_strategy": "multi_output_tree"}, "multi_strategy='multi_output_tree' is not supported with"),
        ({"monotone_constraints": (1, 0)}, r"\(1, 0\) has 2 signs, but X has 4 columns: give one for each"),
        ({"monotone_constraints": {"a": 1}}, "names .'a'., but X has no column names"),
        ({"monotone_constraints": (1, 0, 2, 0)}, r"\(1, 0, 2, 0\) is not allowed: give -1 \(falls\)"),
        ({"monotone_constraints": (True, 0, 0, 0)}, "is not allowed: give -1"),
        ({"monotone_constraints": "(1,0,0,0)"}, "'.1,0,0,0.' is not allowed: give -1"),
        ({"monotone_constraints": 1}, "monotone_constraints=1 is not allowed: give -1"),
        ({"backend_params": {"monotone_constraints": [1, 0, 0, 0]}}, r"Use output=\{'monotone_constraints': ...\}"),
    ],
    ids=repr,
)
def test_what_cannot_be_kept_is_refused(spec, cure):
    with pytest.raises(ValueError, match=cure):
        fit_layer(*data(), {"monotone_constraints": SIGNS} | spec)


def test_several_outputs_and_categories_are_refused():
    X, y = data(categorical=True)
    with pytest.raises(ValueError, match="not supported with 2 outputs"):
        fit_layer(X, np.stack([y, y], axis=1), {"monotone_constraints": SIGNS})
    with pytest.raises(ValueError, match=r"not supported for columns \[3\], categories"):
        fit_layer(X, y, {"monotone_constraints": (0, 0, 0, 1)}, categorical=(3,))


def test_names_are_those_of_the_columns():
    assert signs_of({"b": -1}, 3, labels=("'a'", "'b'", "'c'")) == (0, -1, 0)
    with pytest.raises(ValueError, match=r"names \['d'\], but the columns are \['a', 'b', 'c'\]"):
        signs_of({"d": -1}, 3, labels=("'a'", "'b'", "'c'"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("signs", [(1,), (1, 0, 0, 0, 1)])
def test_libraries_get_a_sign_for_each_column(backend, signs):
    with pytest.raises(ValueError, match="must hold 4 signs"):
        load_backend(backend).bind(Table(data()[0]), TreeParams(monotone=signs))


@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_libraries_get_no_sign_for_categories(backend):
    X, _ = data(categorical=True)
    with pytest.raises(ValueError, match=r"monotone=\(0, 0, 0, 1\) has signs for categories, \(3,\)"):
        load_backend(backend).bind(Table(X, (3,)), TreeParams(monotone=(0, 0, 0, 1)))  # LightGBM would end the process
