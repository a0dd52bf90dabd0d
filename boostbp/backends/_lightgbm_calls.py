"""Calls of LightGBM: with how many threads, which are those of the whole process, and by which functions.

On few rows its Python interface takes longer than the growth of a tree: `Booster.update` copies the scores, which
nobody reads here, and `Booster.model_to_string` clears a megabyte for a text of some kilobytes. The functions of a
round do the same by the functions of LightGBM's C API that both of them call.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition, local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.trees import forks

_INT, _LONG = ctypes.c_int, ctypes.c_int64
_SPLITS = 0  # importances count splits: those in the text are not read
_END = b"\nend of trees"
_held = local()  # room for the text, of each thread
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


def iterations(library: Any, booster: Any) -> int:
    """Return the number of rounds that a booster has; see `Booster.current_iteration`."""
    count = _INT(0)
    library.basic._safe_call(library.basic._LIB.LGBM_BoosterGetCurrentIteration(booster._handle, ctypes.byref(count)))
    return count.value


def update(library: Any, booster: Any, grad: NDArray[np.float32], hess: NDArray[np.float32]) -> None:
    """Boost one round by gradients and hessians, (classes, rows), C-contiguous."""
    if grad.size != hess.size or not (grad.flags.carray and hess.flags.carray):  # LightGBM would read beyond their ends
        raise ValueError(f"gradients of shape {grad.shape} and hessians of shape {hess.shape} do not lie side by side.")
    call, nothing_grown = library.basic._LIB.LGBM_BoosterUpdateOneIterCustom, _INT(0)
    at = ctypes.c_void_p(grad.ctypes.data), ctypes.c_void_p(hess.ctypes.data)
    library.basic._safe_call(call(booster._handle, *at, ctypes.byref(nothing_grown)))


def text_of(library: Any, booster: Any, first: int, count: int) -> str:
    """Return the trees of some rounds as `Booster.model_to_string` writes them, without what follows on them."""
    call, length = library.basic._LIB.LGBM_BoosterSaveModelToString, _LONG(0)
    buffer = getattr(_held, "buffer", None) or ctypes.create_string_buffer(1 << 14)
    while True:
        size = _LONG(len(buffer))
        library.basic._safe_call(
            call(booster._handle, _INT(first), _INT(count), _INT(_SPLITS), size, ctypes.byref(length), buffer)
        )
        if length.value <= len(buffer):
            break
        buffer = ctypes.create_string_buffer(2 * length.value)
    _held.buffer = buffer
    text = ctypes.string_at(buffer, length.value)
    return text[: text.index(_END)].decode()
