"""Circle, figure 3 of the paper: two rings, a network 2-2-1; at the end one threshold on a hidden unit separates them.

python -m examples.paper.circle [--quick] [--seeds 4] [--backend lightgbm] [--out paper-results]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from boostbp import BoostBPClassifier, callbacks
from examples.paper.candidates import CIRCLE
from examples.paper.common import Cell, Experiment, Options, Row, main
from examples.paper.pictures import stages
from examples.paper.scores import verdict
from examples.paper.tasks import circle

EPOCHS = (2, 4, 6, 11, 13, 17, 23)
SHOWN = 1500  # points of a picture


def one_threshold(h: np.ndarray, y: np.ndarray) -> float:
    """Accuracy of the best single threshold on any one hidden unit."""
    best = 0.0
    for unit in h.T:
        sorted_y = y[np.argsort(unit)]
        ones_below = np.concatenate([[0], np.cumsum(sorted_y)])
        zeros_below = np.arange(len(y) + 1) - ones_below
        right = zeros_below + (y.sum() - ones_below)
        best = max(best, right.max(), (len(y) - right).max())
    return float(best) / len(y)


def rings(data_dir: Path | None, *, settings: str, seed: int, backend: str, params: dict[str, Any]) -> dict:
    """Train on one seed, looking at the hidden representation on the way."""
    X, y = circle(10_000, seed)
    networks: dict[int, Any] = {}
    watch = [callbacks.record_networks(networks, EPOCHS)]
    model = BoostBPClassifier((2,), backend=backend, random_state=seed, n_jobs=1, **params).fit(X, y, callbacks=watch)
    points = {epoch: network.representation(X[:SHOWN], 1) for epoch, network in networks.items()}
    return {
        "accuracy": model.score(X, y),
        "threshold": one_threshold(model.transform(X), y),
        "points": {epoch: h.round(3).tolist() for epoch, h in {0: X[:SHOWN], **points}.items()},
        "colours": y[:SHOWN].tolist(),
    }


def cells(options: Options) -> list[Cell]:
    seeds = range(options.seeds or (1 if options.quick else 4))
    return [
        Cell(rings, {"settings": name, "seed": seed, "backend": options.backend, "params": params})
        for seed in seeds
        for name, params in CIRCLE.items()
    ]


def rows(found: list[tuple[dict, dict]]) -> list[Row]:
    made = []
    for name in CIRCLE:
        outcomes = [outcome for about, outcome in found if about["settings"] == name]
        accuracy, threshold = ([o[key] for o in outcomes if key in o] for key in ("accuracy", "threshold"))
        made.append(Row("Circle", f"training accuracy, {name}", accuracy))
        wanted = {}
        if name == "best settings":
            reached = verdict(outcomes, lambda values=threshold: min(values) > 0.999)
            wanted = {"aim": "> .999 on each", "reached": reached}
        made.append(Row("Circle", f"one threshold on a hidden unit, {name}", threshold, "1", **wanted))
    return made


def draw(axes: Any, found: list[tuple[dict, dict]]) -> None:
    stages(axes, found, CIRCLE, EPOCHS, "coolwarm")


EXPERIMENT = Experiment("circle", "Circle 2-2-1", cells, rows, draw, panels=(len(CIRCLE), len(EPOCHS) + 1))

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
