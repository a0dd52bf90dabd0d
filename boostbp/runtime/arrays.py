"""Arrays: their types, read-only views for functions of the user, NumPy's handling of errors, large ones on disk."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray


class ArrowTable(Protocol):
    """A data frame, or another table that exports its columns as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule of the stream."""


Floats = NDArray[np.float64]
# Types of a user's X: an array, a frame, a sparse matrix, the path of a file, or an iterator of blocks of rows.
TableLike: TypeAlias = ArrayLike | ArrowTable | sp.spmatrix | sp.sparray | os.PathLike[str] | Iterator[object]
C = TypeVar("C", bound=type)
NUMPY_DEFAULTS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
folder_of_arrays: ContextVar[Path | None] = ContextVar("folder_of_arrays", default=None)  # of large ones on disk


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, ten times faster than `np.broadcast_to`, as some callers run in every round."""
    view = array.view()
    view.flags.writeable = False
    return view


# What NumPy, Cython and Numba say of a write, such as "assignment destination is read-only"
_READ_ONLY = re.compile(
    r"\b(?:array|destination|object|buffer|base|swapped) is (?:not writable|read-?only)"
    r"|modify read-?only (?:array|memory)|readonly arrays unsupported"
)


@contextmanager
def refuse_writes(message: str) -> Iterator[None]:
    """Raise ValueError with a message if the block writes to a read-only array."""
    try:
        yield
    except (BufferError, TypeError, ValueError) as error:
        if not _READ_ONLY.search(str(error)):
            raise
        raise ValueError(message) from error


@contextmanager
def numpy_errstate() -> Iterator[None]:
    """Handle floating-point errors as NumPy does by default, or ignore them as the caller does; also a decorator.

    Small numbers often round to 0, so with ``np.seterr(all="raise")`` fits would fail without a reason.
    """
    states: dict[str, Any] = NUMPY_DEFAULTS | {kind: how for kind, how in np.geterr().items() if how == "ignore"}
    with np.errstate(**states):
        yield


def errstate_in_methods(cls: C) -> C:
    """Run the public methods that a class defines itself under `numpy_errstate`."""
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(cls, name, _usual(member))
    return cls


def _usual(method: FunctionType) -> Any:
    careful = numpy_errstate()(method)

    @wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        # entering a context takes microseconds, a noticeable part of the prediction of a single row
        return (method if np.geterr() == NUMPY_DEFAULTS else careful)(*args, **kwargs)

    return run


def scratch_folder() -> Path:
    """Return ``TMPDIR`` if it is set, otherwise ``/var/tmp`` where it exists, as ``/tmp`` may be in memory."""
    large = Path("/var/tmp")
    return Path(tempfile.gettempdir()) if "TMPDIR" in os.environ or not os.access(large, os.W_OK) else large


def is_on_disk() -> bool:
    """Return whether new large arrays of this thread are on the disk."""
    return folder_of_arrays.get() is not None
