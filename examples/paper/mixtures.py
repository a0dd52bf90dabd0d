"""Table 4 of the paper: mixtures of trees and neural networks on Income and Protein.

python -m examples.paper.mixtures --data-dir FOLDER [--quick] [--folds 10] [--jobs 2] [--out paper-results]
"""

from __future__ import annotations

from typing import Any

from examples.paper.candidates import BEST, MIXTURES, PAPER, PAPER_MIXTURES
from examples.paper.common import Cell, Experiment, Options, Row, main
from examples.paper.models import OF_PAPER, SINGLE, cells_of
from examples.paper.pictures import dots
from examples.paper.scores import at_least, row, scores

FOLDS = {"income": 1, "protein": 10}
PRINTED = {
    "income": {"NN": ".8543", "GBDT-BP": ".8741", "NN-GBDT": ".8611", "GBDT-NN": ".8748"},
    "protein": {
        "NN": ".5907 ± .0268",
        "GBDT-BP": ".6186 ± .0296",
        "NN-GBDT": ".6020 ± .0257",
        "GBDT-NN": ".6203 ± .0281",
    },
}


def _ours(data: str) -> dict[str, list[dict[str, Any]]]:
    printed = {"GBDT-BP": PAPER[data], **PAPER_MIXTURES}
    best = {"GBDT-BP": BEST[data], **MIXTURES[data]}
    return {
        f"{name}, {settings}": of[name]
        for name in printed
        for settings, of in ((OF_PAPER, printed), ("best settings", best))
    }


def cells(options: Options) -> list[Cell]:
    return [
        cell
        for data, folds in FOLDS.items()
        for cell in cells_of(options, data, folds, _ours(data), [*SINGLE, "NN"], again=True)
    ]


def rows(found: list[tuple[dict, dict]]) -> list[Row]:
    made = []
    for data, printed in PRINTED.items():
        made += [row(found, data, name, printed.get(name, "")) for name in [*SINGLE, "NN"]]
        for name in ("GBDT-BP", "NN-GBDT", "GBDT-NN"):
            made.append(row(found, data, f"{name}, {OF_PAPER}", printed[name]))
            aim = float(printed[name][:5])
            mixed = {} if name == "GBDT-BP" else {"aim": f">= {aim:.4f}", "reached": at_least(aim)}
            made.append(row(found, data, f"{name}, best settings", **mixed))
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
