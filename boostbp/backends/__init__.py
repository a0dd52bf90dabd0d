"""Libraries that grow trees, one file each, and what a backend of one's own is made and checked with."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType

from boostbp.backends.base import Backend, Growth, Table
from boostbp.backends.capabilities import Capabilities, capabilities_of
from boostbp.backends.conformance import ConformanceError, check_backend

__all__ = [
    "Backend",
    "Capabilities",
    "ConformanceError",
    "Growth",
    "Table",
    "available",
    "capabilities_of",
    "check_backend",
    "draws",
    "load",
]


def _modules() -> dict[str, ModuleType]:
    """The modules of this folder that hold a ``backend``, by name; none of them imports its library."""
    names = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    modules = {name: import_module(f"{__name__}.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "backend")}


def available() -> list[str]:
    """Names of the backends of which all that they require is installed; nothing of it is imported to find out.

    A module says by ``requires``, a tuple of names to import, what its backend needs; without, it needs nothing.
    """
    return [
        name
        for name, module in _modules().items()
        if all(find_spec(needed) is not None for needed in getattr(module, "requires", ()))
    ]


def load(backend: str | Backend) -> Backend:
    """The backend of a name, or the user's own object as it is.

    Parameters
    ----------
    backend : str or Backend
        The name of a module in this folder, or any object with a method ``bind(table, growth)``.

    Raises
    ------
    ValueError
        If there is no backend of this name.
    TypeError
        If it is neither a name nor an object with a ``bind``.
    """
    if isinstance(backend, str):
        module = _modules().get(backend)
        if module is None:
            raise ValueError(
                f"backend={backend!r} is unknown: use one of {available()}, or an object with a method "
                f"bind(table, growth) (see boostbp.backends.base.Backend)."
            )
        loaded: Backend = module.backend
        return loaded
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
    can = capabilities_of(load(backend)).extra_trees
    if extra_trees == "auto":
        return can
    if extra_trees and not can:
        raise ValueError(
            f"extra_trees={extra_trees!r} is not supported by backend={backend!r}, which takes the best thresholds: "
            "use extra_trees=False, or backend='lightgbm'."
        )
    return bool(extra_trees)
