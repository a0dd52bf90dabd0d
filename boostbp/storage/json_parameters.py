"""Constructor parameters of an estimator as JSON holds them, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from boostbp import plain
from boostbp.estimators.nested_parameters import SPECS
from boostbp.estimators.parameters import settings_of
from boostbp.network.stored import loss_from, loss_of, step_from, step_of
from boostbp.trees.basis import BASES

_OF_A_RUN = "validation"  # belongs to the process that trained, not to the model, unless it is a word or a number


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Parameters as plain values; rows or splitters in `validation` are left out, specs are told by their fields.

    Raises
    ------
    ValueError
        If a parameter holds an object of the user's own; it is named.
    """
    params = {}
    for name, value in estimator.get_params(deep=False).items():
        if name == _OF_A_RUN and not isinstance(value, str | float):
            continue
        try:
            params[name] = _encoded(name, value)
        except TypeError as error:
            raise ValueError(
                f"{name} cannot be stored: {error}. Set a name instead where there is one, "
                f"or keep the model by pickle or joblib."
            ) from error
    return params


def parameters_from(facts: dict[str, Any]) -> dict[str, Any]:
    """The parameters that `parameters_of` described.

    Raises
    ------
    ValueError
        If a value is none.
    """
    return {name: _decoded(name, value) for name, value in facts.items()}


def check_parameters(estimator: Any) -> None:
    """Check the parameters of a fitted estimator as `fit` would.

    Raises
    ------
    ValueError
        If one is out of bounds; it is named.
    """
    settings_of(estimator, 1, len(estimator.network_.baseline), 0)


def _basis_of(basis: Any) -> str:
    name = next((name for name, known in BASES.items() if known == basis), None)
    if name is None:
        raise TypeError(f"{basis!r} has functions of your own, which are code: a file of data does not hold them")
    return name


def _basis_from(name: Any) -> Any:
    if not isinstance(name, str) or name not in BASES:
        raise ValueError(f"This is not a basis: {name!r:.99}.")
    return BASES[name]


# Parameters that may be objects, how these are told in plain values, and made from them.
_OBJECTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "basis": (_basis_of, _basis_from),
    "loss": (loss_of, loss_from),
    "step": (step_of, step_from),
}


def _encoded(name: str, value: Any) -> Any:
    if name in SPECS and isinstance(value, list | tuple):
        return [_encoded(name, spec) for spec in value]
    if name in SPECS and value is not None:
        values = dict(value) if isinstance(value, Mapping) else _fields_of(value)
        encoded = {field: _encoded(field, content) for field, content in values.items()}
        return {"dict" if isinstance(value, Mapping) else "spec": encoded}
    if name in _OBJECTS and not isinstance(value, str):
        told, _ = _OBJECTS[name]
        return {name: told(value)}
    return plain.encode(value)


def _fields_of(spec: Any) -> dict[str, Any]:
    """Fields of a spec that are not at their defaults."""
    changed = {field.name: getattr(spec, field.name) for field in fields(spec)}
    return {name: value for name, value in changed.items() if value != getattr(type(spec)(), name)}


def _decoded(name: str, value: Any) -> Any:
    if name in SPECS and isinstance(value, list):
        return [_decoded(name, spec) for spec in value]
    if name in SPECS and value is not None:
        form = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else ""
        if form not in ("dict", "spec") or not isinstance(value[form], dict):
            raise ValueError(f"This is not a spec: {name}={value!r:.99}.")
        decoded = {field: _decoded(field, held) for field, held in value[form].items()}
        return decoded if form == "dict" else SPECS[name].of(decoded, name)
    if name in _OBJECTS and isinstance(value, dict) and set(value) == {name}:
        _, made = _OBJECTS[name]
        return made(value[name])
    return plain.decode(value)
