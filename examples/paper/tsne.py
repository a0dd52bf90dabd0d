"""Hidden representations on Protein, figure 5 of the paper, as t-SNE pictures, with numbers beside them.

The paper reads a larger margin of GBDT-BP off the pictures. The numbers say whether the classes lie apart:
the accuracy of the 5 nearest training rows, and the silhouette of the test rows, both in the representation
itself (units brought to standard deviation 1), not in the picture. A picture of training rows shows how well they were
fitted.

python -m examples.paper.tsne --data-dir FOLDER [--quick] [--folds 10] [--jobs 2] [--out paper-results]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.rivals.contenders import rival, train
from examples.paper import tasks
from examples.paper.candidates import MIXTURES, PAPER, PAPER_MIXTURES, UNITS
from examples.paper.common import Cell, Experiment, Options, Row, main
from examples.paper.models import OF_PAPER, best, kind_of, splits

DATA = "protein"
# Networks as they are trained: what `fit` does by default has the units of several, and most of its weight on none.
LISTS: dict[str, list[dict[str, Any]]] = {
    f"GBDT-BP, {OF_PAPER}": PAPER[DATA],
    "GBDT-BP": [{"hidden_layer_sizes": [UNITS[DATA]], "deep": True}],
    f"GBDT-NN, {OF_PAPER}": PAPER_MIXTURES["GBDT-NN"],
    f"NN-GBDT, {OF_PAPER}": PAPER_MIXTURES["NN-GBDT"],
    **MIXTURES[DATA],
}
MODELS = ("features", "NN", *LISTS)


def representation(
    data_dir: Path | None, *, model: str, fold: int, seed: int, backend: str, candidates: list[dict[str, Any]]
) -> dict[str, Any]:
    """Train on one fold and look at the last hidden layer."""
    task = tasks.load(DATA, data_dir)
    split = next(splits(task, fold, 1, seed))
    test = task.folds[fold][1]
    X, y, X_test, y_test = split.X, split.y, task.X[test], task.y[test]
    if model == "features":
        hidden = lambda rows: rows  # noqa: E731
    elif model == "NN":
        who = rival("mlp", hidden_layer_sizes=(32,), learning_rate=0.01)
        hidden = train(who, split, task=task.kind, n_jobs=1, seed=seed).model.transform
    else:
        kind = kind_of(model)
        hidden = best(split, task.kind, kind=kind, candidates=candidates, backend=backend, seed=seed).model.transform
    scale = StandardScaler().fit(hidden(X))
    h, h_test = scale.transform(hidden(X)), scale.transform(hidden(X_test))
    outcome = {
        "neighbours": float(KNeighborsClassifier(5).fit(h, y).score(h_test, y_test)),
        "silhouette": float(silhouette_score(h_test, y_test)),
        "training silhouette": float(silhouette_score(h, y)),
    }
    if fold == 0 and seed == 0:
        outcome["points"] = TSNE(2, random_state=0).fit_transform(np.vstack([h, h_test])).round(1).tolist()
        outcome["colours"] = [*y.tolist(), *y_test.tolist()]
        outcome["tested"] = len(h_test)
    return outcome


def cells(options: Options) -> list[Cell]:
    folds = min(10, options.folds or (1 if options.quick else 10))
    return [
        Cell(
            representation,
            {
                "model": model,
                "fold": fold,
                "seed": seed,
                "backend": options.backend,
                "candidates": LISTS.get(model, [])[: 1 if options.quick else None],
            },
        )
        for seed in range(options.seeds or 1)
        for fold in range(folds)
        for model in MODELS
    ]


def rows(found: list[tuple[dict, dict]]) -> list[Row]:
    return [
        Row("protein", f"{figure} of {model}", [o[key] for about, o in found if about["model"] == model and key in o])
        for figure, key in (
            ("5-nearest-neighbour test accuracy", "neighbours"),
            ("test silhouette", "silhouette"),
            ("training silhouette", "training silhouette"),
        )
        for model in MODELS
    ]


def draw(axes: Any, found: list[tuple[dict, dict]]) -> None:
    """Training rows as small dots, test rows as large ones."""
    shown = {about["model"]: outcome for about, outcome in found if "points" in outcome}
    for ax, model in zip(axes.flat, MODELS, strict=True):
        ax.set_axis_off()
        if model not in shown:
            continue
        outcome = shown[model]
        points, labels, tested = np.array(outcome["points"]), np.array(outcome["colours"]), outcome["tested"]
        ax.scatter(*points[:-tested].T, c=labels[:-tested], s=2, cmap="tab10", vmin=0, vmax=9)
        ax.scatter(*points[-tested:].T, c=labels[-tested:], s=14, cmap="tab10", vmin=0, vmax=9, ec="k", lw=0.3)
        ax.set_title(
            f"{model}\n5 neighbours {outcome['neighbours']:.3f}, silhouette {outcome['silhouette']:.3f}", fontsize=8
        )


EXPERIMENT = Experiment(
    "tsne", "Hidden representations on Protein", cells, rows, draw, panels=(1, len(MODELS)), size=(2.8, 3)
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
