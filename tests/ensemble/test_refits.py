"""Once the model is chosen, leaves of its output layers are fitted again on all rows, those that chose it too."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from flat_parameters import layer_of, parameters
from helpers import ONE_AT_ONCE, interrupted_fit
from sklearn.datasets import load_digits, make_friedman1

from boostbp import BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.ensemble import constants, output_layers, refits
from boostbp.ensemble.candidate import NetworkTraining
from boostbp.network.history import REFITTED, Stop
from boostbp.network.layers.cheaper_growth import FixedStructure

X, Y = make_friedman1(400, n_features=5, random_state=0)
HELD = make_friedman1(200, n_features=5, random_state=1)
LAYER = {"max_depth": 3, "reg_lambda": 2.0, "base_lambda": 1.0, "extra_trees": False}
FAST = {"hidden__n_estimators": 5, "learning_rate": 0.1, "epochs": 2, "random_state": 0, **LAYER}


@pytest.fixture(autouse=True)
def one_piece(unrounded, tune):
    """Single layers and final output layers of one piece, with leaves to the last bit."""
    tune(MAX_PIECES=1, PIECE_ROUNDS=25)


def target_of(model):
    """What the output layer of a model is fitted to, on all rows."""
    return (Y - model.model_.targets.shift[0]) / model.model_.targets.scale[0] - model.network_.baseline[0]


def output_of(model):
    return model.model_.targets.to_loss(model.predict(X)) - model.network_.baseline[0]


def structures_of(model):
    """A backend that grows the trees of a model's output layer once more; the first one is the base."""
    return FixedStructure.of(replace(model.network_.layers[-1].forest, n_base=1), shared=False)


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_single_layer_has_the_leaves_of_all_rows_in_the_same_trees(choose, before_refit, backend):
    choose("single layer")
    model = BoostBPRegressor((3,), **parameters(backend=backend, deep=False, **FAST)).fit(X, Y)
    before = before_refit(BoostBPRegressor((3,), **parameters(backend=backend, deep=False, **FAST)), X, Y)
    rounds = {"n_estimators": constants.PIECE_ROUNDS, "learning_rate": 0.1, "backend": structures_of(before)}
    layer = layer_of(X, target_of(model), base="ridge", **rounds, **LAYER)
    np.testing.assert_allclose(output_of(model), layer.predict(X).ravel(), rtol=1e-7, atol=1e-9)
    nodes, nodes_before = (one.network_.layers[-1].forest.nodes for one in (model, before))
    np.testing.assert_array_equal(nodes.feature, nodes_before.feature)
    np.testing.assert_array_equal(nodes.threshold, nodes_before.threshold)
    assert not np.allclose(model.predict(X), before.predict(X))


def test_constant_leaves_are_the_means_of_all_rows(choose, before_refit, tune):
    """One tree of squared error: a leaf's shrunk mean is known in closed form."""
    tune(PIECE_ROUNDS=1)
    choose("single layer, constant leaves")
    model = BoostBPRegressor((3,), **parameters(deep=False, **FAST)).fit(X, Y)
    forest = model.network_.layers[-1].forest
    leaf = forest.route(X)[0]
    sums, counts = np.bincount(leaf, target_of(model)), np.bincount(leaf)
    expected = 0.1 * (sums / (counts + LAYER["reg_lambda"]))[leaf]
    np.testing.assert_allclose(output_of(model), expected, rtol=1e-9, atol=1e-12)
    assert len(counts) > 5


@pytest.mark.slow
def test_output_layer_of_a_network_has_the_leaves_of_all_rows_on_hidden_units_that_stay(choose, before_refit):
    choose("network")
    model = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y)
    before = before_refit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y)
    H = model.transform(X)
    np.testing.assert_array_equal(H, before.transform(X))
    n_rounds = model.network_.layers[-1].forest.n_trees - 1  # the base is a tree
    assert n_rounds == before.network_.layers[-1].forest.n_trees - 1
    rounds = {"n_estimators": n_rounds, "learning_rate": 0.1, "backend": structures_of(before)}
    layer = layer_of(H, target_of(model), base="ridge", **rounds, **LAYER)
    np.testing.assert_allclose(output_of(model), layer.predict(H).ravel(), rtol=1e-7, atol=1e-9)


def test_features_beside_hidden_units_keep_their_categories(choose):
    choose("network, final output layer")
    rng = np.random.default_rng(0)
    group = rng.integers(0, 12, 400)
    frame = pd.DataFrame(X).assign(group=pd.Categorical(group.astype(str)))
    frame.columns = frame.columns.astype(str)
    shift = 20.0 * rng.permutation(12)[group]
    model = BoostBPRegressor((3,), **parameters(skip=True, **FAST | {"min_samples_leaf": 5})).fit(frame, Y + shift)
    nodes = model.network_.layers[-1].forest.nodes
    assert model.history_.refitted
    assert (nodes.cat_start[nodes.feature == 3 + 5] >= 0).all()
    assert (nodes.feature == 3 + 5).any()
    assert (nodes.cat_start[nodes.feature != 3 + 5] < 0).all()


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        ("lightgbm", "single layer"),
        ("lightgbm", "network, final output layer"),
        pytest.param("lightgbm", "network", marks=pytest.mark.slow),
        pytest.param("xgboost", "network, final output layer", marks=pytest.mark.slow),
    ],
)
def test_sparse_rows_are_joined_as_dense_ones(choose, backend, name):
    choose(name)
    Z = np.where(np.abs(X - 0.5) < 0.2, 0.0, X)
    dense = BoostBPRegressor((3,), **parameters(backend=backend, **FAST)).fit(Z, Y)
    sparse = BoostBPRegressor((3,), **parameters(backend=backend, **FAST)).fit(sp.csr_matrix(Z), Y)
    assert sparse.history_.refitted
    np.testing.assert_array_equal(sparse.predict(Z), dense.predict(Z))


def test_weights_of_all_rows_count(choose, before_refit):
    choose("single layer")
    weight = np.random.default_rng(0).integers(0, 4, 400).astype(float)
    model = BoostBPRegressor((3,), **parameters(deep=False, **FAST)).fit(X, Y, sample_weight=weight)
    before = before_refit(BoostBPRegressor((3,), **parameters(deep=False, **FAST)), X, Y, sample_weight=weight)
    rounds = {"n_estimators": constants.PIECE_ROUNDS, "learning_rate": 0.1, "sample_weight": weight}
    layer = layer_of(X, target_of(model), base="ridge", backend=structures_of(before), **rounds, **LAYER)
    np.testing.assert_allclose(output_of(model), layer.predict(X).ravel(), rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_weights_of_held_out_rows_are_in_the_unit_of_the_others(choose):
    choose("single layer")
    model = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y)
    shares = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, sample_weight=np.full(400, 1 / 400))
    np.testing.assert_allclose(shares.predict(X), model.predict(X), rtol=1e-9)


def test_rows_that_the_user_holds_out_stay_out(before_refit):
    given = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD], eval_names=["held_out"])
    without = before_refit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y, eval_set=[HELD])
    assert not given.history_.refitted
    np.testing.assert_array_equal(given.predict(X), without.predict(X))


def test_hidden_layer_of_a_network_alone_stays_as_it_was_trained(before_refit):
    model, before = (BoostBPRegressor((3,), **parameters(deep=True, **FAST)) for _ in range(2))
    np.testing.assert_array_equal(model.fit(X, Y).transform(X), before_refit(before, X, Y).transform(X))
    assert model.history_.refitted
    assert np.abs(model.predict(X) - before.predict(X)).max() > 1e-3


def test_every_quality_learns_from_all_rows_in_the_end():
    for deep, sizes in (("auto", (3,)), (False, (3,)), ("auto", ())):
        model = BoostBPRegressor(sizes, **parameters(deep=deep, quality=1, **FAST)).fit(X, Y)
        assert model.history_.refitted
        assert REFITTED in model.summary()


def test_it_says_so_and_scores_are_those_before(before_refit, tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    model, before = (BoostBPClassifier((3,), **parameters(deep=False, quality=2, **FAST)) for _ in range(2))
    model.fit(X, y)
    before_refit(before, X, y)
    assert [one.history_.refitted for one in (model, before)] == [True, False]
    assert model.history_.scores == before.history_.scores == before.history_.choice.metrics
    assert list(model.history_.scores) == ["held_out"]
    assert f"\n{REFITTED}\n" in model.summary()
    assert REFITTED not in before.summary()
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.history_.choice == model.history_.choice
    assert again.history_.refitted
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
@pytest.mark.parametrize("event", [KeyboardInterrupt, FloatingPointError])
def test_what_cannot_be_refitted_stays(fails, choose, before_refit, event):
    names = ["single layer", "network", "linear network"]
    choose(*names)
    calls = []

    def second(*args):
        calls.append(1)
        return len(calls) == 2

    before = before_refit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y)
    fails(refits, "boost_again", event(), second)
    model = BoostBPRegressor((3,), **parameters(**FAST))
    model = interrupted_fit(model, X, Y) if event is KeyboardInterrupt else model.fit(X, Y)
    assert len(calls) == (2 if event is KeyboardInterrupt else 3)
    assert (model.history_.stop is Stop.INTERRUPTED) == (event is KeyboardInterrupt)
    assert len(model.history_.choice.failed) == (event is FloatingPointError)
    assert model.history_.refitted
    np.testing.assert_array_equal(model.transform(X), before.transform(X))
    assert not np.allclose(model.predict(X), before.predict(X))


def test_without_time_nothing_is_refitted(tune, choose, before_refit):
    choose("single layer", "network")
    before = before_refit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y)
    again = refits.boost_again
    tune(refits, boost_again=lambda problem, plan, over: again(problem, plan, over=lambda: True))
    model = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y)
    assert not model.history_.refitted
    np.testing.assert_array_equal(model.predict(X), before.predict(X))


@pytest.mark.slow
def test_time_is_left_for_it(before, tune):
    """Once the first layer is there, what is tried ends before time is up, by what the refit takes."""
    now = [0.0]

    def passes(seconds):
        now[0] += seconds

    tune(time, perf_counter=lambda: now[0])
    tune(output_layers, round_work=lambda *sizes: 1.0)
    tune(MAX_PIECES=6)
    before(output_layers.Boosted, "advance", lambda *_, **options: passes(0.7))  # to grow
    before(output_layers.LayerTraining, "advance", lambda *_, **options: passes(0.3))  # to look at it
    for max_time in range(16, 40, 8):
        now[0] = 0.0
        model = BoostBPRegressor((3,), **parameters(deep=False, quality=4, max_time=max_time, **FAST)).fit(X, Y)
        assert model.history_.refitted
        assert model.history_.choice.cut_by_time
        assert now[0] < max_time + 1.0  # the last piece was begun in time


def test_interrupted_fit_is_not_drawn_out_by_it(press):
    press(NetworkTraining, "__init__", 1)
    model = interrupted_fit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert not model.history_.refitted
