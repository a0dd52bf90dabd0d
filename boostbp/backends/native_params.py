"""Native parameters: of what kind their values are, and which are refused.

A library gets a value only if the value is of the kind that is written down for its name. Libraries check too, but not
everything: some join all parameters to one text, in which a value may hold another parameter, let integers wrap round,
or end the process at a column that is not there. So a parameter of a new release is refused until its kind is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock
from typing import Any, Self, TypeVar

import numpy as np

from boostbp import checks
from boostbp.backends.base import TreeParams
from boostbp.trees import forks

CURE = (
    "Leave the device out to grow trees on the CPU, or use a build of the library for this device, on a machine that "
    "has one."
)
_free: Any = forks.through(RLock())
MONOTONE = (
    "leaves and what stands under the trees, which boostbp fits, must keep to it, too. Use "
    "output={'monotone_constraints': ...}."
)
T = TypeVar("T")
Check = Callable[[str, Any], Any]  # name and value to the value that the library gets, or a ValueError

_MIXED = (
    "hidden layers mix the features, and layers above them number hidden units: no constraint would hold. "
    "Use hidden_layer_sizes=(), or leave it out."
)


def on_card(params: Mapping[str, Any]) -> bool:
    """Whether native parameters ask for another device than the CPU."""
    return any(params.get(name, "cpu") != "cpu" for name in ("device", "device_type"))


def turn(params: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """Wait until no other grower is on a card.

    One grower fills a card, and those of one input share its bins, which go to the card when they are first used.
    """
    return _free if on_card(params) else nullcontext()


def _switch(name: str, value: Any) -> bool:
    flag = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
    if not (isinstance(flag, int | np.bool_ | np.integer) and flag in (0, 1)):
        raise ValueError(f"{name}={checks.shown(value)} is not known: use True or False.")
    return bool(flag)


def words(*allowed: str) -> Check:
    """The check of a parameter that is one of some words."""
    return partial(checks.one_of, allowed=allowed)


def by_name(names: Mapping[T, str]) -> dict[str, T]:
    """Values by name, of values with the names that have them, side by side in a text."""
    return {name: value for value, several in names.items() for name in several.split()}


SWITCH: Check = _switch
SHARE: Check = checks.share  # above 0, at most 1
PART: Check = partial(checks.at_least, least=0, most=1)
AMOUNT: Check = partial(checks.at_least, least=0)
NUMBER: Check = checks.finite
COUNT: Check = partial(checks.whole, least=1, most=checks.LARGEST_INT)
WHOLE: Check = partial(checks.whole, least=0, most=checks.LARGEST_INT)


def _groups(name: str, value: Any, n_columns: int) -> list[list[int]]:
    """Groups of columns by number, of which each is there."""
    shown = f"{name}={checks.shown(value)}"
    if not _several(value) or not len(value) or not all(_several(group) and len(group) for group in value):
        raise ValueError(f"{shown} is not allowed: give lists of column numbers, such as [[0, 1], [2]].")
    column = partial(checks.whole, f"{name}, a column", least=0, most=n_columns - 1)
    return [sorted({column(number) for number in group}) for group in value]


def _several(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset) or (isinstance(value, np.ndarray) and value.ndim > 0)


@dataclass(frozen=True, slots=True)
class Natives:
    """What is known of the native parameters of a library, by their main names."""

    backend: str  # its name, for people
    takes: Mapping[str, Check]  # what the values of parameters may be that pass through
    reasons: Mapping[str, str]  # why others are refused, and what to do
    replaced_by: Mapping[str, str]  # those that repeat a field of `TreeParams`, and the parameter to set in their place
    harmless: Mapping[str, tuple[Any, ...]]  # values of refused parameters that say what holds anyway

    def grouped(self, name: str, growth: TreeParams, n_columns: int) -> Self:
        """The same with a parameter that keeps groups of columns apart.

        It holds in a model that is one layer: leaf regressions use the columns on the path of their leaf, which are of
        one group, and what stands under the trees adds functions of single columns.
        """
        if not growth.alone:
            return replace(self, reasons={**self.reasons, name: _MIXED})
        return replace(self, takes={**self.takes, name: partial(_groups, n_columns=n_columns)})

    def checked(self, params: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
        """The user's parameters by their main names, with the values that the library gets.

        `known` has the main name of every name that the installed library knows. Raises ValueError if a parameter is
        not among them, would break the method or repeats `TreeParams`, or a value is not of its kind.
        """
        checked: dict[str, Any] = {}
        for name, value in params.items():
            main = known.get(name, name)
            param = f"backend_params[{checks.shown(name)}]"
            shown = f"{param}={checks.shown(value)}"
            if main in checked:
                raise ValueError(f"{shown} says {main!r} a second time: keep one of the two.")
            if _among(value, self.harmless.get(main, ())):
                continue
            if main in self.reasons:
                raise ValueError(f"{shown} is not supported: {self.reasons[main]}")
            if main in self.replaced_by:
                replacement = self.replaced_by[main]
                raise ValueError(
                    f"{shown} clashes with {replacement}: set {replacement} instead, and leave {name!r} out of "
                    "backend_params."
                )
            if name not in known:
                raise ValueError(f"{shown}: {self.backend} has no parameter {checks.shown(name)}. Check its name.")
            if main not in self.takes:
                raise ValueError(
                    f"{shown} is not supported: it is not known what this parameter of the installed {self.backend} "
                    "would do to the method. Leave it out."
                )
            checked[main] = self.takes[main](param, value)
        return checked


def _among(value: Any, allowed: tuple[Any, ...]) -> bool:
    return isinstance(value, str | int | float | np.bool_ | np.number) and value in allowed


@contextmanager
def blamed(library: str, params: Mapping[str, Any], kind: type[Exception]) -> Iterator[None]:
    """Raise an error of a library as a ValueError that names the native parameters."""
    try:
        yield
    except kind as error:
        message = str(error).split("\nStack trace")[0].strip() + (f". {CURE}" if on_card(params) else "")
        raise ValueError(f"{library} failed with backend_params={checks.shown(dict(params))}: {message}") from error
