"""check_backend: checks that a backend keeps its duties and can do what it declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from boostbp.backends.base import Backend
from boostbp.backends.capabilities import ConformanceError
from boostbp.floats import Floats


def check_backend(backend: str | Backend, *, leaf_of: Callable[[Any, Floats], NDArray[Any]] | None = None) -> None:
    """Check on small tables that a backend keeps its duties, and can do what its capabilities declare.

    It takes some seconds and says nothing of speed.

    Parameters
    ----------
    backend : str or Backend
        A name, or an object with ``bind(table, growth)``; see `boostbp.backends.base.Backend`.
    leaf_of : callable, optional
        ``leaf_of(grower, rows) -> (rows,)``: the library's own leaf of each row under the tree that `grower` grew last,
        of one column, numbered as in `Tree`. With it, rows that are easily sent another way are tried too: on
        thresholds, beside them in float32 and float64, missing ones, categories never seen.

    Raises
    ------
    ConformanceError
        An AssertionError that tells which duty is broken and how to mend it.
    TypeError, ValueError
        If it is no backend at all.

    Examples
    --------
    >>> import boostbp
    >>> boostbp.check_backend("sklearn")
    """
    from boostbp.backends.conformance import duties_of  # much code, which only a check needs

    who = f"backend {backend if isinstance(backend, str) else type(backend).__name__}"
    for name, duty in duties_of(backend, leaf_of=leaf_of).items():
        try:
            duty()
        except ConformanceError as error:
            raise ConformanceError(f"{who}, {name}: {error}") from error
        except Exception as error:
            raise ConformanceError(
                f"{who}, {name}: it raised {type(error).__name__}: {error} Every backend must bear what "
                "is tried here; see the traceback."
            ) from error
