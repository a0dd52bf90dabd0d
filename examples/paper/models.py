"""Models of the tables: ours by a short list of settings, all others by a search; validation chooses.

The validation rows are part of the training rows. All models choose their length and their settings by the same
validation rows; the test rows give the figure and nothing else. On real data what was chosen is then trained once more
on all training rows: single layers, GBDT-NN, and ours with the paper's settings, for the length that was found. Others
of ours that stop early hold a tenth of the rows out by themselves, and need no others where there is nothing to choose.
On small data all that is done for several cuts of the training rows, and the model is the average of as many models,
for ours and all others alike; with the paper's settings it is one model, as in the paper, at its best epoch. Searches
have as many trials, not as many seconds: the tables give the seconds of each. Every fold and every cut draws trials of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, root_mean_squared_error
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from benchmarks.rivals.contenders import MIXTURES, rival, train
from benchmarks.rivals.tuning import score_of, tune
from boostbp.comparison.contenders import Contender, Split
from examples.paper import tasks
from examples.paper.common import Cell, Options

__all__ = ["ALONE", "OF_PAPER", "OTHERS", "PARTS", "SINGLE", "best", "cells_of", "kind_of", "scored", "splits"]

VALIDATION = 0.15
PARTS = {"protein": 3}  # of the others one
TRIALS, QUICK_TRIALS = 8, 2
MORE_TRIALS = {"income": 32, "protein": 32, "drug": 32}  # where single layers take seconds
QUICK_EPOCHS, QUICK_SECONDS = 12, 40.0  # seconds of stacks of trees alone: mixtures are quick
# The paper's GBDT has constant leaves; its GBDT-PL is one layer of GBDT-BP, whose leaves and base are searched here.
SINGLE_LAYER = "GBDT-PL"
OTHERS = {
    "GBDT": "hist",
    "XGBoost": "xgboost",
    SINGLE_LAYER: "single",
    "LightGBM": "lightgbm",
    "LightGBM linear_tree": "linear_tree",
    "NN": "mlp",
}
SINGLE = ["XGBoost", SINGLE_LAYER, "LightGBM", "LightGBM linear_tree"]
OF_PAPER = "paper's settings"
ALONE = "networks alone"
EPOCHS_ALONE = "gbdt-nn"  # all of its length is its epochs: output layers of trees are cut to their best rounds, too


def kind_of(model: str) -> str:
    """What a model of ours is made of, by its name: a mixture, or a stack of trees."""
    kind = model.split(",")[0].lower()
    return kind if kind in MIXTURES else "deep"


def splits(task: tasks.Task, fold: int, parts: int, seed: int) -> Iterator[Split]:
    """The training rows of a fold cut at random, so many times, into rows to learn from and rows to validate."""
    rows, _ = task.folds[fold]
    classes = task.kind == "classification"
    cutter = (StratifiedShuffleSplit if classes else ShuffleSplit)(parts, test_size=VALIDATION, random_state=seed)
    for a, b in cutter.split(rows, task.y[rows] if classes else None):
        fit, valid = rows[a], rows[b]
        yield Split(task.X[fit], task.y[fit], task.X[valid], task.y[valid])


class Chosen(NamedTuple):
    """What the validation rows chose, with its length and its loss there; just settings if there was no choice."""

    contender: Contender
    model: Any = None
    length: int | None = None
    validation: float | None = None


def scored(
    data_dir: Path | None, *, data: str, fold: int, seed: int, parts: int, again: bool = False, **how: Any
) -> dict[str, Any]:
    """RMSE or accuracy on the test rows of a fold of a data set; see `scored_task`."""
    return scored_task(tasks.load(data, data_dir), fold=fold, seed=seed, parts=parts, again=again, **how)


def scored_task(
    task: tasks.Task, *, fold: int, seed: int, parts: int, again: bool = False, **how: Any
) -> dict[str, Any]:
    """RMSE or accuracy on the test rows of a fold, by the settings that the validation rows like best."""
    rows, test = task.folds[fold]
    outputs, chosen = [], []
    for number, split in enumerate(splits(task, fold, parts, seed)):
        found = _chosen(split, task.kind, seed=seed, drawn=seed + 1000 * fold + 100 * number, again=again, **how)
        model = found.model
        if again:
            settings = {"task": task.kind, "n_jobs": 1, "seed": seed + number, "length": found.length}
            model = train(found.contender, Split(task.X[rows], task.y[rows]), **settings).model
        outputs.append(_output(model, task.X[test], task))
        params = {k: _plain(v) for k, v in found.contender.params.items()}
        chosen.append({"params": params, "length": found.length, "validation": found.validation, **_told(model)})
    output = np.mean(outputs, axis=0)
    if task.kind == "regression":
        score = root_mean_squared_error(task.y[test], output)
    else:
        score = accuracy_score(task.y[test], output.argmax(axis=1))
    return {"score": float(score), "chosen": chosen}


def _chosen(split: Split, task: str, *, model: str, seed: int, drawn: int, again: bool, **how: Any) -> Chosen:
    """What the validation rows like best of a model; without a length if it finds one by itself, or has one.

    `drawn` seeds the trials of a search, and their models.
    """
    if "trials" in how:
        name, given = OTHERS[model], {"backend": how["backend"]} if "backend" in how else {}
        tuned = tune(rival(name, **given), split, task=task, trials=how["trials"], seed=drawn, n_jobs=1)
        return Chosen(rival(name, **tuned.params), tuned.model, tuned.length, tuned.score)
    kind = kind_of(model)
    holds_out = (
        again and kind != EPOCHS_ALONE and all(params.get("early_stopping", True) for params in how["candidates"])
    )
    if holds_out and len(how["candidates"]) == 1:
        return Chosen(_contender(kind, how["candidates"][0], how["backend"]))
    found = best(split, task, kind=kind, seed=seed, **how)
    return found._replace(length=None) if holds_out else found


def best(split: Split, task: str, *, kind: str, candidates: list[dict[str, Any]], backend: str, seed: int) -> Chosen:
    """The model of ours that the validation rows like best."""
    metric = "rmse" if task == "regression" else "log_loss"
    found = []
    for params in candidates:
        contender = _contender(kind, params, backend)
        try:
            model, length = train(contender, split, task=task, n_jobs=1, seed=seed)
        except FloatingPointError:
            continue
        loss = score_of(metric, model, split.X_valid, split.y_valid)
        if np.isfinite(loss):
            found.append(Chosen(contender, model, length, loss))
    if not found:
        raise FloatingPointError("no candidate stayed finite")
    return min(found, key=lambda each: each.validation)


def _contender(kind: str, params: dict[str, Any], backend: str) -> Contender:
    return Contender("", kind, {**params, "backend": backend})


def cells_of(
    options: Options,
    data: str,
    folds: int,
    ours: dict[str, list[dict[str, Any]]],
    others: list[str],
    *,
    again: bool = False,
) -> list[Cell]:
    """A cell for each model, fold and seed.

    Parameters
    ----------
    folds : int
        How many there are; `options` may want fewer.
    ours : dict
        The candidates of each model of ours; a quick run looks at the first one alone, for few epochs and seconds.
    others : list of str
        Names in `OTHERS`.
    again : bool
        Whether what was chosen learns once more, from all training rows.
    """
    wanted = min(folds, options.folds or (1 if options.quick else folds))
    care: dict[str, Any] = {"parts": 1 if options.quick else PARTS.get(data, 1)}
    if again:
        care["again"] = True
    how: dict[str, dict[str, Any]] = {}
    for name, candidates in ours.items():
        if options.quick:
            bound = {"max_time": QUICK_SECONDS} if kind_of(name) == "deep" else {}
            candidates = [{**candidates[0], "epochs": QUICK_EPOCHS, **bound}]
        how[name] = {"backend": options.backend, "candidates": candidates, **care}
        if OF_PAPER in name:
            how[name]["parts"] = 1
    trials = QUICK_TRIALS if options.quick else MORE_TRIALS.get(data, TRIALS)
    how |= {name: {"trials": trials, **care} for name in others}
    if SINGLE_LAYER in how:
        how[SINGLE_LAYER]["backend"] = options.backend
    return [
        Cell(scored, {"data": data, "fold": fold, "seed": seed, "model": name, **each})
        for seed in range(options.seeds or 1)
        for fold in range(wanted)
        for name, each in how.items()
    ]


def _output(model: Any, X: NDArray[np.float64], task: tasks.Task) -> NDArray[np.float64]:
    """Predictions, (rows,), or probabilities of all classes of the task, (rows, classes)."""
    if task.kind == "regression":
        return model.predict(X)
    proba = np.zeros((len(X), task.y.max() + 1))
    proba[:, model.classes_] = model.predict_proba(X)
    return proba


def _told(model: Any) -> dict[str, Any]:
    """The epoch that a model of ours kept, and the weight of networks in an average; None where there is none."""
    history = getattr(model, "history_", None)
    choice = getattr(history, "choice", None)
    networks = None if choice is None else sum(one.weight for one in choice.candidates if one.network)
    return {"epoch": getattr(history, "best_epoch", None), "networks": networks}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
