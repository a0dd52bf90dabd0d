"""Conformance: the duties of a backend, each with a check on small tables; what they are made of is imported on use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import NDArray

from boostbp.backends.base import Backend
from boostbp.backends.capabilities import ConformanceError
from boostbp.floats import Floats

LeafOf = Callable[[Any, Floats], NDArray[Any]]


def check_backend(backend: str | Backend, *, leaf_of: LeafOf | None = None) -> None:
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


def duties_of(backend: str | Backend, *, leaf_of: LeafOf | None = None) -> dict[str, Callable[[], None]]:
    """Return the duties of a backend by their names, each a check that raises `ConformanceError` if it is broken.

    Parameters are those of `check_backend`.
    """
    from boostbp.backends import load
    from boostbp.backends.conformance.backend_trial import Trial
    from boostbp.backends.conformance.declared import CAPABILITIES
    from boostbp.backends.conformance.duties import DUTIES, routes_as_the_library_does

    trial = Trial(load(backend))
    duties: dict[str, Callable[[], None]] = {duty.__name__.replace("_", " "): partial(duty, trial) for duty in DUTIES}
    for capability in CAPABILITIES:
        if getattr(trial.able, word := capability.__name__):
            duties[f"capability {word!r}"] = partial(trial.try_declared, word, capability)
    if leaf_of is not None:
        duties["routes rows as the library does"] = partial(routes_as_the_library_does, trial, leaf_of)
    return duties
