"""Compiling is announced at once, is done for what a fit needs alone, and counts in no limit or estimate of time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from flat_parameters import parameters
from limits import HANGS

from boostbp import BoostBPRegressor
from boostbp.ensemble import schedule
from boostbp.ensemble.output_layers import Boosted
from boostbp.runtime import compiling
from boostbp.trees.warmup import PARTS

X = np.random.default_rng(0).uniform(size=(120, 3))
Y = np.sin(6 * X[:, 0]) + X[:, 1]
FAST = {"n_estimators": 4, "epochs": 1, "random_state": 0}


@pytest.fixture
def clock(monkeypatch):
    """What `time.perf_counter` says, by hand."""
    now = [compiling.time.perf_counter()]
    monkeypatch.setattr(compiling.time, "perf_counter", lambda: now[0])
    return now


def test_the_clock_stands_still_while_something_is_compiled(clock):
    begun = compiling.working_time()
    clock[0] += 1.0
    with compiling.compiling():
        clock[0] += 10.0
        with compiling.compiling():  # a loop that the first one calls
            clock[0] += 10.0
            assert compiling.working_time() - begun == pytest.approx(1.0)
        clock[0] += 10.0
    clock[0] += 2.0
    assert compiling.working_time() - begun == pytest.approx(3.0)

    def interrupted():
        with compiling.compiling():
            clock[0] += 5.0
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    clock[0] += 1.0
    assert compiling.working_time() - begun == pytest.approx(4.0)


def test_two_threads_that_compile_count_once(clock):
    begun, inside, leave = compiling.working_time(), threading.Event(), threading.Event()

    def compiles():
        with compiling.compiling():
            inside.set()
            assert leave.wait(HANGS)

    other = threading.Thread(target=compiles)
    other.start()
    assert inside.wait(HANGS)
    with compiling.compiling():
        clock[0] += 7.0
    leave.set()
    other.join(HANGS)
    clock[0] += 1.0
    assert compiling.working_time() - begun == pytest.approx(1.0)


@pytest.fixture
def slow_to_compile(monkeypatch, clock):
    """The second piece of all waits a thousand seconds for a loop."""
    original, calls = Boosted.advance, []

    def advance(self, **options):
        calls.append(1)
        if len(calls) == 2:
            with compiling.compiling():
                compiling.begins("fit_trees")
                clock[0] += 1000.0
        return original(self, **options)

    monkeypatch.setattr(Boosted, "advance", advance)


@pytest.mark.usefixtures("slow_to_compile")
def test_neither_a_limit_of_time_nor_an_estimate_counts_it(capsys):
    model = BoostBPRegressor((2,), **parameters(max_time=500.0, verbose=1, **FAST)).fit(X, Y)
    shown = capsys.readouterr().err
    assert "this fit may take" not in shown
    assert shown.index("boostbp: compiling, once on this machine") < shown.index("boostbp, compiling fit_trees")
    assert not model.history_.choice.cut_by_time
    assert model.history_.choice.seconds["compiling"] == pytest.approx(1000.0)
    assert "compiling 1000.0" in model.summary()
    assert sum(model.history_.choice.seconds.values()) - 1000.0 < schedule.LONG
    warm = BoostBPRegressor((2,), **parameters(**FAST)).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), warm.predict(X))
    assert "compiling" not in warm.history_.choice.seconds


@pytest.mark.usefixtures("slow_to_compile")
def test_nothing_is_shown_to_those_who_asked_for_nothing(capsys):
    BoostBPRegressor((2,), **parameters(**FAST)).fit(X, Y)
    assert capsys.readouterr() == ("", "")


EMPTY = """
import sys
from pathlib import Path
from boostbp.trees.kernels import cache
cache._folders = lambda: [Path(FOLDER)]
import numpy as np
from boostbp import BoostBPRegressor
from boostbp.trees.warmup import PARTS
X = np.random.default_rng(0).uniform(size=(120, 3))
BoostBPRegressor(quality=1, random_state=0, max_time=1, verbose=2).fit(X, np.sin(6 * X[:, 0]))
print([loop.__name__ for loops in PARTS.values() for loop in loops if loop.dispatcher.signatures])
"""


@pytest.mark.slow
def test_a_first_fit_compiles_what_it_needs(tmp_path):
    code = EMPTY.replace("FOLDER", repr(str(tmp_path)))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=HANGS, check=True
    )
    said = [line.partition(",")[0] for line in done.stderr.splitlines()]
    assert said[0] == "boostbp: first layers"
    compiled = set(eval(done.stdout))
    assert compiled <= {loop.__name__ for loop in PARTS["predict"]}
