"""An interrupt from the keyboard leaves the best state in the estimator, and is raised."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import WITH_CATEGORIES, interrupted_fit
from limits import HANGS
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from boostbp import BoostBPRegressor, callbacks, load, save
from boostbp.network import trainer as run
from boostbp.network.history import Stop

X, Y = load_diabetes(return_X_y=True)
X, Y = X[:150], Y[:150]
SMALL = {"hidden_layer_sizes": (2,), "n_estimators": 2, "epochs": 5, "random_state": 0, "early_stopping": False}
SMALL["deep"] = True
SMALL["structure_epochs"] = 1  # then both layers are fitted by one function, which `interrupted` counts


@pytest.fixture
def interrupted(press):
    """Ctrl-C in the fit of a layer: the output layer of an epoch, the hidden one already moved."""
    return lambda epoch: press(run.layers, "fit", 2 * (epoch + 1))


def test_the_last_whole_epoch_is_kept(interrupted, tmp_path):
    expected = BoostBPRegressor(**parameters(**(SMALL | {"epochs": 2}))).fit(X, Y)
    interrupted(epoch=3)
    model = interrupted_fit(BoostBPRegressor(**parameters(**SMALL)), X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert (model.n_iter_, model.history_.best_epoch) == (2, 2)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), expected.predict(X))


def test_the_best_epoch_on_held_out_rows_is_kept(interrupted):
    held = {"eval_set": [(X[100:], Y[100:])]}
    interrupted(epoch=4)
    alone = BoostBPRegressor(**parameters(**SMALL, output_target="moved"))  # without layers beside it
    model = interrupted_fit(alone, X[:100], Y[:100], **held)
    values = model.history_.metrics("valid_0")
    assert model.history_.best_epoch == int(np.argmin(values))
    assert np.sqrt(np.mean((model.predict(X[100:]) - Y[100:]) ** 2)) == pytest.approx(min(values), rel=1e-9)


@pytest.mark.parametrize("way", ["checkpoint", "fit_more"])
def test_training_goes_on_to_the_same_model(interrupted, tmp_path, way):
    expected = BoostBPRegressor(**parameters(**SMALL)).fit(X, Y)
    keep = {"checkpoint": tmp_path / "state"} if way == "checkpoint" else {"keep_state": True}
    interrupted(epoch=3)
    model = interrupted_fit(BoostBPRegressor(**parameters(**SMALL)), X, Y, **keep)
    assert model.history_.stop is Stop.INTERRUPTED
    model = model.fit_more(3) if way == "fit_more" else model.fit(X, Y, **keep)
    assert model.history_.stop is Stop.EPOCHS
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_before_the_first_epoch_there_is_nothing_to_keep(interrupted):
    interrupted(epoch=0)
    model = BoostBPRegressor(**parameters(**SMALL))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert np.isfinite(model.fit(X, Y).predict(X)).all()


def raising(error):
    """A callback that raises in the second epoch."""

    def callback(progress):
        if progress.epoch.epoch == 2:
            raise error

    return callback


def test_the_interrupt_that_came_is_the_one_that_is_raised():
    class Enough(KeyboardInterrupt):
        pass

    error = Enough("of the lecture")
    with pytest.raises(Enough) as raised:
        BoostBPRegressor(**parameters(**SMALL)).fit(X, Y, callbacks=[raising(error)])
    assert raised.value is error


def test_a_callback_lets_an_interrupt_stop_like_other_callbacks():
    model = BoostBPRegressor(**parameters(**SMALL))
    assert model.fit(X, Y, callbacks=[raising(KeyboardInterrupt), callbacks.stop_on_interrupt()]) is model
    assert model.history_.stop is Stop.INTERRUPTED
    assert model.n_iter_ == 2


def test_that_callback_cannot_return_a_model_that_is_not_there(interrupted):
    interrupted(epoch=0)
    with pytest.raises(KeyboardInterrupt):
        BoostBPRegressor(**parameters(**SMALL)).fit(X, Y, callbacks=[callbacks.stop_on_interrupt()])


@pytest.mark.parametrize("error", [TimeoutError("time is up"), SystemExit(3)])
def test_any_other_exception_leaves_the_estimator_as_it_was(error):
    model = BoostBPRegressor(**parameters(**SMALL)).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(type(error)) as raised:
        model.fit(X, -Y, callbacks=[raising(error)])
    assert raised.value is error
    assert vars(model) == before


def test_fit_more_keeps_the_best_state_too():
    model = BoostBPRegressor(**parameters(**SMALL)).fit(X, Y, keep_state=True)
    expected = BoostBPRegressor(**parameters(**(SMALL | {"epochs": 7}))).fit(X, Y)

    def late(progress):
        if progress.epoch.epoch == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit_more(5, callbacks=[late])
    assert (model.n_iter_, model.history_.stop) == (7, Stop.INTERRUPTED)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_a_search_ends_and_a_pipeline_keeps_the_model():
    model, calls = BoostBPRegressor(**parameters(**SMALL)), [raising(KeyboardInterrupt)]
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(model, {"backprop__step_size": [0.1, 0.2]}, error_score=0.0, cv=2).fit(X, Y, callbacks=calls)
    pipeline = make_pipeline(model)
    with pytest.raises(KeyboardInterrupt):
        pipeline.fit(X, Y, boostbpregressor__callbacks=calls)
    assert np.isfinite(pipeline[-1].predict(X)).all()


SCRIPT = """
import os, signal, sys, threading
import numpy as np
from sklearn.datasets import load_diabetes
from boostbp import BoostBPRegressor

X, Y = load_diabetes(return_X_y=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts the tests may have it ignored

settings = {"n_estimators": 20, "n_jobs": 2, "early_stopping": False, "random_state": 0}
BoostBPRegressor((8,), backend=sys.argv[1], epochs=2, **settings).fit(X, Y)  # loads all that is compiled
for delay in (0.01, 0.03, 0.08):

    def press(progress):
        if progress.epoch.epoch == 2:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()

    model = BoostBPRegressor((8,), backend=sys.argv[1], epochs=10**9, verbose=1, **settings)
    try:
        model.fit(X, Y, callbacks=[press])
    except KeyboardInterrupt:
        print("raised")
    assert np.isfinite(model.predict(X)).all()
    assert model.n_iter_ >= 2
    print(model.history_.stop.name)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL, so no SIGINT by os.kill")
def test_the_key_while_an_object_is_freed_is_not_lost():
    class Freed:
        def __del__(self):  # what is raised here is ignored
            os.kill(os.getpid(), signal.SIGINT)

    def press(progress):
        if progress.epoch.epoch == 2:
            Freed()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        model = interrupted_fit(BoostBPRegressor(**parameters(**(SMALL | {"epochs": 200}))), X, Y, callbacks=[press])
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.history_.stop is Stop.INTERRUPTED
    assert model.n_iter_ == 2


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL, so no SIGINT by os.kill")
@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[] if name == "lightgbm" else pytest.mark.slow) for name in WITH_CATEGORIES]
)
def test_the_key_itself_while_threads_grow_trees(backend):
    done = subprocess.run([sys.executable, "-c", SCRIPT, backend], capture_output=True, text=True, timeout=HANGS)
    assert (done.returncode, done.stdout) == (0, 3 * "raised\nINTERRUPTED\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_a_fit_that_fails_leaves_the_model_before_it():
    model = BoostBPRegressor(**parameters(**SMALL)).fit(X, Y)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(X[:, :3], np.full(150, np.nan))
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.n_features_in_ == 10
