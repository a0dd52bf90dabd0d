"""Lazy names of a package, whose modules are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package.

    `modules` has the names of each of its modules, separated by spaces. The modules themselves are names, too.
    """
    module_of = {name: f"{package}.{module}" for module, names in modules.items() for name in names.split()}
    rooms = {module.partition(".")[0] for module in modules}

    def get(name: str) -> Any:
        if name in rooms:
            return import_module(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        value = getattr(__import__(module_of[name], fromlist=[name]), name)  # a module, too, such as `callbacks`
        setattr(sys.modules[package], name, value)  # the next time, it is there
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *module_of, *rooms})
