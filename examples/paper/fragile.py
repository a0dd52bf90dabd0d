"""Fragile statements of the paper, measured again: its refit order, and what linear leaves are worth.

The paper refits layers from the output down, each on the old output of the layer below. On Curve that explodes for
a small penalty lambda of the leaf regressions, which the paper does not give; upward, each layer on the new output
below it, does not. And the paper concludes from table 1 that linear leaves in a single layer have no remarkable
effect: here LightGBM's `linear_tree` is switched on and off with all else equal, by the number of leaves, and both
are searched (see random_network.py for all models).

python -m examples.paper.fragile [--quick] [--seeds 4] [--jobs 2] [--out paper-results]
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import root_mean_squared_error

from benchmarks.rivals.contenders import rival, train
from boostbp import BoostBPAutoencoder, BoostBPClassifier
from boostbp.search import nested
from examples.paper import tasks
from examples.paper.candidates import CIRCLE, CURVE
from examples.paper.common import Cell, Experiment, Options, Row, main
from examples.paper.models import cells_of, splits
from examples.paper.scores import scores
from examples.paper.tasks import circle, curve

ORDERS = ("downward", "upward")
PENALTIES = (0.1, 1.0, 10.0)
EPOCHS = 25
PAPER = "paper's settings"
LEAVES = ["XGBoost", "LightGBM", "LightGBM linear_tree"]
NETWORK = "random_network"
NUM_LEAVES = (4, 8, 16, 31)


def refitted(
    data_dir: Path | None, *, shape: str, order: str, penalty: float, seed: int, backend: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Train with the paper's settings, a refit order and a penalty, and look at the last epoch."""
    changes = {"backprop__refit_order": order, "hidden__reg_lambda": penalty, "output__reg_lambda": penalty}
    settings = nested({**params, **changes, "epochs": EPOCHS})
    kind = BoostBPClassifier if shape == "circle" else BoostBPAutoencoder
    data = circle(10_000, seed) if shape == "circle" else (curve(10_000, seed),)
    seen: list[float] = []
    accuracy: list[float] = []

    def look(progress: Any) -> None:
        seen.append(progress.epoch.loss)
        if shape == "circle":
            accuracy.append(float(((progress.network.predict(data[0])[:, 0] > 0) == data[1]).mean()))

    model = kind((2,), backend=backend, random_state=seed, n_jobs=1, **settings).fit(*data, callbacks=[look])
    exploded = model.history_.stop.name == "NOT_FINITE"
    return {"exploded": exploded, "epochs": len(seen), "loss": seen, "accuracy": accuracy}


def leaves_alone(data_dir: Path | None, *, linear_tree: bool, num_leaves: int, fold: int) -> dict[str, Any]:
    """RMSE of LightGBM's defaults with linear or constant leaves; validation rows choose the number of rounds."""
    task = tasks.load(NETWORK, data_dir)
    split, (_, test) = next(splits(task, fold, 1, 0)), task.folds[fold]
    who = rival("lightgbm", linear_tree=linear_tree, num_leaves=num_leaves)
    model, rounds = train(who, split, task=task.kind, n_jobs=1, seed=0)
    return {"rmse": float(root_mean_squared_error(task.y[test], model.predict(task.X[test]))), "rounds": rounds}


def cells(options: Options) -> list[Cell]:
    seeds = range(options.seeds or (1 if options.quick else 4))
    fits = [
        Cell(
            refitted,
            {"shape": shape, "order": order, "penalty": penalty, "seed": seed, "backend": options.backend, "params": p},
        )
        for shape, p in (("curve", CURVE[PAPER]), ("circle", CIRCLE[PAPER]))
        for penalty in (PENALTIES[1:2] if options.quick else PENALTIES if shape == "curve" else PENALTIES[1:2])
        for order in ORDERS
        for seed in seeds
    ]
    folds = min(10, options.folds or (1 if options.quick else 10))
    toggled = [
        Cell(leaves_alone, {"linear_tree": linear, "num_leaves": number, "fold": fold})
        for number in NUM_LEAVES
        for linear in (False, True)
        for fold in range(folds)
    ]
    return fits + toggled + cells_of(replace(options, seeds=1), NETWORK, 10, {}, LEAVES)


def _of(found: list[tuple[dict, dict]], shape: str, order: str) -> dict[float, list[dict]]:
    made: dict[float, list[dict]] = {}
    for about, outcome in found:
        if about.get("shape") == shape and about["order"] == order:
            made.setdefault(about["penalty"], []).append(outcome)
    return made


def rows(found: list[tuple[dict, dict]]) -> list[Row]:
    made = []
    for order in ORDERS:
        for penalty, outcomes in _of(found, "curve", order).items():
            ran = [outcome for outcome in outcomes if "exploded" in outcome]
            survived = [outcome["loss"][-1] for outcome in ran if not outcome["exploded"]]
            note = f"{len(ran) - len(survived)} of {len(ran)} exploded"
            made.append(Row("Curve", f"{order}, lambda {penalty:g}: loss after {EPOCHS} epochs", survived, note=note))
    for order in ORDERS:
        for penalty, outcomes in _of(found, "circle", order).items():
            last = [o["accuracy"][-1] for o in outcomes if o.get("accuracy")]
            drops = sum(int((np.diff(o["accuracy"]) < -0.05).sum()) for o in outcomes if o.get("accuracy"))
            note = f"{drops} drops of more than .05 on the way"
            made.append(Row("Circle", f"{order}, lambda {penalty:g}: accuracy after {EPOCHS} epochs", last, note=note))
    for number in NUM_LEAVES:
        for linear, name in ((False, "constant"), (True, "linear")):
            asked = {"num_leaves": number, "linear_tree": linear}
            values = [o["rmse"] for about, o in found if about.items() >= asked.items() and "rmse" in o]
            made.append(Row("random network, RMSE", f"LightGBM, {number} leaves, {name}", values))
    by_model = scores(found, NETWORK)
    return made + [Row("random network, RMSE", f"{name}, searched", list(by_model[name].values())) for name in LEAVES]


def draw(axes: Any, found: list[tuple[dict, dict]]) -> None:
    for ax, order in zip(axes[0], ORDERS, strict=True):
        for number, (penalty, outcomes) in enumerate(_of(found, "curve", order).items()):
            for place, outcome in enumerate(o for o in outcomes if "loss" in o):
                label = f"lambda {penalty:g}" if place == 0 else None
                ax.semilogy(np.clip(outcome["loss"], 1e-4, 1e6), f"C{number}", lw=1, label=label)
                if outcome["exploded"]:
                    ax.plot(outcome["epochs"] - 1, min(outcome["loss"][-1], 1e6), f"C{number}X")
        ax.set_ylim(1e-4, 1e2)
        ax.set_title(f"Curve, refitted {order}; X: exploded", fontsize=9)
        ax.set_xlabel("epoch")
        ax.set_ylabel("training loss")
        if ax.lines:
            ax.legend(fontsize=7)


EXPERIMENT = Experiment("fragile", "Fragile statements", cells, rows, draw, panels=(1, 2), size=(4.5, 3.2))

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
