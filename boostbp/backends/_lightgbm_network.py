"""LightGBM's network: its workers meet through our group, by functions that it takes in the place of its sockets.

So there are no ports to agree on, and time limits and errors are those of the group. LightGBM's own network would end
the process where a port is taken, and knows whole minutes only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.group import Group, workers

_INT, _AT = ctypes.c_int, ctypes.c_void_p
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
