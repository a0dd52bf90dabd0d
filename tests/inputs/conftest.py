"""An estimator that only reads its input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from boostbp.inputs.schema import Schema, learn_schema, read_input
from boostbp.runtime import plain
from boostbp.trees.sparse import dense


class Estimator(BaseEstimator):
    """Something to hold names."""


def _fit(X, categorical_features="from_dtype"):
    """Schema and table of a training input, after a way through JSON, which must change neither."""
    estimator = Estimator()
    schema, table = learn_schema(estimator, X, categorical_features=categorical_features)
    estimator.schema_ = Schema.decoded(json.loads(json.dumps(plain.encode(schema, records=True), allow_nan=False)))
    again = read_input(estimator, X, estimator.schema_)
    np.testing.assert_array_equal(dense(again.X), dense(table.X))
    assert again.categorical == table.categorical
    assert dense(table.X).dtype == np.float64
    assert dense(table.X).flags.c_contiguous
    return estimator, table


@pytest.fixture(scope="session")
def fit():
    """Read a training input: the estimator and the table."""
    return _fit
