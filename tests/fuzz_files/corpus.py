"""Intact files of every kind, and what a reader of each does with what it opened."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival
from boostbp.losses import LambdaRank
from tests.support.flat_parameters import parameters

TINY = {
    "hidden_layer_sizes": (3,), "n_estimators": 3, "epochs": 2, "min_samples_leaf": 5, "random_state": 0, "deep": True,
}  # fmt: skip
CODER = {name: value for name, value in TINY.items() if name != "deep"}
ROWS = 60


@dataclass(frozen=True)
class Item:
    """A kind of file.

    Attributes
    ----------
    make : callable
        ``make(path)`` writes the intact file.
    use : callable
        ``use(path)`` opens it and does all that can be done with what it holds; returns numbers to compare.
    """

    make: Callable[[Path], None]
    use: Callable[[Path], list[Any]]


def numbers() -> tuple[np.ndarray, np.ndarray]:
    """Rows with a missing value here and there, and targets."""
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, 4))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.normal(size=ROWS)
    X[::11, 3] = np.nan
    return X, y


def frame() -> pd.DataFrame:
    """Named columns, two of them categories."""
    X, _ = numbers()
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    table["text"] = pd.Categorical(np.array(["x", "y", None, "long text"], object)[np.arange(ROWS) % 4])
    table["code"] = pd.Categorical(np.arange(ROWS) % 3 * 0.5)
    return table


def labels() -> np.ndarray:
    """Three classes."""
    return np.array(["one", "two", "three"])[np.digitize(numbers()[1], [-0.5, 0.5])]


def _model(estimator: Callable[[], Any], X: Callable[[], Any], y: Callable[[], Any] | None, **arguments: Any) -> Item:
    def make(path: Path) -> None:
        fitted = estimator().fit(X()) if y is None else estimator().fit(X(), y(), **arguments)
        boostbp.save(fitted, path)

    def use(path: Path) -> list[Any]:
        return _told(boostbp.load(path), X(), path)

    return Item(make, use)


def _told(model: Any, X: Any, path: Path) -> list[Any]:
    """Everything that a loaded model says; what it says about itself alone may not raise."""
    from boostbp.cli.inspect import description_of

    repr(model), model.summary(), str(model.health()), repr(model.history_)
    json.dumps(description_of(model))
    pickle.dumps(model)
    found = [model.predict(X), model.jacobian(X)]
    found += [model.transform(X)] if len(model.network_.layers) > 1 else []
    found += [getattr(model, name)(X) for name in ("predict_proba", "decision_function") if hasattr(model, name)]
    if hasattr(model, "predict_quantile"):
        found += [model.predict_survival_function(X, return_array=True), model.predict_quantile(X, [0.2, 0.8])]
    found += [model.attributions(X[:5], steps=2).values, model.importance("split"), model.feature_importances_]
    model.leaf_report(X[:2])
    boostbp.save(model, path.with_suffix(".again"))
    return found


def _checkpoint(settings: dict[str, Any]) -> Item:
    """A checkpoint of one epoch, from which a fit of three goes on."""
    X, y = numbers()

    def make(path: Path) -> None:
        BoostBPRegressor(**parameters(**(TINY | {"epochs": 1} | settings))).fit(X, y, checkpoint=path)

    def use(path: Path) -> list[Any]:
        model = BoostBPRegressor(**parameters(**(TINY | {"epochs": 3} | settings))).fit(X, y, checkpoint=path)
        return [model.predict(X)]

    return Item(make, use)


def _module(own: bool) -> Any:
    from boostbp.torch import GBDTModule

    functions = [np.copy, np.tanh, np.sin], [np.ones_like, lambda x: 1 - np.tanh(x) ** 2, np.cos]
    basis = boostbp.Elementwise(*functions) if own else "linear"
    return GBDTModule(None if own else 4, 2, {"n_estimators": 3, "basis": basis}, random_state=0)


def _tensor(own: bool) -> Item:
    """The state of trees in a torch model; the file holds the bytes of its tensor."""
    import torch

    x = torch.tensor(np.nan_to_num(numbers()[0]))

    def make(path: Path) -> None:
        module = _module(own)
        module(x)
        path.write_bytes(module.get_extra_state().numpy().tobytes())

    def use(path: Path) -> list[Any]:
        state = torch.frombuffer(bytearray(path.read_bytes() or b"0"), dtype=torch.uint8)
        module = _module(own)
        module.load_state_dict({"_extra_state": state})
        z = x.clone().requires_grad_()
        out = module.eval()(z)
        out.sum().backward()
        module.get_extra_state()
        return [out.detach().numpy(), z.grad.numpy()]

    return Item(make, use)


MODELS = {
    "constant": _model(
        lambda: BoostBPRegressor(
            (), **parameters(basis="constant", n_estimators=5, min_samples_leaf=5, random_state=0)
        ),
        lambda: numbers()[0],
        lambda: numbers()[1],
    ),
    "average": _model(
        lambda: BoostBPRegressor(**parameters(**TINY | {"deep": "auto", "validation": 0.3}, max_time=2.0)),
        frame,
        lambda: numbers()[1],
    ),
    "two layers": _model(
        lambda: BoostBPRegressor(**parameters(**TINY | {"hidden_layer_sizes": (3, 2)}, skip=True, early_stopping=True)),
        frame,
        lambda: np.c_[numbers()[1], -numbers()[1]],
    ),
    "classes": _model(
        lambda: BoostBPClassifier(**parameters(**TINY, calibration=0.3)).set_output(transform="pandas"), frame, labels
    ),
    "several labels": _model(
        lambda: BoostBPClassifier(**parameters(**TINY)),
        lambda: numbers()[0],
        lambda: pd.DataFrame({"one": numbers()[1] > 0, "two": numbers()[1] > -0.5, "an": numbers()[0][:, 0] > 0}),
    ),
    "quantiles": _model(
        lambda: BoostBPRegressor(**parameters(**TINY, loss="quantile", alpha=[0.2, 0.8], calibration=0.3)),
        lambda: numbers()[0],
        lambda: numbers()[1],
    ),
    "additive": _model(
        lambda: BoostBPRegressor(**parameters(**TINY, base="additive", loss="huber")),
        lambda: numbers()[0],
        lambda: numbers()[1],
    ),
    "hazards": _model(
        lambda: BoostBPSurvival(**parameters(**TINY)),
        frame,
        lambda: np.abs(numbers()[1]) * np.where(np.arange(ROWS) % 3, 1.0, -1.0),
    ),
    "times": _model(
        lambda: BoostBPSurvival(**parameters(**TINY, loss="aft", calibration=0.3)),
        lambda: numbers()[0],
        lambda: np.abs(numbers()[1]) * np.where(np.arange(ROWS) % 3, 1.0, -1.0),
    ),
    "native": _model(
        lambda: BoostBPRegressor(**parameters(**TINY, leaves="native", basis="linear")),
        lambda: numbers()[0],
        lambda: numbers()[1],
    ),
    "shared": _model(
        lambda: BoostBPRegressor(
            **parameters(**TINY, multi_strategy="multi_output_tree", backend="xgboost", loss="poisson")
        ),
        lambda: numbers()[0],
        lambda: np.abs(numbers()[1]),
    ),
    "ranker": _model(
        lambda: BoostBPRanker(**parameters(**TINY), loss=LambdaRank(label_gain=(0.0, 1.0, 3.0))),
        lambda: numbers()[0],
        lambda: np.digitize(numbers()[1], [-0.5, 0.5]),
        qid=np.arange(len(numbers()[1])) // 5,
    ),
    "autoencoder": _model(lambda: BoostBPAutoencoder(**parameters(**CODER)), lambda: np.nan_to_num(numbers()[0]), None),
}
CHECKPOINTS = {
    "checkpoint": _checkpoint({"skip": True, "hidden_layer_sizes": (3, 2)}),
    "checkpoint, xgboost": _checkpoint({"backend": "xgboost", "multi_strategy": "multi_output_tree"}),
    "checkpoint, additive": _checkpoint({"base": "additive", "n_estimators": 2, "early_stopping": True}),
}


def items(*, torch: bool) -> dict[str, Item]:
    """All kinds of files."""
    states = {"torch": _tensor(False), "torch, own functions": _tensor(True)} if torch else {}
    return MODELS | CHECKPOINTS | states


def write_all(folder: Path, *, torch: bool) -> None:
    """Write an intact file of each kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, item in items(torch=torch).items():
            item.make(folder / name)
