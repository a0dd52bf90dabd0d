"""Cases: what to fit and on which rows to compare, drawn from a seed; the data follow from the case alone."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, losses
from tests.fuzz import cases as usual
from tests.support.flat_parameters import parameters

ESTIMATORS = {"regressor": BoostBPRegressor, "classifier": BoostBPClassifier, "autoencoder": BoostBPAutoencoder}
LOSSES = ("squared_error",) * 4 + tuple(name for name, loss in losses.LOSSES.items() if loss.task == "regression")
ROWS = (2, 8, 20, 40, 60, 90, 150)


def _scaled(exponent: int) -> Any:
    return lambda rng, n: rng.standard_normal(n) * 10.0**exponent


def _text(rng: Any, n: int) -> Any:
    return rng.choice(np.array(["", "a", 'b"\\', "c\n", "ß\0", "??/", "*/"], object), n)


EXPONENTS = (-323, -310, -300, -200, -160, -155, -100, -46, -30, -8, 8, 16, 30, 100, 150, 154, 160, 200, 300)
SCALES = {f"1e{exponent}": _scaled(exponent) for exponent in EXPONENTS}
CATEGORIES = {
    "text": _text,
    "integers": lambda rng, n: rng.choice(np.array([-(2**53), -7, 0, 3, 2**40], object), n),
    "codes": lambda rng, n: rng.integers(0, 40, n).astype(object),
    "reals": lambda rng, n: rng.choice(np.array([-1e300, -0.1, 1e-300, 0.1, 1e300, np.nan], object), n),
    "flags": lambda rng, n: rng.choice(np.array([0.0, 1.0, np.nan], object), n),
}
MILD = ("normal", "constant", "zero", "signed zeros", "duplicate", "steps", "1e-46", "1e-30", "1e-8", "1e8", "1e30")
COLUMNS = {name: usual.COLUMNS[name] for name in usual.NUMERIC if name != "infinite"} | SCALES | CATEGORIES
TARGETS = {name: usual.REAL_TARGETS[name] for name in ("normal", "constant", "counts", "offset")} | {
    f"1e{k}": _scaled(k) for k in (-98, -60, -46, -45, -30, -8, 8, 46, 90)
}
POSITIVE = ("poisson", "gamma", "tweedie")  # losses of targets above 0
LABELS = usual.LABELS | {
    "unsigned": lambda rng, n: rng.choice(np.array([0, 2**63, 2**64 - 1], np.uint64), n),
    "large": lambda rng, n: rng.choice(np.array([-(2**70), 0, 10**30], object), n),
    "mixed signs": lambda rng, n: rng.choice(np.array([-1, 2**63, 5], object), n),
    "whole reals": lambda rng, n: rng.choice([-1.0, 3.0, 2.0**60, 1e300], n),
    "small reals": lambda rng, n: rng.choice(np.array([0.0, 1.0, 2.0**24], np.float32), n),
    "text": lambda rng, n: rng.choice(["a\nb", '"??/\\', "*/", "x" * 70_000, "漢字", "%d{}"], n),
    "objects": lambda rng, n: rng.choice(np.array(["1", "a\0", "a"], object), n),
    "surrogates": lambda rng, n: rng.choice(np.array(["\ud800", "b", ""], object), n),
    "bytes": lambda rng, n: rng.choice(np.array([b"a", b"\xff\0b"]), n),
    "small integers": lambda rng, n: rng.integers(-2, 2, n).astype(np.int8),
}
PARAMETERS: dict[str, tuple[Any, ...]] = {
    "hidden_layer_sizes": ((2,), (), (4,), (3, 2)),
    "n_estimators": (3, 0, 1, 12),
    "max_depth": (2, 0, 5, -1),
    "min_samples_leaf": (2, 1, 5),
    "multi_strategy": ("one_output_per_tree", "multi_output_tree"),
    "leaves": ("refit", "refit", "native"),
    "basis": ("quadratic", "linear", "constant"),
    "standardize": (True, False),
    "clip": (True, False),
    "base": ("ridge", "additive", "zero"),
    "reg_lambda": (None, 0.0, 1e-12),
    "epochs": (1, 3),
    "skip": (False, True),
    "deep": (True, True, True, False, "auto"),
    "quality": (3, 1, 1),
    "early_stopping": ("auto", False),
}


@dataclass(frozen=True)
class Case:
    """A model and its rows: everything follows from these values."""

    number: int
    kind: str
    backend: str
    rows: int
    columns: tuple[str, ...]
    target: str
    outputs: int
    loss: str
    parameters: tuple[tuple[str, Any], ...]
    weighted: bool
    offset: bool
    missing: bool

    @property
    def categorical(self) -> list[int]:
        """Columns that hold categories."""
        return [j for j, name in enumerate(self.columns) if name in CATEGORIES]

    def table(self, seed: int) -> np.ndarray:
        """Cells, (rows, columns): objects if some are categories."""
        rng = np.random.default_rng([self.number, seed])
        X = np.column_stack([np.asarray(COLUMNS[name](rng, self.rows), object) for name in self.columns])
        if self.missing:
            X[rng.random(X.shape) < 0.1] = np.nan
        return X if self.categorical else X.astype(np.float64)

    def target_of(self, X: np.ndarray) -> Any:
        """Targets, (rows,) or (rows, outputs), which depend on the columns where their kind allows it."""
        rng = np.random.default_rng([self.number, 99])
        if self.kind == "classifier":
            return LABELS[self.target](rng, self.rows)
        y = np.column_stack([TARGETS[self.target](rng, self.rows) for _ in range(self.outputs)])
        plain = [j for j in range(X.shape[1]) if j not in self.categorical]
        if self.target.startswith("1e") and plain:  # a signal, in units of the target
            signal = np.argsort(np.argsort(X[:, plain[0]].astype(float))) / self.rows
            y += 3.0 * float(self.target) * signal[:, None]
        y = np.abs(y) + (y == 0) if self.loss in POSITIVE else y
        return y.ravel() if self.outputs == 1 else y

    def fitted(self) -> Any:
        """The fitted model, or the error that refuses the data."""
        words = {name: values[0] for name, values in PARAMETERS.items()} | dict(self.parameters)
        if self.kind == "autoencoder":
            words = {name: value for name, value in words.items() if name not in ("deep", "quality", "skip")}
            words["hidden_layer_sizes"] = words["hidden_layer_sizes"] or (2,)
        if words["basis"] == "constant":  # of a single layer
            words["hidden_layer_sizes"], words["leaves"] = (), "refit"
        if self.backend == "xgboost" or words["basis"] == "quadratic":
            words["leaves"] = "refit"
        if self.kind == "regressor":
            words["loss"] = self.loss
            words |= {"alpha": [0.1, 0.5, 0.9]} if self.loss == "quantile" and self.outputs == 1 else {}
        categorical = {} if self.kind == "autoencoder" else {"categorical_features": self.categorical or None}
        model = ESTIMATORS[self.kind](**parameters(backend=self.backend, random_state=0, **categorical, **words))
        X, rng = self.table(0), np.random.default_rng(self.number)
        how = {"sample_weight": rng.choice([0.5, 1.0, 3.0], self.rows)} if self.weighted else {}
        return model.fit(X, **how) if self.kind == "autoencoder" else model.fit(X, self.target_of(X), **how)


def case_of(seed: int, number: int) -> Case:
    """The case of a number, of all that follow from a seed."""
    draw = random.Random((seed << 32) + number)
    kind = draw.choice(("regressor", "regressor", "classifier", "autoencoder"))
    numeric = [name for name in COLUMNS if name not in CATEGORIES]
    kinds = [*numeric, *(4 * tuple(CATEGORIES))]
    if kind == "autoencoder":  # its cells are targets, too
        kinds = list(MILD)
    columns = [draw.choice(draw.choice((["normal"], kinds))) for _ in range(draw.randint(1, 5))]
    changed = draw.sample(list(PARAMETERS), draw.randint(0, 6))
    loss = draw.choice(LOSSES) if kind == "regressor" else ""
    missing = kind != "autoencoder" and draw.random() < 0.4
    return Case(
        number=(seed << 32) + number,
        kind=kind,
        backend=draw.choice(usual.BACKENDS),
        rows=draw.choice(ROWS),
        columns=tuple(columns),
        target=draw.choice(list(LABELS if kind == "classifier" else TARGETS)),
        outputs=draw.choice((1, 1, 2, 3)) if kind == "regressor" else 1,
        loss=loss,
        parameters=tuple((name, draw.choice(PARAMETERS[name])) for name in sorted(changed)),
        weighted=draw.random() < 0.2,
        offset=kind != "autoencoder" and draw.random() < 0.2,
        missing=missing,
    )
