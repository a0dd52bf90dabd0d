"""Floating point: overflow and the like are met here as numpy meets them by default, whatever the caller has set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
C = TypeVar("C", bound=type)
NUMPYS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


@contextmanager
def usual_floats() -> Iterator[None]:
    """Numpy's own reaction to floating-point errors, as a context or a decorator.

    Small numbers round to 0 all the time, and overflows are looked for where they matter: an exception, as
    ``np.seterr(all="raise")`` asks for, would lose a fit for nothing. Silence stays silence.
    """
    now = np.geterr()
    reactions: dict[str, Any] = {
        kind: "ignore" if now[kind] == "ignore" else "warn" for kind in ("divide", "over", "invalid")
    }
    with np.errstate(under="ignore", **reactions):
        yield


def usual_in_methods(cls: C) -> C:
    """Let the public methods that a class defines itself run under `usual_floats`."""
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(cls, name, _usual(member))
    return cls


def _usual(method: FunctionType) -> Any:
    careful = usual_floats()(method)

    @wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        # what a context costs is felt in the prediction of a row
        return (method if np.geterr() == NUMPYS else careful)(*args, **kwargs)

    return run
