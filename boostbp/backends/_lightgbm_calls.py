"""Calls of LightGBM: its number of threads, the functions of a round, its network of workers, its text model.

LightGBM has one number of threads for the whole process. On few rows its Python interface takes longer than growing a
tree: `Booster.update` copies the scores, and `Booster.model_to_string` clears a megabyte for a text of some kilobytes.
The functions of a round call LightGBM's C API directly. So does `boosting.c`, for rounds that the core boosts without
the interpreter. The functions here grow the others: of sparse rows, of several workers, with native parameters.

Workers communicate through boostbp's group, whose functions replace LightGBM's sockets: no ports to agree on, and the
time limits and errors of the group. LightGBM's own network would end the process if a port is taken.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from threading import Condition, RLock, local
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.group import Group, workers
from boostbp.runtime.interrupts import after_fork, fork_safe
from boostbp.runtime.messages import require

if TYPE_CHECKING:
    from lightgbm import Booster
from typing import TypeVar

from boostbp import core
from boostbp.backends.base import LinearLeaves
from boostbp.backends.dialects import gradients
from boostbp.runtime.arrays import Floats
from boostbp.trees.tree import SplitRoom, Tree, Trees

_INT, _LONG, _AT = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
_SPLITS = 0  # kind of importances, which are not read here: numbers of splits
_texts = local()  # `buffer`: memory for the text of a model, in each thread
_calls: Counter[int] = Counter()  # running calls of LightGBM, by their number of threads
# `with` on a Condition, whose methods are Python, would leave the lock taken if a signal handler raises within them.
_lock = fork_safe(RLock())
_gate = Condition(_lock)
_last: list[int] = []  # the number of threads that was set last


@contextmanager
def thread_gate(n_threads: int) -> Iterator[None]:
    """Wait until no call of LightGBM with another number of threads runs, and let none begin within the block."""
    counted: list[bool] = []
    try:
        _begin_call(n_threads, counted)
        yield
    finally:
        if counted:
            _end_call(n_threads)


@contextmanager
def paused_gate(n_threads: int) -> Iterator[None]:
    """Leave the block of `thread_gate` for code that may call LightGBM with another number of threads."""
    _end_call(n_threads)
    try:
        yield
    finally:
        counted: list[bool] = []
        try:
            _begin_call(n_threads, counted)
        finally:
            if not counted:  # an interrupt: the block of `thread_gate` ends, and will count one call less
                with _lock:
                    _calls[n_threads] += 1


def _begin_call(n_threads: int, counted: list[bool]) -> None:
    with _lock:
        _gate.wait_for(lambda: _calls.keys() <= {n_threads})
        _calls[n_threads] += 1
        counted.append(True)


def _end_call(n_threads: int) -> None:
    with _lock:
        _calls[n_threads] -= 1
        if _calls[n_threads] <= 0:  # below 0 in a child that was forked during a call
            del _calls[n_threads]
            _gate.notify_all()


@contextmanager
def with_threads(n_threads: int) -> Iterator[None]:
    """Let LightGBM use `n_threads` threads; calls with another number wait."""
    with thread_gate(n_threads):
        hold_threads(n_threads)
        yield


def hold_threads(n_threads: int) -> None:
    """Set LightGBM's number of threads, which is process-wide, and its log level, which is per thread.

    Any call of LightGBM may have changed the number. A booster of linear trees ends the process if there are more
    threads than at its creation, so it needs this before every round. Other trees only grow more slowly: a fit sets the
    number once in each of its threads, and again if another fit of boostbp has changed it.
    """
    # Through another booster: resetting parameters of the growing one would restart its random numbers, and every tree
    # of ``extra_trees`` or ``goss`` would be the same.
    _last[:] = [n_threads]
    _other_booster().reset_parameter({"num_threads": n_threads, "verbosity": -1})


def same_threads(n_threads: int) -> bool:
    """Return whether boostbp set this number of threads last."""
    return _last == [n_threads]


@cache
def _other_booster() -> Booster:
    library = require("lightgbm", extra="all", what="backend='lightgbm'")
    params = {"verbosity": -1, "num_threads": 1, "objective": "none", "min_data_in_bin": 1, "feature_pre_filter": False}
    return library.Booster(params, library.Dataset(np.array([[0.0], [1.0]]), params=params))


@after_fork
def _reset() -> None:
    """Reset the records of calls after a fork, as the threads of the parent do not exist in the child."""
    _calls.clear()
    _last.clear()
    _other_booster.cache_clear()


def update(library: ModuleType, booster: Booster, grad: NDArray[np.float32], hess: NDArray[np.float32]) -> None:
    """Boost one round with gradients and hessians, (classes, rows), C-contiguous."""
    if grad.size != hess.size or not (grad.flags.carray and hess.flags.carray):  # LightGBM would read beyond their ends
        raise ValueError(f"gradients of shape {grad.shape} and hessians of shape {hess.shape} do not lie side by side.")
    call, nothing_grown = library.basic._LIB.LGBM_BoosterUpdateOneIterCustom, _INT(0)
    at = ctypes.c_void_p(grad.ctypes.data), ctypes.c_void_p(hess.ctypes.data)
    library.basic._safe_call(call(booster._handle, *at, ctypes.byref(nothing_grown)))


def trees_of(library: ModuleType, booster: Booster, number: int, n_trees: int) -> Trees:
    """Return the trees of a round."""
    call, check, length = library.basic._LIB.LGBM_BoosterSaveModelToString, library.basic._safe_call, _LONG(0)
    buffer: Any = getattr(_texts, "buffer", None) or ctypes.create_string_buffer(1 << 14)
    while True:
        size = _LONG(len(buffer))
        check(call(booster._handle, _INT(number), _INT(1), _INT(_SPLITS), size, ctypes.byref(length), buffer))
        if length.value <= len(buffer):
            break
        buffer = ctypes.create_string_buffer(2 * length.value)
    _texts.buffer = buffer
    return _read(np.frombuffer(buffer, np.uint8, length.value), n_trees)


def addresses(library: ModuleType, booster: Booster) -> tuple[int, ...]:
    """Return those of a booster, and of the functions that grow and read its rounds."""
    of, names = library.basic._LIB, ("UpdateOneIterCustom", "GetCurrentIteration", "SaveModelToString")
    functions = [_AT.from_buffer(of[f"LGBM_Booster{name}"]) for name in names]
    return tuple(at.value or 0 for at in (booster._handle, *functions))


in_float32 = partial(gradients, "LightGBM")  # derivatives as LightGBM takes them


def raise_fault(library: ModuleType, fault: int, grad: Floats, hess: Floats) -> None:
    """Raise the error of a fault of rounds that the core has grown."""
    if fault == core.STOPPED:
        in_float32(grad, hess)
    if fault == core.REFUSED:
        library.basic._safe_call(-1)  # LightGBM's last error
    if fault == core.NOT_READ:
        raise ValueError(UNKNOWN_TEXT)


_INTS = ctypes.POINTER(ctypes.c_int)
# `ReduceFunction`, `ReduceScatterFunction` and `AllgatherFunction` of LightGBM's meta.h
_Reduce = ctypes.CFUNCTYPE(None, _AT, _AT, _INT, _INT)
_ReduceScatter = ctypes.CFUNCTYPE(None, _AT, _INT, _INT, _INTS, _INTS, _INT, _AT, _INT, ctypes.POINTER(_Reduce))
_Allgather = ctypes.CFUNCTYPE(None, _AT, _INT, _INTS, _INTS, _INT, _AT, _INT)
# Pointers, which are indexed like sequences
Ints: TypeAlias = Sequence[int]
Calls: TypeAlias = Sequence[Callable[..., None]]
_SUM_BYTES = 8  # size of a float64 in a histogram; messages of such numbers are summed
_TOTALS_BYTES = 24  # size of the first message of a tree: number of rows, sums of gradients and hessians


@contextmanager
def networked(library: ModuleType, *, empty: bool) -> Iterator[None]:
    """Connect LightGBM in this thread with the other workers of the group, if there is one.

    An `empty` worker has a placeholder row, as LightGBM does not accept empty tables. An error of the group is raised
    at the end: it cannot pass through LightGBM, which continues without the group.
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
    """The messages of one worker; after an error, all other workers count as copies of this one."""

    def __init__(self, group: Group, empty: bool) -> None:
        self.group, self.empty = group, empty
        self.error: BaseException | None = None

    def _exchange(self, send: Callable[[], NDArray[Any]], substitute: NDArray[Any]) -> NDArray[Any]:
        """Return the answer of the group, or a substitute after an error, which cannot pass through LightGBM."""
        if self.error is None:
            try:
                return send()
            except BaseException as error:
                self.error = error
        return substitute

    def reduce_scatter(
        self, source: int, size: int, type_size: int, start: Ints, length: Ints, n: int, out: int, _: int, reduce: Calls
    ) -> None:
        """Write this worker's block of the reduced messages of all workers."""
        message, rank = _bytes_at(source, size), self.group.rank
        whole = self._exchange(lambda: self._reduced(message, type_size, reduce[0]), message)
        block = whole[start[rank] : start[rank] + length[rank]]
        _bytes_at(out, len(block))[:] = block

    def _reduced(self, message: NDArray[np.uint8], type_size: int, reduce: Callable[..., None]) -> NDArray[np.uint8]:
        if type_size == _SUM_BYTES:
            [sums] = self.group.sum(message.view(np.float64))
            return np.asarray(sums).view(np.uint8)
        total, *rest = (part.copy() for part in self.group.gather(message))
        for part in rest:
            reduce(part.ctypes.data, total.ctypes.data, type_size, len(part))
        return total

    def allgather(self, source: int, size: int, start: Ints, length: Ints, n: int, out: int, out_size: int) -> None:
        """Write the messages of all workers in order."""
        message, rank = _bytes_at(source, size).copy(), self.group.rank
        if self.empty and size == _TOTALS_BYTES:
            message[:] = 0  # the placeholder row does not count
        padded = np.zeros(out_size)  # one sum of few bytes is faster than a message from each worker
        padded[start[rank] : start[rank] + length[rank]] = message
        substitute = np.resize(message, out_size)
        _bytes_at(out, out_size)[:] = self._exchange(lambda: self.group.sum(padded)[0].astype(np.uint8), substitute)


def _bytes_at(address: int, size: int) -> NDArray[np.uint8]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def exactly_summed(values: NDArray[np.float32], n_rows: float) -> NDArray[np.float32]:
    """Round values, (classes, rows), so that float64 holds their sums over all `n_rows` rows exactly.

    Sums, and LightGBM's choice between equal gains, then do not depend on how workers share the rows.
    """
    # All sums stay below 2^exponent, and so below 2^52 steps of 2^(exponent - 52): whole numbers that float64 holds.
    [largest] = workers().max(np.abs(values).max(axis=1, initial=0.0).astype(np.float64))
    _, exponent = np.frexp(largest * n_rows)
    step = np.ldexp(1.0, np.maximum(exponent - 52, -1000))[:, None]
    return (np.rint(values / step) * step).astype(np.float32)


# Reader of the text model
# LightGBM reads numbers up to this size as 0.0, and places thresholds at the ends of this range.
_ZERO = float(np.float32(1e-35))
_LARGEST = 1e300  # LightGBM reads larger numbers as this one
UNKNOWN_TEXT = "LightGBM's text of trees is not as expected: this version of it is not supported."

Fields = dict[str, str]
D = TypeVar("D", np.float64, np.int32)


def alike(values: Floats) -> NDArray[np.bool_]:
    """Return whether LightGBM merges each of ascending values, (..., n), with the next one."""
    # LightGBM treats two values as equal if no float64 is between them (its `Common::CheckDoubleEqualOrdered`).
    read = np.where(np.abs(values) <= _ZERO, 0.0, np.clip(values, -_LARGEST, _LARGEST))
    return np.asarray(read[..., 1:] <= np.nextafter(read[..., :-1], np.inf))


def trees_in_text(text: str) -> Trees:
    """Return every tree in the text of ``Booster.model_to_string``; ValueError if it is not such a text."""
    return _read(np.frombuffer(bytearray(text, "utf-8"), np.uint8), text.count("\nTree="))


def _read(text: NDArray[np.uint8], n_trees: int) -> Trees:
    """Return the first trees of a text."""
    return SplitRoom.filled(core.read_trees, text, n_trees, UNKNOWN_TEXT)


def linear_leaves(text: str) -> list[LinearLeaves]:
    """Return every tree with its linear leaves; constant leaves have no features."""
    return [_linear(tree, _fields(block)) for tree, block in zip(trees_in_text(text), _blocks(text), strict=True)]


def _blocks(text: str) -> Iterator[str]:
    end = 0
    while (begin := text.find("\nTree=", end)) >= 0:
        end = text.index("\n\n", begin)
        yield text[begin + 1 : end]


def _fields(block: str) -> Fields:
    return dict([line.split("=", 1) for line in block.split("\n")])


def _numbers(fields: Fields, name: str, dtype: type[D]) -> NDArray[D]:
    return np.fromstring(fields[name], dtype, sep=" ")


def _linear(tree: Tree, fields: Fields) -> LinearLeaves:
    value = _numbers(fields, "leaf_value", np.float64)
    start = np.zeros(tree.n_leaves + 1, np.int32)
    if fields.get("is_linear", "0") == "0":
        return LinearLeaves(tree, value, start, np.empty(0, np.int32), np.empty(0), value)
    np.cumsum(_numbers(fields, "num_features", np.int32), out=start[1:])
    const, coeff = (_numbers(fields, name, np.float64) for name in ("leaf_const", "leaf_coeff"))
    n_terms = start[-1]  # numpy reads empty fields of a tree as one number
    return LinearLeaves(
        tree, const, start, _numbers(fields, "leaf_features", np.int32)[:n_terms], coeff[:n_terms], value
    )
