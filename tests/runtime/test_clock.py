"""The clock of a fit begins with its call, in each thread by itself, and records the Ctrl-C that ended a block."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from boostbp.runtime import clock
from boostbp.runtime.clock import counting


def begun():
    return clock.of_fit().begun


def test_a_fit_began_when_it_was_called():
    @counting()
    def fit():
        first = begun()
        while time.perf_counter() == first:
            pass
        with ThreadPoolExecutor(1) as pool:
            elsewhere = pool.submit(begun).result()
        return first, begun(), elsewhere

    before = time.perf_counter()
    first, later, elsewhere = fit()
    assert before <= first == later < elsewhere
    assert begun() > first  # outside of a fit, it begins now


def test_a_fit_within_a_fit_has_a_clock_of_its_own():
    with counting():
        outer = begun()
        time.sleep(0.001)
        with counting():
            assert begun() > outer
        assert begun() == outer


def test_ctrl_c_ends_a_block_and_is_recorded_for_the_fit():
    reason, done = KeyboardInterrupt(), []
    with clock.counting():
        with clock.of_fit().ending_early():
            done.append("before")
            raise reason
        assert done == ["before"]
        assert clock.of_fit().interrupt is reason
        with clock.counting():  # a fit inside a callback of another one
            assert clock.of_fit().interrupt is None
        assert clock.of_fit().interrupt is reason
    assert clock.of_fit().interrupt is None


def test_another_error_is_raised():
    fit = clock.of_fit()
    with pytest.raises(ValueError, match="no such thing"), fit.ending_early():
        raise ValueError("no such thing")
    assert fit.interrupt is None


@pytest.mark.parametrize("n_interrupts", [0, 1])
def test_short_work_is_completed_after_ctrl_c(n_interrupts):
    calls, fit = [], clock.of_fit()

    def work():
        calls.append(1)
        if len(calls) <= n_interrupts:
            raise KeyboardInterrupt
        return len(calls)

    assert fit.completed(work) == n_interrupts + 1
    assert (fit.interrupt is not None) == n_interrupts
