"""The clock of a fit: it begins with the outermost call, in each thread by itself."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from boostbp.runtime.clock import begun, counting


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
