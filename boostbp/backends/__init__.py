"""Backends: libraries that grow trees, one file each, and protocols and checks for your own backend."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import cast

from boostbp.backends.base import Backend, TreeParams
from boostbp.backends.capabilities import Capabilities, capabilities_of
from boostbp.backends.conformance import check_backend
from boostbp.runtime.checks import ConformanceError
from boostbp.trees.sparse import Table

__all__ = [
    "Backend", "Capabilities", "ConformanceError", "Table", "TreeParams", "available", "capabilities_of",
    "check_backend", "draws", "load_backend",
]  # fmt: skip


def _module(name: str) -> ModuleType | None:
    """Return the module of this folder with the backend of a name. Importing it imports no library."""
    dotted = ".".join((__name__, name))  # of a member of an enum, too
    if dotted not in sys.modules and name not in _names():
        return None
    module = import_module(dotted)  # waits for a thread that is importing it
    return module if hasattr(module, "backend") else None


def _names() -> list[str]:
    """Return the names of the files of this folder that may contain a backend."""
    return sorted(file.name for file in iter_modules(__path__) if not (file.ispkg or file.name.startswith("_")))


def available() -> list[str]:
    """Return the names of the backends whose requirements are installed, without importing a library.

    A module lists the packages that its backend needs in ``requires``, a tuple of names to import.
    """
    modules = {name: module for name in _names() if (module := _module(name)) is not None}
    return [name for name, module in modules.items() if all(map(find_spec, getattr(module, "requires", ())))]


def load_backend(backend: str | Backend) -> Backend:
    """Return the backend of a name, or the user's own object as it is; only the module of this name is imported.

    Parameters
    ----------
    backend : str or Backend
        The name of a module in this folder, or any object with a method ``bind(table, growth)``.

    Raises
    ------
    ValueError
        If there is no backend of this name.
    TypeError
        If it is neither a name nor an object with a method ``bind``.
    """
    if isinstance(backend, str):
        module = _module(backend)
        if module is None:
            raise ValueError(f"backend={backend!r} is unknown: {_cure()}")
        return cast("Backend", module.backend)
    if not callable(getattr(backend, "bind", None)):
        raise TypeError(f"backend={backend!r} has no method bind(table, growth): {_cure()}")
    return backend


def _cure() -> str:
    return f"use one of {available()}, or an object with bind(table, growth), see boostbp.backends.base.Backend."


def draws(backend: str | Backend, extra_trees: bool | str) -> bool:
    """Return whether thresholds are drawn at random: as `extra_trees` says, and with "auto" if the backend can."""
    is_able = capabilities_of(load_backend(backend)).extra_trees
    if extra_trees == "auto":
        return is_able
    if extra_trees and not is_able:
        cure = "use extra_trees=False, or backend='lightgbm'"
        raise ValueError(f"extra_trees={extra_trees!r} is not supported by backend={backend!r}: {cure}.")
    return bool(extra_trees)
