"""Search spaces of deep models and of single layers, for Optuna, scikit-learn and random search.

A space maps names to dimensions. Names are parameters of the model, as in its ``set_params`` (``hidden__max_depth``).
The sizes of hidden layers are searched as a `Shape`. ``RandomizedSearchCV(model, SPACES["deep"])`` accepts a space. A
search with Optuna starts with the default values after ``study.enqueue_trial(start(space))``.

>>> import numpy as np
>>> space = {"hidden_layer_sizes": Shape(Integer(1, 2), Choice((8, 16))), "hidden__max_depth": Integer(1, 3)}
>>> sample(np.random.default_rng(0), space)
{'hidden': {'max_depth': 1}, 'hidden_layer_sizes': (16, 16)}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from boostbp.estimators import BoostBPRegressor
from boostbp.estimators.nested_parameters import FIELD_PLACES, SPECS
from boostbp.network.layers.layer_spec import HIDDEN, OUTPUT
from boostbp.network.settings import BackpropSpec

if TYPE_CHECKING:
    from optuna import Trial

__all__ = ["SPACES", "Choice", "Integer", "Number", "Shape", "nested", "parameters", "sample", "start", "suggest"]


class Sampled:
    """A value that can be drawn at random."""

    __slots__ = ()

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw a value."""
        raise NotImplementedError

    def rvs(self, random_state: int | np.random.RandomState | None = None) -> Any:
        """Draw a value for a search of scikit-learn."""
        return self.sample(np.random.default_rng(check_random_state(random_state).randint(2**31 - 1)))


@dataclass(frozen=True, slots=True)
class Choice(Sampled):
    """One of some values, each a number, a string, a bool or None."""

    options: tuple[Any, ...]

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw a value."""
        return self.options[rng.integers(len(self.options))]

    def suggest(self, trial: Trial, name: str) -> Any:
        """Let a trial of Optuna choose a value."""
        return trial.suggest_categorical(name, self.options)


@dataclass(frozen=True, slots=True)
class Number(Sampled):
    """A number between two bounds, with a uniform value or logarithm."""

    low: float
    high: float
    log: bool = False

    def sample(self, rng: np.random.Generator) -> float:
        """Draw a value."""
        if self.log:
            return float(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))
        return float(rng.uniform(self.low, self.high))

    def suggest(self, trial: Trial, name: str) -> float:
        """Let a trial of Optuna choose a value."""
        return float(trial.suggest_float(name, self.low, self.high, log=self.log))


@dataclass(frozen=True, slots=True)
class Integer(Sampled):
    """A whole number from one bound to the other, both included."""

    low: int
    high: int
    log: bool = False

    def sample(self, rng: np.random.Generator) -> int:
        """Draw a value."""
        drawn = Number(self.low - 0.5, self.high + 0.5, self.log).sample(rng)
        return int(np.clip(np.rint(drawn), self.low, self.high))

    def suggest(self, trial: Trial, name: str) -> int:
        """Let a trial of Optuna choose a value."""
        return int(trial.suggest_int(name, self.low, self.high, log=self.log))


@dataclass(frozen=True, slots=True)
class Shape(Sampled):
    """The dimension ``hidden_layer_sizes``, which is two dimensions for Optuna, ``layers`` and ``units``."""

    layers: Integer
    units: Choice

    def sample(self, rng: np.random.Generator) -> tuple[int, ...]:
        """Draw a value."""
        return (self.units.sample(rng),) * self.layers.sample(rng)


Dimension = Choice | Integer | Number
Space = Mapping[str, Dimension | Shape]
_SIZES = "hidden_layer_sizes"

SPACES: Mapping[str, Space] = {
    "deep": {
        "hidden_layer_sizes": Shape(layers=Integer(1, 2), units=Choice((8, 16, 32, 64))),
        "hidden__n_estimators": Choice((0, 5, 20, 60)),
        "hidden__max_depth": Integer(1, 5),
        "hidden__reg_lambda": Number(0.1, 100.0, log=True),
        "output__n_estimators": Choice((100, 300)),
        "output__max_depth": Integer(2, 6),
        "output__reg_lambda": Number(1.0, 100.0, log=True),
        "min_samples_leaf": Integer(5, 50, log=True),
        "hidden__basis": Choice(("linear", "quadratic")),
        "output__basis": Choice(("linear", "quadratic")),
        "hidden__base_lambda": Choice((None, 1.0)),
        "hidden__multi_strategy": Choice(("one_output_per_tree", "multi_output_tree")),
        "backprop__structure_epochs": Choice((1, "auto")),
        "backprop__structure_samples": Choice((None, 0.5)),
        "backprop__skip": Choice((False, True)),
        "backprop__start": Choice(("projection", "principal", "identity", "noise")),
        "backprop__step_size": Number(0.3, 1.0, log=True),
        "epochs": Choice((100, 300)),
        "deep": Choice((True,)),
    },
    "single": {
        "n_estimators": Choice((100, 400, 1000)),
        "learning_rate": Number(0.03, 0.2, log=True),
        "max_depth": Integer(1, 6),
        "min_samples_leaf": Integer(5, 100, log=True),
        "output__reg_lambda": Number(0.1, 100.0, log=True),
        "output__basis": Choice(("constant", "linear", "quadratic")),
        "output__base": Choice(("ridge", "additive", "zero")),
        "output__extra_trees": Choice(("auto", False)),
    },
}


def suggest(trial: Trial, space: Space, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Let a trial of Optuna choose the parameters of a model.

    Each trial chooses all parameters, as joint samplers such as CMA-ES only use those that every trial has.

    Parameters
    ----------
    trial : optuna.trial.Trial
    space : mapping of str to Choice, Integer, Number or Shape
        One of `SPACES`, or your own.
    given : mapping, optional
        Fixed parameters, with names as in a space.
    """
    given = given or {}
    drawn = {name: dimension.suggest(trial, name) for name, dimension in _open(space, given).items()}
    return nested({**drawn, **given})


def start(space: Space, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the default values of the parameters of a space, for ``study.enqueue_trial``.

    A dimension that does not contain its default is left out, so Optuna draws its value.

    Parameters
    ----------
    space, given :
        As in `suggest`.

    Examples
    --------
    >>> start({"hidden_layer_sizes": Shape(Integer(1, 2), Choice((8, 16))), "hidden__max_depth": Integer(1, 5)})
    {'layers': 1, 'units': 16, 'hidden__max_depth': 3}
    """
    dimensions = _open(space, given or {}).items()
    inside = {name: [value for value in _defaults(name) if _holds(dimension, value)] for name, dimension in dimensions}
    return {name: values[0] for name, values in inside.items() if values}


def sample(rng: np.random.Generator, space: Space, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Draw the parameters of a model at random, except those that are given."""
    given = given or {}
    return nested({**{name: dimension.sample(rng) for name, dimension in _open(space, given).items()}, **given})


def nested(drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model from values with the names of a space.

    Parameters
    ----------
    drawn : mapping
        ``layers`` (1 by default) and ``units`` become ``hidden_layer_sizes``. ``hidden__NAME``, ``output__NAME`` and
        ``backprop__NAME`` become items of the dicts ``hidden``, ``output`` and ``backprop``, unless these have such an
        item. Other values are unchanged.
    """
    params: dict[str, Any] = {}
    for name, value in sorted(drawn.items()):  # a spec comes before its fields
        spec, is_field, field = name.partition("__")
        if is_field and spec in SPECS:
            params[spec] = _with(params.get(spec), field, value)
        elif name not in ("layers", "units"):
            params[name] = value
    if "units" in drawn:
        params[_SIZES] = (drawn["units"],) * drawn.get("layers", 1)
    return dict(sorted(params.items()))


def _with(spec: Any, field: str, value: object) -> Any:
    """Return a spec (a dict, None, or a list of these) with a value of a field, unless the spec has one."""
    if isinstance(spec, list):
        return [_with(layer, field, value) for layer in spec]
    return {field: value, **(spec or {})}


def parameters(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model from flat names, as in a table or on a command line.

    Parameters
    ----------
    flat : mapping
        Names as in `nested`, and bare names of fields of specs if no parameter has the name: a field of `LayerSpec`
        applies to every layer, a field of `BackpropSpec` to ``backprop``.

    Examples
    --------
    >>> parameters({"max_depth": 3, "basis": "linear", "hidden__basis": "quadratic", "step_size": 0.3})["hidden"]
    {'basis': 'quadratic'}
    """
    bare = {f"{spec}__{name}": value for name, value in flat.items() for spec in FIELD_PLACES.get(name, ())}
    return nested(bare | {name: value for name, value in flat.items() if name not in FIELD_PLACES})


def _defaults(name: str) -> tuple[Any, ...]:
    """Return the values that mean the default of a dimension: its number, and None if it may be unset."""
    defaults = {name: parameter.default for name, parameter in signature(BoostBPRegressor).parameters.items()}
    if name in ("layers", "units"):
        return (len(defaults[_SIZES]) if name == "layers" else defaults[_SIZES][0],)
    place, is_field, field = name.partition("__")
    places: Mapping[str, Any] = {"hidden": HIDDEN, "output": OUTPUT, "backprop": BackpropSpec()}
    if is_field:
        return (getattr(places.get(place), field, None), None)
    return (defaults[name],) if defaults.get(name) is not None else (getattr(OUTPUT, name, None), None)


def _holds(dimension: Dimension, value: object) -> bool:
    """Return whether a dimension contains a value."""
    if isinstance(dimension, Choice):
        return value in dimension.options
    return isinstance(value, int | float) and dimension.low <= value <= dimension.high


def _open(space: Space, given: Iterable[str]) -> dict[str, Dimension]:
    """Return the dimensions that are not given, with two for a shape."""
    flat: dict[str, Dimension] = {}
    for name, dimension in space.items():
        if isinstance(dimension, Shape):
            flat |= {"layers": dimension.layers, "units": dimension.units}
        else:
            flat[name] = dimension
    fixed = {f"{spec}{name}" for name in given for spec in ("", "hidden__", "output__")}
    fixed |= {"layers", "units"} if _SIZES in fixed else set()
    fixed |= {name for name in flat if name.partition("__")[0] in given}
    return {name: dimension for name, dimension in flat.items() if name not in fixed}
