"""Once the model is chosen, its output layers are grown again on all rows, those that chose it included."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from flat_parameters import layer_of, parameters
from helpers import BACKENDS, interrupted_fit
from sklearn.datasets import load_digits, make_friedman1

from boostbp import BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.ensemble import average, candidate, constants, output_layers, refits
from boostbp.network.history import REFITTED, Stop

X, Y = make_friedman1(400, n_features=5, random_state=0)
HELD = make_friedman1(200, n_features=5, random_state=1)
LAYER = {"max_depth": 3, "reg_lambda": 2.0, "base_lambda": 1.0, "extra_trees": False}
FAST = {"n_estimators": 5, "learning_rate": 0.1, "epochs": 2, "random_state": 0, **LAYER}


@pytest.fixture(autouse=True)
def one_piece(monkeypatch):
    """Single layers and final output layers of 25 rounds."""
    monkeypatch.setattr(constants, "MAX_PIECES", 1)
    monkeypatch.setattr(constants, "PIECE_ROUNDS", 25)


@pytest.fixture
def choose(monkeypatch):
    """Make the model of candidates in equal parts, by their names."""

    def choose(*names):
        def ensemble_weights(candidates, *rest, **how):
            weights = np.array([float(one.name in names) for one in candidates])
            assert weights.sum() == len(names)
            return weights / len(names), 1.0, 0.1

        monkeypatch.setattr(average, "ensemble_weights", ensemble_weights)

    return choose


def target_of(model):
    """What the output layer of a model is fitted to, on all rows."""
    return (Y - model._shift[0]) / model._scale[0] - model.network_.baseline[0]


def output_of(model):
    return (model.predict(X) - model._shift[0]) / model._scale[0] - model.network_.baseline[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_layer_is_the_one_of_all_rows(choose, backend):
    choose("single layer")
    model = BoostBPRegressor((3,), **parameters(backend=backend, **FAST)).fit(X, Y)
    layer = layer_of(
        X, target_of(model), n_estimators=25, learning_rate=0.04, base="ridge", backend=backend, **LAYER
    )  # fmt: skip
    np.testing.assert_allclose(output_of(model), layer.predict(X).ravel(), rtol=1e-7, atol=1e-9)
    assert not np.allclose(
        model.predict(X),
        BoostBPRegressor((3,), **parameters(backend=backend, refit=False, **FAST)).fit(X, Y).predict(X),
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_output_layer_of_a_network_is_the_one_of_all_rows_on_hidden_units_that_stay(choose, backend):
    choose("network")
    model = BoostBPRegressor((3,), **parameters(backend=backend, **FAST)).fit(X, Y)
    before = BoostBPRegressor((3,), **parameters(backend=backend, refit=False, **FAST)).fit(X, Y)
    H = model.transform(X)
    np.testing.assert_array_equal(H, before.transform(X))
    n_rounds = model.network_.layers[-1].forest.n_trees - 1  # the base is a tree
    assert n_rounds == before.network_.layers[-1].forest.n_trees - 1
    layer = layer_of(
        H, target_of(model), n_estimators=n_rounds, learning_rate=0.1, base="ridge", backend=backend, **LAYER
    )  # fmt: skip
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


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("name", ["single layer", "network", "network, final output layer"])
def test_sparse_rows_are_joined_as_dense_ones(choose, backend, name):
    choose(name)
    Z = np.where(np.abs(X - 0.5) < 0.2, 0.0, X)
    dense = BoostBPRegressor((3,), **parameters(backend=backend, **FAST)).fit(Z, Y)
    sparse = BoostBPRegressor((3,), **parameters(backend=backend, **FAST)).fit(sp.csr_matrix(Z), Y)
    assert sparse.history_.refitted
    np.testing.assert_array_equal(sparse.predict(Z), dense.predict(Z))


def test_weights_of_all_rows_count(choose):
    choose("single layer")
    weight = np.random.default_rng(0).integers(0, 4, 400).astype(float)
    model = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, sample_weight=weight)
    layer = layer_of(
        X, target_of(model), n_estimators=25, learning_rate=0.04, base="ridge", sample_weight=weight, **LAYER
    )  # fmt: skip
    np.testing.assert_allclose(output_of(model), layer.predict(X).ravel(), rtol=1e-7, atol=1e-9)


def test_weights_of_held_out_rows_are_in_the_unit_of_the_others(choose):
    choose("single layer")
    model = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y)
    shares = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, sample_weight=np.full(400, 1 / 400))
    np.testing.assert_allclose(shares.predict(X), model.predict(X), rtol=1e-9)


def test_rows_that_the_user_holds_out_stay_out():
    given = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y, eval_set=[HELD], eval_names=["held_out"])
    without = BoostBPRegressor((3,), **parameters(refit=False, **FAST)).fit(X, Y, eval_set=[HELD])
    assert not given.history_.refitted
    np.testing.assert_array_equal(given.predict(X), without.predict(X))


def test_network_alone_stays_as_it_was_trained():
    models = [BoostBPRegressor((3,), **parameters(deep=True, refit=flag, **FAST)).fit(X, Y) for flag in (True, False)]
    np.testing.assert_array_equal(*(model.predict(X) for model in models))


def test_the_choice_does_not_depend_on_it_and_says_so(tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    model, before = (BoostBPClassifier((3,), **parameters(refit=flag, **FAST)).fit(X, y) for flag in (True, False))
    assert model.history_.choice.candidates == before.history_.choice.candidates
    assert [one.history_.refitted for one in (model, before)] == [True, False]
    assert model.history_.scores == before.history_.scores == before.history_.choice.metrics
    assert list(model.history_.scores) == ["held_out"]
    assert model.summary().endswith(f" on held_out.\n{REFITTED}")
    assert "grown again" not in before.summary()
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.history_.choice == model.history_.choice
    assert again.history_.refitted
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("event", [KeyboardInterrupt, FloatingPointError])
def test_what_cannot_be_refitted_stays(monkeypatch, choose, event):
    names = ["single layer", "network", "linear network"]
    choose(*names)
    original, calls = output_layers.boost_again, []

    def again(*args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise event
        return original(*args, **options)

    before = BoostBPRegressor((3,), **parameters(refit=False, **FAST)).fit(X, Y)
    monkeypatch.setattr(refits, "boost_again", again)
    model = BoostBPRegressor((3,), **parameters(**FAST))
    model = interrupted_fit(model, X, Y) if event is KeyboardInterrupt else model.fit(X, Y)
    assert len(calls) == (2 if event is KeyboardInterrupt else 3)
    assert (model.history_.stop is Stop.INTERRUPTED) == (event is KeyboardInterrupt)
    assert model.history_.refitted
    np.testing.assert_array_equal(model.transform(X), before.transform(X))
    assert not np.allclose(model.predict(X), before.predict(X))


def test_without_time_nothing_is_refitted(monkeypatch, choose):
    choose("single layer", "network")
    before = BoostBPRegressor((3,), **parameters(refit=False, **FAST)).fit(X, Y)
    again = output_layers.boost_again
    monkeypatch.setattr(refits, "boost_again", lambda problem, plan, over: again(problem, plan, over=lambda: True))
    model = BoostBPRegressor((3,), **parameters(**FAST)).fit(X, Y)
    assert not model.history_.refitted
    np.testing.assert_array_equal(model.predict(X), before.predict(X))


def test_interrupted_fit_is_not_drawn_out_by_it(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(candidate, "output_table", interrupted)
    model = interrupted_fit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert not model.history_.refitted
