"""Search spaces of deep models and of single layers of ours, for Optuna and for random search.

A space names dimensions. Names are parameters of the model, but for the shape, which is easier to search
by number: ``layers`` hidden layers of ``units`` units each, and ``hidden_NAME`` and ``output_NAME`` for a parameter
with a value per layer. What a search draws is handed out as parameters of the model.

Every search begins with the model as it is, without any change.

>>> import numpy as np
>>> space = {"units": Choice((8, 16)), "layers": Integer(1, 2), "hidden_max_depth": Integer(1, 3)}
>>> sample(np.random.default_rng(0), space)
{'hidden_layer_sizes': (16,), 'max_depth': [1, None]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["SPACES", "Choice", "Integer", "Number", "parameters", "sample", "suggest"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some values, each a number, a string, a bool or None."""

    options: tuple[Any, ...]

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw one."""
        return self.options[rng.integers(len(self.options))]

    def suggest(self, trial: Any, name: str) -> Any:
        """Let a trial of Optuna choose one."""
        return trial.suggest_categorical(name, self.options)


@dataclass(frozen=True, slots=True)
class Number:
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
class Integer:
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


Dimension = Choice | Integer | Number
Space = Mapping[str, Dimension]
_SIZES = "hidden_layer_sizes"

SPACES: Mapping[str, Space] = {
    "deep": {
        "layers": Integer(1, 2),
        "units": Choice((8, 16, 32, 64)),
        "hidden_n_estimators": Choice((0, 5, 20, 60)),
        "hidden_max_depth": Integer(1, 5),
        "hidden_reg_lambda": Number(0.1, 100.0, log=True),
        "output_n_estimators": Choice((100, 300)),
        "output_max_depth": Integer(2, 6),
        "output_reg_lambda": Number(1.0, 100.0, log=True),
        "min_samples_leaf": Integer(5, 50, log=True),
        "basis": Choice(("linear", "quadratic")),
        "hidden_base_lambda": Choice((None, 1.0)),
        "multi_strategy": Choice(("one_output_per_tree", "multi_output_tree")),
        "structure_epochs": Choice((1, 4)),
        "structure_samples": Choice((None, 0.5)),
        "skip": Choice((False, True)),
        "start": Choice(("projection", "principal", "identity", "noise")),
        "step_size": Number(0.3, 1.0, log=True),
        "epochs": Choice((100, 300)),
        "deep": Choice(("auto", True)),
    },
    "single": {
        "n_estimators": Choice((100, 400, 1000)),
        "learning_rate": Number(0.03, 0.2, log=True),
        "max_depth": Integer(1, 6),
        "min_samples_leaf": Integer(5, 100, log=True),
        "reg_lambda": Number(0.1, 100.0, log=True),
        "basis": Choice(("constant", "linear", "quadratic")),
        "base": Choice(("ridge", "additive", None)),
        "extra_trees": Choice(("auto", False)),
    },
}


def suggest(trial: Any, space: Space, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Let a trial of Optuna choose the parameters of a model.

    The first trial of a study takes what is given alone, unless it was enqueued with parameters of its own.

    Parameters
    ----------
    trial : optuna.trial.Trial
    space : mapping of str to Choice, Integer or Number
        One of `SPACES`, or your own.
    given : mapping, optional
        Parameters, by the names of a space, that are not searched.
    """
    given = given or {}
    study = getattr(trial, "study", None)  # a FixedTrial has none, and says what it wants
    shut = trial.number == 0 and study is not None and "fixed_params" not in study.trials[0].system_attrs
    drawn = {} if shut else {name: each.suggest(trial, name) for name, each in _open(space, given).items()}
    return parameters({**drawn, **given})


def sample(rng: np.random.Generator, space: Space, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Draw the parameters of a model at random, beside those that are given."""
    given = given or {}
    return parameters({**{name: each.sample(rng) for name, each in _open(space, given).items()}, **given})


def parameters(drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a model from what was drawn by the names of a space.

    Parameters
    ----------
    drawn : mapping
        ``layers`` (1 if left out) and ``units`` become ``hidden_layer_sizes``; ``hidden_NAME`` and ``output_NAME``
        become one value per layer, None for the part that is left out. All else stays.
    """
    found = dict(drawn)
    layers = found.pop("layers", 1)
    if "units" in found:
        found[_SIZES] = (found.pop("units"),) * layers
    sizes = found.get(_SIZES, range(layers))
    layers = 1 if isinstance(sizes, Integral) else len(sizes)
    split = [name.split("_", 1) for name in found if name.startswith(("hidden_", "output_")) and name != _SIZES]
    for name in dict.fromkeys(name for _, name in split):
        hidden, output = found.pop(f"hidden_{name}", None), found.pop(f"output_{name}", None)
        found[name] = [hidden] * layers + [output]
    return found


def _open(space: Space, given: Iterable[str]) -> dict[str, Dimension]:
    """The dimensions that are left to be searched."""
    shut = {f"{part}{name}" for name in given for part in ("", "hidden_", "output_")}
    shut |= {"layers", "units"} if _SIZES in shut else set()
    return {name: each for name, each in space.items() if name not in shut}
