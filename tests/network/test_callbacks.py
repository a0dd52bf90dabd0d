"""Callbacks stop, log, record and show what the history holds."""

from __future__ import annotations

import gc
import io
import logging
import pickle
from contextlib import redirect_stderr

import numpy as np
import pytest
from flat_parameters import parameters
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from boostbp import BoostBPRegressor, callbacks
from boostbp.network import checkpoints
from boostbp.network.history import Epoch, History, Stop
from boostbp.network.monitor import Progress

X, Y = load_diabetes(return_X_y=True)
X, Y, X_VALID, Y_VALID = X[:100], Y[:100], X[100:150], Y[100:150]
TINY = {"hidden_layer_sizes": (2,), "n_estimators": 2, "epochs": 3, "random_state": 0}


def fit(*calls, **changes):
    eval_set = [(X_VALID, Y_VALID), (X, Y)]
    return BoostBPRegressor(**parameters(**(TINY | changes))).fit(X, Y, eval_set=eval_set, callbacks=calls)


def progresses(values, *, seconds=1.0, greater_is_better=False, epochs=None):
    """What a callback sees of a training with these values of a metric."""
    history = History(metric="score")
    for number, value in enumerate(values):
        metrics = {"valid_0": value, "valid_1": -value} if value is not None else {}
        history.epochs.append(Epoch(number, 1.0 / (1 + number), metrics, seconds, (), (), (), (), ()))
        end = len(values) - 1 if epochs is None else epochs
        yield Progress(history[-1], end, history, None, greater_is_better, dict)


def stopped_at(callback, values, **options):
    """Number of the first epoch after which a callback asks to stop; None if it never does."""
    return next((p.epoch.epoch for p in progresses(values, **options) if callback(p) is True), None)


def waiting(values, rounds, min_delta):
    """When to stop, by counting."""
    best, waited = -np.inf, 0
    for number, value in enumerate(values):
        waited += 1
        if value > best + min_delta:
            best, waited = value, 0
        if waited >= rounds:
            return number
    return None


scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=20)


@given(scores, st.integers(1, 5), st.sampled_from([0.0, 1.0, 2.5]))
def test_early_stopping_waits_for_an_improvement(values, rounds, min_delta):
    expected = waiting(values, rounds, min_delta)
    callback = callbacks.early_stopping(rounds, min_delta=min_delta)
    assert stopped_at(callback, values, greater_is_better=True) == expected
    assert stopped_at(callback, [-value for value in values], greater_is_better=False) == expected
    other = callbacks.early_stopping(rounds, min_delta=min_delta, name="valid_1")
    assert stopped_at(other, [-value for value in values], greater_is_better=True) == expected


@pytest.mark.usefixtures("unrounded")
def test_early_stopping_restores_the_best_epoch():
    model = fit(callbacks.early_stopping(1), deep=True, epochs=50, eval_metric="r2", n_iter_no_change=None)
    values = model.history_.metrics("valid_0")
    assert model.n_iter_ == waiting(values, 1, 0.0) < 50
    assert model.history_.best_epoch == int(np.argmax(values))
    assert model.history_.stop is Stop.CALLBACK
    [loss] = [one.loss for one in model.history_.choice.candidates if one.name == "network"]
    assert 1 - 2 * loss * model.model_.targets.scale[0] ** 2 / np.var(Y_VALID) == pytest.approx(max(values), rel=1e-12)


def test_early_stopping_needs_its_evaluation_set():
    with pytest.raises(ValueError, match=r"early_stopping.* has no evaluation set"):
        stopped_at(callbacks.early_stopping(2), [None])
    with pytest.raises(ValueError, match=r"name='train'\): the evaluation sets are 'valid_0', 'valid_1'"):
        fit(callbacks.early_stopping(2, name="train"))


@pytest.mark.parametrize("make", [callbacks.early_stopping, callbacks.log_evaluation])
@pytest.mark.parametrize("number", [0, -1, 1.5, True])
def test_number_of_epochs_is_checked_at_once(make, number):
    with pytest.raises(ValueError, match=f"={number} is not allowed: give a whole number"):
        make(number)


def test_log_evaluation_logs_each_period_and_the_last_epoch(caplog):
    with caplog.at_level(logging.INFO, "boostbp"):
        assert stopped_at(callbacks.log_evaluation(3), [4.0, 3.0, 2.5, 2.0, 1.5]) is None
    lines = [record.getMessage().split("  ") for record in caplog.records]
    assert [line[0] for line in lines] == ["epoch 0/4", "epoch 3/4", "epoch 4/4"]
    assert lines[1][1:] == ["loss 0.25", "valid_0 2", "valid_1 -2", "1.00 s"]


def test_record_holds_the_history():
    seen = {}
    history = fit(callbacks.record(seen)).history_
    assert seen == {
        "train": {"loss": history.loss},
        "valid_0": {"rmse": history.metrics("valid_0")},
        "valid_1": {"rmse": history.metrics("valid_1")},
    }


def test_time_limit_adds_the_seconds_of_all_epochs():
    assert stopped_at(callbacks.time_limit(3.0), [1.0] * 9, seconds=1.0) == 2
    assert stopped_at(callbacks.time_limit(2.5), [1.0] * 9, seconds=1.0) == 2
    assert stopped_at(callbacks.time_limit(10), [1.0] * 9, seconds=1.0) is None
    with pytest.raises(ValueError, match="seconds=0 is not a positive number"):
        callbacks.time_limit(0)


def test_checkpoint_writes_each_period_and_the_last_epoch(tmp_path):
    path, written = tmp_path / "a", []
    fit(callbacks.checkpoint(path, every=2), lambda _: written.append(checkpoints.read_state(path).epoch), epochs=5)
    assert written == [0, 0, 2, 2, 4, 5]


def test_ones_own_callback_stops_by_true_alone():
    def at_1(progress):
        return progress.epoch.epoch == 1

    model = fit(at_1)
    assert (model.n_iter_, model.history_.stop) == (1, Stop.CALLBACK)
    assert fit(lambda progress: "yes").n_iter_ == 3


def test_network_of_a_callback_predicts():
    seen = []
    model = fit(lambda progress: seen.append(progress.network.predict(X)), output_target="moved", deep=True)
    best = seen[model.history_.best_epoch]
    targets = model.model_.targets
    np.testing.assert_array_equal(model.predict(X), (best * targets.scale + targets.shift).ravel())


def test_verbose_0_is_silent(capsys, caplog):
    with caplog.at_level(logging.DEBUG):
        fit(verbose=0)
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


def test_verbose_1_shows_a_bar_with_figures_and_time_left(capsys):
    history = fit(verbose=1, deep=True, output_target="moved").history_
    out, err = capsys.readouterr()
    last = err.rstrip("\n").split("\r")[-1]
    assert out == ""
    assert " 3/3 [" in last
    assert "<" in last  # elapsed<left
    assert f"loss {history[-1].loss:.6g}  valid_0 {history[-1].metrics['valid_0']:.6g}" in last
    assert err.endswith("\n")


class Unread(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text=""):
        raise BrokenPipeError(32, "Broken pipe")

    flush = write


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(
    "stream", [None, closed(), Unread(), io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True)]
)
def test_verbose_1_loses_no_fit_where_nobody_can_read_it(stream):
    eval_set, name = [(X_VALID, Y_VALID)], "qualit\xe4t"
    expected = BoostBPRegressor(**parameters(**TINY, deep=True)).fit(X, Y, eval_set=eval_set, eval_names=name)
    model = BoostBPRegressor(**parameters(**TINY, deep=True, verbose=1))
    with redirect_stderr(stream):
        model.fit(X, Y, eval_set=eval_set, eval_names=name)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.n_iter_ == 3
    gc.collect()  # what is left of a bar writes nothing either, which would be a warning


def test_bar_is_left_when_training_fails(capsys):
    def fail(progress):
        if progress.epoch.epoch == 1:
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fit(fail, verbose=1)
    assert capsys.readouterr().err.endswith("\n")


def test_verbose_2_logs_each_epoch(caplog, capsys):
    with caplog.at_level(logging.INFO, "boostbp"):
        fit(verbose=2, deep=True)
    lines = [record.getMessage() for record in caplog.records]
    assert [line[:9] for line in lines if line.startswith("epoch")] == [f"epoch {n}/3" for n in range(4)]
    stages = [line.split(", ")[0] for line in lines if not line.startswith("epoch")]
    assert stages == ["first layers", "network", "output layers"]
    assert {record.name for record in caplog.records} == {"boostbp"}
    assert capsys.readouterr() == ("", "")


def ours():
    """One of each callback of the package."""
    return [
        callbacks.early_stopping(3),
        callbacks.log_evaluation(2),
        callbacks.record({}),
        callbacks.record_networks({}, epochs=[0]),
        callbacks.time_limit(60),
        callbacks.ProgressBar(),
    ]


@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])  # from 2 on they hold slots by themselves
def test_callbacks_are_pickled_and_called_again(protocol):
    calls = ours()
    model = fit(*calls)
    copies = pickle.loads(pickle.dumps(calls, protocol=protocol))
    np.testing.assert_array_equal(fit(*copies).predict(X), model.predict(X))
    _, _, seen, networks, *_ = copies
    assert len(seen.into["train"]["loss"]) == 4
    assert list(networks.into) == [0]


def test_a_copy_records_into_the_dict_of_the_user():
    seen, networks = {}, {}
    calls = clone([callbacks.record(seen), callbacks.record_networks(networks)], safe=False)
    history = BoostBPRegressor(**parameters(**TINY)).fit(X, Y, callbacks=calls).history_
    assert seen["train"] == {"loss": history.loss}
    assert list(networks) == list(range(len(history)))


@pytest.mark.parametrize("answer", [True, np.bool_(True)])
def test_any_true_stops_training(answer):
    assert len(fit(lambda progress: answer, deep=True, epochs=5).history_) == 1


@pytest.mark.parametrize("answer", [False, np.bool_(False), None, "yes", 1])
def test_nothing_else_does(answer):
    assert len(fit(lambda progress: answer, deep=True, epochs=2).history_) == 3
