"""Table 4 of the paper: mixtures of trees and neural networks on Income and Protein.

python examples/paper/mixtures.py --data-dir FOLDER [--quick] [--folds 10] [--jobs 2] [--out paper-results]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from candidates import BEST, MIXTURES
from common import Cell, Experiment, Options, Row, main
from models import cells_of, scores
from pictures import dots

FOLDS = {"income": 1, "protein": 10}
OURS = "GBDT-BP, best settings"
PRINTED = {
    "income": {"NN": ".8543", OURS: ".8741", "NN-GBDT": ".8611", "GBDT-NN": ".8748"},
    "protein": {"NN": ".5907 ± .0268", OURS: ".6186 ± .0296", "NN-GBDT": ".6020 ± .0257", "GBDT-NN": ".6203 ± .0281"},
}


def cells(options: Options) -> list[Cell]:
    return [
        cell
        for data, folds in FOLDS.items()
        for cell in cells_of(options, data, folds, {OURS: BEST[data], **MIXTURES[data]}, ["NN"], again=True)
    ]


def rows(found: list[tuple[dict, dict]]) -> list[Row]:
    made = []
    for data, printed in PRINTED.items():
        for name, paper in printed.items():
            values, mixed = scores(found, data)[name], name in MIXTURES[data]
            reached = bool(values and np.mean(values) >= float(paper[:5])) if mixed else None
            made.append(Row(data, name, values, paper, f">= {paper[:5]}" if mixed else "", reached))
    return made


def draw(axes: Any, found: list[tuple[dict, dict]]) -> None:
    for ax, data in zip(axes.flat, FOLDS, strict=True):
        dots(
            ax,
            f"{data}, accuracy; dotted: the paper's GBDT-NN",
            scores(found, data),
            float(PRINTED[data]["GBDT-NN"][:5]),
        )


EXPERIMENT = Experiment("mixtures", "Table 4: trees and networks", cells, rows, draw, panels=(1, 2), size=(5, 2.6))

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
