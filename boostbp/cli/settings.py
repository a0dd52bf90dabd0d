"""Parameters of an estimator from `key=value` and from a TOML file."""

from __future__ import annotations

import ast
import difflib
import inspect
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["assignments", "settings"]

_WORDS = {"true": True, "false": False, "none": None}
_NATIVE = "backend_params"
# Type of a default -> what may be given in its place; a tuple is one value per layer.
_FITS: dict[type, tuple[type, ...]] = {bool: (bool,), int: (int, tuple), float: (float, tuple)}
_CURES = {bool: "true or false", int: "a whole number", float: "a number"}


def settings(
    estimator: type, *, config: Path | None = None, assigned: Iterable[str] = (), backend: str | None = None
) -> dict[str, Any]:
    """Parameters of an estimator; `backend` wins over `assigned`, which wins over `config`.

    Parameters
    ----------
    estimator : type
        Its signature names the parameters, and their defaults say what they hold.
    config : Path, optional
        TOML file with ``key = value`` for parameters and a table ``[backend_params]`` for native ones.
    assigned : iterable of str
        ``key=value``, or ``backend_params.key=value``.
    backend : str, optional

    Raises
    ------
    ValueError
        For a parameter that does not exist or a value that does not fit.
    """
    given = _read(config) if config is not None else {}
    for key, value in assignments(assigned).items():
        head, dot, native = key.partition(".")
        if dot and head == _NATIVE:
            given[_NATIVE] = {**given.get(_NATIVE, {}), native: value}
        else:
            given[key] = value
    if backend is not None:
        given["backend"] = backend
    defaults = {name: p.default for name, p in inspect.signature(estimator).parameters.items()}
    return {key: _checked(key, value, defaults) for key, value in given.items()}


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Values from `key=value`: numbers, true, false, none, lists such as 16,8, and text."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"--set {text!r} is not of the form key=value.")
        found[key.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _read(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"--config {str(config)!r} is not a TOML file: {error}.") from error


def _checked(key: str, value: Any, defaults: Mapping[str, Any]) -> Any:
    if key not in defaults:
        close = difflib.get_close_matches(key, defaults, 1)
        cure = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(defaults)}."
        raise ValueError(f"{key}={value!r}: there is no parameter {key!r}; {cure}")
    if key == _NATIVE and not isinstance(value, Mapping):
        raise ValueError(f"{key}={value!r} is not a table: give backend_params.NAME=VALUE.")
    default = defaults[key]
    if isinstance(value, list):
        value = tuple(value)
    if isinstance(default, tuple):
        return value if isinstance(value, tuple) else (value,)
    if isinstance(default, float) and type(value) is int:
        return float(value)
    fits = _FITS.get(type(default))
    if fits is None or (isinstance(value, fits) and isinstance(value, bool) == isinstance(default, bool)):
        return value
    raise ValueError(f"{key}={value!r} does not fit: give {_CURES[type(default)]}.")
