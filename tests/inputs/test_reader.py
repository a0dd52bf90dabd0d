"""An estimator that reads by these rooms alone keeps scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted

from boostbp.inputs.schema import learn_schema, read_input
from boostbp.inputs.sources import open_source
from boostbp.inputs.targets import read_target, read_weight
from boostbp.trees.sparse import dense


class _Reads(BaseEstimator):
    """One tree on what was read."""

    def fit(self, X, y, sample_weight=None):
        self.schema_, table = learn_schema(self, X)
        X = dense(table.X)
        y = read_target(y, len(X), labels=isinstance(self, ClassifierMixin))
        self.tree_ = self._tree(random_state=0, max_depth=8).fit(X, y, read_weight(sample_weight, len(X)))
        self.classes_ = getattr(self.tree_, "classes_", None)
        return self

    def predict(self, X):
        check_is_fitted(self)
        return self.tree_.predict(dense(read_input(self, X, self.schema_).X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


class ReadingRegressor(RegressorMixin, _Reads):
    """Reads numbers."""

    _tree = DecisionTreeRegressor


class ReadingClassifier(ClassifierMixin, _Reads):
    """Reads labels."""

    _tree = DecisionTreeClassifier


CHECKS = [case for made in (ReadingRegressor(), ReadingClassifier()) for case in estimator_checks_generator(made)]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_an_estimator_that_reads_by_them_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_names_and_counts_are_kept_on_the_estimator():
    estimator = ReadingRegressor().fit(np.eye(3), np.arange(3))
    assert estimator.n_features_in_ == 3
    assert estimator.schema_.n_features == 3
    assert not hasattr(estimator, "feature_names_in_")


NUMBERS = np.array([[0.1, -2.0, np.nan], [3e30, 0.0, -0.0]])
SMALL = {
    "float64": NUMBERS,
    "float32": np.array([[0.1, 2.5, np.nan]], np.float32),
    "turned": np.asfortranarray(NUMBERS),
    "big end first": NUMBERS.astype(">f8"),
    "integers": np.array([[2**63 - 1, -5, 2**53 + 1]]),
    "truth": np.array([[True, False, True]]),
    "frame": pd.DataFrame(NUMBERS, columns=list("abc")),
    "frame of kinds": pd.DataFrame({"a": [2**53 + 1, 2], "b": np.float32([0.1, np.nan]), "c": [0.5, -1.0]}),
    "frame of columns": pd.DataFrame(np.arange(24.0).reshape(8, 3)[::2], columns=list("abc")),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_tables_of_numbers_are_read_as_large_ones(name):
    X = SMALL[name]
    estimator = ReadingRegressor().fit(X, np.zeros(len(X)))
    careful = estimator.schema_.read(open_source(X))
    table = read_input(estimator, X, estimator.schema_)
    assert table.X.tobytes() == careful.X.tobytes()
    assert (table.X.dtype, table.X.shape, table.categorical) == (np.float64, X.shape, ())
    assert table.X.flags.c_contiguous


FRAME = pd.DataFrame(NUMBERS, columns=list("abc"))


@pytest.mark.parametrize(
    ("fitted", "X", "says"),
    [
        (NUMBERS, NUMBERS[:, :2], "X has 2 features, but ReadingRegressor is expecting 3"),
        (NUMBERS, NUMBERS[0], "Expected 2D array, got 1D array"),
        (NUMBERS, NUMBERS[:0], "Found array with 0 sample"),
        (NUMBERS, np.array([[0.0, np.inf, 0.0]]), r"infinity: Column 1, row 0 .* holds inf"),
        (NUMBERS, np.array([[0.0, "x", 0.0]], object), "holds 'x'"),
        (NUMBERS, np.array([[1j, 0.0, 0.0]]), "Complex"),
        (FRAME, FRAME[["a", "c", "b"]], "must be in the same order"),
        (FRAME, FRAME.rename(columns={"b": "x"}), "seen at fit time"),
        (FRAME, FRAME.assign(b=-np.inf), r"infinity: Column 'b', row 0"),
        (FRAME, FRAME.assign(b="x"), "Column 'b' holds 'x'"),
    ],
)
def test_small_tables_that_do_not_fit_are_refused_as_large_ones(fitted, X, says):
    estimator = ReadingRegressor().fit(fitted, np.zeros(len(fitted)))
    with pytest.raises(ValueError, match=says):
        read_input(estimator, X, estimator.schema_)


@pytest.mark.parametrize(("fitted", "X"), [(NUMBERS, FRAME), (FRAME, NUMBERS)])
def test_a_table_with_names_and_one_without_are_told_apart(fitted, X):
    estimator = ReadingRegressor().fit(fitted, np.zeros(len(fitted)))
    with pytest.warns(UserWarning, match="feature names"):
        read_input(estimator, X, estimator.schema_)
