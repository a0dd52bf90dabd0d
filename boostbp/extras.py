"""Optional packages: import one on use, or say which extra installs it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def require(module: str, *, extra: str, what: str) -> ModuleType:
    """Import an optional package, which `extra` installs; ImportError with the command if it is not installed.

    `what` needs it, as the user wrote it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"{what} needs the {error.name} package: pip install 'boostbp[{extra}]'.") from error
