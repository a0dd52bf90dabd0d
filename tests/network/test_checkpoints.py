"""A training that is killed and resumed ends in the same model, bit for bit, as one that never stopped."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, Elementwise, callbacks
from boostbp.network import checkpoints
from boostbp.network.history import Stop
from boostbp.network.stored import network_of
from boostbp.runtime import archive
from tests.support.flat_parameters import parameters
from tests.support.helpers import BACKENDS

X, Y = load_diabetes(return_X_y=True)
X, Y = X[:220], Y[:220]
TINY = {"hidden_layer_sizes": (2, 3), "n_estimators": 2, "epochs": 5, "random_state": 0, "early_stopping": False}

WAYS = {
    **{
        f"{order}-{output}-{step}": {"refit_order": order, "output_target": output, "step": step, "base_lambda": 1.0}
        for order, output, step in product(["upward", "downward"], ["loss", "moved"], ["normalised", "plain"])
    },
    **{backend: {"backend": backend} for backend in BACKENDS},
    "sampling": {"backend_params": {"bagging_fraction": 0.6, "bagging_freq": 1, "feature_fraction": 0.5}},
    "kept structures": {"structure_epochs": 3},
    "shared trees": {"multi_strategy": "multi_output_tree"},
    "held out": {"early_stopping": True, "n_iter_no_change": 2, "epochs": 12},
    "own loss": {"loss": "huber", "early_stopping": True, "eval_metric": "mae", "deep": True},
    "noise": {"start": "noise", "momentum": 0.0},
}
ALSO_BY_FIT_MORE = ("upward-loss-normalised", "sampling", "kept structures", "shared trees", "held out", "noise")
MORE_WAYS = [name for name in WAYS if "-" not in name or name in ("upward-loss-normalised", "downward-moved-plain")]


def regressor(**changes):
    words = TINY | changes
    alone = {"deep": True} if words["early_stopping"] is False else {}
    return BoostBPRegressor(**parameters(**alone | words))


def as_bytes(network):
    facts, arrays = network_of(network)
    return facts, {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


def assert_same(model, expected):
    assert as_bytes(model.network_) == as_bytes(expected.network_)
    a, b = model.history_, expected.history_
    timeless = [[repr(replace(epoch, seconds=0.0)) for epoch in history.epochs] for history in (a, b)]
    assert timeless[0] == timeless[1]
    assert (a.best_epoch, a.stop, a.metric) == (b.best_epoch, b.stop, b.metric)
    assert model.n_iter_ == expected.n_iter_


@pytest.mark.parametrize(
    "way",
    [pytest.param(WAYS[name], id=name, marks=() if name in MORE_WAYS else pytest.mark.slow) for name in WAYS],
)
def test_resumed_training_is_the_uninterrupted_one(tmp_path, way):
    path = tmp_path / "state"
    expected = regressor(**way).fit(X, Y, keep_state=True)
    seen = []
    watch = [lambda progress: seen.append(progress.epoch.epoch)]
    for epochs in (1, 2, 3):
        regressor(**(way | {"epochs": epochs})).fit(X, Y, checkpoint=path, callbacks=watch)
    resumed = regressor(**way).fit(X, Y, checkpoint=path, callbacks=watch)
    assert_same(resumed, expected)
    assert seen == sorted(seen)
    assert set(seen) == set(range(expected.n_iter_ + 1))
    assert len(seen) == expected.n_iter_ + 1 + 3  # seen again at each resume, but not run again
    assert_same(regressor(**way).fit(X, Y, checkpoint=path), expected)  # nothing is left to do
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALSO_BY_FIT_MORE else pytest.mark.slow) for name in MORE_WAYS]
)
def test_fit_more_is_the_uninterrupted_training(name):
    way = WAYS[name] | {"epochs": 5, "n_iter_no_change": None}
    expected = regressor(**way).fit(X, Y, keep_state=True)
    begun = regressor(**(way | {"epochs": 2})).fit(X, Y, keep_state=True)
    assert_same(begun.fit_more(1).fit_more(2), expected)
    seen = []
    begun = regressor(**(way | {"epochs": 2})).fit(X, Y, keep_state=True)
    assert_same(begun.fit_more(3, callbacks=[lambda progress: seen.append(progress.epoch.epoch)]), expected)
    assert seen == [3, 4, 5]


def test_other_estimators_resume(tmp_path):
    flowers, species = load_iris(return_X_y=True)
    for number, make in enumerate((partial(BoostBPClassifier, deep=True), BoostBPAutoencoder)):
        path = tmp_path / str(number)
        labels = np.array(["a", "b", "c"])[species]
        expected = make(**TINY).fit(flowers, labels)
        make(**(TINY | {"epochs": 2})).fit(flowers, labels, checkpoint=path)
        assert_same(make(**TINY).fit(flowers, labels, checkpoint=path), expected)


def test_threads_may_differ(tmp_path):
    expected = regressor().fit(X, Y)
    regressor(epochs=2, n_jobs=2).fit(X, Y, checkpoint=tmp_path / "state")
    assert_same(regressor(n_jobs=1).fit(X, Y, checkpoint=tmp_path / "state"), expected)


PRELUDE = """
import os, signal, sys
from sklearn.datasets import load_diabetes
from boostbp import BoostBPRegressor
from boostbp.network.trainer import Trainer

X, Y = load_diabetes(return_X_y=True)
X, Y = X[:220], Y[:220]

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def at_call(number, function):
    calls = []
    def counted(*args, **options):
        calls.append(1)
        if len(calls) == number:
            kill()
        return function(*args, **options)
    return counted

def after_files(number, fit):
    def watched(trainer, *args, **options):
        if os.path.exists(sys.argv[1]) and trainer.epoch >= number:  # other networks are trained before there is a file
            kill()
        return fit(trainer, *args, **options)
    return watched

def after_epoch(number):
    return [lambda progress: kill() if progress.epoch.epoch == number else None]

model = BoostBPRegressor(
    hidden_layer_sizes=(2, 3), n_estimators=2, hidden={"n_estimators": 2}, epochs=5, random_state=0,
    early_stopping=True, backprop={"n_iter_no_change": None},
)
told = {"checkpoint": sys.argv[1]}
"""
# Where the process dies -> the last epoch that its file holds.
DEATHS = {
    "before the file is written": ("told['callbacks'] = after_epoch(3)", 2),
    "while a layer is fitted": ("Trainer._fit = after_files(3, Trainer._fit)", 2),
    "while the file is written": ("os.fsync = at_call(4, os.fsync)", 2),
    "before the file is renamed": ("os.replace = at_call(5, os.replace)", 3),
    "in the first epoch": ("Trainer._fit = at_call(2, Trainer._fit)", None),
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize(("death", "epoch"), DEATHS.values(), ids=DEATHS)
def test_killed_training_goes_on_to_the_same_model(tmp_path, death, epoch):
    path = tmp_path / "state"
    script = f"{PRELUDE}\n{death}\nmodel.fit(X, Y, **told)\n"
    seen = []
    killed = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert path.exists() == (epoch is not None)
    if epoch is not None:
        assert checkpoints.read_state(path).epoch == epoch
    way = {"early_stopping": True, "n_iter_no_change": None}
    watch = [lambda progress: seen.append(progress.epoch.epoch)]
    assert_same(
        regressor(**way).fit(X, Y, checkpoint=path, callbacks=watch), regressor(**way).fit(X, Y, keep_state=True)
    )
    assert seen == list(range(epoch or 0, 6))
    assert os.listdir(tmp_path) == ["state"]


def test_resume_by_the_callback_that_writes_rarely(tmp_path):
    path = tmp_path / "state"
    expected = regressor(epochs=7).fit(X, Y)
    seen = []

    def watch(progress):
        seen.append(progress.epoch.epoch)
        return len(seen) == 5

    rarely = [callbacks.checkpoint(path, every=3), watch]
    regressor(epochs=7).fit(X, Y, callbacks=rarely)
    assert checkpoints.read_state(path).epoch == 3
    assert_same(regressor(epochs=7).fit(X, Y, callbacks=rarely), expected)
    assert seen == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7]


def test_callbacks_see_the_epoch_that_is_resumed_from(tmp_path):
    path, seen = tmp_path / "state", []
    regressor(epochs=2).fit(X, Y, checkpoint=path)
    watch = [lambda progress: seen.append(progress.epoch.epoch)]
    regressor(epochs=4).fit(X, Y, checkpoint=path, callbacks=watch)
    assert seen == [2, 3, 4]


def test_reasons_to_stop_hold_after_a_resume(tmp_path):
    options = {"early_stopping": True, "n_iter_no_change": 1, "epochs": 60}
    expected = regressor(**options).fit(X, Y, keep_state=True)
    assert expected.history_.stop is Stop.PATIENCE
    for _ in range(2):
        assert_same(regressor(**options).fit(X, Y, checkpoint=tmp_path / "state"), expected)
    used_up = regressor(epochs=60, max_time=1e-9)
    for _ in range(2):
        assert (used_up.fit(X, Y, checkpoint=tmp_path / "time").n_iter_, used_up.history_.stop) == (0, Stop.TIME)


def test_patience_counts_anew_when_more_is_asked_for():
    model = regressor(early_stopping=True, n_iter_no_change=2, epochs=60).fit(X, Y, keep_state=True)
    assert model.history_.stop is Stop.PATIENCE
    done = model.n_iter_
    assert model.fit_more(2).n_iter_ == done + 2


def test_a_state_is_forgotten_by_the_next_fit():
    model = regressor(epochs=1).fit(X, Y, keep_state=True)
    model.fit(X[1:], Y[1:])
    assert_same(model, regressor(epochs=1).fit(X[1:], Y[1:]))
    with pytest.raises(ValueError, match="fit_more needs the state of training"):
        model.fit_more(1)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_resume_needs_a_seed(tmp_path, random_state):
    with pytest.raises(ValueError, match=r"random_state=.* with checkpoint=.* give a whole number"):
        regressor(random_state=random_state).fit(X, Y, checkpoint=tmp_path / "state")
    model = regressor(random_state=random_state, epochs=1).fit(X, Y, keep_state=True)
    assert model.fit_more(2).n_iter_ == 3


@pytest.mark.parametrize("epochs", [0, -1, 1.5, True, None])
def test_fit_more_needs_a_number_of_epochs(epochs):
    with pytest.raises(ValueError, match="is not allowed: give a whole number"):
        regressor(epochs=1).fit(X, Y, keep_state=True).fit_more(epochs)


def test_copies_and_files_do_not_hold_the_training_rows(tmp_path):
    model = regressor(epochs=1).fit(X, Y, keep_state=True)
    boostbp.save(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), boostbp.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert "_training" not in vars(copy)
        with pytest.raises(ValueError, match="fit_more needs the state of training"):
            copy.fit_more(1)


def test_basis_of_ones_own_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"basis=Elementwise.* cannot be stored"):
        regressor(basis=Elementwise([np.sin], [np.cos])).fit(X, Y, checkpoint=tmp_path / "state")
    assert os.listdir(tmp_path) == []


def test_file_that_is_no_checkpoint_is_refused_and_stays(tmp_path):
    path = tmp_path / "state"
    model = regressor(epochs=1).fit(X, Y, checkpoint=path)
    data = path.read_bytes()
    for wrong, message in (
        (data[:-9], "truncated"),
        (data[:5000] + bytes([data[5000] ^ 1]) + data[5001:], "corrupted"),
        (b"a,b\n1,2\n", "not a file of boostbp"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y, checkpoint=path)
        assert path.read_bytes() == wrong
    boostbp.save(model, path)
    with pytest.raises(ValueError, match="is a model file of boostbp, not a checkpoint"):
        model.fit(X, Y, checkpoint=path)
    path.write_bytes(data)
    with pytest.raises(ValueError, match="is a checkpoint file of boostbp, not a model"):
        boostbp.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda content, arrays: arrays.update(h1=arrays["h1"][:-1]),
        lambda content, arrays: arrays.update(m2=arrays["m1"]),
        lambda content, arrays: arrays.pop("g3"),
        lambda content, arrays: arrays.update(m1=arrays["m1"].astype(np.int64)),
        lambda content, arrays: content.update(since=7),
        lambda content, arrays: content.pop("elapsed"),
        lambda content, arrays: content.update(random={"dict": [["bit_generator", "MT19937"]]}),
        lambda content, arrays: content.update(fingerprint=3),
        lambda content, arrays: content.pop("now"),
        lambda content, arrays: arrays["now.layer0.column"].fill(99),
        lambda content, arrays: arrays["h1"].fill(np.nan),
        lambda content, arrays: arrays.update(h1=arrays["h1"][:5], g1=arrays["g1"][:5], m1=arrays["m1"][:5]),
        lambda content, arrays: content.update(more=1),
        lambda content, arrays: content.update(best="elsewhere"),
        lambda content, arrays: content.update(elapsed="late"),
        lambda content, arrays: content["history"].update(best_epoch=99),
    ],
)
def test_state_that_does_not_fit_together_is_refused(tmp_path, change):
    path = tmp_path / "state"
    regressor(epochs=1).fit(X, Y, checkpoint=path)
    content, arrays = archive.read(path, archive.Archive, kind="checkpoint", version=checkpoints.CHECKPOINT_VERSION)
    change(content, arrays)
    archive.write(path, kind="checkpoint", version=checkpoints.CHECKPOINT_VERSION, content=content, arrays=arrays)
    with pytest.raises(ValueError, match="state' is not consistent: "):
        regressor().fit(X, Y, checkpoint=path)


def widened(content, arrays):
    """The first layer as if of a million features: rows of the data would be read far behind their end."""
    content["now"]["layers"][0]["n_features"] = 10**6
    arrays["now.layer0.feature"][0] = 10**6 - 1


def all_rows_twice(content, arrays):
    for name in [name for name in arrays if name[0] in "hgm" and name[1:].isdigit()]:
        arrays[name] = np.repeat(arrays[name], 2, axis=0)


def without_hidden_layer(content, arrays):
    """One layer less, all else in agreement."""
    content["now"]["layers"].pop(1)
    for name in [name for name in arrays if name.startswith("now.layer1.") or name in ("h2", "g2", "m2")]:
        del arrays[name]
    for name in [name for name in arrays if name.startswith("now.layer2.")]:
        arrays[name.replace("layer2", "layer1")] = arrays.pop(name)
    for name in "hgm":
        arrays[f"{name}2"] = arrays.pop(f"{name}3")
    content["now"]["layers"][1]["n_features"] = content["now"]["layers"][0]["n_outputs"]
    arrays["now.layer1.column"][:] = arrays["now.layer1.feature"][:] = 0
    for epoch in content["history"]["epochs"]:
        for name in ("gradient_norms", "dead", "drift", "stds", "r2", "explained", "explained_held"):
            epoch[name]["tuple"] = epoch[name]["tuple"][:-1]


def on_another_basis(content, arrays):
    for fact in content["now"]["layers"]:
        fact["basis"] = "linear"


def in_another_order(content, arrays):
    served = arrays["now.layer0.tree_output"]
    served[1:] = served[:0:-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (widened, "a network of 1000000 features"),
        (all_rows_twice, "hidden variables of the shapes"),
        (without_hidden_layer, "hidden variables of the shapes"),
        (on_another_basis, r"trees on the basis Polynomial\(degree=1\)"),
        (in_another_order, "trees in another order"),
    ],
)
def test_state_with_the_right_fingerprint_and_other_sizes_is_refused(tmp_path, change, message):
    """Rows are routed through trees from the file: these must be of this training, whatever the file says it is of."""
    path = tmp_path / "state"
    regressor(epochs=1).fit(X, Y, checkpoint=path)
    content, arrays = archive.read(path, archive.Archive, kind="checkpoint", version=checkpoints.CHECKPOINT_VERSION)
    change(content, arrays)
    archive.write(path, kind="checkpoint", version=checkpoints.CHECKPOINT_VERSION, content=content, arrays=arrays)
    with pytest.raises(ValueError, match=f"^checkpoint=.*state' is not consistent: it holds {message}"):
        regressor().fit(X, Y, checkpoint=path)


EXPLODING = {"clip": False, "step_size": 5.0, "step": "plain", "refit_order": "downward", "structure_epochs": 1}
EXPLODING |= {"reg_lambda": 1e-8, "base_lambda": 1e-6, "n_estimators": 5, "epochs": 40}


def test_explosion_after_a_resume_goes_back_to_the_calmest_epoch_of_all(tmp_path):
    whole = regressor(**EXPLODING).fit(X, Y)
    assert whole.history_.stop is Stop.NOT_FINITE
    last = len(whole.history_) - 1
    assert whole.history_.best_epoch < last  # otherwise there is nothing to go back to
    regressor(**EXPLODING | {"epochs": last}).fit(X, Y, checkpoint=tmp_path / "state")
    resumed = regressor(**EXPLODING).fit(X, Y, checkpoint=tmp_path / "state")
    assert_same(resumed, whole)
    assert resumed.history_.best_epoch == whole.history_.best_epoch
    more = regressor(**EXPLODING | {"epochs": last}).fit(X, Y, keep_state=True).fit_more(40 - last)
    assert_same(more, whole)
