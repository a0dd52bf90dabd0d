"""deep=False: an average of single layers, and no network."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS, ONE_AT_ONCE, interrupted_fit, needs_torch
from sklearn.datasets import load_iris, make_friedman1
from sklearn.metrics import log_loss

from benchmarks.mixtures import GBDTNNRegressor
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, callbacks, load, save
from boostbp.ensemble.output_layers import Boosted
from boostbp.network.choice import CONSTANT_LEAVES
from boostbp.network.history import REFITTED, Stop
from boostbp.network.trainer import Trainer

X, Y = make_friedman1(300, n_features=5, random_state=0)
HELD_OUT = make_friedman1(150, n_features=5, random_state=1)
FAST = {"hidden": {"n_estimators": 5}, "epochs": 2, "random_state": 0}


@pytest.fixture(autouse=True)
def few_pieces(tune):
    """Single layers of 75 rounds at most."""
    tune(MAX_PIECES=3)


@pytest.fixture
def no_network(press):
    """Back-propagation is not called."""
    press(Trainer, "step", 1, AssertionError("a network is trained"))


@pytest.mark.parametrize("quality", [1, 2, 3, 4, 5])
@pytest.mark.usefixtures("no_network")
def test_all_qualities_do_without_networks(quality):
    model = BoostBPRegressor((3,), **parameters(deep=False, quality=quality, **FAST)).fit(X, Y)
    assert model.history_.stop is Stop.NO_NETWORK
    assert model.history_.refitted
    names = [one.name for one in model.history_.choice.candidates]
    assert quality == 1 or names[:2] == [CONSTANT_LEAVES, "single layer"]
    assert (len(names) == 1) == (quality == 1)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
@pytest.mark.usefixtures("no_network")
def test_classes_over_threads_and_files(backend, tmp_path):
    flowers, y = load_iris(return_X_y=True)
    model, parallel = (
        BoostBPClassifier((3,), **parameters(backend=backend, deep=False, n_jobs=n_jobs, **FAST)).fit(flowers, y)
        for n_jobs in (1, 3)
    )
    p = model.predict_proba(flowers)
    np.testing.assert_array_equal(parallel.predict_proba(flowers), p)
    assert parallel.history_.choice == model.history_.choice
    assert log_loss(y, p) < 0.4
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(flowers), p)
    assert again.deep is False
    assert again.history_ == model.history_
    assert again.summary() == model.summary()


@pytest.mark.usefixtures("no_network")
def test_hidden_layers_do_not_matter():
    fitted = [BoostBPRegressor(sizes, deep=False, random_state=0).fit(X, Y) for sizes in ((), (3,), (8, 4))]
    for other in fitted[1:]:
        np.testing.assert_array_equal(other.predict(X), fitted[0].predict(X))
        assert other.history_.choice == fitted[0].history_.choice


def test_one_single_layer_is_what_no_hidden_layers_are_by_default():
    kinds = [BoostBPRegressor((), **parameters(deep=deep, quality=1, **FAST)).fit(X, Y) for deep in ("auto", True)]
    np.testing.assert_array_equal(kinds[0].predict(X), kinds[1].predict(X))
    assert kinds[0].history_.choice is None


@pytest.mark.usefixtures("no_network", "unrounded")  # a sum is scored rounded if that is what it stays
def test_rows_that_were_held_out_are_learnt_from_in_the_end(before_refit):
    model = BoostBPRegressor(**parameters(deep=False, **FAST)).fit(X, Y)
    before = before_refit(BoostBPRegressor(**parameters(deep=False, **FAST)), X, Y)
    assert model.history_.choice == before.history_.choice
    assert [one.history_.refitted for one in (model, before)] == [True, False]
    assert f"\n{REFITTED}\n" in model.summary()
    assert not np.allclose(model.predict(X), before.predict(X))
    given = BoostBPRegressor(**parameters(deep=False, **FAST)).fit(X, Y, eval_set=[HELD_OUT])
    assert not given.history_.refitted


def test_a_default_model_without_hidden_layers_says_how_that_comes():
    """Of a single feature there are no directions, and quality 1 tries no networks."""
    model = BoostBPRegressor(quality=1, random_state=0).fit(X[:, :1], Y)
    assert "deep='auto' keeps none without weight" in str(model.health())
    with pytest.raises(ValueError, match=r"no hidden layer .*deep='auto' keeps none without weight\): use deep=True"):
        model.hidden_representation(X[:, :1], 0)


@pytest.mark.parametrize("bent", [False, True])
def test_whether_a_pipeline_runs_is_no_matter_of_the_rows(bent, tune):
    """Slopes may gain enough with one seed and not with another: scikit-learn's checks leave the seed open."""
    tune(SLOPES_LEAD=-np.inf if bent else np.inf)
    rows = X[:, :1]  # of a single feature there are no directions
    model = BoostBPRegressor((3,), n_estimators=5, **parameters(**FAST)).fit(rows, Y)
    with nullcontext() if bent else pytest.warns(UserWarning, match="no columns"):
        hidden = model.transform(rows)
    assert hidden.shape == (300, len(model.get_feature_names_out()))
    assert (hidden.shape[1] > 0) is bent


@pytest.mark.usefixtures("no_network")
def test_it_says_that_there_is_no_network():
    model = BoostBPRegressor(**parameters(deep=False, **FAST)).fit(X, Y)
    text = model.summary()
    assert text.startswith("The model averages ")
    assert "Hidden layers" not in text
    assert model.history_.stop is Stop.NO_NETWORK
    assert model.n_iter_ == 0
    health = model.health()
    assert (health.weight, health.layers, health.warnings) == (0.0, (), ())
    assert str(health).startswith("This model has no hidden layers: deep=False and hidden_layer_sizes=() train none")
    with pytest.raises(ValueError, match=r"layer=-1 does not exist: this model has no hidden layer \(deep=False"):
        model.transform(X)
    with pytest.raises(ValueError, match=r"no hidden layer, .* use deep=True"):
        model.get_feature_names_out()
    assert model.hidden_representation(X) == []
    assert model.jacobian(X).shape == (300, 1, 5)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_held_out_rows_it_is_one_single_layer(backend):
    how = {"backend": backend, "early_stopping": False, "random_state": 0, "n_estimators": 12}
    model = BoostBPRegressor((3,), **parameters(deep=False, **how)).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), BoostBPRegressor((), **parameters(**how)).fit(X, Y).predict(X))
    assert model.summary().endswith("the model is one layer of n_estimators rounds.")
    few = BoostBPRegressor((3,), **parameters(deep=False, **FAST)).fit(X[:30], Y[:30])
    assert few.history_.choice is None
    assert len(few.network_.layers) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.usefixtures("no_network")
def test_next_to_no_time_leaves_one_single_layer(n_jobs):
    model = BoostBPRegressor(**parameters(deep=False, max_time=1e-9, n_jobs=n_jobs, **FAST)).fit(X, Y)
    assert [one.name for one in model.history_.choice.candidates] == [CONSTANT_LEAVES]
    assert model.history_.choice.cut_by_time
    assert not model.history_.refitted
    whole = BoostBPRegressor(**parameters(deep=False, max_time=1e6, n_jobs=n_jobs, **FAST)).fit(X, Y)
    assert not whole.history_.choice.cut_by_time
    np.testing.assert_array_equal(
        whole.predict(X), BoostBPRegressor(**parameters(deep=False, **FAST)).fit(X, Y).predict(X)
    )


@pytest.mark.parametrize(("quality", "when"), [(1, 1), (1, 2), (1, 3), (3, 1), (3, 2), (3, 3), (3, 4), (3, 5)])
@pytest.mark.usefixtures("no_network")
def test_an_interrupt_keeps_the_pieces_that_are_there(press, quality, when):
    press(Boosted, "advance", when)
    model = BoostBPRegressor(**parameters(deep=False, quality=quality, **FAST))
    if when == 1:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        assert not hasattr(model, "network_")
        return
    model = interrupted_fit(model, X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert len(model.history_.choice.candidates) == 1 + (when > 4)
    assert sum(one.weight for one in model.history_.choice.candidates) == pytest.approx(1.0)
    assert not model.history_.refitted
    assert np.isfinite(model.predict(X)).all()


def test_what_keeps_the_training_of_a_network_is_refused(tmp_path):
    path = tmp_path / "state"
    for how in ({"checkpoint": path}, {"keep_state": True}, {"callbacks": [callbacks.checkpoint(path)]}):
        name = next(iter(how))
        with pytest.raises(ValueError, match=rf"^{name}.* with deep=False is not supported: .* Leave out {name}"):
            BoostBPRegressor(**parameters(deep=False, **FAST)).fit(X, Y, **how)
    assert not path.exists()


@pytest.mark.usefixtures("no_network")
def test_callbacks_of_epochs_are_not_called():
    seen = []
    BoostBPRegressor(**parameters(deep=False, verbose=1, **FAST)).fit(X, Y, callbacks=[seen.append])
    assert seen == []


@needs_torch
def test_what_is_made_of_its_hidden_layers_refuses_it():
    with pytest.raises(ValueError, match=r"^deep=False is not supported by GBDTNNRegressor"):
        GBDTNNRegressor((2,), deep=False).fit(X, Y)
    with pytest.raises(TypeError, match="BoostBPAutoencoder has no parameter 'deep'"):
        BoostBPAutoencoder((2,), deep=False)


def test_a_word_is_not_a_truth_value():
    with pytest.raises(ValueError, match="deep='false' is not known: use one of 'auto', True, False"):
        BoostBPRegressor(deep="false").fit(X, Y)


def test_bools_of_numpy_are_bools():
    model = BoostBPRegressor(**parameters(deep=np.False_, **FAST)).fit(X, Y)
    np.testing.assert_array_equal(
        model.predict(X), BoostBPRegressor(**parameters(deep=False, **FAST)).fit(X, Y).predict(X)
    )
    assert "No network was trained" in model.summary()


@pytest.mark.parametrize("base", ["zero", "ridge"])
def test_interaction_constraints_hold_in_the_average(base):
    pairs = {"interaction_constraints": [[0, 1], [2], [3], [4]]}
    model = BoostBPRegressor((), **parameters(deep=False, base=base, backend_params=pairs, max_depth=2, **FAST)).fit(
        X, Y
    )
    rows = X[:50].copy()
    moved, other = rows.copy(), rows.copy()
    moved[:, 2] = 0.9
    other[:, 3] = 0.1
    both = moved.copy()
    both[:, 3] = 0.1
    difference = model.predict(both) - model.predict(moved) - model.predict(other) + model.predict(rows)
    np.testing.assert_allclose(difference, 0.0, atol=1e-9 * np.abs(Y).max())


def test_a_summary_tells_of_no_network_that_was_not_trained():
    model = BoostBPRegressor(quality=2, random_state=0).fit(X, Y)
    assert model.history_.stop is Stop.NO_NETWORK
    assert any("directions" in one.name for one in model.history_.choice.candidates)
    assert "of the network" not in model.summary()
    assert "before any back-propagation" not in model.summary()
