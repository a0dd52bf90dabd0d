"""LightGBM's C functions of a round: on few rows its Python interface takes longer than the growth of a tree.

`Booster.update` copies the scores, which nobody reads here, and `Booster.model_to_string` clears a megabyte for a text
of some kilobytes. These do the same by the functions of LightGBM's C API that both of them call.
"""

from __future__ import annotations

import ctypes
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

_INT, _LONG = ctypes.c_int, ctypes.c_int64
_SPLITS = 0  # importances count splits: those in the text are not read
_END = b"\nend of trees"
_held = local()  # room for the text, of each thread


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
