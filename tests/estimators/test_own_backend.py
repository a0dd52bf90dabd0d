"""A user's own backend: an object with `bind`, passed as ``backend=``, in estimators and layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters

from boostbp import BoostBPClassifier, BoostBPRegressor, backends, fit_layer
from boostbp.backends import Capabilities
from boostbp.trees.tree import Tree

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (400, 3))
y = np.abs(X[:, 0]) + X[:, 1]
FAST = {"n_estimators": 3, "epochs": 1, "random_state": 0}


class MedianStumps:
    """Grows stumps that split the feature most correlated with the gradient at its median."""

    def bind(self, table, growth):
        self.bound = (table, growth)
        return MedianStumpGrower(table.X)


class MedianStumpGrower:
    def __init__(self, X):
        self.X, self.medians = X, np.median(X, axis=0)

    def grow(self, grad, hess):
        sides = self.medians < self.X
        trees = []
        for column in grad.T:
            gains = [abs(column[side].sum() - column[~side].sum()) for side in sides.T]
            best = int(np.argmax(gains))
            trees.append(Tree.of([best], [self.medians[best]], [~0], [~1], [True]))
        return trees

    def fork(self, outputs, seed):
        return self


def test_estimators_train_on_an_own_backend():
    own = MedianStumps()
    model = BoostBPRegressor(
        (4,), backend=own, deep=True, epochs=3, max_depth=7, early_stopping=True, random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.9
    assert own.bound[1].max_depth == 7
    nodes = model.network_.layers[0].forest.nodes
    assert set(nodes.threshold) <= set(np.median(own_input(model), axis=0))
    classifier = BoostBPClassifier((4,), backend=MedianStumps(), epochs=2, random_state=0).fit(X, y > 0.5)
    assert classifier.score(X, y > 0.5) > 0.9


@pytest.mark.parametrize(
    ("rows", "early_stopping", "held"),
    [(35, "auto", 0), (36, "auto", 9), (160, "auto", 40), (400, "auto", 50), (1000, "auto", 100), (400, True, 40)],
)
def test_rows_held_out_are_a_tenth_but_not_too_few(rows, early_stopping, held):
    own = MedianStumps()
    data = np.random.default_rng(0).uniform(-1, 1, (rows, 3))
    model = BoostBPRegressor((2,), backend=own, deep=True, epochs=1, early_stopping=early_stopping, random_state=0)
    model.fit(data, data[:, 0])
    assert len(own.bound[0].X) == rows - held


def own_input(model):
    """The rows that the first layer was fitted on: all but those held out, in order."""
    from sklearn.model_selection import train_test_split

    seed = np.random.RandomState(0).randint(2**31 - 1)
    train, _ = train_test_split(np.arange(len(X)), test_size=model.validation, random_state=seed)
    return X[np.sort(train)]


def test_fit_layer_takes_an_own_backend():
    layer = fit_layer(X, y, {"n_estimators": 30, "basis": "quadratic"}, backend=MedianStumps())
    assert 1 - np.var(layer.predict(X).ravel() - y) / np.var(y) > 0.5
    assert set(layer.forest.nodes.threshold) <= set(np.median(X, axis=0))


def test_an_object_without_bind_is_refused():
    with pytest.raises((TypeError, ValueError), match=r"backend.*bind"):
        BoostBPRegressor(backend=object(), epochs=1).fit(X, y)


class AllFeatures:
    """Scikit-learn's trees, which split on any feature, whatever share of them is asked for."""

    def __init__(self, **declared):
        self.asked = []
        self.capabilities = Capabilities(**declared)

    def bind(self, table, growth):
        self.asked.append(growth.colsample_bytree)
        return backends.load_backend("sklearn").bind(table, replace(growth, colsample_bytree=1.0))


@pytest.fixture
def few_features(everything, tune):
    """All candidates are tried, those that draw features too."""
    tune(MIN_FEATURES_SAMPLED=2)


@pytest.mark.usefixtures("few_features")
@pytest.mark.parametrize("structure_samples", [None, 300])
@pytest.mark.parametrize("extra_trees", [False, True])
@pytest.mark.parametrize("lies", [True, False], ids=["lies", "says so"])
def test_a_backend_that_draws_no_features_gives_no_candidate_twice(lies, extra_trees, structure_samples):
    own = AllFeatures(extra_trees=extra_trees, colsample_bytree="node" if lies else None)
    changes = parameters(backend=own, structure_samples=structure_samples, **FAST)
    losses = [one.loss for one in BoostBPRegressor((2,), **changes).fit(X, y).history_.choice.candidates]
    assert len(set(losses)) == len(losses) > 5
    assert (min(own.asked) < 1.0) == lies


class BestThresholds(AllFeatures):
    """Takes the best threshold of all features, though it says that it draws one."""

    def bind(self, table, growth):
        return super().bind(table, replace(growth, extra_trees=False))


@pytest.mark.usefixtures("few_features")
def test_a_backend_that_draws_no_thresholds_gives_no_candidate_twice():
    model = BoostBPRegressor(
        (2,), **parameters(backend=BestThresholds(extra_trees=True, colsample_bytree="node"), **FAST)
    ).fit(X, y)
    losses = [one.loss for one in model.history_.choice.candidates]
    assert len(set(losses)) == len(losses) > 5
