"""A sparse table tells the same as a dense one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from flat_parameters import parameters

from boostbp import BoostBPRegressor
from boostbp.model.summary import _center
from boostbp.trees.sparse import Sparse, Table
from tests.model.models import LIBRARIES, SMALL


@pytest.mark.parametrize("backend", LIBRARIES)
def test_sparse_and_dense_rows_are_told_apart_alike(backend):
    X = sp.random(300, 20, 0.3, format="csr", random_state=0)
    X.data[:7] = np.nan
    dense = X.toarray()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 300)
    X = X.tolil()
    X[:, 4] = dense[:, 4] = np.random.default_rng(1).choice(3, 300, p=[0.2, 0.7, 0.1])
    X = X.tocsr()
    y = np.nan_to_num(dense)[:, :5].sum(axis=1)
    model = BoostBPRegressor(**parameters(backend=backend, **SMALL, categorical_features=[4])).fit(
        X, y, sample_weight=weight
    )
    present = ~np.isnan(dense)
    center = np.where(present, dense, 0.0).T @ weight / (weight @ present)
    np.testing.assert_allclose(np.delete(model.feature_summary_.center, 4), np.delete(center, 4))
    assert model.schema_.categories[4][int(model.feature_summary_.center[4])] == 1.0
    rows, same = X[:25], dense[:25]
    found = model.attributions(rows, steps=3)
    np.testing.assert_array_equal(found.values, model.attributions(same, steps=3).values)
    assert found.error < 1e-12
    for kind in ("jacobian", "attribution"):
        np.testing.assert_array_equal(model.importance(kind, X=rows), model.importance(kind, X=same))
    assert model.leaf_report(rows[:2]) == model.leaf_report(same[:2])
    np.testing.assert_allclose(model.hidden_representation(rows, 0), model.hidden_representation(same, 0))


def test_center_of_a_column_missing_wherever_weights_are_large():
    X = np.array([[np.nan, 1e300, np.nan], [2.0, 1e300, np.nan], [0.0, -1e300, np.nan]])
    weight = np.array([1e25, 3.0, 1.0])
    expected = [1.5, 1e300, np.nan]
    for held in (X, Sparse.of(sp.csr_array(X))):
        np.testing.assert_allclose(_center(Table(held), weight), expected, rtol=1e-12)
