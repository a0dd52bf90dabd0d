"""Calls of LightGBM: with how many threads, by which functions, and in a network of workers.

The number of threads is one of the whole process. On few rows the Python interface takes longer than the growth of a
tree: `Booster.update` copies the scores, which nobody reads here, and `Booster.model_to_string` clears a megabyte for a
text of some kilobytes. The functions of a round do the same by those of LightGBM's C API that both of them call.

The workers meet through our group, by functions that LightGBM takes in the place of its sockets. So there are no ports
to agree on, and time limits and errors are those of the group. LightGBM's own network would end the process where a
port is taken, and knows whole minutes only.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition, local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.group import Group, workers
from boostbp.trees import forks

_INT, _LONG, _AT = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
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


_INTS = ctypes.POINTER(ctypes.c_int)
# `ReduceFunction`, `ReduceScatterFunction` and `AllgatherFunction` of LightGBM's meta.h
_Reduce = ctypes.CFUNCTYPE(None, _AT, _AT, _INT, _INT)
_ReduceScatter = ctypes.CFUNCTYPE(None, _AT, _INT, _INT, _INTS, _INTS, _INT, _AT, _INT, ctypes.POINTER(_Reduce))
_Allgather = ctypes.CFUNCTYPE(None, _AT, _INT, _INTS, _INTS, _INT, _AT, _INT)
_SUMS = 8  # bytes of a number of histograms, float64: they are to be added
_TOTALS = 24  # bytes of what each tree begins with: number of rows, sums of gradients and hessians


@contextmanager
def networked(library: Any, *, empty: bool) -> Iterator[None]:
    """Let LightGBM be one of the workers of the group, in this thread; alone, it is by itself.

    An `empty` worker has no rows, but for one that LightGBM is given as it takes no empty table. Raises what the group
    raised at the end: LightGBM does not know, and has gone on with what it had.
    """
    group = workers()
    if group.size == 1:
        yield
        return
    exchange = _Exchange(group, empty)
    functions = _ReduceScatter(exchange.reduce_scatter), _Allgather(exchange.allgather)
    call, check = library.basic._LIB, library.basic._safe_call
    check(call.LGBM_NetworkInitWithFunctions(group.size, group.rank, *functions))
    try:
        yield
    finally:
        check(call.LGBM_NetworkFree())
    if exchange.error is not None:
        raise exchange.error


class _Exchange:
    """The messages of one worker; after an error each is what it would be if all workers were like this one."""

    def __init__(self, group: Group, empty: bool) -> None:
        self.group, self.empty = group, empty
        self.error: BaseException | None = None

    def _asked(self, ask: Callable[[], NDArray[Any]], otherwise: NDArray[Any]) -> NDArray[Any]:
        """The answer of the group: no exception can pass through LightGBM."""
        if self.error is None:
            try:
                return ask()
            except BaseException as error:
                self.error = error
        return otherwise

    def reduce_scatter(
        self, source: int, size: int, type_size: int, start: Any, length: Any, n: int, out: int, _: int, reduce: Any
    ) -> None:
        """What all workers give, reduced: this worker's block of it."""
        message, rank = _bytes_at(source, size), self.group.rank
        whole = self._asked(lambda: self._reduced(message, type_size, reduce[0]), message)
        block = whole[start[rank] : start[rank] + length[rank]]
        _bytes_at(out, len(block))[:] = block

    def _reduced(self, message: NDArray[np.uint8], type_size: int, reduce: Callable[..., None]) -> NDArray[np.uint8]:
        if type_size == _SUMS:
            [sums] = self.group.sum(message.view(np.float64))
            return np.asarray(sums).view(np.uint8)
        total, *rest = (part.copy() for part in self.group.gather(message))
        for part in rest:
            reduce(part.ctypes.data, total.ctypes.data, type_size, len(part))
        return total

    def allgather(self, source: int, size: int, start: Any, length: Any, n: int, out: int, out_size: int) -> None:
        """What all workers give, side by side."""
        message, places = _bytes_at(source, size).copy(), [slice(start[k], start[k] + length[k]) for k in range(n)]
        if self.empty and size == _TOTALS:
            message[:] = 0  # its sums are 0, and its row is none
        side_by_side = np.zeros(out_size)  # a sum of few bytes is faster than telling them from worker to worker
        side_by_side[places[self.group.rank]] = message
        alike = np.resize(message, out_size)
        _bytes_at(out, out_size)[:] = self._asked(lambda: self.group.sum(side_by_side)[0].astype(np.uint8), alike)


def _bytes_at(address: int, size: int) -> NDArray[np.uint8]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def exactly_summed(values: NDArray[np.float32], n_rows: float) -> NDArray[np.float32]:
    """Return numbers of a class each, (classes, rows), whose sums over all rows float64 holds exactly.

    Then sums do not depend on how workers share the rows, and neither does what LightGBM does where two splits are
    worth the same. Numbers lose what lies 2^52 below the largest possible sum: of a million rows, those that are a
    thousandth of the largest keep all bits of float32 but one or two.
    """
    [largest] = workers().max(np.abs(values).max(axis=1, initial=0.0).astype(np.float64))
    _, exponent = np.frexp(largest * n_rows)
    step = np.ldexp(1.0, np.maximum(exponent - 52, -1000))[:, None]
    return (np.rint(values / step) * step).astype(np.float32)
