"""Cases of the fuzz suite: what to fit, drawn by hypothesis, and its data, made from the case alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from boostbp import losses
from boostbp.backends import available

BACKENDS = tuple(name for name in ("lightgbm", "xgboost") if name in available())
KINDS = ("regressor", "classifier", "ranker", "survival", "autoencoder", "layer")
LARGEST = np.finfo(np.float64).max


def _wide(rng, n):
    return rng.standard_normal(n) * 10.0 ** rng.uniform(-300, 300, n)


def _some(rng, n, value, share=0.3):
    return np.where(rng.random(n) < share, value, rng.standard_normal(n))


def _one(rng, n, value):
    column = rng.standard_normal(n)
    column[rng.integers(n)] = value
    return column


COLUMNS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "constant": lambda rng, n: np.full(n, 3.7),
    "zero": lambda rng, n: np.zeros(n),
    "signed zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, -0.0),
    "duplicate": lambda rng, n: np.arange(n, dtype=float),  # as often as it is drawn
    "steps": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "tiny": lambda rng, n: rng.standard_normal(n) * 1e-300,
    "subnormal": lambda rng, n: rng.integers(-9, 9, n) * 5e-324,
    "huge": lambda rng, n: rng.standard_normal(n) * 1e300,
    "ends": lambda rng, n: rng.choice([-LARGEST, LARGEST], n),
    "wide": _wide,
    "offset": lambda rng, n: 1e15 + rng.standard_normal(n),
    "outlier": lambda rng, n: _one(rng, n, 1e300),
    "whole numbers": lambda rng, n: rng.choice([2.0**31, -(2.0**31), 2.0**53 + 2, 2.0**63, -(2.0**63)], n),
    "infinite": lambda rng, n: _one(rng, n, np.inf),
    "missing": lambda rng, n: np.full(n, np.nan),
    "some missing": lambda rng, n: _some(rng, n, np.nan),
    "hardly present": lambda rng, n: _some(rng, n, np.nan, 0.95),
    "one category": lambda rng, n: np.zeros(n),
    "categories": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "rare categories": lambda rng, n: np.floor(rng.exponential(2.0, n)),
    "missing categories": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 5, n)),
    "many categories": lambda rng, n: rng.permutation(np.arange(n) % 10_000).astype(float),
}
# Columns that a layer without an estimator must refuse or route: they are no codes 0, 1, 2, ...
NO_CODES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "no codes": lambda rng, n: rng.choice([-1.0, 0.5, 1e12, 2.0**31, 2.0**62, 1e300], n)
}
CATEGORICAL = tuple(name for name in COLUMNS if "categor" in name)
NUMERIC = tuple(name for name in COLUMNS if name not in CATEGORICAL)
REAL_TARGETS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "constant": lambda rng, n: np.full(n, -2.5),
    "zero": lambda rng, n: np.zeros(n),
    "counts": lambda rng, n: rng.poisson(3.0, n).astype(float),
    "offset": lambda rng, n: 1e15 + rng.standard_normal(n),
    "tiny": lambda rng, n: rng.standard_normal(n) * 1e-300,
    "subnormal": lambda rng, n: rng.integers(-9, 9, n) * 5e-324,
    "large": lambda rng, n: rng.standard_normal(n) * 1e98,
    "small": lambda rng, n: rng.standard_normal(n) * 1e-98,
    "huge": lambda rng, n: rng.standard_normal(n) * 1e300,
    "ends": lambda rng, n: rng.choice([-LARGEST, LARGEST], n),
    "wide": _wide,
    "outlier": lambda rng, n: _one(rng, n, 1e300),
    "missing": lambda rng, n: _one(rng, n, np.nan),
}
TIMES: dict[str, Callable[[np.random.Generator, int], Any]] = {  # of events, or minus those of censoring
    "half censored": lambda rng, n: rng.exponential(3.0, n) * rng.choice([-1.0, 1.0], n),
    "all events": lambda rng, n: rng.exponential(3.0, n),
    "no event": lambda rng, n: -rng.exponential(3.0, n),
    "one event": lambda rng, n: np.where(np.arange(n) == n // 2, 1.0, -rng.exponential(3.0, n)),
    "ties": lambda rng, n: rng.integers(1, 4, n) * rng.choice([-1.0, 1.0], n),
    "at once": lambda rng, n: np.ones(n),
    "zero": lambda rng, n: np.zeros(n),
    "far apart": lambda rng, n: 10.0 ** rng.uniform(-17, 17, n) * rng.choice([-1.0, 1.0], n),
    "too far apart": lambda rng, n: 10.0 ** rng.uniform(-99, 99, n),
    "missing": lambda rng, n: _one(rng, n, np.nan),
}
LABELS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "two": lambda rng, n: rng.integers(0, 2, n),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "strings": lambda rng, n: rng.choice(["a", "", "ß\0x"], n),
    "one class": lambda rng, n: np.ones(n, int),
    "lone member": lambda rng, n: (np.arange(n) == n // 2).astype(int),
    "three, two lone": lambda rng, n: np.where(np.arange(n) < 2, np.arange(n), 2),
    "ten": lambda rng, n: rng.integers(0, 10, n),
    "each its own": lambda rng, n: np.arange(n) % 30,
    "extreme": lambda rng, n: rng.choice([-(2**63), 2**63 - 1, 0], n),
    "several": lambda rng, n: (rng.random((n, 3)) < [0.1, 0.5, 0.9]).astype(int),
    "several bools": lambda rng, n: rng.random((n, 2)) < 0.5,
    "several, some constant": lambda rng, n: (rng.random((n, 4)) < [0.0, 0.5, 1.0, 0.1]).astype(np.float32),
    "several classes": lambda rng, n: rng.integers(0, 3, (n, 2)),
}
WEIGHTS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "none": lambda rng, n: None,
    "ones": lambda rng, n: np.ones(n),
    "uneven": lambda rng, n: rng.uniform(0.1, 2.0, n),
    "some zero": lambda rng, n: (rng.random(n) < 0.7).astype(float),
    "one alone": lambda rng, n: (np.arange(n) == n - 1).astype(float),
    "all zero": lambda rng, n: np.zeros(n),
    "large": lambda rng, n: rng.uniform(1e24, 1e25, n),
    "small": lambda rng, n: rng.uniform(1e-25, 1e-24, n),
    "wide": lambda rng, n: 10.0 ** rng.uniform(-300, 25, n),
    "extreme": lambda rng, n: np.full(n, rng.choice([1e300, 1e-300])),
}
NAMES: dict[str, Callable[[int], Any]] = {  # of the columns of a frame
    "text": lambda d: [f"c{j}" for j in range(d)],
    "positions": lambda d: range(d),
    "numbers": lambda d: [7 * j - 5 for j in range(d)],
    "fractions": lambda d: np.arange(d) + 0.5,
    "tuples": lambda d: [("level", j) for j in range(d)],
    "days": lambda d: np.datetime64("2020-01-01") + np.arange(d),
    "bytes": lambda d: [b"%d" % j for j in range(d)],
    "missing": lambda d: [np.nan, *range(1, d)],
    "all missing": lambda d: [np.nan] * d,
    "mixed": lambda d: ["c", *range(1, d)],
    "repeated": lambda d: [0] * d,
}
BY_TARGET = "smaller targets alone"  # so that of survival times censored rows alone have weight
ORDERS = ("drawn", "drawn", "drawn", "ascending", "descending")  # of rows by their targets, of a ranker in each query
DTYPES = ("float64", "float64", "float32", "int64", "fortran", "frame", "csr", "csc")

PARAMETERS: dict[str, tuple[Any, ...]] = {  # the first value is the usual one
    "hidden_layer_sizes": ((2,), (1,), (5,), (2, 2), ()),
    "n_estimators": (3, 0, 1, 4),
    "hidden__n_estimators": (3, 0, 1, 4),
    "max_depth": (2, 0, 1, 5, -1),
    "max_leaves": (None, 2, 9),
    "min_samples_leaf": (3, 1, 20),
    "max_bins": (255, 2, 1000),
    "learning_rate": (None, 0.0, 0.5, 1.0),
    "multi_strategy": ("one_output_per_tree", "multi_output_tree"),
    "leaves": ("refit", "refit", "native"),
    "basis": ("quadratic", "linear", "constant"),
    "subsample": (1.0, 0.3, 1e-9),
    "colsample_bytree": (1.0, 0.3),
    "reg_lambda": (None, 0.0, 1e-12, 1e12),
    "penalize_constant": (True, False),
    "standardize": (True, False),
    "clip": (True, False),
    "base": ("ridge", "additive", "zero"),
    "base_lambda": (None, 0.0, 1.0, "gcv"),
    "epochs": (1, 0, 3),
    "start": ("projection", "noise", "identity", "principal"),
    "step": ("normalised", "plain"),
    "step_size": (0.8, 0.1, 5.0),
    "momentum": (0.8, 0.0),
    "refit_order": ("upward", "downward"),
    "output_target": ("loss", "moved"),
    "skip": (False, True),
    "deep": (True, "auto"),  # the ensemble with single layers grows up to thousands of rounds: now and then
    "quality": (3, 1, 2, 4),
    "structure_epochs": ("auto", 1, 2),
    "structure_samples": (None, 0.5, 2),
    "early_stopping": ("auto", True, False),
    "validation": (0.1, 0.4, "last"),
    "n_jobs": (1, 2),
}
ESTIMATORS_ONLY = {
    *("hidden_layer_sizes", "hidden__n_estimators", "epochs", "start", "step", "step_size", "momentum", "refit_order"),
    *(
        "output_target",
        "skip",
        "deep",
        "quality",
        "structure_epochs",
        "structure_samples",
        "early_stopping",
        "validation",
    ),
}
LAYER_PARAMETERS = [name for name in PARAMETERS if name not in ESTIMATORS_ONLY]
LOSSES = {
    "regressor": ("squared_error", *(name for name, loss in losses.LOSSES.items() if loss.task == "regression")),
    "ranker": tuple(name for name, loss in losses.LOSSES.items() if loss.task == "ranking"),
    "survival": ("cox", "aft"),
}
QUERY = 5  # rows of a query


@dataclass(frozen=True)
class Case:
    """One fit: everything about it follows from these values."""

    kind: str
    backend: str
    rows: int
    columns: tuple[str, ...]
    target: str
    outputs: int = 1
    weight: str = "none"
    dtype: str = "float64"
    loss: str = "squared_error"
    order: str = "drawn"
    watched: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()
    seed: int = 0
    names: str = "text"

    @property
    def categorical(self) -> list[int]:
        """Columns that hold categories."""
        return [j for j, name in enumerate(self.columns) if name in (*CATEGORICAL, *NO_CODES)]

    def data(self, seed: int | None = None) -> tuple[Any, Any, Any]:
        """Input, target and weights; another seed gives fresh rows of the same kind."""
        rng = np.random.default_rng(self.seed if seed is None else seed)
        columns = [(COLUMNS | NO_CODES)[name](rng, self.rows) for name in self.columns]
        X = as_dtype(np.column_stack(columns), self.dtype, self.names)
        if self.kind == "classifier":
            y = LABELS[self.target](rng, self.rows)
        elif self.kind == "survival":
            y = TIMES[self.target](rng, self.rows)
        else:
            y = np.column_stack([REAL_TARGETS[self.target](rng, self.rows) for _ in range(self.outputs)])
            y = y.ravel() if self.outputs == 1 else y
        rank = np.argsort(np.argsort(y if y.ndim == 1 else y[:, 0], kind="stable"))
        weight = (rank < self.rows / 2) * 1.0 if self.weight == BY_TARGET else WEIGHTS[self.weight](rng, self.rows)
        if self.order == "drawn":
            return X, y, weight
        query = np.arange(self.rows) // QUERY if self.kind == "ranker" else np.zeros(self.rows)
        order = np.lexsort((rank if self.order == "ascending" else -rank, query))
        sorted_X = X.iloc[order] if self.dtype == "frame" else X[order]
        return sorted_X, y[order], None if weight is None else weight[order]


def cells_of(X: Any) -> np.ndarray:
    """A copy of the input's cells, (rows, columns), whatever holds it."""
    return X.toarray() if sparse.issparse(X) else np.array(X)


def as_dtype(X: np.ndarray, dtype: str, names: str = "text") -> Any:
    """The input as its user may hold it."""
    if dtype == "frame":
        import pandas as pd

        return pd.DataFrame(X, columns=NAMES[names](X.shape[1]))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if dtype in ("csr", "csc"):
            return sparse.csr_array(X).asformat(dtype)
        if dtype == "int64":
            return np.nan_to_num(np.clip(X, -(2.0**63), 2.0**62)).astype(np.int64)
        return np.asfortranarray(X) if dtype == "fortran" else X.astype(dtype)


def _rows(number: int) -> int:
    """Few rows mostly, some thousands at times, 10^5 in one of a thousand, more than 10^4 categories in two."""
    if number < 900:
        return number % 64 + 1
    return {981: 100_000, 982: 12_000, 983: 12_000}.get(number, 150 + 30 * (number - 900))


@st.composite
def cases(draw: Any) -> Case:
    """A case of any kind."""
    kind = draw(st.sampled_from(KINDS))
    regression = kind in ("regressor", "layer")
    known = {"classifier": tuple(LABELS), "survival": tuple(TIMES), "autoencoder": ("zero",)}
    known |= {"ranker": ("counts",) * 9 + tuple(REAL_TARGETS)}
    targets = known.get(kind, ("normal",) * 4 + tuple(REAL_TARGETS))
    names = LAYER_PARAMETERS if kind == "layer" else list(PARAMETERS)
    columns = {"layer": (*COLUMNS, *NO_CODES), "autoencoder": (*NUMERIC, "categories")}.get(kind, tuple(COLUMNS))
    changed = draw(st.lists(st.sampled_from(names), max_size=5, unique=True))
    return Case(
        kind=kind,
        backend=draw(st.sampled_from(BACKENDS)),
        rows=_rows(draw(st.integers(0, 999))),
        columns=tuple(draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4))),
        target=draw(st.sampled_from(targets)),
        outputs=draw(st.sampled_from((1, 1, 2))) if regression else 1,
        weight=draw(st.sampled_from(("none",) * 5 + (BY_TARGET, *WEIGHTS))),
        dtype=draw(st.sampled_from(DTYPES)) if kind != "layer" else "float64",
        loss=draw(st.sampled_from(LOSSES.get(kind, ("squared_error",)))),
        order=draw(st.sampled_from(ORDERS)),
        watched=draw(st.booleans()) if kind != "layer" else False,
        parameters=tuple((name, draw(st.sampled_from(PARAMETERS[name]))) for name in sorted(changed)),
        seed=draw(st.integers(0, 999)),
        names=draw(st.sampled_from(tuple(NAMES))),
    )
