"""Read-only arrays for functions of the user, and errors that name the function that writes into them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, in a tenth of the time of `np.broadcast_to`: some callers run in every round."""
    view = array.view()
    view.flags.writeable = False
    return view


@contextmanager
def refuse_writes(message: str) -> Iterator[None]:
    """Raise ValueError with a message if the block writes to a read-only array."""
    try:
        yield
    except Exception as error:  # numpy, numba and Cython raise different ones
        if not re.search("read-?only", str(error)):
            raise
        raise ValueError(message) from error
