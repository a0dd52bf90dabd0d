"""Table 3 of the paper: accuracy on Protein with 1 to 4 hidden layers of 16 units.

python examples/paper/depth.py --data-dir FOLDER [--quick] [--folds 10] [--jobs 2] [--out paper-results]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from candidates import PAPER, layers
from common import Cell, Experiment, Options, Row, main
from models import at_least, cells_of, row, scores

DATA = "protein"
LAYERS = (1, 2, 3, 4)
PRINTED = (".6186 ± .0296", ".5938 ± .0382", ".5882 ± .0461", ".5751 ± .0291")
AIM = 0.6100


def _of_paper(n: int) -> str:
    return "GBDT-BP, paper's settings" if n == 1 else f"{n} hidden layers, paper's settings"


def _of_best(n: int) -> str:
    return "GBDT-BP, best settings" if n == 1 else f"{n} hidden layers, best settings"


def _ours() -> dict[str, list[dict[str, Any]]]:
    ours = {_of_best(n): layers([16] * n) for n in LAYERS}  # with one hidden layer, those of table 2
    for n in LAYERS:
        rounds = [PAPER[DATA][0]["n_estimators"][0]] * n + [PAPER[DATA][0]["n_estimators"][-1]]
        ours[_of_paper(n)] = [
            {**params, "hidden_layer_sizes": [16] * n, "n_estimators": rounds} for params in PAPER[DATA]
        ]
    return ours


def cells(options: Options) -> list[Cell]:
    return cells_of(options, DATA, 10, _ours(), [], again=True)


def rows(found: list[tuple[dict, dict]]) -> list[Row]:
    made = []
    for n, printed in zip(LAYERS, PRINTED, strict=True):
        label = f"{n} hidden layers of 16, "
        made.append(row(found, DATA, _of_paper(n), printed, label=f"{label}paper's settings"))
        aim = f">= {AIM:.4f}"
        made.append(row(found, DATA, _of_best(n), "", aim, at_least(AIM), label=f"{label}best settings"))
    return made


def draw(axes: Any, found: list[tuple[dict, dict]]) -> None:
    ax, by_model = axes[0, 0], scores(found, DATA)
    ax.plot(LAYERS, [float(printed[:5]) for printed in PRINTED], "k:", label="paper")
    for label, name in (("paper's settings", _of_paper), ("best settings", _of_best)):
        kept = [(n, by_model[name(n)]) for n in LAYERS if by_model[name(n)]]
        means, errors = [np.mean(v) for _, v in kept], [np.std(v) / np.sqrt(len(v)) for _, v in kept]
        ax.errorbar([n for n, _ in kept], means, errors, marker="o", capsize=3, label=label)
    ax.set_xticks(LAYERS)
    ax.set_xlabel("hidden layers")
    ax.set_ylabel("accuracy, with its standard error")
    ax.legend(fontsize=8)


EXPERIMENT = Experiment("depth", "Table 3: depth on Protein", cells, rows, draw, size=(5, 3.5))

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
