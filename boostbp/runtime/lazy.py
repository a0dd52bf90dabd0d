"""Lazy imports of a package, whose modules are imported when one of their names is first used."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any


@contextmanager
def lazy_imports(namespace: dict[str, Any], *rooms: str) -> Iterator[None]:
    """Put off the imports ``from package.module import name`` of this block until the name is used.

    Type checkers see imports as any others. `namespace` is ``globals()`` of the ``__init__`` of the package, which gets
    ``__getattr__`` and ``__dir__``. The modules are names of the package, too, and so are further `rooms` of it.
    """
    package, module_of, at_once = namespace["__name__"], dict[str, str](), builtins.__import__

    def put_off(
        name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
    ) -> Any:
        if globals is not namespace:  # an import of another thread
            return at_once(name, globals, locals, fromlist or (), level)
        module_of.update(dict.fromkeys(fromlist or (), name))
        return SimpleNamespace(**dict.fromkeys(fromlist or ()))

    builtins.__import__ = put_off
    try:
        yield
    finally:
        builtins.__import__ = at_once
    parts = {module.removeprefix(f"{package}.").partition(".")[0] for module in module_of.values()}.union(rooms)

    def get(name: str) -> Any:
        if name in parts:
            return import_module(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        value = getattr(__import__(module_of[name], fromlist=[name]), name)  # a module, too, such as `callbacks`
        namespace[name] = value  # the next time, it is there
        return value

    for name in module_of:
        del namespace[name]
    namespace.update(__getattr__=get, __dir__=lambda: sorted({*namespace, *module_of, *parts}))
