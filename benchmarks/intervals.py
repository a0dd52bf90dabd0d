"""Intervals and sets of classes: coverage, width and pinball loss beside LightGBM's and ChimeraBoost's.

All models learn from the same rows and are corrected by the same others: a quarter of the rows of a split. Intervals of
quantiles are conformalised (Romano et al. 2019), and sets have one threshold (Sadinle et al. 2019), of every model.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split

from benchmarks.accuracy.data import SETS, Table
from benchmarks.frontier.models import fit_of, hold_out, prepare_of
from boostbp import BoostBPRegressor
from boostbp.comparison.contenders import Contender, Split, train_contender
from boostbp.estimators.conformal import Calibration

__all__ = ["intervals", "models_of", "tables"]

Floats = NDArray[np.float64]
NUMBERS = (
    "diabetes", "friedman1", "concrete", "energy", "kin8nm", "power-plant", "wine-quality-red", "california", "ames",
)  # fmt: skip
CLASSES = ("breast_cancer", "yeast", "adult", "drug", "digits")
COVERAGES = (0.8, 0.9)
LEVELS = (0.05, 0.1, 0.9, 0.95)  # of the two coverages, from outside in
TEST, CALIBRATION, MOST_TEST = 0.3, 0.25, 10_000
OTHER = 1_000_003  # to the seed of the second cut: permutations of one seed are alike


class Parts(NamedTuple):
    """Rows to learn from, to correct by, and to report on."""

    X: Any
    y: NDArray[Any]
    X_calibration: Any
    y_calibration: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]


class Outcome(NamedTuple):
    """Intervals of the test rows by coverage, (rows, 2), and predicted quantiles, (rows, levels), if there are any."""

    intervals: dict[float, Floats]
    quantiles: Floats | None = None


def tables(data_dir: Path | None) -> list[str]:
    """The tables whose files are there."""
    return [name for name in (*NUMBERS, *CLASSES) if not SETS[name].missing(data_dir)]


def intervals(name: str, model: str, data_dir: Path | None, *, rows: int, splits: int) -> dict[str, Any]:
    """Means over splits of a table, and the standard errors of coverages; widths are in deviations of the target."""
    source = SETS[name]
    if (package := _package_of(model)) is not None:
        return {"left out": f"it needs {package}"}
    table = source.load(data_dir) if source.files else source.load()
    of_split = _sets if source.task == "classification" else _intervals
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_split(model, _some(parts_of(table, source.task, 0, rows)), 0)  # imports modules
        found = [of_split(model, parts_of(table, source.task, seed, rows), seed) for seed in range(splits)]
    means = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    errors = {
        f"error of {key}": float(np.std([one[key] for one in found], ddof=1) / np.sqrt(len(found)))
        for key in found[0]
        if key.startswith("coverage") and len(found) > 1
    }
    return {**means, **errors}


def parts_of(table: Table, task: str, seed: int, rows: int) -> Parts:
    """A random split: a test part, at most so many other rows, a quarter of which corrects."""
    strata = table.y if task == "classification" else None
    rest, test = _cut(np.arange(len(table.y)), TEST, seed, strata)
    rest, test = rest[:rows], test[:MOST_TEST]
    learn, calibration = _cut(rest, CALIBRATION, seed + OTHER, strata)
    return Parts(*(part for rows in (learn, calibration, test) for part in (_take(table.X, rows), table.y[rows])))


def _cut(rows: NDArray[np.intp], share: float, seed: int, strata: Any) -> list[NDArray[np.intp]]:
    how = {"test_size": share, "random_state": seed}
    try:
        return list(train_test_split(rows, stratify=None if strata is None else strata[rows], **how))
    except ValueError:  # a class with one row
        return list(train_test_split(rows, **how))


def _take(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _some(parts: Parts) -> Parts:
    return parts._replace(X=parts.X[:200], y=parts.y[:200])


# ---------------------------------------------------------------------------- numbers


def _intervals(model: str, parts: Parts, seed: int) -> dict[str, float]:
    begun = time.process_time()
    outcome = QUANTILES[model](parts, seed)
    seconds, unit = time.process_time() - begun, float(np.std(parts.y_test))
    found = {}
    for coverage, of_rows in outcome.intervals.items():
        inside = (of_rows[:, 0] <= parts.y_test) & (parts.y_test <= of_rows[:, 1])
        found[f"coverage {coverage}"] = float(inside.mean())
        found[f"width {coverage}"] = float(np.diff(of_rows).mean() / unit)
    if outcome.quantiles is not None:
        losses = [
            mean_pinball_loss(parts.y_test, at, alpha=a) for a, at in zip(LEVELS, outcome.quantiles.T, strict=True)
        ]
        found["pinball"] = float(np.mean(losses)) / unit
        low, high = outcome.quantiles[:, [0, -1]].T
        found["uncorrected 0.9"] = float(((low <= parts.y_test) & (parts.y_test <= high)).mean())
    return {**found, "seconds": seconds}


def _boostbp(params: dict[str, Any]) -> Callable[[Parts, int], Outcome]:
    def outcome(parts: Parts, seed: int) -> Outcome:
        model = BoostBPRegressor(n_jobs=1, random_state=seed, **params).fit(parts.X, parts.y)
        model.calibrate(parts.X_calibration, parts.y_calibration)
        found = {coverage: model.predict_interval(parts.X_test, coverage) for coverage in COVERAGES}
        return Outcome(found, model.predict(parts.X_test) if "alpha" in params else None)

    return outcome


def _lightgbm(parts: Parts, seed: int) -> Outcome:
    """A model for each level, with as many rounds as a tenth of the rows likes best."""
    fit, held = hold_out(parts.y, False, seed)
    split = Split(_take(parts.X, fit), parts.y[fit], _take(parts.X, held), parts.y[held])
    columns = []
    for level in LEVELS:
        contender = Contender("lightgbm", "lightgbm", {"objective": "quantile", "alpha": level})
        model = train_contender(contender, split, task="regression", n_jobs=1, seed=seed).model
        columns.append([model.predict(X) for X in (parts.X_calibration, parts.X_test)])
    return _corrected(*(np.sort(np.column_stack(of), axis=1) for of in zip(*columns, strict=True)), parts)


def _chimeraboost(parts: Parts, seed: int) -> Outcome:
    from chimeraboost import ChimeraBoostQuantileRegressor

    prepare = prepare_of("chimeraboost")
    X, X_test = prepare(parts.X, parts.X_test)
    names = [name for name in X.columns if X[name].dtype.kind not in "biuf"] if hasattr(X, "columns") else []
    model = ChimeraBoostQuantileRegressor(list(LEVELS), thread_count=1, random_state=seed)
    model.fit(X, parts.y, cat_features=names or None)
    return _corrected(model.predict(prepare(parts.X, parts.X_calibration)[1]), model.predict(X_test), parts)


def _corrected(of_calibration: Floats, of_test: Floats, parts: Parts) -> Outcome:
    """Intervals of predicted quantiles, (rows, levels), moved by what the calibration says."""
    found = {}
    for coverage, (low, high) in zip(COVERAGES, ((1, 2), (0, 3)), strict=True):
        y = parts.y_calibration
        scores = np.maximum(of_calibration[:, low] - y, y - of_calibration[:, high])
        bound = Calibration(scores[:, None], np.ones(len(y))).bound(scores, coverage)
        found[coverage] = of_test[:, [low, high]] + [-bound, bound]
    return Outcome(found, of_test)


QUANTILES: dict[str, Callable[[Parts, int], Outcome]] = {
    "boostbp": _boostbp({"loss": "quantile", "alpha": LEVELS}),
    "boostbp, quality 1": _boostbp({"loss": "quantile", "alpha": LEVELS, "quality": 1}),
    "boostbp, residuals": _boostbp({}),
    "LightGBM": _lightgbm,
    "ChimeraBoost": _chimeraboost,
}


# ---------------------------------------------------------------------------- classes

OF_CLASSES = {"boostbp": "boostbp", "LightGBM": "lightgbm", "ChimeraBoost": "chimeraboost-3"}


def _sets(model: str, parts: Parts, seed: int) -> dict[str, float]:
    name = OF_CLASSES[model]
    prepare = prepare_of(name)
    begun = time.process_time()
    X, X_test = prepare(parts.X, parts.X_test)
    fitted = fit_of(name)(X, parts.y, True, seed)
    known = np.isin(parts.y_calibration, fitted.classes_)
    of_calibration = fitted.predict_proba(prepare(parts.X, parts.X_calibration)[1])[known]
    scores = 1.0 - of_calibration[parts.y_calibration[known, None] == fitted.classes_]
    of_test = fitted.predict_proba(X_test)
    seconds = time.process_time() - begun
    true = parts.y_test[:, None] == fitted.classes_
    found = {"accuracy": float(true[np.arange(len(true)), of_test.argmax(axis=1)].mean())}
    for coverage in COVERAGES:
        inside = 1.0 - of_test <= Calibration(scores[:, None], np.ones(len(scores))).bound(scores, coverage)
        found[f"coverage {coverage}"] = float((inside & true).any(axis=1).mean())
        found[f"size {coverage}"] = float(inside.sum(axis=1).mean())
    return {**found, "seconds": seconds}


def _package_of(model: str) -> str | None:
    """What a model needs and is not installed."""
    package = model.lower()
    try:
        import_module(package if package in ("lightgbm", "chimeraboost") else "boostbp")
    except ImportError:
        return f"the package {package}"
    return None


def models_of(name: str) -> tuple[str, ...]:
    """Names of the models of a table."""
    return tuple(OF_CLASSES if SETS[name].task == "classification" else QUANTILES)
