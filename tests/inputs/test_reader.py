"""An estimator that reads by these rooms alone keeps scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted

from boostbp.inputs import read_input, read_target, read_weight
from boostbp.trees.sparse import dense


class _Reads(BaseEstimator):
    """One tree on what was read."""

    def fit(self, X, y, sample_weight=None):
        X = dense(read_input(self, X, reset=True).X)
        y = read_target(y, len(X), labels=isinstance(self, ClassifierMixin))
        self.tree_ = self._tree(random_state=0, max_depth=8).fit(X, y, read_weight(sample_weight, len(X)))
        self.classes_ = getattr(self.tree_, "classes_", None)
        return self

    def predict(self, X):
        check_is_fitted(self)
        return self.tree_.predict(dense(read_input(self, X, reset=False).X))

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
