"""Bars that open by themselves: where a person sees them, for fits that take longer than a second."""

from __future__ import annotations

import io
import threading
import time
from contextlib import redirect_stderr

import numpy as np
import pytest
from flat_parameters import parameters

from boostbp import BoostBPRegressor
from boostbp.network import displays
from boostbp.network.monitor import Stage

X = np.random.default_rng(0).normal(size=(200, 3))


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self):
        return True


def wait_for(condition):
    limit = time.perf_counter() + 30.0
    while not condition() and time.perf_counter() < limit:
        time.sleep(0.01)
    assert condition()


def watched_fit(stream, *, seconds=0.0, verbose="auto"):
    """Fit with a callback that waits `seconds` after an epoch, and return what was written."""
    model = BoostBPRegressor((2,), **parameters(epochs=1, n_estimators=2, deep=True, verbose=verbose))
    with redirect_stderr(stream):
        model.fit(X, X[:, 0], callbacks=[lambda progress: time.sleep(seconds)])
    return stream.getvalue()


def test_a_terminal_shows_the_bar_of_a_slow_fit_and_then_clears_it(monkeypatch):
    monkeypatch.setattr(displays, "DELAY", 0.05)
    written = watched_fit(Terminal(), seconds=0.3)
    assert "boostbp" in written
    assert written.endswith("\r")
    assert not written.rstrip("\r").rpartition("\r")[2].strip()  # the last thing drawn is blank


def test_quick_fits_pipes_and_zero_are_silent(monkeypatch):
    monkeypatch.setattr(displays, "DELAY", 60.0)
    assert watched_fit(Terminal()) == ""
    monkeypatch.setattr(displays, "DELAY", 0.0)
    assert watched_fit(io.StringIO(), seconds=0.1) == ""
    assert watched_fit(Terminal(), seconds=0.1, verbose=0) == ""


def test_threads_and_fits_within_fits_have_no_bar_of_their_own(monkeypatch):
    monkeypatch.setattr(displays, "DELAY", 0.0)
    terminal = Terminal()
    thread = threading.Thread(target=watched_fit, args=(terminal,), kwargs={"seconds": 0.1})
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""
    with displays.showing(1):
        outer = displays.current_display()
        with displays.showing(1):
            assert displays.current_display() is outer
    assert displays.current_display() is None


def test_the_clock_of_a_bar_goes_on_without_news():
    terminal = Terminal()
    with redirect_stderr(terminal):
        bar = displays.ProgressBar()
        bar.start()
        try:
            wait_for(lambda: "boostbp, fitting: [00:00]" in terminal.getvalue())
            bar.stage(Stage("layers", 0.5, 0.25, 2))
            wait_for(lambda: "[00:02, held-out loss 0.25, models: 2]" in terminal.getvalue())
        finally:
            bar.close()
    assert "boostbp, layers:  50%" in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")


def test_a_hint_waits_for_its_bar():
    terminal = Terminal()
    with redirect_stderr(terminal):
        bar = displays.ProgressBar(delay=0.2)
        bar.stage(Stage("layers", 0.5, 0.25, 2, hint="this may take long."))
        assert terminal.getvalue() == ""
        wait_for(lambda: bar.stage(Stage("layers", 0.5, 0.25, 2)) or terminal.getvalue())
        bar.close()
    assert "boostbp: this may take long.\n" in terminal.getvalue()


def test_another_word_than_auto_is_refused():
    with pytest.raises(ValueError, match=r"verbose='bar' is not a whole number: .*'auto'"):
        watched_fit(io.StringIO(), verbose="bar")
