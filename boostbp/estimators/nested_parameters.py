"""Nested parameters: those that hold others, such as ``hidden``; names that are answered by ours; the paper's."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from boostbp.layers import LayerSpec
from boostbp.network.settings import BackpropSpec
from boostbp.runtime.arrays import NUMPY_DEFAULTS, numpy_errstate
from boostbp.runtime.suggestions import suggestion

C = TypeVar("C", bound=type)
_ENTRY = re.compile(
    r"^(( *)(\w+(?:, \w+)*) : .*\n(?:\2 +.*\n)*)", re.MULTILINE
)  # a parameter, in the manner of numpydoc

# Parameters that are specs: their fields are parameters too, by names such as hidden__max_depth.
SPECS: Mapping[str, type[Any]] = {"hidden": LayerSpec, "output": LayerSpec, "backprop": BackpropSpec}
OF_ANY_LAYER = ("max_depth", "min_samples_leaf", "colsample_bytree", "backend_params")
OF_OUTPUT = ("n_estimators", "learning_rate")
# Fields that no parameter is called by, and the specs that hold them.
FIELD_PLACES: Mapping[str, tuple[str, ...]] = {
    **{f.name: ("hidden", "output") for f in fields(LayerSpec) if f.name not in OF_ANY_LAYER + OF_OUTPUT},
    **{f.name: ("backprop",) for f in fields(BackpropSpec)},
    "monotone_constraints": ("output",),  # features are those of the model alone where it has no hidden layer
}
# Arguments of `fit` that may be taken for parameters.
OF_FIT = ("callbacks", "checkpoint", "keep_state", "eval_set", "sample_weight", "groups", "offset", "init_model")


def nested(estimator: Any) -> dict[str, Any]:
    """Return the fields of the estimator's specs by names such as ``hidden__max_depth``; unset ones are None."""
    values: dict[str, Any] = {}
    for name, kind in SPECS.items():
        value = getattr(estimator, name)
        held = value if isinstance(value, Mapping) else {}
        spec = value if isinstance(value, kind) else kind()
        if isinstance(value, Mapping | kind | None):
            values |= {f"{name}__{f.name}": held.get(f.name, getattr(spec, f.name)) for f in fields(kind)}
    return values


def constrained(estimator: Any) -> bool:
    """Return whether the model of an estimator must be monotone in some feature."""
    constraints: Any = LayerSpec.of(estimator.output, "output").monotone_constraints
    return any(constraints.values() if isinstance(constraints, Mapping) else constraints or ())


def changed(name: str, value: Any, changes: Mapping[str, Any]) -> Any:
    """Return a spec parameter with some of its fields changed.

    Raises ValueError if there is no such field, a value is out of bounds, or the parameter holds a spec for each hidden
    layer.
    """
    kind = SPECS[name]
    if isinstance(value, Sequence) and not isinstance(value, str):
        raise ValueError(f"{name} holds a spec for each hidden layer: set {name} itself, not {name}__{min(changes)}.")
    spec = kind.of(value, name)
    kind.of(dict(changes), name)
    return replace(spec, **changes)


def places_of(kind: Any) -> dict[str, str]:
    """Return how to write each parameter of an estimator: its own, those of its specs, and those of `fit`."""
    of_fit = inspect.signature(kind.fit).parameters
    return {name: f"{name}=... of fit" for name in OF_FIT if name in of_fit} | _constructor_places(kind)


def _constructor_places(kind: type) -> dict[str, str]:
    """Return how to write each parameter of a constructor: its own, and those of its specs."""
    written = {name: repr(name) for name in inspect.signature(kind).parameters}
    layer_fields = {f.name: f"output={{{f.name!r}: ...}}, and hidden=... for hidden layers" for f in fields(LayerSpec)}
    layer_fields["monotone_constraints"] = "output={'monotone_constraints': ...}"
    backprop_fields = {f.name: f"backprop={{{f.name!r}: ...}}" for f in fields(BackpropSpec)}
    return layer_fields | backprop_fields | written


def documented_as(owner: Any) -> Callable[[C], C]:
    """Write out what a class says of its parameters, and of those of `fit`, by ``NAME, NAME : as in `OWNER```."""
    reference = re.compile(rf"^ *(\w+(?:, \w+)*) : as in `{owner.__name__}`\n", re.MULTILINE)

    def write_out(kind: C) -> C:
        methods: Any = kind
        for documented, source in ((kind, owner), (methods.fit, owner.fit)):
            found = _ENTRY.findall(source.__doc__ or "")
            entries = {name: text for text, _, names in found for name in names.split(", ")}
            parts = reference.split(documented.__doc__ or "")
            for k in range(1, len(parts), 2):
                parts[k] = "".join(dict.fromkeys(entries[name] for name in parts[k].split(", ")))
            documented.__doc__ = "".join(parts)
        return kind

    return write_out


def public_methods(kind: C) -> C:
    """Make the constructor and the public methods of a class name the argument that a user meant.

    They also run under `numpy_errstate`, whatever the user asked NumPy for. A method that `all_or_nothing` wraps does
    so itself.
    """
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, method if hasattr(method, "all_or_nothing") else _public(method))
    return kind


def _public(method: FunctionType) -> Any:
    in_numpy_errstate = numpy_errstate()(method)
    takes_any = bool(method.__code__.co_flags & inspect.CO_VARKEYWORDS)
    known = argument_names(method)

    @wraps(method)
    def run(self: Any, *args: Any, **arguments: Any) -> Any:
        if not (arguments.keys() <= known or takes_any):
            refuse_unknown(method, type(self), arguments)
        # a context costs a tenth of the prediction of a row
        return (method if np.geterr() == NUMPY_DEFAULTS else in_numpy_errstate)(self, *args, **arguments)

    return run


def argument_names(method: FunctionType) -> frozenset[str]:
    """Return the names of the arguments of a method."""
    code = method.__code__
    return frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def refuse_unknown(method: FunctionType, kind: type, arguments: Iterable[str]) -> None:
    """Refuse an argument that a method does not have; the TypeError says which one was meant."""
    known = argument_names(method)
    for name in arguments:
        if name in known:
            continue
        if method.__name__ == "__init__":
            raise TypeError(f"{kind.__name__} has no parameter {name!r}: {suggestion(name, places_of(kind))}")
        places = {other: f"{how} of the constructor" for other, how in _constructor_places(kind).items()}
        cure = suggestion(name, places | {other: repr(other) for other in sorted(known - {"self"})})
        raise TypeError(f"{method.__name__} of {kind.__name__} has no argument {name!r}: {cure}")


def paper_settings(**changes: Any) -> dict[str, Any]:
    """Algorithm 1 as printed, as parameters of any estimator; an auto-encoder, which is deep anyway, has no ``deep``.

    Gaussian-noise start, alpha = mu = 0.5 on plain gradients, layers fitted from the output down,
    each on its old input, the output layer fitted to its moved target, phi = [1, x, x^2] with the
    penalty of the printed solution, no clipping, no ridge base, best thresholds, all 60 epochs. The paper gives
    neither beta, lambda nor the rows per leaf: the values here are ours.

    Parameters
    ----------
    **changes
        Parameters to set beside these, such as ``n_estimators=200``; of ``hidden``, ``output`` and ``backprop``, dicts
        of what to set in them.

    Examples
    --------
    >>> from boostbp import BoostBPRegressor, paper_settings
    >>> model = BoostBPRegressor((32,), **paper_settings(n_estimators=200, hidden={"n_estimators": 40}))
    """
    layer = {
        "basis": "quadratic",
        "reg_lambda": 1.0,
        "penalize_constant": True,
        "standardize": False,
        "clip": False,
        "base": "zero",
        "extra_trees": False,
    }
    settings: dict[str, Any] = {
        "hidden": layer,
        "output": layer,
        "backprop": {
            "start": "noise",
            "step": "plain",
            "step_size": 0.5,
            "momentum": 0.5,
            "refit_order": "downward",
            "output_target": "moved",
            "structure_epochs": 1,
        },
        "deep": True,
        "early_stopping": False,
        "epochs": 60,
    }
    return settings | {
        name: {**settings[name], **value} if isinstance(settings.get(name), dict) else value
        for name, value in changes.items()
    }
