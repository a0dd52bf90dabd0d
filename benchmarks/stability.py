"""Stability: random settings on small data; each must give a finite, bounded model, or say why it stopped.

Every setting follows from its number alone. What came out is appended to a file, one line for each; a run that finds
the file goes on from there.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import lines
from benchmarks.source import source
from boostbp import BoostBPClassifier, BoostBPRegressor, search
from boostbp.backends import available

__all__ = ["BOUND", "data", "drawn", "main", "outcome", "report"]

Floats = NDArray[np.float64]
LIBRARIES = tuple(name for name in ("lightgbm", "xgboost") if name in available())
TASKS = ("regression", "regression", "two classes", "four classes")
HELD_OUT = 100
BOUND = 10.0
"""Ranges of the target that a prediction may lie beyond it; of a classifier, its log-loss over that of the shares.

On held-out rows it holds of clipped leaves: without ``clip`` a leaf regression extrapolates, as it is asked to.
"""

Drawn = tuple[str, dict[str, Any]]


def drawn(number: int) -> Drawn:
    """Task and parameters of a setting."""
    rng = np.random.default_rng([1, number])

    def one(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    def log(low: float, high: float) -> float:
        return float(10 ** rng.uniform(np.log10(low), np.log10(high)))

    task = one(*TASKS)
    units = one((4,), (8,), (16,), (8, 4), (4, 4, 4))
    target = one("loss", "loss", "moved")
    order = one("upward", "upward", "downward")
    backend = one(*LIBRARIES)
    native = backend == "lightgbm" and task != "four classes"  # whose outputs depend on each other
    leaves = one("refit", "refit", "native") if native else "refit"
    parameters = {
        "hidden_layer_sizes": units,
        "backend": backend,
        **of_layers("n_estimators", [round(log(1, 60)) for _ in range(len(units) + 1)]),
        **of_layers("learning_rate", [one(None, None, 0.1, 0.5, 1.0)] * (len(units) + 1)),
        **of_layers("max_depth", [int(rng.integers(1, 9)) for _ in range(len(units) + 1)]),
        "min_samples_leaf": one(1, 5, 20),
        "multi_strategy": one("one_output_per_tree", "multi_output_tree")
        if leaves == "refit"
        else "one_output_per_tree",
        "leaves": leaves,
        "basis": "quadratic" if leaves == "native" else one("quadratic", "linear"),
        "reg_lambda": one(0.0, log(1e-6, 1e3), log(1e-6, 1e3), 1.0),
        "penalize_constant": one(True, False),
        "standardize": one(True, False),
        "clip": one(True, True, True, False),
        "base": one("ridge", "additive", "zero"),
        "base_lambda": one("gcv", "gcv", 0.0, log(1e-6, 1e3)),
        "epochs": 12,
        "start": one("projection", "principal", "identity", "noise"),
        "step": one("normalised", "plain"),
        "step_size": log(0.01, 10),
        "momentum": one(0.0, 0.5, 0.8, 0.95),
        "refit_order": order,
        "output_target": target,
        "deep": one(True, True, True, True, True, True, True, True, True, "auto"),
        "skip": one(False, False, True),
        "structure_epochs": 1 if leaves == "native" else one(1, 1, 3),
        "structure_samples": None if leaves == "native" else one(None, None, 0.5),
        "early_stopping": one(False, True),
        "random_state": number,
        "n_jobs": 1,
        "max_time": 60.0,
    }
    if task == "regression":
        parameters["loss"] = one("squared_error", "squared_error", "squared_error", "absolute_error", "huber")
    return task, parameters


def of_layers(name: str, values: list[Any]) -> dict[str, Any]:
    """A parameter of each layer, hidden ones first."""
    *hidden, output = values
    return {"hidden": [{name: value} for value in hidden], f"output__{name}": output}


def data(number: int, task: str) -> tuple[Floats, NDArray[Any], Floats, NDArray[Any]]:
    """Rows to learn from and held-out rows of a setting; columns and target have scales of 1e-6 to 1e6."""
    rng = np.random.default_rng([2, number])
    rows, features = int(rng.integers(120, 400)), int(rng.integers(1, 12))
    shape = rows + HELD_OUT, features
    kinds = [rng.standard_normal(shape), rng.uniform(size=shape), rng.standard_t(3, shape), rng.integers(0, 4, shape)]
    X = np.choose(rng.integers(0, len(kinds), features), [np.asarray(kind, float) for kind in kinds])
    score = np.tanh(X @ rng.standard_normal((features, 3))).sum(axis=1) + np.sin(X[:, 0] * X[:, -1])
    score = score + rng.uniform(0.0, 0.5) * rng.standard_normal(len(X))
    scale, offset = 10.0 ** rng.uniform(-6, 6, features), rng.choice([0.0, 1.0, 100.0], features)
    X = (X + offset) * scale
    if task == "regression":
        y = (score + rng.choice([0.0, 100.0])) * 10.0 ** rng.uniform(-6, 6)
    else:
        classes = 2 if task == "two classes" else 4
        y = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def outcome(number: int) -> dict[str, Any]:
    """What came of a setting: how far its model reaches on training and held-out rows, and why training stopped."""
    task, parameters = drawn(number)
    X, y, X_held, y_held = data(number, task)
    watched = {"eval_set": [(X_held[::2], y_held[::2])]} if parameters["early_stopping"] else {}
    begun = time.perf_counter()
    found: dict[str, Any] = {"number": number, "task": task, "clip": parameters["clip"], "error": ""}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings(
                "ignore", message="Back-propagation is dead|.* has collapsed|No effect on the model"
            )  # ours
            kind = BoostBPRegressor if task == "regression" else BoostBPClassifier
            model = kind(**search.parameters(parameters)).fit(X, y, **watched)
            parts = {"reach": (X, y), "reach_held": (X_held[1::2], y_held[1::2])}
            reach = _ranges if task == "regression" else _losses
            found |= {name: reach(model, *part, y) for name, part in parts.items()}
    except Exception as error:
        return found | {"error": f"{type(error).__name__}: {error}", "seconds": time.perf_counter() - begun}
    history = model.history_
    return found | {
        "stop": history.stop.name,
        "epochs": len(history) - 1,
        "best_epoch": history.best_epoch,
        "highest_loss": max(history.loss),
        "seconds": time.perf_counter() - begun,
    }


def _ranges(model: Any, X: Floats, y: Floats, learned: Floats) -> float:
    """Largest distance of a prediction from the interval of the learned targets, in lengths of it."""
    low, high, prediction = learned.min(), learned.max(), model.predict(X)
    return float(np.max(np.maximum(low - prediction, prediction - high)).clip(0) / (high - low))


def _losses(model: Any, X: Floats, y: NDArray[np.int64], learned: NDArray[np.int64]) -> float:
    """Log-loss over that of the shares of the classes."""
    raw = model.decision_function(X)
    raw = np.column_stack([np.zeros(len(raw)), raw]) if raw.ndim == 1 else raw
    losses = np.logaddexp.reduce(raw, axis=1) - np.take_along_axis(raw, y[:, None], axis=1)[:, 0]
    shares = np.bincount(learned) / len(learned)
    return float(np.mean(losses) / np.mean(-np.log(shares[y])))


def good(found: dict[str, Any]) -> bool:
    """Whether the model is finite and bounded on training rows and, with clipped leaves, on held-out ones."""
    if found["error"] or not np.isfinite(found["reach_held"]):
        return False
    return found["reach"] <= BOUND and (found["reach_held"] <= BOUND or not found["clip"])


def report(found: Sequence[dict[str, Any]]) -> str:
    """Figures of all settings."""
    fitted = [one for one in found if not one["error"]]
    bad = [one for one in found if not good(one)]
    stops = Counter(one["stop"] for one in fitted)
    lines = [
        f"{len(found)} settings, {sum(one['seconds'] for one in found):.0f} s: {len(found) - len(bad)} finite and "
        f"bounded, {len(bad)} not",
        "stops: " + ", ".join(f"{name} {count}" for name, count in stops.most_common()),
        f"highest training loss of an epoch: {max((one['highest_loss'] for one in fitted), default=0.0):.3g}",
    ]
    for unit, regression in (("target ranges beyond the target", True), ("log-loss over that of the shares", False)):
        of = [one for one in fitted if (one["task"] == "regression") == regression]
        parts = {
            "training rows": [one["reach"] for one in of],
            "held-out rows, clipped": [one["reach_held"] for one in of if one["clip"]],
            "held-out rows, not clipped": [one["reach_held"] for one in of if not one["clip"]],
        }
        for rows, values in parts.items():
            if values:
                median, most, largest = np.quantile(values, [0.5, 0.99, 1.0])
                lines.append(f"{unit}, {rows}: median {median:.3g}, 99 % {most:.3g}, largest {largest:.3g}")
    lines += [f"  {one['number']}: {one['error'] or (one['reach'], one['reach_held'])}" for one in bad]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Fit the settings that the file does not hold yet, print the figures; 1 if one is not bounded."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stability", description=__doc__)
    parser.add_argument("--settings", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first setting")
    parser.add_argument("--file", type=Path, default=Path("build/stability.jsonl"), help="what was found so far")
    options = parser.parse_args(argv)
    options.file.parent.mkdir(parents=True, exist_ok=True)
    known = [one for one in lines.read(options.file) if one.pop("source", None) == source()]  # by this code
    done = {one["number"]: one for one in known}
    numbers = range(options.first, options.first + options.settings)
    with options.file.open("a") as file:
        for number in numbers:
            if number not in done:
                done[number] = outcome(number)
                file.write(json.dumps({**done[number], "source": source()}) + "\n")
                file.flush()
    found = [done[number] for number in numbers]
    print(report(found))
    return int(not all(map(good, found)))


if __name__ == "__main__":
    raise SystemExit(main())
