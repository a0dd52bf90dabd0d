"""Parallel candidates: the same results in the same order, what is there after Ctrl-C, an end for the rest."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import ONE_AT_ONCE, interrupted_fit
from limits import HANGS
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor
from boostbp.ensemble import average, output_layers
from boostbp.ensemble.output_layers import LayerTraining
from boostbp.network.choice import CONSTANT_LEAVES
from boostbp.network.history import Stop
from boostbp.runtime import interrupts
from boostbp.runtime.threads import run_tasks

X, Y = make_friedman1(400, n_features=5, random_state=0)
FAST = {"hidden_layer_sizes": (3,), "n_estimators": 5, "epochs": 2, "random_state": 0}


needs_kill = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL, so no SIGINT by os.kill"
)


def pieces_of(works, n_at_once):
    """Run functions as tasks; their results by number, and the interrupt."""
    results, interrupt = {}, None

    def task(k, work):
        results[k] = work()

    try:
        run_tasks([partial(task, k, work) for k, work in enumerate(works)], n_at_once)
    except KeyboardInterrupt as reason:
        interrupt = reason
    return results, interrupt


@pytest.mark.parametrize("n_at_once", [1, 2, 3])
def test_all_is_done_and_some_at_a_time(n_at_once):
    inside, most = [], []

    def task(k):
        inside.append(k)
        most.append(len(inside))
        meeting.wait(timeout=HANGS)
        inside.remove(k)
        return k * k

    meeting = threading.Barrier(1)
    assert pieces_of([partial(task, k) for k in range(5)], n_at_once) == ({k: k * k for k in range(5)}, None)
    assert max(most) <= n_at_once
    meeting = threading.Barrier(n_at_once)  # passes only when so many are there
    assert len(pieces_of([partial(task, 1)] * (2 * n_at_once), n_at_once)[0]) == 2 * n_at_once


@pytest.mark.parametrize("n_at_once", [1, 2])
def test_an_interrupt_in_a_task_keeps_what_is_there(n_at_once):
    begun, raised = [], []

    def task(k):
        begun.append(k)
        if k == 3:
            raised.append(KeyboardInterrupt())
            raise raised[0]
        time.sleep(0.01)  # lets the one that waits be heard before all are done
        return k

    results, interrupt = pieces_of([partial(task, k) for k in range(400)], n_at_once)
    assert interrupt is raised[0]
    assert {0, 1} <= set(results)
    assert 3 not in results
    assert len(begun) < 400


@pytest.mark.parametrize("n_at_once", [1, 2])
def test_an_interrupt_that_a_task_raises_ends_the_rest(n_at_once):
    interrupt, begun = KeyboardInterrupt(), []

    def interrupted():
        begun.append(1)
        raise interrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        run_tasks([lambda: begun.append(0), interrupted, lambda: begun.append(2)], n_at_once)
    assert raised.value is interrupt
    assert 1 in begun
    assert n_at_once > 1 or begun == [0, 1]


def _with_handler(handler, works, n_at_once):
    before = signal.signal(signal.SIGINT, handler)
    try:
        return pieces_of(works, n_at_once)
    finally:
        signal.signal(signal.SIGINT, before)


@needs_kill
@pytest.mark.parametrize("n_at_once", [1, 2])
def test_the_key_ends_tasks_where_they_ask(n_at_once):
    def endless(k):
        if k == n_at_once:
            os.kill(os.getpid(), signal.SIGINT)
        while True:
            interrupts.check()

    works = [lambda: -1, *(partial(endless, k) for k in range(1, 5))]
    results, interrupt = _with_handler(signal.default_int_handler, works, n_at_once)
    assert results == {0: -1}
    assert type(interrupt) is KeyboardInterrupt


@needs_kill
@pytest.mark.parametrize("n_at_once", [1, 2])
def test_what_a_handler_of_the_users_raises_keeps_what_is_there(n_at_once):
    class Enough(KeyboardInterrupt):
        pass

    def raising(*_):
        raise Enough

    def task(k):
        if k >= 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        return k

    results, interrupt = _with_handler(raising, [partial(task, k) for k in range(400)], n_at_once)
    assert type(interrupt) is Enough
    assert {0, 1} <= set(results)  # the handler may end the one after it
    assert len(results) < 400


def test_a_task_that_fails_ends_the_others():
    waiting, begun = threading.Event(), []

    def long():
        begun.append("long")
        waiting.set()
        while True:
            interrupts.check()
            time.sleep(0.001)

    def failing():
        waiting.wait(timeout=HANGS)
        time.sleep(0.02)
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        run_tasks([long, failing, lambda: begun.append("never")], 2)
    assert begun == ["long"]


@needs_kill
def test_an_error_is_not_lost_to_the_key():
    def failing():
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        _with_handler(signal.default_int_handler, [failing, lambda: 1], 2)
    _, interrupt = _with_handler(signal.default_int_handler, [failing], 1)
    assert str(interrupt.__context__) == "no such thing"  # as in any code of one thread


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_candidates_side_by_side_make_the_same_model(backend, before):
    alone = BoostBPRegressor(**parameters(backend=backend, **FAST)).fit(X, Y)
    names = set()
    before(output_layers.layers, "fit", lambda *_, **options: names.add(threading.current_thread().name))
    both = BoostBPRegressor(**parameters(backend=backend, n_jobs=3, **FAST)).fit(X, Y)
    assert len(names - {threading.main_thread().name}) > 1
    np.testing.assert_array_equal(both.predict(X), alone.predict(X))
    assert both.history_.choice == alone.history_.choice
    assert both.history_.refitted


@pytest.mark.parametrize("when", [1, 6])
def test_an_interrupt_side_by_side_weighs_what_is_there(press, when):
    press(LayerTraining, "begin", when)
    model = BoostBPRegressor(**parameters(n_jobs=2, deep=False, quality=4, **FAST))
    if when == 1:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        return
    model = interrupted_fit(model, X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert np.isfinite(model.predict(X)).all()
    assert 1 <= len(model.history_.choice.candidates) <= when  # one that was begun beside it may have a piece


def test_an_error_side_by_side_comes_out_as_it_is(press):
    press(LayerTraining, "begin", 1, ValueError("no such layer"))
    with pytest.raises(ValueError, match="no such layer"):
        BoostBPRegressor(**parameters(n_jobs=2, **FAST)).fit(X, Y)


@needs_kill
def test_the_key_in_a_whole_fit_side_by_side(before):
    def pressed(call, *_, **options):
        if call == 6:
            os.kill(os.getpid(), signal.SIGINT)
        if call >= 6:
            time.sleep(4 * interrupts.POLL)  # it is heard while this one and the one beside it are under way

    before(LayerTraining, "begin", pressed)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        model = interrupted_fit(BoostBPRegressor(**parameters(n_jobs=2, quality=4, **FAST)), X, Y)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert model.history_.stop is Stop.INTERRUPTED
    assert 1 <= len(model.history_.choice.candidates) <= 7
    assert np.isfinite(model.predict(X)).all()
    interrupts.check()  # nothing is left of it


@needs_kill
def test_the_key_while_weights_are_found_waits_for_the_model(before):
    before(average, "stacked_weights", lambda *_, **options: os.kill(os.getpid(), signal.SIGINT))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        model = interrupted_fit(BoostBPRegressor(**parameters(**FAST)), X, Y)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert model.history_.stop is Stop.INTERRUPTED
    assert len(model.history_.choice.candidates) > 3
    assert not model.history_.refitted
    interrupts.check()  # nothing is left of it


def test_limited_time_side_by_side():
    model = BoostBPRegressor(**parameters(n_jobs=2, max_time=1e-9, **FAST)).fit(X, Y)
    assert [each.name for each in model.history_.choice.candidates] == [CONSTANT_LEAVES]
    assert model.history_.choice.cut_by_time
    unlimited = BoostBPRegressor(**parameters(n_jobs=2, max_time=1e6, **FAST)).fit(X, Y)
    assert not unlimited.history_.choice.cut_by_time
    np.testing.assert_array_equal(unlimited.predict(X), BoostBPRegressor(**parameters(**FAST)).fit(X, Y).predict(X))
