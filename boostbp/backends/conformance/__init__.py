"""Conformance: the duties of a backend, each with a check on small tables. Checks are imported on use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

from numpy.typing import NDArray

from boostbp.backends.base import Backend
from boostbp.runtime.arrays import Floats
from boostbp.runtime.checks import ConformanceError

LeafOf = Callable[[Any, Floats], NDArray[Any]]


def check_backend(backend: str | Backend, *, leaf_of: LeafOf | None = None) -> None:
    """Check on small tables that a backend keeps its duties, and can do what its capabilities declare.

    The checks take some seconds, and do not measure speed.

    Parameters
    ----------
    backend : str or Backend
        A name, or an object with ``bind(table, growth)``; see `boostbp.backends.base.Backend`.
    leaf_of : callable, optional
        ``leaf_of(grower, rows) -> (rows,)``: the library's own leaf of each row under the tree of one column that
        `grower` grew last, numbered as in `Tree`. With it, the routing of difficult rows is checked, too: values at
        thresholds and next to them in float32 and float64, missing values, and unknown categories.

    Raises
    ------
    ConformanceError
        An AssertionError that names the broken duty and the cure.
    TypeError, ValueError
        If it is not a backend.

    Examples
    --------
    >>> import boostbp
    >>> boostbp.check_backend("sklearn")
    """
    name = backend if isinstance(backend, str) else type(backend).__name__
    for duty, check in duties_of(backend, leaf_of=leaf_of).items():
        try:
            check()
        except ConformanceError as error:
            raise ConformanceError(f"backend {name}, {duty}: {error}") from error.__cause__


def duties_of(backend: str | Backend, *, leaf_of: LeafOf | None = None) -> dict[str, Callable[[], None]]:
    """Return the duties of a backend by name, each a check that raises ConformanceError; see `check_backend`."""
    from boostbp.backends import load_backend
    from boostbp.backends.conformance import duties as checks_of
    from boostbp.backends.conformance.backend_trial import BackendTrial

    trial, duties = BackendTrial(load_backend(backend)), dict(checks_of.DUTIES)
    if leaf_of is not None:
        duties["routes rows as the library does"] = partial(checks_of.routes_as_the_library_does, leaf_of=leaf_of)
    checks: dict[str, Callable[[], None]] = {name: partial(trial.run, duty) for name, duty in duties.items()}
    for word in (field.name for field in fields(trial.capabilities)):
        if getattr(trial.capabilities, word):
            cure = f"leave {word!r} out of its capabilities"
            checks[f"capability {word!r}"] = partial(trial.run, getattr(checks_of, word), cure)
    return checks
