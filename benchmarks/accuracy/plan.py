"""What is run: models, budgets, and the cells (data set, fold, model) in an order that makes partial results useful."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.accuracy.data import SETS
from benchmarks.rivals.contenders import average, rival
from boostbp.comparison.contenders import Contender, deep

__all__ = [
    "CONTROLS",
    "DEEP",
    "FULL",
    "MODELS",
    "NETWORKS",
    "QUICK",
    "SINGLE",
    "UNSEEN",
    "Budget",
    "Cell",
    "cells",
    "contender",
]

# Defaults on both libraries, once each; and searched, as the rivals are.
DEEP = ("boostbp", "boostbp-xgboost", "boostbp-tuned")
SINGLE = ("lightgbm", "linear_tree", "xgboost", "hist", "single")
CONTROLS = ("average", "linear-hidden", "before")
NETWORKS = ("mlp", "gbdt-nn")
MODELS = DEEP + SINGLE + CONTROLS + NETWORKS
_TIMED = ("boostbp-tuned", "gbdt-nn")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is spent.

    Attributes
    ----------
    sets : tuple of str
    folds : int
        Folds of each set, out of five.
    trials : int
        Candidates of each search.
    rows : int
        Most rows to learn from and to choose by.
    seconds : float
        Most seconds of one candidate of the searched deep model and mixture.
    hours : float
        After which no new cell is begun.
    """

    sets: tuple[str, ...]
    folds: int
    trials: int
    rows: int
    seconds: float
    hours: float


UNSEEN = tuple(name for name, source in SETS.items() if source.group == "unseen")
FULL = Budget(tuple(name for name in SETS if name not in UNSEEN), folds=3, trials=5, rows=4000, seconds=30.0, hours=4.0)
QUICK = Budget(
    (
        *("network-glorot-0", "composition-0", "kin8nm", "friedman1", "diabetes", "california"),
        *("concrete", "breast_cancer", "yeast", "adult"),
    ),
    folds=2,
    trials=3,
    rows=1000,
    seconds=15.0,
    hours=0.33,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one fold of one data set, with what the search may spend."""

    set: str
    fold: int
    model: str
    trials: int
    rows: int
    seconds: float

    @property
    def key(self) -> list[str | int | float]:
        """What a finished cell is found again by."""
        return [self.set, self.fold, self.model, self.trials, self.rows, self.seconds]


def cells(budget: Budget, models: Sequence[str]) -> Iterator[list[Cell]]:
    """The cells of one data set and fold at a time, deep models first: rivals get at least their seconds."""
    for fold in range(budget.folds):
        for name in budget.sets:
            yield [
                Cell(name, fold, model, budget.trials, budget.rows, budget.seconds)
                for model in MODELS
                if model in models
            ]


def contender(cell: Cell, trees: int) -> tuple[Contender, int]:
    """The model of a cell and the number of its trials; `trees` are those of the deep model."""
    given = {"max_time": cell.seconds} if cell.model in _TIMED else {}
    if cell.model in ("boostbp", "boostbp-xgboost"):
        return deep("xgboost" if cell.model == "boostbp-xgboost" else "lightgbm", {}), 1
    if cell.model == "boostbp-tuned":
        return deep("lightgbm", given), cell.trials
    if cell.model == "average":
        return average(trees), cell.trials
    return rival(cell.model, **given), cell.trials
