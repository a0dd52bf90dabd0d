"""Random network, table 1 of the paper: RMSE on the function of a random neural network, 10 folds.

python -m examples.paper.random_network [--quick] [--folds 10] [--jobs 2] [--out paper-results]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.paper.candidates import BEST, LINEAR_HIDDEN, PAPER, TREE_HIDDEN
from examples.paper.common import Cell, Experiment, Options, Row, main
from examples.paper.models import OF_PAPER, cells_of
from examples.paper.pictures import dots
from examples.paper.scores import at_most, row, scores, verdict

DATA = "random_network"
OURS = {
    f"GBDT-BP, {OF_PAPER}": PAPER[DATA],
    "GBDT-BP, linear hidden layer": LINEAR_HIDDEN,
    "GBDT-BP, hidden layer of trees": TREE_HIDDEN,
    "GBDT-BP, best settings": BEST[DATA],
}
SINGLE = ["GBDT", "XGBoost", "GBDT-PL", "LightGBM", "LightGBM linear_tree"]
PRINTED = {
    "GBDT": ".01867 ± .00023",
    "XGBoost": ".01886 ± .00018",
    "GBDT-PL": ".01861 ± .00022",
    "GBDT-BP, paper's settings": ".01775 ± .00026",
}
AIM = 0.0100


def cells(options: Options) -> list[Cell]:
    return cells_of(options, DATA, 10, OURS, SINGLE)


def rows(found: list[tuple[dict, dict]]) -> list[Row]:
    by_model, ours = scores(found, DATA), list(OURS)[-1]
    made = [row(found, DATA, name, PRINTED.get(name, "")) for name in [*SINGLE, *OURS][:-1]]
    made.append(row(found, DATA, ours, "", f"<= {AIM:.4f}", at_most(AIM)))
    lead = [min(by_model[name].get(fold, np.inf) for name in SINGLE) - score for fold, score in by_model[ours].items()]
    reached = verdict([o for about, o in found if about["model"] in (*SINGLE, ours)], lambda: min(lead) > 0)
    aim = f"ahead on each of {len(lead)} folds"
    lead = lead if reached is not None else []
    return [*made, Row(DATA, "lead over the best single layer of each fold", lead, "", aim, reached)]


def draw(axes: Any, found: list[tuple[dict, dict]]) -> None:
    dots(axes[0, 0], "RMSE by fold; dotted: the paper's GBDT-BP", scores(found, DATA), 0.01775)


EXPERIMENT = Experiment(DATA, "Table 1: random network", cells, rows, draw, size=(6, 3))

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
