"""A user's own backend: an object with `bind`, passed as ``backend=``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from scipy.sparse import csr_array

from boostbp import BoostBPClassifier, BoostBPRegressor, backends, fit_layer
from boostbp.backends import Capabilities, Table, TreeParams
from boostbp.backends.capabilities import check_supported
from boostbp.network import layers
from boostbp.network.layers import BoundInput, LayerSettings, SquaredObjective
from boostbp.network.layers.cheaper_growth import SharedStructure
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


class TooManyLeaves(MedianStumps):
    """A chain of 300 leaves, whatever the largest depth."""

    def bind(self, table, growth):
        return self

    def fork(self, outputs, seed):
        return self

    def grow(self, grad, hess):
        left = ~np.arange(299)
        right = np.append(np.arange(1, 299), ~299)
        return [Tree.of(np.zeros(299), np.linspace(-1, 1, 299), left, right, np.ones(299))] * grad.shape[1]


@pytest.mark.parametrize("multi_strategy", ["one_output_per_tree", "multi_output_tree"])
def test_trees_beyond_the_allowed_leaves_are_refused(multi_strategy):
    with pytest.raises(ValueError, match=r"grew 300 leaves: `TreeParams.leaves` allows 8"):
        fit_layer(X, y, {"max_depth": 3, "n_estimators": 2, "multi_strategy": multi_strategy}, backend=TooManyLeaves())
    assert fit_layer(X, y, {"max_depth": 9, "n_estimators": 2}, backend=TooManyLeaves()).forest.n_trees == 3


class Spoilt(MedianStumps):
    """Gives other trees than it grew."""

    def __init__(self, spoil):
        self.spoil = spoil

    def bind(self, table, growth):
        grower = super().bind(table, growth)
        grow = grower.grow
        grower.grow = lambda grad, hess: self.spoil(grow(grad, hess))
        return grower


spoilt_trees = pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda trees: [replace(tree, feature=tree.feature + 50) for tree in trees], r"splits feature 5\d, of \d"),
        (lambda trees: [replace(tree, feature=tree.feature - 9) for tree in trees], r"splits feature -\d, of \d"),
        (lambda trees: [*trees, trees[0]], r"grew \d trees instead of \d"),
        (lambda trees: [], r"grew 0 trees instead of \d"),
        (lambda trees: None, r"grew None instead of \d"),
        (lambda trees: trees[0], r"instead of \d: `grow` must return a sequence"),
    ],
)


@pytest.mark.parametrize("multi_strategy", ["one_output_per_tree", "multi_output_tree"])
@spoilt_trees
def test_trees_that_cannot_be_are_refused_by_name(spoil, message, multi_strategy):
    with pytest.raises(ValueError, match=message):
        BoostBPRegressor(
            (4,), **parameters(backend=Spoilt(spoil), deep=True, epochs=1, multi_strategy=multi_strategy)
        ).fit(X, y)


@spoilt_trees
def test_structures_of_several_classes_that_cannot_be_are_refused_by_name(spoil, message):
    Y = np.column_stack([y, -y, X[:, 2]])
    bound = BoundInput(SharedStructure(Spoilt(spoil)), Table(X, ()), LayerSettings(n_estimators=2), np.ones(len(X)))
    with pytest.raises(ValueError, match=message):
        layers.fit(bound, SquaredObjective(Y, np.ones(len(X))))


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


CODES = np.column_stack([X, rng.integers(0, 3, len(X))])
GAPS = np.where(rng.uniform(size=X.shape) < 0.1, np.nan, X)


@pytest.mark.parametrize(
    ("data", "changes", "message"),
    [
        (GAPS, {}, r"X has missing values, .* lack 'missing'\. Impute them, or use"),
        (CODES, {"categorical_features": [3]}, r"columns \[3\] of X are categorical, .* 'categories'\. Encode them"),
        (csr_array(X), {}, r"X is sparse, .* lack 'sparse'\. Pass X.toarray\(\), or use"),
        (X, {"backend_params": {"depth": 3}}, r"backend_params=\{'depth': 3\}, .* 'params'\. Leave it out, or use"),
        (X, {"extra_trees": True}, r"extra_trees=True is not supported by backend="),
        (X, {"leaves": "native", "basis": "linear"}, r"leaves='native' is not supported by this backend, .* 'native_l"),
    ],
)
def test_what_a_backend_does_not_declare_is_refused_by_name(data, changes, message):
    with pytest.raises(ValueError, match=message):
        BoostBPRegressor((2,), **parameters(backend=MedianStumps(), deep=True, epochs=1, **changes)).fit(data, y)


def test_layers_ask_for_no_draw_that_is_not_declared():
    with pytest.raises(ValueError, match=r"colsample_bytree=0\.5, .* 'colsample_bytree'\. Use 1\.0, or use another"):
        check_supported(MedianStumps(), Table(X), TreeParams(colsample_bytree=0.5))


def test_capabilities_of_another_kind_are_refused():
    own = MedianStumps()
    own.capabilities = {"sparse": True}
    with pytest.raises(TypeError, match=r"capabilities=\{'sparse': True\}: let it be a boostbp.backends.Capabilities"):
        fit_layer(X, y, {"n_estimators": 2}, backend=own)
