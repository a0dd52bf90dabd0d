"""Comparisons with pictures made up without training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boostbp.comparison.page import Study
from boostbp.comparison.rendering import Curve, Evidence, Result, over_folds
from boostbp.network.choice import NETWORK, CandidateResult, ModelChoice
from boostbp.network.history import Epoch, History, Stop

MODELS = ["boostbp (lightgbm)", "LightGBM", "XGBoost"]
RNG = np.random.default_rng(0)


def history(epochs=4, layers=1, sets=("valid_0",)):
    """Numbers that differ by epoch, layer and set; nothing has moved or been fitted again at epoch 0."""
    rows = []
    for e in range(epochs):
        of = np.arange(layers) + 0.1 * e
        moved, refit = tuple(of * 0.3), tuple(0.9 - 0.01 * of) if e else ()
        dead, metrics = (0.95,) * layers, {name: (2 + k) / (e + 1) for k, name in enumerate(sets)}
        probes = tuple(0.5 + 0.1 * of), tuple(0.4 + 0.1 * of)
        rows.append(Epoch(e, 1.0 / (e + 1), metrics, 1.0, tuple(of), dead, moved, tuple(1.0 + of), refit, *probes))
    return History(rows, epochs - 2, Stop.EPOCHS, "log_loss")


def weighed_at(shown, weight):
    """The same history of a network that has this weight in an average with a single layer."""
    candidates = (
        CandidateResult("single layer", 1.0, 1.0 - weight, None),
        CandidateResult(NETWORK, 1.0, weight, NETWORK),
    )
    return replace(shown, choice=ModelChoice(candidates, 0.0, 0.1))


def evidence(model, task):
    observed = RNG.integers(0, 2, 60) if task == "classification" else RNG.standard_normal(60)
    predicted = RNG.dirichlet([1.0, 1.0], 60) if task == "classification" else observed + RNG.standard_normal(60)
    deep = model.startswith("boostbp")
    return Evidence(
        observed,
        predicted,
        Curve("log-loss", np.array([0.5, 0.3, 0.4]), 1, deep, (0, 1, 2) if deep else (1, 2, 3)),
        history() if deep else None,
        {0: RNG.standard_normal((60, 3)), 3: RNG.standard_normal((60, 3))} if deep else {},
        ("no", "<yes>") if task == "classification" else (),
    )


def study(task="classification", folds=3):
    """Three models that ran, whose order differs by column, and one that did not."""
    names = ("accuracy", "log_loss") if task == "classification" else ("r2", "rmse")
    results = []
    for place, model in enumerate(MODELS):
        costs = {"fit_seconds": 10.0 ** (1 - place), "predict_seconds": 0.01 * place, "peak_bytes": None}
        runs = [
            Result(
                model,
                "ran",
                "",
                {names[0]: 0.5 + 0.1 * (place == 1) + 0.01 * fold, names[1]: 2.0 + place - 0.1 * fold},
                **costs,
                length=9 + 91 * place,
                model_bytes=1_500_000 * (3 - place),
                evidence=evidence(model, task) if fold == 0 else None,
            )
            for fold in range(folds)
        ]
        results.append(over_folds(runs))
    results.append(Result("GBDT-NN", "skipped", "needs the torch package", {}))
    return Study("people & <income>.csv", f"{task}, 200 rows, 3 features, {folds} folds", results)
