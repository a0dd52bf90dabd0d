"""Record models over data sets, libraries and settings, and compare those of other code with them.

::

    python -m tests.same_models record FILE
    python -m tests.same_models compare FILE

A redesign must leave every model as it was: `record` before the first change, `compare` after each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_friedman1

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from tests.support.flat_parameters import parameters

SMALL = {"n_estimators": 6, "epochs": 4, "random_state": 3}
SETTINGS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "network": ((4,), {"deep": True}),
    "two hidden": ((5, 3), {"deep": True, "epochs": 8}),
    "skip": ((4,), {"deep": True, "skip": True}),
    "shared": ((4,), {"deep": True, "multi_strategy": "multi_output_tree"}),
    "linear": ((4,), {"deep": True, "basis": "linear", "base": "zero"}),
    "constant": ((), {"deep": True, "basis": "constant", "base": "zero"}),
    "additive": ((4,), {"deep": True, "base": "additive"}),
    "samples": ((4,), {"deep": True, "structure_samples": 0.5, "structure_epochs": 1}),
    "plain": ((4,), {"deep": True, "step": "plain", "step_size": 0.2, "momentum": 0.0}),
    "downward": ((4,), {"deep": True, "refit_order": "downward", "output_target": "moved"}),
    "native": ((4,), {"deep": True, "leaves": "native"}),
    "drawn": ((4,), {"deep": True, "extra_trees": True}),
    "not drawn": ((4,), {"deep": True, "extra_trees": False}),
    "single": ((), {"deep": True, "n_estimators": 40}),
    "default": ((8,), {"n_estimators": None, "epochs": 12}),
}
LIBRARIES = ("lightgbm", "xgboost", "sklearn")
SOME = ("network", "additive", "shared", "single", "default")  # of every other data set


def _data() -> dict[str, tuple[type[Any], NDArray[Any], NDArray[Any]]]:
    rng = np.random.default_rng(0)
    gaps = load_diabetes(return_X_y=True)
    gaps[0][rng.uniform(size=gaps[0].shape) < 0.05] = np.nan
    cancer, counts = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)
    return {
        "friedman": (BoostBPRegressor, *make_friedman1(400, 6, noise=0.5, random_state=0)),
        "gaps": (BoostBPRegressor, *gaps),
        "counts": (BoostBPRegressor, counts[0], np.round(counts[1] / 25)),
        "iris": (BoostBPClassifier, *load_iris(return_X_y=True)),
        "cancer": (BoostBPClassifier, cancer[0][:, :12], cancer[1]),
        "code": (BoostBPAutoencoder, load_iris(return_X_y=True)[0], np.empty(0)),
    }


def _cases() -> Iterator[tuple[str, Any]]:
    for data, (kind, X, y) in _data().items():
        for library in LIBRARIES:
            for name, (units, changes) in SETTINGS.items():
                settings = SMALL | changes
                if data != "friedman" and name not in SOME:
                    continue
                if (library != "lightgbm" and name == "native") or (library == "xgboost" and name == "drawn"):
                    continue
                if library == "sklearn" and name == "default":
                    continue
                if kind is BoostBPAutoencoder and (not units or name == "default"):
                    continue
                if data == "counts":
                    settings = settings | {"loss": "poisson"}
                if kind is BoostBPAutoencoder:
                    settings = {key: value for key, value in settings.items() if key != "deep"}
                yield f"{data}, {library}, {name}", (kind(units, **parameters(backend=library, **settings)), X, y)


def _outcome(model: Any, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Predictions and derivatives at and beside the training rows."""
    model.fit(X, y) if len(y) else model.fit(X)
    beside = X + 0.01 * np.nanstd(X, axis=0)
    if isinstance(model, BoostBPAutoencoder):
        return np.concatenate([model.transform(X).ravel(), model.predict(beside).ravel()])
    raw = model.decision_function if isinstance(model, BoostBPClassifier) else model.predict
    return np.concatenate([raw(X).ravel(), raw(beside).ravel(), model.jacobian(beside).ravel()])


def main() -> int:
    """Record or compare; 1 if a model differs by more than rounding."""
    parser = argparse.ArgumentParser(prog="python -m tests.same_models")
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    known = dict(np.load(args.file)) if args.what == "compare" else {}
    found, worst, began = {}, 0.0, time.perf_counter()
    for name, (model, X, y) in _cases():
        if args.only not in name:
            continue
        found[name] = outcome = _outcome(model, X, y)
        if args.what == "compare":
            if name not in known:
                print(f"{name}: not recorded")
                continue
            before = known[name]
            size = np.std(before[np.isfinite(before)])
            distance = np.inf if before.shape != outcome.shape else np.nanmax(np.abs(before - outcome)) / size
            same = np.array_equal(before, outcome, equal_nan=True)
            worst = worst if same else max(worst, float(distance))
            print(f"{name}: {'the same bits' if same else distance}", flush=True)
    if args.what == "record":
        with open(args.file, "wb") as file:  # NumPy would add .npz to the name
            np.savez_compressed(file, **found)
    print(f"{len(found)} models, {time.perf_counter() - began:.0f} s" + (f", worst {worst:.2g}" if known else ""))
    return int(worst > 1e-6)


if __name__ == "__main__":
    sys.exit(main())
