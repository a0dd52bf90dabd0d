"""Curve, figure 4 of the paper: an auto-encoder 3-2-3 on a noisy curve in space, and its reconstructions.

python -m examples.paper.curve [--quick] [--seeds 4] [--backend lightgbm] [--out paper-results]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from boostbp import BoostBPAutoencoder, callbacks
from examples.paper.candidates import CURVE
from examples.paper.common import Cell, Experiment, Options, Row, main
from examples.paper.pictures import stages
from examples.paper.tasks import curve

EPOCHS = (2, 4, 6, 10, 15, 25, 47)
SHOWN = 800  # points of a picture


def reconstruction(data_dir: Path | None, *, settings: str, seed: int, backend: str, params: dict[str, Any]) -> dict:
    """Train on one seed, looking at the reconstruction on the way."""
    X = curve(10_000, seed)
    networks: dict[int, Any] = {}
    watch = [callbacks.record_networks(networks, EPOCHS)]
    model = BoostBPAutoencoder((2,), backend=backend, random_state=seed, n_jobs=1, **params).fit(X, callbacks=watch)
    # networks are trained in units of each column
    points = {epoch: network.predict(X[:SHOWN]) * X.std(axis=0) + X.mean(axis=0) for epoch, network in networks.items()}
    return {
        "error": float(np.square(X - model.predict(X)).mean() / X.var(axis=0).mean()),
        "largest": float(np.abs(model.transform(X)).max()),
        "stop": model.history_.stop.name,
        "points": {epoch: again.round(3).tolist() for epoch, again in {0: X[:SHOWN], **points}.items()},
        "colours": X[:SHOWN, 0].round(3).tolist(),
    }


def cells(options: Options) -> list[Cell]:
    seeds = range(options.seeds or (1 if options.quick else 4))
    return [
        Cell(reconstruction, {"settings": name, "seed": seed, "backend": options.backend, "params": params})
        for seed in seeds
        for name, params in CURVE.items()
    ]


def rows(found: list[tuple[dict, dict]]) -> list[Row]:
    made = []
    for name in CURVE:
        ran = [outcome for about, outcome in found if about["settings"] == name and "error" in outcome]
        exploded = sum(outcome["stop"] == "NOT_FINITE" for outcome in ran)
        note = f"{exploded} of {len(ran)} exploded, lowest_loss epoch kept" if exploded else ""
        made.append(
            Row("Curve", f"MSE / variance, {name}", [outcome["error"] for outcome in ran], "a picture", note=note)
        )
    return made


def draw(axes: Any, found: list[tuple[dict, dict]]) -> None:
    stages(axes, found, CURVE, EPOCHS, "viridis")


EXPERIMENT = Experiment(
    "curve", "Curve 3-2-3", cells, rows, draw, panels=(len(CURVE), len(EPOCHS) + 1), projection="3d"
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
