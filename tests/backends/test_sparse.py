"""On a sparse table a library grows the trees that it grows on the dense one."""

from __future__ import annotations

from dataclasses import fields
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from boostbp.backends import available, capabilities_of, load_backend
from boostbp.backends.base import TreeParams
from boostbp.network.layers.cheaper_growth import RowSampling
from boostbp.trees import sparse
from boostbp.trees.sparse import Sparse, Table
from boostbp.trees.tree import Tree

ABLE = {name: capabilities_of(load_backend(name)) for name in available()}
SPARSE = [name for name in ABLE if ABLE[name].sparse]
CASES = [
    (name, missing, categorical)
    for name in SPARSE
    for missing, categorical in product((False, True), (False, True))
    # scikit-learn refuses gaps in a sparse matrix, and has no categories either
    if ABLE[name].categories or not (missing or categorical)
]


def tables(missing, categorical):
    """The same rows twice: counts, a column without zeros, one of zeros alone, perhaps codes."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1200, 9)) < 0.2, rng.integers(-3, 9, (1200, 9)) / 2, 0.0)
    X[:, 1], X[:, 2] = rng.standard_normal(1200), 0.0
    X[:, 8] = rng.integers(0, 7, 1200)
    if missing:
        X[rng.random(X.shape) < 0.05] = np.nan
    columns = (8,) if categorical else ()
    target = 2 * np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + (X[:, 8] == 3) + np.isnan(X[:, 3])
    return Table(X, columns), Table(Sparse.of(sp.csr_array(X)), columns), -np.column_stack([target, target[::-1]])


def assert_same(a, b):
    assert a.n_leaves > 3
    for field in fields(Tree):
        if field.name != "gain":
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))
    np.testing.assert_allclose(a.gain, b.gain, rtol=1e-9)  # scikit-learn sums it in another order


@pytest.mark.parametrize(("name", "missing", "categorical"), CASES)
@pytest.mark.parametrize("samples", [None, 700])
def test_trees_are_those_of_the_dense_table(name, missing, categorical, samples, tune):
    tune(sparse, CELLS=1000)
    dense, held, grad = tables(missing, categorical)
    backend = load_backend(name) if samples is None else RowSampling(load_backend(name), samples)
    growers = [backend.bind(table, TreeParams(max_depth=4)) for table in (dense, held)]
    for _ in range(2):
        for a, b in zip(*(grower.grow(grad, np.ones_like(grad)) for grower in growers), strict=True):
            assert_same(a, b)


@pytest.mark.parametrize("name", [name for name in SPARSE if ABLE[name].vector_leaf])
def test_shared_trees_are_those_of_the_dense_table(name):
    dense, held, grad = tables(missing=False, categorical=False)
    growth = TreeParams(max_depth=4, multi_output=True, min_samples_leaf=60)
    [a], [b] = (load_backend(name).bind(table, growth).grow(grad, np.ones_like(grad)) for table in (dense, held))
    assert_same(a, b)
