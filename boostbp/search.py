"""Search spaces of deep models and of single layers of ours, for Optuna, scikit-learn and random search.

A space names dimensions. Names are parameters of the model, as its ``set_params`` takes them (``hidden__max_depth``).
The shape is searched by number, as a `Shape`: ``layers`` hidden layers of ``units`` units each. What a search draws is
handed out as parameters of the model. ``RandomizedSearchCV(model, SPACES["deep"])`` takes a space as it is.

A search of Optuna begins with the default values if ``study.enqueue_trial(start(space))`` is called first.

>>> import numpy as np
>>> space = {"hidden_layer_sizes": Shape(Integer(1, 2), Choice((8, 16))), "hidden__max_depth": Integer(1, 3)}
>>> sample(np.random.default_rng(0), space)
{'hidden': {'max_depth': 1}, 'hidden_layer_sizes': (16, 16)}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from boostbp.estimators import BoostBPRegressor
from boostbp.estimators.nested_parameters import FIELD_PLACES, SPECS
from boostbp.layers.layer_spec import HIDDEN, OUTPUT
from boostbp.network.settings import BackpropSpec

__all__ = ["SPACES", "Choice", "Integer", "Number", "Shape", "nested", "parameters", "sample", "start", "suggest"]


class Drawn:
    """What can be drawn at random."""

    __slots__ = ()

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw one."""
        raise NotImplementedError

    def rvs(self, random_state: int | np.random.RandomState | None = None) -> Any:
        """Draw one, as the searches of scikit-learn ask for it."""
        return self.sample(np.random.default_rng(check_random_state(random_state).randint(2**31 - 1)))


@dataclass(frozen=True, slots=True)
class Choice(Drawn):
    """One of some values, each a number, a string, a bool or None."""

    options: tuple[Any, ...]

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw one."""
        return self.options[rng.integers(len(self.options))]

    def suggest(self, trial: Any, name: str) -> Any:
        """Let a trial of Optuna choose one."""
        return trial.suggest_categorical(name, self.options)


@dataclass(frozen=True, slots=True)
class Number(Drawn):
    """A number between two bounds; evenly drawn, or evenly in its logarithm."""

    low: float
    high: float
    log: bool = False

    def sample(self, rng: np.random.Generator) -> float:
        """Draw one."""
        if self.log:
            return float(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))
        return float(rng.uniform(self.low, self.high))

    def suggest(self, trial: Any, name: str) -> float:
        """Let a trial of Optuna choose one."""
        return float(trial.suggest_float(name, self.low, self.high, log=self.log))


@dataclass(frozen=True, slots=True)
class Integer(Drawn):
    """A whole number between two bounds, which belong to it."""

    low: int
    high: int
    log: bool = False

    def sample(self, rng: np.random.Generator) -> int:
        """Draw one."""
        drawn = Number(self.low - 0.5, self.high + 0.5, self.log).sample(rng)
        return int(np.clip(np.rint(drawn), self.low, self.high))

    def suggest(self, trial: Any, name: str) -> int:
        """Let a trial of Optuna choose one."""
        return int(trial.suggest_int(name, self.low, self.high, log=self.log))


@dataclass(frozen=True, slots=True)
class Shape(Drawn):
    """The dimension ``hidden_layer_sizes``: two, ``layers`` and ``units``, for Optuna."""

    layers: Integer
    units: Choice

    def sample(self, rng: np.random.Generator) -> tuple[int, ...]:
        """Draw one."""
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


def suggest(trial: Any, space: Space, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Let a trial of Optuna choose the parameters of a model.

    Each trial chooses all of them, as samplers that model parameters jointly (CMA-ES, multivariate TPE, Gaussian
    processes) only see those that every trial has.

    Parameters
    ----------
    trial : optuna.trial.Trial
    space : mapping of str to Choice, Integer, Number or Shape
        One of `SPACES`, or your own.
    given : mapping, optional
        Parameters, by the names of a space, that are not searched.
    """
    given = given or {}
    drawn = {name: dimension.suggest(trial, name) for name, dimension in _open(space, given).items()}
    return nested({**drawn, **given})


def start(space: Space, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the default values of the parameters of a space, for ``study.enqueue_trial``.

    Networks are those of the default model; first layers take values that are given in place of their own. Optuna
    draws the dimensions that are left out: those whose default lies outside.

    Parameters
    ----------
    space, given :
        As in `suggest`.

    Examples
    --------
    >>> start({"hidden_layer_sizes": Shape(Integer(1, 2), Choice((8, 16))), "hidden__max_depth": Integer(1, 5)})
    {'layers': 1, 'units': 16, 'hidden__max_depth': 3}
    """
    found: dict[str, Any] = {}
    for name, dimension in _open(space, given or {}).items():
        held = [value for value in _defaults(name) if _holds(dimension, value)]
        found |= {name: held[0]} if held else {}
    return found


def sample(rng: np.random.Generator, space: Space, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Draw the parameters of a model at random, beside those that are given."""
    given = given or {}
    return nested({**{name: dimension.sample(rng) for name, dimension in _open(space, given).items()}, **given})


def nested(drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model from what was drawn by the names of a space.

    Parameters
    ----------
    drawn : mapping
        ``layers`` (1 if left out) and ``units`` become ``hidden_layer_sizes``; ``hidden__NAME`` and its like become
        dicts, beside what is there of these. All else stays.
    """
    params: dict[str, Any] = {}
    for name, value in sorted(drawn.items()):  # a spec comes before its fields
        spec, is_field, field = name.partition("__")
        if is_field and spec in SPECS:
            params[spec] = _with(params.get(spec), {field: value})
        elif name not in ("layers", "units"):
            params[name] = value
    if "units" in drawn:
        params[_SIZES] = (drawn["units"],) * drawn.get("layers", 1)
    return dict(sorted(params.items()))


def _with(spec: Any, fields: Mapping[str, Any], *, but_held: bool = False) -> Any:
    """Return a spec in a dict, None, or a list of these, with more fields; those it has stay, or give way."""
    if isinstance(spec, list):
        return [_with(layer, fields, but_held=but_held) for layer in spec]
    present = spec or {}
    return {**fields, **present} if but_held else {**present, **fields}


def parameters(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model from names that stand side by side, as in a table or on a command line.

    Parameters
    ----------
    flat : mapping
        Names as `nested` takes them, and fields of specs that no parameter is called by: one of `LayerSpec` is for
        every layer, one of `BackpropSpec` is ``backprop``'s.

    Examples
    --------
    >>> parameters({"max_depth": 3, "basis": "linear", "hidden__basis": "quadratic", "step_size": 0.3})["hidden"]
    {'basis': 'quadratic'}
    """
    params = {name: value for name, value in flat.items() if name not in FIELD_PLACES}
    for spec in SPECS:
        fields = {name: value for name, value in flat.items() if spec in FIELD_PLACES.get(name, ())}
        if fields:
            params[spec] = _with(params.get(spec), fields, but_held=True)
    return nested(params)


def _defaults(name: str) -> tuple[Any, ...]:
    """Return the values that stand for the default of a dimension: its number, and None if it may be left unset."""
    defaults = {name: parameter.default for name, parameter in signature(BoostBPRegressor).parameters.items()}
    if name in ("layers", "units"):
        return (len(defaults[_SIZES]) if name == "layers" else defaults[_SIZES][0],)
    place, is_field, field = name.partition("__")
    places: Mapping[str, Any] = {"hidden": HIDDEN, "output": OUTPUT, "backprop": BackpropSpec()}
    if is_field:
        return (getattr(places.get(place), field, None), None)
    return (defaults[name],) if defaults.get(name) is not None else (getattr(OUTPUT, name, None), None)


def _holds(dimension: Dimension, value: Any) -> bool:
    """Whether a dimension has a value."""
    if isinstance(dimension, Choice):
        return value in dimension.options
    return isinstance(value, int | float) and dimension.low <= value <= dimension.high


def _open(space: Space, given: Iterable[str]) -> dict[str, Dimension]:
    """The dimensions that are left to be searched; a shape is two."""
    flat: dict[str, Dimension] = {}
    for name, dimension in space.items():
        if isinstance(dimension, Shape):
            flat |= {"layers": dimension.layers, "units": dimension.units}
        else:
            flat[name] = dimension
    fixed = {f"{spec}{name}" for name in given for spec in ("", "hidden__", "output__")}
    fixed |= {"layers", "units"} if _SIZES in fixed else set()
    return {
        name: dimension for name, dimension in flat.items() if name not in fixed and name.split("__")[0] not in given
    }
