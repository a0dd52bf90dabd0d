"""Parameters of an estimator from `key=value` and from a TOML file."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from boostbp import losses
from boostbp.cli.console import UsageError, usage_errors
from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.nested_parameters import FIELD_PLACES, SPECS, spellings
from boostbp.losses.base import Task
from boostbp.runtime.messages import suggestion
from boostbp.search import parameters

_WORDS = {"true": True, "false": False, "none": None}
_TABLES = {"backend_params", "hidden", "output", "backprop"}  # parameters that hold parameters
_CURES = {bool: "true or false", int: "a whole number"}  # type of the default -> what to give


@usage_errors()
def settings(
    estimator: type, *, config: Path | None = None, assigned: Iterable[str] | None = None, backend: str | None = None
) -> dict[str, Any]:
    """Return the parameters of an estimator; `backend` overrides `assigned`, which overrides `config`, a TOML file."""
    values = _values_of(config, assigned)
    if backend is not None:
        values["backend"] = backend
    defaults: dict[str, Any] = dict.fromkeys(FIELD_PLACES)
    defaults |= {name: p.default for name, p in inspect.signature(estimator).parameters.items()}
    places = spellings(estimator)
    params = parameters({key: _checked(key, value, defaults, places) for key, value in values.items()})
    for name, kind in SPECS.items():
        kind.of(params.get(name), name)  # raises errors before the data are read
    return params


@usage_errors()
def implied_task(*, config: Path | None = None, assigned: Iterable[str] | None = None) -> Task | None:
    """Return the task that the loss, or a parameter of only one kind of estimator, implies; None if none does."""
    values = _values_of(config, assigned)
    loss = values.get("loss")
    tasks: set[Any] = {losses.task_of(loss)} if isinstance(loss, str) else set()
    classifier, regressor = (set(inspect.signature(kind).parameters) for kind in (BoostBPClassifier, BoostBPRegressor))
    tasks |= {"classification"} if values.keys() & (classifier - regressor) else set()
    tasks |= {"regression"} if values.keys() & (regressor - classifier) else set()
    tasks.discard(None)
    return tasks.pop() if len(tasks) == 1 else None  # if they disagree, the estimator refuses one of them


def _values_of(config: Path | None, assigned: Iterable[str] | None) -> dict[str, Any]:
    """Return the values of a file, overridden by ``key=value``, with tables as nested dicts."""
    values = {} if config is None else _read(config)
    for text in assigned or ():
        key, equals, word = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise UsageError(f"--set {text!r} is not of the form key=value.")
        *tables, name = re.split(r"\.|__", key)
        table = values
        if _TABLES.issuperset(tables):
            for outer in tables:
                table[outer] = dict(table.get(outer) or {})
                table = table[outer]
            key = name
        table[key] = _parsed(word)
    return values


def _parsed(text: str) -> Any:
    """Return the value of a text: a number, true, false, none, a list such as 16,8, or the text itself."""
    try:
        return _WORDS[text.lower()] if text.lower() in _WORDS else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _read(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--config {str(config)!r} is not a TOML file: {error}.") from error


def _checked(key: str, value: object, defaults: Mapping[str, Any], places: Mapping[str, str]) -> Any:
    """Return a value in the type of the parameter's default."""
    if key not in defaults:
        raise UsageError(f"{key}={value!r}: there is no parameter {key!r}; {suggestion(key, places)}")
    if key in _TABLES and not isinstance(value, Mapping | None):
        raise UsageError(f"{key}={value!r} is not a table: give {key}.NAME=VALUE.")
    default = defaults[key]
    if isinstance(value, list):
        value = tuple(value)
    if isinstance(default, tuple):
        return value if isinstance(value, tuple) else (value,)
    if type(default) not in _CURES or type(value) is type(default):
        return value
    raise UsageError(f"{key}={value!r} does not fit: give {_CURES[type(default)]}.")
