"""Libraries that grow trees, one file each; the file carries the name of the library."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from boostbp.backends.base import Backend

__all__ = ["available", "draws", "load"]


def _names() -> list[str]:
    return sorted(m.name for m in iter_modules(__path__) if m.name != "base" and not m.name.startswith("_"))


def available() -> list[str]:
    """Names of the backends whose library is installed; no library is imported to find out."""
    return [name for name in _names() if find_spec(name) is not None]


def load(backend: str | Backend) -> Backend:
    """The backend of a name, or the user's own object as it is.

    Parameters
    ----------
    backend : str or Backend
        The name of a file in this folder, or any object with a method ``bind(table, growth)``.

    Raises
    ------
    ValueError
        If there is no backend of this name.
    TypeError
        If it is neither a name nor an object with a ``bind``.
    """
    if isinstance(backend, str):
        if backend not in _names():
            raise ValueError(
                f"backend={backend!r} is unknown: use one of {available()}, or an object with a method "
                f"bind(table, growth) (see boostbp.backends.base.Backend)."
            )
        found: Backend = import_module(f"{__name__}.{backend}").backend
        return found
    if not callable(getattr(backend, "bind", None)):
        raise TypeError(
            f"backend={backend!r} has no method bind(table, growth): use one of {available()}, or an object "
            f"that satisfies boostbp.backends.base.Backend."
        )
    return backend


def draws(backend: str | Backend, extra_trees: bool | str) -> bool:
    """Whether thresholds are to be drawn at random: as asked for, or "auto", where the backend can.

    Raises
    ------
    ValueError
        If it is asked for, and the backend cannot.
    """
    can = bool(getattr(load(backend), "extra_trees", False))
    if extra_trees == "auto":
        return can
    if extra_trees and not can:
        raise ValueError(
            f"extra_trees={extra_trees!r} is not supported by backend={backend!r}, which takes the best thresholds: "
            "use extra_trees=False, or backend='lightgbm'."
        )
    return bool(extra_trees)
