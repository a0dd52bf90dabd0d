"""Optional packages: import one on use, or say which extra installs it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def require(module: str, *, extra: str, what: str) -> ModuleType:
    """Import a module of an optional package; if it is not installed, raise ImportError with the command to install it.

    `extra` is the extra that installs the package, and `what` names what needs it, as the user wrote it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"{what} needs the {error.name} package: pip install 'boostbp[{extra}]'.") from error
