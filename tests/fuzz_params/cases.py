"""Cases: every parameter that the installed libraries know, with good, bad and absurd values."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from boostbp.backends import available, load_backend
from boostbp.backends.base import TreeParams
from boostbp.network.layers import LayerSpec
from boostbp.trees.sparse import Table

__all__ = ["BACKENDS", "N_FEATURES", "SURFACES", "Case", "combinations", "names", "walk"]

BACKENDS = available()
N_FEATURES = 4

# Where parameters come in: at a backend by itself, in a layer whose leaves the library fits, and in estimators.
SURFACES = ("bind", "native leaves", "single layer", "network")
_NAN, _INF = float("nan"), float("inf")
NUMBERS = (0, 1, 2, 3, 7, 100, 0.5, 0.9, 1.0, 2.0, 1e-3, 10.0)
EXTREMES = (
    -1, -0.5, 1.5, 1e-320, 1e-50, 1e38, 1e39, 1e300, 1e308, -1e308, _NAN, _INF, -_INF, 2**30, 2**31 - 1, 2**31,
    2**32 + 1, 2**63, 2**64, 10**400, -(2**31), -(2**63),
)  # fmt: skip
WORDS = (
    "", " ", "0", "0.5", "true", "false", "bagging", "goss", "uniform", "gradient_based", "lossguide", "depthwise", "x",
    "é", "\0", "x" * 100_000, "9" * 1000, "a=b", "0.5 num_leaves=2", "0.5 bagging_freq=1", "1\nnum_threads=9", "[0,1]",
    "[[0, 1], [2, 3]]", "/dev/zero", "written.txt", "name:a", "%n%s%s",
)  # fmt: skip
LISTS: tuple[Any, ...] = (
    [], [0], [0, 1], [1, 1, 1, 1], [0.5, 0.5, 0.5, 0.5], [1] * 9, [-1], [2**40], [_NAN], [None], ["x"], [[]], [[[]]],
    [[0, 1], [2, 3]], [[0, 99]], [[0, -1]], [[0.5]], [[True, 1]], [["a", "b"]], [[0, 2**40]], [[0] * 3000], (),
    ((0,),), {}, {"a": 1}, {0}, frozenset({1}), range(3), b"", b"1", [b"1"], "[[0,1]", [[0, 1], 2],
)  # fmt: skip
OBJECTS: tuple[Any, ...] = (
    None, True, False, object(), print, int, ..., 1j, Decimal(1), Fraction(1, 2), Path("written.txt"), np.bool_(True),
    np.int8(1), np.uint64(2**63), np.float32(0.5), np.float64(_NAN), np.str_("goss"), np.array(1.0), np.array([1, 2]),
    np.array([[0, 1]]), np.array([]), np.array(["x"]), np.datetime64("2020-01-01"), np.ma.masked,
)  # fmt: skip
VALUES = (*NUMBERS, *EXTREMES, *WORDS, *LISTS, *OBJECTS)
FEW = (1, 0.5, -1, 2**31, "x=1", [[0, 99]], None, Fraction(1, 2))  # for names that mean what another one means
NO_NAMES: tuple[Any, ...] = (
    0,
    None,
    ("a", "b"),
    b"lambda",
    1.5,
    "",
    " ",
    "lambda_l1 ",
    "a=b",
    "a b",
    "\0",
    "x" * 100_000,
)


# Parameters of ours that reach compiled code; a great number of trees is no fault, but takes long.
OF_GROWTH = [field.name for field in fields(TreeParams) if field.name != "params"]
OF_A_LAYER = [f.name for f in fields(LayerSpec) if f.name not in ("n_estimators", "basis", "backend_params")]


@dataclass(frozen=True, slots=True)
class Case:
    """Native parameters for a library, or parameters of `TreeParams` or of a layer, and where they come in."""

    backend: str
    surface: str
    params: Any

    def __str__(self) -> str:
        return f"{self.backend}, {self.surface}: {repr(self.params)[:300]}"


def names(backend: str) -> tuple[list[str], list[str]]:
    """Names of parameters that the installed library knows, and further names of the same ones."""
    mains, aliases = {"lightgbm": _of_lightgbm, "xgboost": _of_xgboost, "sklearn": _of_sklearn}[backend]()
    return sorted(mains), sorted(aliases - mains)


def _of_lightgbm() -> tuple[set[str], set[str]]:
    import lightgbm

    groups = lightgbm.basic._ConfigAliases._get_all_param_aliases()
    wrapped = set(lightgbm.LGBMRegressor().get_params()) | set(inspect.signature(lightgbm.Dataset).parameters)
    return set(groups), set(chain(*groups.values())) | wrapped


def _of_xgboost() -> tuple[set[str], set[str]]:
    import xgboost

    found = set(inspect.signature(xgboost.QuantileDMatrix).parameters)
    for booster in ("gbtree", "dart", "gblinear"):
        config = xgboost.Booster({"booster": booster, "num_feature": 1}).save_config()
        found |= set(_keys(json.loads(config)))
    return found, set(xgboost.XGBRegressor().get_params())


def _keys(config: Any) -> Iterator[str]:
    for key, value in config.items() if isinstance(config, dict) else ():
        yield key
        yield from _keys(value)
    for value in config if isinstance(config, list) else ():
        yield from _keys(value)


def _of_sklearn() -> tuple[set[str], set[str]]:
    from sklearn.tree import DecisionTreeRegressor

    return set(DecisionTreeRegressor().get_params()), set()


def walk(backend: str) -> Iterator[Case]:
    """Each parameter alone, with each value; other names of it with a few; and what is no mapping of names."""
    mains, aliases = names(backend)
    for some, values in ((mains, VALUES), (aliases, FEW)):
        yield from (Case(backend, "bind", {name: value}) for name in some for value in values)
    yield from (Case(backend, "bind", {name: 1}) for name in NO_NAMES)
    yield from (Case(backend, "bind", value) for value in VALUES)
    yield from (Case(backend, surface, value) for value in FEW for surface in SURFACES[1:])
    yield from (Case(backend, "growth", {name: value}) for name in OF_GROWTH for value in VALUES)
    yield from (Case(backend, "layer", {name: value}) for name in OF_A_LAYER for value in (*EXTREMES, *FEW))


def combinations(backend: str, number: int, seed: int) -> Iterator[Case]:
    """Some parameters together, drawn at random, in all surfaces: mostly such as pass alone."""
    rng = np.random.default_rng(seed)
    if not number:
        return
    taken, anything = _taken(backend), [name for some in names(backend) for name in some]
    for _ in range(number):
        surface = SURFACES[rng.choice(len(SURFACES), p=(0.7, 0.1, 0.1, 0.1))]
        drawn = [taken[rng.integers(len(taken))] for _ in range(rng.integers(1, 7))]
        if rng.random() < 0.2:
            drawn.append((anything[rng.integers(len(anything))], VALUES[rng.integers(len(VALUES))]))
        yield Case(backend, surface, dict(drawn))


def _taken(backend: str) -> list[tuple[str, Any]]:
    """Names and values that the backend takes, as many of each name."""
    values: dict[str, list[Any]] = {}
    for name in names(backend)[0]:
        for value in VALUES:
            with suppress(ValueError):
                load_backend(backend).bind(Table(np.zeros((1, N_FEATURES))), TreeParams(params={name: value}))
                values.setdefault(name, []).append(value)
    most = max(len(found) for found in values.values())
    return [(name, value) for name, found in values.items() for value in islice(cycle(found), most)]
