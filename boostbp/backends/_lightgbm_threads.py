"""LightGBM's number of threads, which is one for the whole process: who may call it, and with how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition
from typing import Any

import numpy as np

from boostbp.extras import require
from boostbp.trees import forks

_calls: Counter[int] = Counter()  # now inside LightGBM, by their number of threads
_turn = forks.through(Condition())
_told: list[int] = []  # the number that LightGBM was told last


class Turn:
    """Wait until nobody is inside LightGBM with another number of threads, and keep it so."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads

    def __enter__(self) -> None:
        with _turn:
            _turn.wait_for(lambda: _calls.keys() <= {self.n_threads})
            _calls[self.n_threads] += 1

    def __exit__(self, *_: object) -> None:
        with _turn:
            _calls[self.n_threads] -= 1
            if _calls[self.n_threads] <= 0:  # below where a child was forked from within a call
                del _calls[self.n_threads]
                _turn.notify_all()


@contextmanager
def with_threads(n_threads: int) -> Iterator[None]:
    """Call LightGBM with so many threads; calls with another number wait."""
    with Turn(n_threads):
        hold_threads(n_threads)
        yield


def hold_threads(n_threads: int) -> None:
    """Set the number of threads again, which is process-wide in LightGBM, and the log level, which is per thread.

    Any call to LightGBM may have moved it, and a booster of linear trees that finds more threads
    than at its creation is a segmentation fault. It is set through another booster: resetting
    parameters of the one that grows would begin its random numbers anew, and every tree of
    ``extra_trees`` or ``goss`` would be the same.

    Linear trees hold it before every round. Constant leaves only grow slower with another number, so a fit tells it
    once in each of its threads, and again if another fit of ours told another.
    """
    _told[:] = [n_threads]
    _other_booster().reset_parameter({"num_threads": n_threads, "verbosity": -1})


def was_told(n_threads: int) -> bool:
    """Whether this number is what we told LightGBM last."""
    return _told == [n_threads]


@cache
def _other_booster() -> Any:
    library = require("lightgbm", extra="all", what="backend='lightgbm'")
    params = {"verbosity": -1, "num_threads": 1, "objective": "none", "min_data_in_bin": 1, "feature_pre_filter": False}
    return library.Booster(params, library.Dataset(np.array([[0.0], [1.0]]), params=params))


@forks.in_child
def _begin_anew() -> None:
    """Forget calls of threads that a child process does not have, and a booster that one of them may hold."""
    _calls.clear()
    _told.clear()
    _other_booster.cache_clear()
