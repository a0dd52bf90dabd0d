"""Properties of the driver: Algorithm 1 against a plain second implementation, orders, stopping."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import ONE_AT_ONCE, interrupted_fit
from sklearn.datasets import load_diabetes, make_friedman1

from boostbp import BoostBPRegressor, backends, losses, metrics, paper_settings
from boostbp.backends.base import TreeParams
from boostbp.estimators.request import Request
from boostbp.inputs.rows import Rows
from boostbp.network.backprop import BackPropagation
from boostbp.network.history import Stop
from boostbp.network.layers import LayerSettings
from boostbp.network.monitor import NetworkTask
from boostbp.network.settings import Settings
from boostbp.network.steps import Plain, noise
from boostbp.trees.ridge import Ridge
from boostbp.trees.sparse import Table
from tests.support import reference
from tests.support.problems import watched

ROWS, ROUNDS, BETA, DEPTH, LEAF, LAMBDA = 400, 4, 0.3, 3, 25, 1.0


def data(seed=0):
    X, y = make_friedman1(ROWS, n_features=5, random_state=seed)
    return np.ascontiguousarray(X), ((y - y.mean()) / y.std()).reshape(-1, 1)


def train(X, y, *, weight=None, **options):
    rows = Rows(Table(X), y, np.ones(len(y)) if weight is None else weight)
    training = BackPropagation(NetworkTask(rows=rows, **options))
    training.advance()
    return training.network, training.history


def paper_layer(rounds=ROUNDS):
    return LayerSettings(
        n_estimators=rounds,
        learning_rate=BETA,
        growth=TreeParams(max_depth=DEPTH, min_samples_leaf=LEAF),
        ridge=Ridge(LAMBDA, penalize_constant=True, standardize=False),
        clip=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("units", [(4,), (4, 3)])
def test_three_epochs_equal_a_plain_second_implementation(units):
    X, Y = data()
    epochs, seed, loss = 3, 5, losses.SquaredError()
    rng = np.random.default_rng(seed)
    starts = []
    for size in units:
        starts.append(rng.standard_normal((ROWS, size)))
        rng.integers(2**30)  # the seed of the layer's library
    _, story = reference.train(
        X,
        Y,
        starts,
        lambda h, y: h - y,
        lambda: reference.PlainGBDT(ROUNDS, BETA, DEPTH, LEAF, LAMBDA),
        alpha=0.5,
        mu=0.5,
        epochs=epochs,
    )
    seen = []
    settings = Settings(
        layers=(paper_layer(),) * (len(units) + 1),
        units=units,
        epochs=epochs,
        step=Plain(0.5, 0.5),
        start=noise,
        refit_order="downward",
        output_target="moved",
        seed=seed,
    )
    train(
        X,
        Y,
        backend=backends.load_backend("sklearn"),
        loss=loss,
        settings=settings,
        weight=np.ones(ROWS),
        callbacks=[lambda progress: seen.append(progress.network.forward(X)[0][1:])],
    )
    assert len(seen) == epochs + 1
    for ours, plain in zip(seen[1:], story, strict=True):
        for h, expected in zip(ours, plain, strict=True):
            np.testing.assert_allclose(h, expected, rtol=1e-8, atol=1e-8)


def small(**changes):
    words = {"epochs": 4, "n_estimators": 8, "max_depth": 3, "random_state": 0} | changes
    alone = {"deep": True} if words.get("early_stopping") is False else {}
    return BoostBPRegressor((6,), **parameters(**alone, **words))


ARRANGEMENTS = [
    {"output_target": output, "start": start, "step": step}
    for output in ("loss", "moved")
    for start in ("noise", "projection")
    for step in ("normalised", "plain")
]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
def test_training_loss_falls_when_refitting_upward(arrangement):
    X, Y = data()
    # thresholds that are drawn again in each epoch would let the loss jitter by more than four epochs lower it
    model = small(refit_order="upward", step_size=0.1, early_stopping=False, extra_trees=False, **arrangement)
    loss = model.fit(X, Y.ravel()).history_.loss
    assert loss[-1] < loss[0]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=str)
def test_refitting_downward_gives_a_finite_model(arrangement):
    X, Y = data()
    model = small(refit_order="downward", step_size=0.1, early_stopping=False, **arrangement).fit(X, Y.ravel())
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.history_.loss).all()


def test_upward_refits_leave_hidden_variables_that_the_network_reproduces():
    X, Y = data()
    states = []

    def keep(progress):
        states.append((progress.network, progress.epoch.loss))

    small(early_stopping=False, output_target="moved").fit(X, Y.ravel(), callbacks=[keep])
    for network, loss in states:
        raw = network.predict(X)
        assert loss == pytest.approx(0.5 * np.mean((raw - Y) ** 2), rel=1e-9)


def test_a_callback_stops_training():
    X, Y = data()
    model = small(epochs=50).fit(X, Y.ravel(), callbacks=[lambda progress: progress.epoch.epoch == 2])
    assert model.history_.stop is Stop.CALLBACK
    assert model.n_iter_ == 2


def test_time_is_a_reason_to_stop():
    X, Y = data()
    model = small(epochs=50, max_time=1e-9, deep=True).fit(X, Y.ravel())
    assert model.history_.stop is Stop.TIME
    assert np.isfinite(model.predict(X)).all()


def test_interruption_keeps_the_best_state():
    X, Y = data()

    def interrupt(progress):
        if progress.epoch.epoch == 2:
            raise KeyboardInterrupt

    model = interrupted_fit(small(), X, Y.ravel(), callbacks=[interrupt])
    assert model.history_.stop is Stop.INTERRUPTED
    assert np.isfinite(model.predict(X)).all()


def test_an_explosion_stops_with_its_reason_and_a_finite_model():
    X, Y = data()
    wild = {"n_estimators": 10, "max_depth": 6, "min_samples_leaf": 2, "reg_lambda": 1e-6, "step_size": 50.0}
    model = BoostBPRegressor((6,), **paper_settings(backend="sklearn", **parameters(**wild)))
    model.set_params(random_state=0).fit(X, Y.ravel())
    assert model.history_.stop is Stop.NOT_FINITE
    assert "step_size" in model.history_.stop.value
    assert np.isfinite(model.predict(X)).all()
    assert model.history_.best_epoch == int(np.argmin(model.history_.loss))


def test_a_training_loss_far_above_that_of_the_constant_is_an_explosion():
    X, Y = load_diabetes(return_X_y=True)
    way = {"hidden_layer_sizes": (2, 3), "n_estimators": 2, "epochs": 5, "early_stopping": False, "random_state": 2}
    way |= {"refit_order": "downward", "step": "plain", "extra_trees": False, "deep": True}
    history = BoostBPRegressor(**parameters(**way, base_lambda=[1, 0, 0])).fit(X[:220], Y[:220]).history_
    assert history.stop is Stop.NOT_FINITE
    assert "training loss" in history.stop.value
    assert 0 < history.best_epoch == int(np.argmin(history.loss))
    assert max(history.loss) < 0.5  # that of the mean of a standardised target
    for penalty in (1.0, "gcv"):
        calm = BoostBPRegressor(**parameters(**way, base_lambda=penalty)).fit(X[:220], Y[:220]).history_
        assert (calm.stop, len(calm)) == (Stop.EPOCHS, 6)


@pytest.mark.slow
def test_hidden_units_that_become_alike_do_not_turn_gradients_to_noise():
    def last(seed, **how):
        X, Y = make_friedman1(600, n_features=5, random_state=seed)
        way = {"n_estimators": [10, 20], "epochs": 20, "early_stopping": False, "deep": True, "quality": 4}
        epoch = (
            BoostBPRegressor((16,), random_state=seed, **parameters(**way, **how))
            .fit(X[:400], Y[:400], eval_set=[(X[400:], Y[400:])])
            .history_
        )
        return epoch.epochs[-1].gradient_norms[0], epoch.epochs[-1].metrics["valid_0"]

    calm, held = np.transpose([last(seed) for seed in range(3)])
    wild, wild_held = np.transpose([last(seed, base_lambda=["gcv", 1e-6]) for seed in range(3)])
    assert (calm < 0.2 * wild).all()
    assert held.mean() < wild_held.mean()


def test_targets_that_no_library_holds_are_an_explosion():
    X, Y = data()
    way = {"clip": False, "base": None, "step": "plain", "step_size": 1e60, "early_stopping": False}
    model = small(**way).fit(X, Y.ravel())
    assert (model.history_.stop, model.history_.best_epoch) == (Stop.NOT_FINITE, 0)
    assert np.isfinite(model.predict(X)).all()


def test_a_loss_of_rounding_alone_is_no_explosion():
    X, _ = data()
    model = small(early_stopping=False, refit_order="downward", step="plain").fit(X, np.full(len(X), 3.7))
    assert model.history_.stop is Stop.EPOCHS


def test_a_weight_is_as_good_as_repeated_rows():
    X, Y = data()
    X, Y = X[:30], Y[:30]
    times = np.random.default_rng(0).integers(0, 4, 30)
    arrangement = {"early_stopping": False, "min_samples_leaf": 200}  # ridge bases and constants: no split counts rows
    weighted = small(**arrangement).fit(X, Y.ravel(), sample_weight=times)
    repeated = small(**arrangement).fit(np.repeat(X, times, axis=0), np.repeat(Y.ravel(), times))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7, atol=1e-9)


def test_history_holds_one_number_per_layer():
    X, Y = data()
    how = parameters(epochs=2, n_estimators=5, random_state=0, output_target="moved", deep=True)
    model = BoostBPRegressor((5, 4), **how).fit(X, Y.ravel(), keep_state=True)
    last = model.history_[-1]
    assert len(last.gradient_norms) == len(last.drift) == len(last.stds) == len(last.dead) == 2
    assert len(last.r2) == 3
    assert all(np.isfinite(last.r2))
    assert all(0 <= share <= 1 for share in last.dead)


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
@pytest.mark.parametrize("stops", [(0, 1, 2, 3, 4, 5, 6), (3,), (2, 2, 5)], ids=str)
def test_training_in_pieces_is_training_in_one(backend, stops):
    X, Y = data()
    rows, targets = data(1)

    def begin(**more):
        model = small(backend=backend, epochs=6)
        task = NetworkTask(
            rows=Rows(Table(X), Y, np.ones(ROWS)),
            backend=backends.load_backend(backend),
            loss=losses.SquaredError(),
            settings=Request.of(model).settings(ROWS, 1, 0),
            evaluation=watched(rows, targets, metric=metrics.default_metric(losses.SquaredError())),
            **more,
        )
        return BackPropagation(task)

    whole, states = begin(callbacks=[lambda progress: states.append(progress.state())]), []
    whole.advance()
    pieces = begin()
    assert pieces.epoch == -1
    for stop in stops:
        pieces.advance(stop)
        assert pieces.epoch == stop
        assert pieces.finished == (stop == 6)
    pieces.advance()
    resumed = begin(resume=states[stops[0]])
    assert resumed.epoch == stops[0]
    for stop in stops:
        resumed.advance(stop)
        assert resumed.epoch == stop
    resumed.advance()
    for other in (pieces, resumed):
        assert other.finished
        assert other.history.stop is whole.history.stop is Stop.EPOCHS
        assert other.history.best_epoch == whole.history.best_epoch
        assert other.history.loss == whole.history.loss
        assert other.history.metrics("held_out") == whole.history.metrics("held_out")
        np.testing.assert_array_equal(other.network.predict(rows), whole.network.predict(rows))


def test_a_training_that_is_left_keeps_its_best_epoch():
    X, Y = data()
    settings = Request.of(small()).settings(ROWS, 1, 0)
    rows, loss = Rows(Table(X), Y, np.ones(ROWS)), losses.SquaredError()
    training = BackPropagation(
        NetworkTask(rows=rows, settings=settings, backend=backends.load_backend("lightgbm"), loss=loss)
    )
    with pytest.raises(FloatingPointError):
        _ = training.network  # there is none yet
    training.advance(2)
    before = training.network
    training.leave(Stop.QUALITY)
    assert training.finished
    assert training.history.stop is Stop.QUALITY
    assert training.network is before
    assert len(training.history) == 3
