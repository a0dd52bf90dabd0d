"""Candidates side by side: the same results in the same order, what is there after Ctrl-C, an end for the rest."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS, interrupted_fit
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor
from boostbp.ensemble import output_layers, pool, selection
from boostbp.ensemble import parallel as room
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.parallel import at_once, lazily, run_parallel, waves_left
from boostbp.network.history import Stop
from boostbp.trees import interrupts

X, Y = make_friedman1(400, n_features=5, random_state=0)
FAST = {"hidden_layer_sizes": (3,), "n_estimators": 5, "epochs": 2, "random_state": 0}


needs_kill = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL, so no SIGINT by os.kill"
)


def test_few_rows_share_the_threads_and_many_do_not():
    assert [at_once(1000, threads) for threads in (1, 2, 3, 8)] == [1, 2, 3, 3]
    assert at_once(room.MOST_ROWS, 8) == 1


@pytest.mark.parametrize("n_at_once", [1, 2, 3])
def test_all_is_done_in_order_and_some_at_a_time(n_at_once):
    inside, most = [], []

    def piece(k):
        for number in range(k):
            inside.append(k)
            most.append(len(inside))
            meeting.wait(timeout=10)
            inside.remove(k)
            yield k, number

    meeting = threading.Barrier(1)
    expected = [(k, number) for k in range(5) for number in range(k)]
    assert run_parallel(map(piece, range(5)), n_at_once, Budget(None)) == (expected, None)
    assert max(most) <= n_at_once
    meeting = threading.Barrier(n_at_once)  # passes only when so many are there
    found, _ = run_parallel([piece(1) for _ in range(2 * n_at_once)], n_at_once, Budget(None))
    assert found == [(1, 0)] * (2 * n_at_once)


@pytest.mark.parametrize("n_at_once", [1, 2])
def test_an_interrupt_in_a_piece_keeps_what_is_there(n_at_once):
    begun, raised, given = [], [], threading.Event()

    def piece(k):
        begun.append(k)
        yield k
        if k == 1:
            given.wait(timeout=10)
            raised.append(KeyboardInterrupt())
            raise raised[0]
        if k > 1:
            time.sleep(0.01)  # lets the one that waits be heard before all are done
        yield 10 + k
        given.set()

    found, interrupt = run_parallel(map(piece, range(400)), n_at_once, Budget(None))
    assert interrupt is raised[0]
    assert found[:3] == [0, 10, 1]
    assert len(begun) < 400


def _with_handler(handler, pieces, n_at_once):
    before = signal.signal(signal.SIGINT, handler)
    try:
        return run_parallel(pieces, n_at_once, Budget(None))
    finally:
        signal.signal(signal.SIGINT, before)


@needs_kill
@pytest.mark.parametrize("n_at_once", [1, 2])
def test_the_key_ends_pieces_where_they_ask(n_at_once):
    given = threading.Event()

    def piece(k):
        yield k
        if k == n_at_once:
            given.wait(timeout=10)
            os.kill(os.getpid(), signal.SIGINT)
        given.set()
        while True:
            interrupts.check()

    if n_at_once == 1:
        given.set()
    pieces = [lazily(lambda: -1), *map(piece, range(1, 5))]
    found, interrupt = _with_handler(signal.default_int_handler, pieces, n_at_once)
    assert found == [-1, *range(1, n_at_once + 1)]
    assert type(interrupt) is KeyboardInterrupt


@needs_kill
@pytest.mark.parametrize("n_at_once", [1, 2])
def test_what_a_handler_of_the_users_raises_keeps_what_is_there(n_at_once):
    class Enough(KeyboardInterrupt):
        pass

    def raising(*_):
        raise Enough

    def piece(k):
        yield k
        if k >= 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        yield 10 + k

    found, interrupt = _with_handler(raising, map(piece, range(400)), n_at_once)
    assert type(interrupt) is Enough
    assert found[:5] == [0, 10, 1, 11, 2]  # the handler may end the one after it
    assert 3 in found
    assert len(found) < 400


def test_a_piece_that_fails_ends_the_others():
    budget, waiting = Budget(None), threading.Event()

    def long():
        waiting.set()
        while not budget.over():
            time.sleep(0.001)
        yield 0

    def failing():
        waiting.wait(timeout=10)
        raise ValueError("no such thing")
        yield

    with pytest.raises(ValueError, match="no such thing"):
        run_parallel([long(), failing()], 2, budget)
    assert budget.ended
    assert not budget.spent


@needs_kill
def test_an_error_is_not_lost_to_the_key():
    def failing():
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError("no such thing")
        yield

    for n_at_once in (1, 2):
        with pytest.raises(ValueError, match="no such thing"):
            _with_handler(signal.default_int_handler, [failing()], n_at_once)


def test_turns_that_are_left():
    assert [waves_left(5, number, 2) for number in range(5)] == [3, 2, 2, 1, 1]
    assert [waves_left(3, number, 1) for number in range(3)] == [3, 2, 1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_candidates_side_by_side_make_the_same_model(backend, monkeypatch):
    alone = BoostBPRegressor(**parameters(backend=backend, **FAST)).fit(X, Y)
    names = set()
    fit = output_layers.layers.fit

    def spied(*args, **options):
        names.add(threading.current_thread().name)
        return fit(*args, **options)

    monkeypatch.setattr(output_layers.layers, "fit", spied)
    both = BoostBPRegressor(**parameters(backend=backend, n_jobs=3, **FAST)).fit(X, Y)
    assert len(names - {threading.main_thread().name}) > 1
    np.testing.assert_array_equal(both.predict(X), alone.predict(X))
    assert both.history_.choice == alone.history_.choice
    assert both.history_.refitted


@pytest.mark.parametrize("when", [1, 6])  # three of the first five may be output layers of networks, and one unfinished
def test_an_interrupt_side_by_side_weighs_what_is_there(monkeypatch, when):
    original, lock, calls = pool.boost, threading.Lock(), []

    def interrupted(*args, **options):
        with lock:
            calls.append(1)
            number = len(calls)
        if number == when:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(pool, "boost", interrupted)
    model = interrupted_fit(BoostBPRegressor(**parameters(n_jobs=2, **FAST)), X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert np.isfinite(model.predict(X)).all()
    if when == 1:
        return
    candidates = model.history_.choice.candidates
    assert 1 <= len([each for each in candidates if not each.stack]) <= when
    assert "network" in [each.name for each in candidates]


def test_an_error_side_by_side_comes_out_as_it_is(monkeypatch):
    def broken(*args, **options):
        raise ValueError("no such layer")

    monkeypatch.setattr(pool, "boost", broken)
    with pytest.raises(ValueError, match="no such layer"):
        BoostBPRegressor(**parameters(n_jobs=2, **FAST)).fit(X, Y)


@needs_kill
def test_the_key_in_a_whole_fit_side_by_side(monkeypatch):
    original, lock, calls = pool.boost, threading.Lock(), []

    def pressed(*args, **options):
        with lock:
            calls.append(1)
            number = len(calls)
        if number == 6:
            os.kill(os.getpid(), signal.SIGINT)
        return original(*args, **options)

    monkeypatch.setattr(pool, "boost", pressed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        model = interrupted_fit(BoostBPRegressor(**parameters(n_jobs=2, **FAST)), X, Y)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.history_.stop is Stop.INTERRUPTED
    assert 2 <= len(model.history_.choice.candidates) <= 9
    assert np.isfinite(model.predict(X)).all()
    interrupts.check()  # nothing is left of it


@needs_kill
def test_the_key_while_weights_are_found_waits_for_the_model(monkeypatch):
    original = selection.ensemble_weights

    def pressed(*args, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return original(*args, **options)

    monkeypatch.setattr(selection, "ensemble_weights", pressed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        model = interrupted_fit(BoostBPRegressor(**parameters(**FAST)), X, Y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.history_.stop is Stop.INTERRUPTED
    assert len(model.history_.choice.candidates) > 9
    assert not model.history_.refitted
    interrupts.check()  # nothing is left of it


def test_limited_time_is_shared_out_side_by_side():
    model = BoostBPRegressor(**parameters(n_jobs=2, max_time=1e-9, **FAST)).fit(X, Y)
    assert [each.name for each in model.history_.choice.candidates] == ["single layer", "network"]
    assert model.history_.choice.hurried
    unlimited = BoostBPRegressor(**parameters(n_jobs=2, max_time=1e6, **FAST)).fit(X, Y)
    assert not unlimited.history_.choice.hurried
    np.testing.assert_array_equal(unlimited.predict(X), BoostBPRegressor(**parameters(**FAST)).fit(X, Y).predict(X))
