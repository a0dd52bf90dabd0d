"""Native parameters of the libraries: an allow-list for each library, and why other parameters are refused.

A parameter reaches a library only if it is on the library's list and its value passes the check that stands there.
Libraries check their parameters too, but not all of them: some join the parameters to one text, in which a value can
smuggle in another parameter, let integers wrap around, or end the process at a column that does not exist. A parameter
that a new release adds is therefore refused until it is on the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from boostbp.backends.base import TreeParams
from boostbp.runtime import checks
from boostbp.runtime.native_threads import fork_safe
from boostbp.runtime.suggestions import MEANT, nearest

T = TypeVar("T")
Check = Callable[[str, Any], Any]  # from name and value to the value that the library gets, or a ValueError


def by_name(names: Mapping[T, str]) -> dict[str, T]:
    """Return a mapping with one entry per name: ``{"x": "a b"}`` becomes ``{"a": "x", "b": "x"}``."""
    return {name: value for value, words in names.items() for name in words.split()}


def words(*allowed: str) -> Check:
    """Return the check of a parameter that takes one of some words."""
    return partial(checks.one_of, allowed=allowed)


SWITCH: Check = partial(checks.one_of, allowed=(True, False, 1, 0, "true", "false"))
SHARE: Check = checks.share  # above 0, at most 1
PART: Check = partial(checks.at_least, least=0, most=1)
AMOUNT: Check = partial(checks.at_least, least=0)
NUMBER: Check = checks.finite
COUNT: Check = partial(checks.whole, least=1, most=checks.LARGEST_INT)
WHOLE: Check = partial(checks.whole, least=0, most=checks.LARGEST_INT)

# Why a library's own constraints are refused
MONOTONE = (
    "the leaves and the base, which boostbp fits, must obey it, too. Use output={'monotone_constraints': ...}, or "
    "monotone_constraints of fit_layer."
)


def column_groups(growth: TreeParams, n_columns: int) -> Check:
    """Return the check of ``interaction_constraints``: lists of column numbers.

    They hold only in a model that is one layer: leaf regressions use the columns on the path of their leaf, which are
    of one group, and the base under the trees adds functions of single columns.
    """

    def check(name: str, value: object) -> list[list[int]]:
        if not growth.is_whole_model:
            raise ValueError(
                f"{name}={checks.shown(value)} is not supported: hidden layers mix the features, and layers above them "
                "number hidden units: no constraint would hold. Use hidden_layer_sizes=(), or leave it out."
            )
        groups = [_elements(group) for group in _elements(value)]
        if not groups or not all(groups):
            raise ValueError(
                f"{name}={checks.shown(value)} is not allowed: give lists of column numbers, such as [[0, 1], [2]]."
            )
        column = partial(checks.whole, f"{name}, a column", least=0, most=n_columns - 1)
        return [sorted({column(number) for number in group}) for group in groups]

    return check


def _elements(value: object) -> list[Any]:
    """Return the elements of a list, tuple, set or array; none of anything else."""
    if isinstance(value, np.ndarray):
        return list(value) if value.ndim else []
    return list(value) if isinstance(value, list | tuple | set | frozenset) else []


@dataclass(frozen=True, slots=True)
class Natives:
    """What boostbp knows of the native parameters of a library, by their main names.

    Attributes
    ----------
    title : str
        Name of the library in messages.
    allowed : mapping of str to check
        Parameters that are passed on. A check takes the name for messages and the value; it returns the value that the
        library gets, or raises ValueError.
    reasons : mapping of str to str
        Why other parameters are refused, with the cure. A parameter that is on neither list is refused with the name of
        the parameter of boostbp that it repeats (`boostbp.runtime.suggestions.MEANT`), or in general words.
    defaults : mapping of str to tuple
        Values of refused parameters that boostbp sets anyway: they are accepted, and have no effect.
    """

    title: str
    allowed: Mapping[str, Check]
    reasons: Mapping[str, str]
    defaults: Mapping[str, tuple[Any, ...]]

    def checked(self, params: Mapping[str, Any], aliases: Mapping[str, str], **more: Check) -> dict[str, Any]:
        """Return the user's parameters by their main names, with the values that the library gets.

        Parameters
        ----------
        params : mapping
            The user's parameters, see `TreeParams.params`.
        aliases : mapping of str to str
            The main name of each name that the library knows; a name that is not in it is a main name.
        **more
            Checks of parameters that depend on the input.

        Raises
        ------
        ValueError
            If a parameter is not allowed, or not with its value; the message names the cure.
        """
        allowed = {**self.allowed, **more}
        values: dict[str, Any] = {}
        for name, value in params.items():
            main = aliases.get(name, name)
            param = f"backend_params[{checks.shown(name)}]"
            if main in values:
                raise ValueError(f"{param}={checks.shown(value)} sets {main!r} a second time: keep one of the two.")
            if main in allowed:
                values[main] = allowed[main](param, value)
            elif not (np.isscalar(value) and value in self.defaults.get(main, ())):
                near = nearest(name, [*allowed, *(alias for alias in aliases if aliases[alias] in allowed)])
                refusal = self._refusal(name, main, None if name in aliases else near)
                raise ValueError(f"{param}={checks.shown(value)} {refusal}")
        return values

    def _refusal(self, name: str, main: str, near: str | None) -> str:
        if main in self.reasons:
            return f"is not supported: {self.reasons[main]}"
        parameter = MEANT.get(main, main)
        if parameter in MEANT.values():
            return f"clashes with {parameter}: set {parameter} instead, and leave {name!r} out of backend_params."
        cure = "Check its name, or leave it out." if near is None else f"Did you mean {near!r}?"
        return (
            f"is not supported: {self.title} does not use {checks.shown(name)} to grow a tree from given gradients. "
            f"{cure}"
        )


NO_DEVICE = (
    "Leave the device out to grow trees on the CPU, or use a build of the library for this device, on a machine that "
    "has one."
)
_device_lock: Any = fork_safe(RLock())


def on_card(params: Mapping[str, Any]) -> bool:
    """Return whether native parameters ask for another device than the CPU."""
    return any(params.get(name, "cpu") != "cpu" for name in ("device", "device_type"))


def device_turn(params: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """Wait until no other grower uses a card, and keep it; on the CPU, do nothing.

    One grower fills a card, and the growers of one input share its bins, which move to the card on first use.
    """
    return _device_lock if on_card(params) else nullcontext()


@contextmanager
def naming_params(library: str, params: Mapping[str, Any], error_type: type[Exception]) -> Iterator[None]:
    """Raise an error of a library as a ValueError that names the native parameters, if there are any."""
    try:
        yield
    except error_type as error:
        if not params:
            raise
        message = str(error).split("\nStack trace")[0].strip() + (f". {NO_DEVICE}" if on_card(params) else "")
        raise ValueError(f"{library} failed with backend_params={checks.shown(dict(params))}: {message}") from error
