"""What a backend declares, and trees that it returns: what cannot be is refused by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS
from scipy.sparse import csr_array

from boostbp import BoostBPRegressor, fit_layer
from boostbp.backends import load_backend
from boostbp.backends.base import TreeParams
from boostbp.backends.capabilities import capabilities_of, check_supported
from boostbp.network import layers
from boostbp.network.layers import BoundInput, LayerSettings, SquaredObjective
from boostbp.network.layers.cheaper_growth import SharedStructure
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Tree
from tests.estimators.test_own_backend import MedianStumps

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (400, 3))
y = np.abs(X[:, 0]) + X[:, 1]


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


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("n_rows", [100, 2001, 20_001, 10**6])
@pytest.mark.parametrize("n_outputs", [1, 2, 9, 40])
def test_outputs_are_shared_among_no_more_streams_than_there_are(name, n_rows, n_outputs):
    streams = capabilities_of(load_backend(name)).streams(n_rows, n_outputs, TreeParams())
    assert 1 <= streams <= n_outputs
