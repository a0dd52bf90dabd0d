"""Ctrl-C waits while a model is made, and is never lost."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from limits import HANGS

from boostbp.runtime import interrupts, threads


def press():
    signal.raise_signal(signal.SIGINT)  # os.kill may let another thread take it, a little later


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

    @interrupts.deferred()
    def work():
        press()
        done.append("the rest of the block")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


@pytest.mark.parametrize("nested", [False, True])
def test_it_comes_where_it_is_asked_for(nested):
    done = []

    @interrupts.deferred()
    def work():
        if nested:
            with interrupts.deferred():
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

    threading.Timer(0.02, press).start()
    with pytest.raises(KeyboardInterrupt):
        threads.parallel_map(rounds, range(4), 2)


def test_work_that_fails_ends_that_of_other_threads():
    def rounds(number):
        while number:
            interrupts.check()
        raise FloatingPointError

    with pytest.raises(FloatingPointError):
        threads.parallel_map(rounds, range(4), 2)


def test_it_leaves_the_work_of_other_callers_alone():
    ended, go_on = [], threading.Event()

    def rounds(_):
        go_on.wait(timeout=HANGS)
        interrupts.check()
        ended.append("by itself")

    other = threading.Thread(target=threads.parallel_map, args=(rounds, range(2), 2))
    other.start()
    test_it_comes_where_it_is_asked_for(nested=False)
    go_on.set()
    other.join()
    assert ended == 2 * ["by itself"]


def test_it_outlives_an_error():
    @interrupts.deferred()
    def work():
        press()
        raise FloatingPointError

    with pytest.raises(KeyboardInterrupt):
        work()


def test_threads_are_not_interrupted_and_change_nothing():
    seen = []

    @interrupts.deferred()
    def work():
        seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no SIGALRM")
def test_handlers_of_other_signals_run_at_once():
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append("alarm"))
    try:
        with interrupts.deferred():
            signal.raise_signal(signal.SIGALRM)
            assert seen == ["alarm"]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_raises_nothing_changes_nothing():
    seen, done = [], []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append((number, frame.f_code.co_name)))
    with interrupts.deferred():
        press()
        press()
        assert seen == []
        interrupts.check()
        done.append("the rest of the block")
    assert [number for number, _ in seen] == [signal.SIGINT]
    assert done
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_handler_that_is_set_inside_stays_and_runs_at_once():
    seen = []

    def own(*_):
        seen.append("pressed")

    with interrupts.deferred():
        signal.signal(signal.SIGINT, own)
        press()
        assert seen == ["pressed"]
    assert signal.getsignal(signal.SIGINT) is own
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_handler_that_is_put_back_late_is_the_users_again():
    with interrupts.deferred():
        inside = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGINT, inside)  # as whoever asked for it inside would do, having left the block
    with pytest.raises(KeyboardInterrupt):
        press()
    with interrupts.deferred():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_calls_the_one_it_found_inside_calls_the_users():
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append("the user's"))
    with interrupts.deferred():
        found = signal.getsignal(signal.SIGINT)

        def chained(*given):
            seen.append("chained")
            found(*given)

        signal.signal(signal.SIGINT, chained)
    with interrupts.deferred():
        press()
        interrupts.check()
        assert seen == ["chained", "the user's"]
    press()
    assert seen == 2 * ["chained", "the user's"]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_later_press_is_heard_at_once():
    done = []

    @interrupts.deferred()
    def work():
        press()
        press()
        done.append("not yet")
        time.sleep(1.1 * interrupts.PATIENCE)
        press()
        done.append("too far")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["not yet"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # is multi-threaded
def test_a_forked_child_hears_at_once():
    with interrupts.deferred():
        child = os.fork()
        if not child:
            try:
                press()
                os._exit(1)
            except KeyboardInterrupt:
                os._exit(0)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
