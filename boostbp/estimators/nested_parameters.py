"""Nested parameters such as ``hidden``, errors for unknown names, shared documentation, and the paper's settings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields, replace
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from boostbp.network.layers import LayerSpec
from boostbp.network.settings import BackpropSpec
from boostbp.runtime.messages import suggestion

C = TypeVar("C", bound=type)
P = ParamSpec("P")
# The entry of one or more parameters in a numpydoc section: the entry, its indent, the names.
_ENTRY = re.compile(r"^(( *)(\w+(?:, \w+)*) :.*\n(?:\2 +.*\n|\n(?=\2 ))*)", re.MULTILINE)

# Parameters that are specs. Their fields are parameters too, with names such as hidden__max_depth.
SPECS: Mapping[str, type[Any]] = {"hidden": LayerSpec, "output": LayerSpec, "backprop": BackpropSpec}
LAYER_PARAMETERS = ("max_depth", "min_samples_leaf", "colsample_bytree", "backend_params")
OUTPUT_PARAMETERS = ("n_estimators", "learning_rate")
# Fields of specs that are not parameters of an estimator, and the specs that have them.
FIELD_PLACES: Mapping[str, tuple[str, ...]] = {
    **{f.name: ("hidden", "output") for f in fields(LayerSpec) if f.name not in LAYER_PARAMETERS + OUTPUT_PARAMETERS},
    **{f.name: ("backprop",) for f in fields(BackpropSpec)},
    "monotone_constraints": ("output",),  # hidden layers do not take them
}
# Arguments of `fit` that users may pass to the constructor.
FIT_ARGUMENTS = ("callbacks", "checkpoint", "keep_state", "eval_set", "sample_weight", "groups", "offset", "init_model")


def nested_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of specs among the parameters by names such as ``hidden__max_depth``; unset fields are None."""
    values: dict[str, Any] = {}
    for name, kind in SPECS.items():
        value = parameters[name]
        entries = value if isinstance(value, Mapping) else {}
        spec = value if isinstance(value, kind) else kind()
        if isinstance(value, Mapping | kind | None):
            values |= {f"{name}__{f.name}": entries.get(f.name, getattr(spec, f.name)) for f in fields(kind)}
    return values


def replaced(name: str, value: Any, changes: Mapping[str, Any]) -> LayerSpec | BackpropSpec:
    """Return the spec in the parameter `name` with some of its fields replaced.

    Raises ValueError if a field does not exist, a value is out of bounds, or the parameter is a sequence of specs.
    """
    kind = SPECS[name]
    if isinstance(value, Sequence) and not isinstance(value, str):
        raise ValueError(f"{name} holds a spec for each hidden layer: set {name} itself, not {name}__{min(changes)}.")
    spec = kind.of(value, name)
    kind.of(dict(changes), name)
    return replace(spec, **changes)


def spellings(kind: type[Any]) -> dict[str, str]:
    """Return how to write each parameter of the constructor, of specs and of `fit`, by name."""
    arguments = inspect.signature(kind.fit).parameters
    return {name: f"{name}=... of fit" for name in FIT_ARGUMENTS if name in arguments} | _constructor_spellings(kind)


def _constructor_spellings(kind: type) -> dict[str, str]:
    """Return how to write each parameter of the constructor and of specs, by name."""
    parameters = {name: repr(name) for name in inspect.signature(kind).parameters}
    layer_fields = {f.name: f"output={{{f.name!r}: ...}}, and hidden=... for hidden layers" for f in fields(LayerSpec)}
    layer_fields["monotone_constraints"] = "output={'monotone_constraints': ...}"
    backprop_fields = {f.name: f"backprop={{{f.name!r}: ...}}" for f in fields(BackpropSpec)}
    return layer_fields | backprop_fields | parameters


def documented_as(owner: type[Any]) -> Callable[[C], C]:
    """Replace ``others : as in `OWNER``` in the docstrings of a class and its `fit` by the owner's entries.

    The first such line stands for all other parameters, and the second one for all other attributes.
    """
    line = re.compile(rf"^ *others : as in `{owner.__name__}`\n", re.MULTILINE)

    def write_out(kind: C) -> C:
        methods: Any = kind
        for documented, source in ((kind, owner), (methods.fit, owner.fit)):
            text, parameters = documented.__doc__ or "", inspect.signature(documented).parameters.keys()
            described = {name for names, _ in _entries(text) for name in names}
            others = [(names, entry) for names, entry in _entries(source.__doc__ or "") if not names & described]
            of_parameters = "".join([entry for names, entry in others if names & parameters])
            of_attributes = "".join([entry for names, entry in others if all(name[-1] == "_" for name in names)])
            first, *further = line.split(text)
            filled = [a + b for a, b in zip((of_parameters, of_attributes), further, strict=False)]
            documented.__doc__ = "".join([first, *filled])
        return kind

    return write_out


def _entries(text: str) -> list[tuple[Set[str], str]]:
    """Return the entries of a numpydoc text, each with its names."""
    return [({*names.split(", ")}, entry) for entry, _, names in _ENTRY.findall(text)]


def argument_names(method: FunctionType) -> frozenset[str]:
    """Return the names of the arguments of a method, including ``self``."""
    code = method.__code__
    return frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def refuse_unknown(method: FunctionType, kind: type, arguments: Iterable[str]) -> None:
    """Raise TypeError if a method does not have one of the arguments; the message suggests another."""
    known = argument_names(method)
    for name in arguments:
        if name in known:
            continue
        if method.__name__ == "__init__":
            raise TypeError(f"{kind.__name__} has no parameter {name!r}: {suggestion(name, spellings(kind))}")
        places = {other: f"{how} of the constructor" for other, how in _constructor_spellings(kind).items()}
        cure = suggestion(name, places | {other: repr(other) for other in sorted(known - {"self"})})
        raise TypeError(f"{method.__name__} of {kind.__name__} has no argument {name!r}: {cure}")


def paper_settings(**changes: Any) -> dict[str, Any]:
    """Return the parameters of an estimator for Algorithm 1 as printed in the paper.

    The hidden layers start from Gaussian noise. Steps use plain gradients with alpha = mu = 0.5. Layers are fitted from
    the output down, each on its old input, and the output layer is fitted to its moved target. Leaves use
    phi = [1, x, x^2] with the penalty of the printed solution, without clipping and without a ridge base. Splits have
    the best thresholds, and all 60 epochs run. The paper does not state beta, lambda or the rows per leaf; the values
    here are a choice of this package. `BoostBPAutoencoder` is always deep and has no parameter ``deep``: remove it.

    Parameters
    ----------
    **changes
        Further parameters, such as ``n_estimators=200``. For ``hidden``, ``output`` and ``backprop``, dicts of fields.

    Returns
    -------
    dict

    Examples
    --------
    >>> from boostbp import BoostBPRegressor, paper_settings
    >>> model = BoostBPRegressor((32,), **paper_settings(n_estimators=200, hidden={"n_estimators": 40}))
    """
    layer = {"basis": "quadratic", "reg_lambda": 1.0, "penalize_constant": True, "standardize": False}
    layer |= {"clip": False, "base": "zero", "extra_trees": False}
    backprop = {"start": "noise", "step": "plain", "step_size": 0.5, "momentum": 0.5, "refit_order": "downward"}
    backprop |= {"output_target": "moved", "structure_epochs": 1}
    settings: dict[str, Any] = {"hidden": layer, "output": layer, "backprop": backprop}
    settings |= {"deep": True, "early_stopping": False, "epochs": 60}
    nested = {name: {**settings[name], **value} for name, value in changes.items() if name in SPECS}
    return settings | changes | nested
