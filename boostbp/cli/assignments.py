"""Parameters of an estimator from `key=value` and from a TOML file."""

from __future__ import annotations

import ast
import inspect
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from boostbp import losses
from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.nested_parameters import FIELD_PLACES, SPECS, places_of
from boostbp.losses.base import Task
from boostbp.search import parameters
from boostbp.suggestions import suggestion

_WORDS = {"true": True, "false": False, "none": None}
_TABLES = ("backend_params", "hidden", "output", "backprop")  # parameters that hold parameters
_CURES = {bool: "true or false", int: "a whole number"}  # what must be given in the place of defaults of these types


def settings(
    estimator: type, *, config: Path | None = None, assigned: Iterable[str] = (), backend: str | None = None
) -> dict[str, Any]:
    """Parameters of an estimator; `backend` wins over `assigned`, which wins over `config`.

    Raises ValueError for a parameter that does not exist or a value that does not fit.

    Parameters
    ----------
    config : Path, optional
        TOML file with ``key = value`` for parameters and a table for each that holds others, such as ``[hidden]``.
    assigned : iterable of str
        ``key=value``, or ``hidden.key=value`` for one that another holds; ``hidden__key=value`` is the same. A field
        of a spec by its bare name is for every layer, see `boostbp.search.parameters`.
    """
    values = _given(config, assigned)
    if backend is not None:
        values["backend"] = backend
    defaults = {name: p.default for name, p in inspect.signature(estimator).parameters.items()}
    places = places_of(estimator)
    of_specs = dict.fromkeys(FIELD_PLACES)
    params = parameters({key: _checked(key, value, of_specs | defaults, places) for key, value in values.items()})
    for name, kind in SPECS.items():
        for spec in params[name] if isinstance(params.get(name), list) else [params.get(name)]:
            kind.of(spec, name)  # known now, and not after the data are read
    return params


def task_told(*, config: Path | None = None, assigned: Iterable[str] = ()) -> Task | None:
    """Return the task that the loss, or a parameter of only one kind of estimator, implies; None if none does."""
    values = _given(config, assigned)
    loss = values.get("loss")
    tasks = {losses.task_of(loss)} if isinstance(loss, str) else set()
    of_classes, of_numbers = (set(inspect.signature(kind).parameters) for kind in (BoostBPClassifier, BoostBPRegressor))
    tasks |= {"classification"} if values.keys() & (of_classes - of_numbers) else set()
    tasks |= {"regression"} if values.keys() & (of_numbers - of_classes) else set()
    tasks.discard(None)
    return tasks.pop() if len(tasks) == 1 else None  # where they disagree, one of them is refused by name


def _given(config: Path | None, assigned: Iterable[str]) -> dict[str, Any]:
    """Values of a file, and those that are assigned in their place, tables as mappings."""
    values = _read(config) if config is not None else {}
    for key, value in assignments(assigned).items():
        table, inner = _split(key)
        if table:
            _set_inner(values, table, inner, value)
        else:
            values[key] = value
    return values


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Values from `key=value`: numbers, true, false, none, lists such as 16,8, and text."""
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"--set {text!r} is not of the form key=value.")
        values[key.strip()] = _value(value.strip())
    return values


def _split(key: str) -> tuple[str, str]:
    """The table that a key belongs to and its name there; no table for a parameter by itself."""
    for table in _TABLES:
        for mark in (".", "__"):
            if key.startswith(table + mark):
                return table, key[len(table) + len(mark) :]
    return "", key


def _set_inner(values: dict[str, Any], table: str, key: str, value: Any) -> None:
    """Set a key of a table, and of a table in it: ``hidden.backend_params.min_data_in_bin=3``."""
    inner_table, inner = _split(key)
    inner_values = dict(values.get(table) or {})
    if inner_table:
        _set_inner(inner_values, inner_table, inner, value)
    else:
        inner_values[key] = value
    values[table] = inner_values


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


def _checked(key: str, value: Any, defaults: Mapping[str, Any], places: Mapping[str, str]) -> Any:
    if key not in defaults:
        raise ValueError(f"{key}={value!r}: there is no parameter {key!r}; {suggestion(key, places)}")
    if key in _TABLES and value is not None and not isinstance(value, Mapping | list):
        raise ValueError(f"{key}={value!r} is not a table: give {key}.NAME=VALUE.")
    default = defaults[key]
    if isinstance(value, list):
        value = tuple(value)
    if isinstance(default, tuple):
        return value if isinstance(value, tuple) else (value,)
    if type(default) not in _CURES or type(value) is type(default):
        return value
    raise ValueError(f"{key}={value!r} does not fit: give {_CURES[type(default)]}.")
