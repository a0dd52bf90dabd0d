"""Table 3 of the paper: accuracy on Protein with 1 to 4 hidden layers of 16 units.

The defaults of the package are averages, in which a deep network may have no weight. So depth is told by networks
alone, chosen among four by validation; with one hidden layer the defaults stand beside them.

python -m examples.paper.depth --data-dir FOLDER [--quick] [--folds 10] [--jobs 2] [--out paper-results]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.paper.candidates import PAPER, layers, networks
from examples.paper.common import Cell, Experiment, Options, Row, main
from examples.paper.models import ALONE, OF_PAPER, SINGLE, cells_of
from examples.paper.scores import at_least, row, scores

DATA = "protein"
LAYERS = (1, 2, 3, 4)
PRINTED = (".6186 ± .0296", ".5938 ± .0382", ".5882 ± .0461", ".5751 ± .0291")
AIM = 0.6100


BEST = "best settings"


def _name(n: int, settings: str) -> str:
    return f"{f'{n} hidden layers' if n > 1 else 'GBDT-BP'}, {settings}"  # with one hidden layer, those of table 2


def _ours() -> dict[str, list[dict[str, Any]]]:
    ours = {_name(1, BEST): layers([16])}
    for n in LAYERS:
        ours[_name(n, ALONE)] = networks([16] * n)
        ours[_name(n, OF_PAPER)] = [_deeper(params, n) for params in PAPER[DATA]]
    return ours


def _deeper(params: dict[str, Any], n: int) -> dict[str, Any]:
    """The settings of one hidden layer for n of them."""
    return {**params, "hidden_layer_sizes": [16] * n}


def cells(options: Options) -> list[Cell]:
    return cells_of(options, DATA, 10, _ours(), SINGLE, again=True)


def rows(found: list[tuple[dict, dict]]) -> list[Row]:
    made = [row(found, DATA, name) for name in SINGLE]
    for n, printed in zip(LAYERS, PRINTED, strict=True):
        for settings in (OF_PAPER, ALONE, BEST) if n == 1 else (OF_PAPER, ALONE):
            paper = printed if settings == OF_PAPER else ""
            wanted = (f">= {AIM:.4f}", at_least(AIM)) if settings == ALONE else ()
            label = f"{n} hidden layer{'s' * (n > 1)} of 16, {settings}"
            made.append(row(found, DATA, _name(n, settings), paper, *wanted, label=label))
    return made


def draw(axes: Any, found: list[tuple[dict, dict]]) -> None:
    ax, by_model = axes[0, 0], scores(found, DATA)
    ax.plot(LAYERS, [float(printed[:5]) for printed in PRINTED], "k:", label="paper")
    for settings in (OF_PAPER, ALONE, BEST):
        kept = {n: list(by_model[_name(n, settings)].values()) for n in LAYERS if by_model.get(_name(n, settings))}
        means = [np.mean(values) for values in kept.values()]
        errors = [np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0 for values in kept.values()]
        ax.errorbar(list(kept), means, errors, marker="o", capsize=3, label=settings)
    ax.set_xticks(LAYERS)
    ax.set_xlabel("hidden layers")
    ax.set_ylabel("accuracy, with its standard error")
    ax.legend(fontsize=8)


EXPERIMENT = Experiment("depth", "Table 3: depth on Protein", cells, rows, draw, size=(5, 3.5))

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
