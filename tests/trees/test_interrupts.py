"""Ctrl-C is held back while compiled code may be at work, and never lost."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from boostbp.trees import interrupts


def press():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def default_handler():
    """Whatever runs the tests, Ctrl-C raises KeyboardInterrupt, and does so afterwards."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    interrupts.check()
    signal.signal(signal.SIGINT, before)


def test_it_comes_at_the_end_of_the_block():
    done = []

    @interrupts.held()
    def work():
        press()
        done.append("the rest of the block")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


@pytest.mark.parametrize("nested", [False, True])
def test_it_comes_where_it_is_asked_for(nested):
    done = []

    @interrupts.held()
    def work():
        if nested:
            with interrupts.held():
                press()
        else:
            press()
        done.append("not lost in the inner block, nor raised there")
        interrupts.check()
        done.append("too far")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert len(done) == 1


def test_it_ends_the_work_of_other_threads():
    def rounds(_):
        while True:
            interrupts.check()

    @interrupts.held()
    def work():
        with ThreadPoolExecutor(2) as pool:
            threading.Timer(0.02, press).start()
            list(pool.map(rounds, range(2)))

    with pytest.raises(KeyboardInterrupt):
        work()


def test_it_outlives_an_error():
    @interrupts.held()
    def work():
        press()
        raise FloatingPointError

    with pytest.raises(KeyboardInterrupt):
        work()


def test_threads_are_not_interrupted_and_change_nothing():
    seen = []

    @interrupts.held()
    def work():
        seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_handler_of_the_user_stays():
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append("pressed"))
    with interrupts.held():
        press()
        assert seen == ["pressed"]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_later_press_is_heard_at_once(monkeypatch):
    now, done = [100.0], []
    monkeypatch.setattr(interrupts.time, "monotonic", lambda: now[0])

    def work():
        with interrupts.held():
            press()
            now[0] += interrupts.PATIENCE
            press()
            done.append("not yet")
            now[0] += 0.1
            press()
            done.append("too far")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["not yet"]
