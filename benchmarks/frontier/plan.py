"""What is run: data sets, sizes and models, and the cells in an order that makes partial results useful."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.data import SETS, train_rows
from benchmarks.frontier.models import FAMILIES, MODELS, REFERENCE, limited

__all__ = ["ALL", "FULL", "GROUPS", "LOOKED_AT", "QUICK", "UNSEEN", "Budget", "Cell", "cells", "group_of", "named"]

UNSEEN = tuple(name for name, source in SETS.items() if source.group == "unseen")
ALL = tuple(name for name in SETS if name not in UNSEEN)
# Sets that were in sight, on training or validation rows at least, when a default was chosen. What has been looked at
# once stays here: a set goes in when a default is chosen with it, and never out.
LOOKED_AT = frozenset(ALL) - {"letters"}
GROUPS = ("ordinary tables", "smooth targets", "many classes", "disclosed tables", "sealed tables")
_MANY = ("letters", "digits", "mnist3000", "yeast")  # ten classes or more
_SLOW = ("realmlp",)  # comes last
_SMALL = 1000  # rows to learn from


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is run.

    Attributes
    ----------
    sets, models : tuple of str
    rows : tuple of int
        Sizes: most rows to learn from.
    folds, small_folds : int
        Folds of each set, out of five; and at least so many of a set with less than 1,000 rows to learn from, whose
        test rows are too few to tell models apart.
    minutes : float
        After which no new cell is begun.
    """

    sets: tuple[str, ...]
    models: tuple[str, ...]
    rows: tuple[int, ...]
    folds: int
    minutes: float
    small_folds: int = 1


FULL = Budget(ALL, (*FAMILIES["rivals"], *FAMILIES["ours"]), (3000,), 1, float("inf"))
# A last cell may take a minute longer than the limit.
QUICK = Budget(
    ("network-glorot-0", "kin8nm", "concrete", "california", "adult", "digits"),
    (REFERENCE, "linear_tree", "xgboost", *FAMILIES["rivals"][3:8], "catboost", *FAMILIES["ours"]),
    (1000,),
    1,
    14.0,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one fold of one data set with so many rows to learn from.

    `size` is the number that was asked for, `rows` the number there is.
    """

    set: str
    fold: int
    model: str
    rows: int
    size: int

    @property
    def key(self) -> list[str | int | float]:
        """What a finished cell is found again by."""
        return [self.set, self.fold, self.model, self.rows]


def group_of(name: str) -> str:
    """The one of `GROUPS` that a data set belongs to."""
    if name in _MANY:
        return "many classes"
    kind = SETS[name].group
    groups = {"table": "ordinary tables", "classes": "many classes"}
    groups |= {"disclosed": "disclosed tables", "unseen": "sealed tables"}
    return groups.get(kind, "smooth targets")


def named(words: Sequence[str], times: Iterable[float] = ()) -> tuple[str, ...]:
    """Models by name, where a name may be that of a family, and ours with limits of time; the reference is first.

    Raises
    ------
    ValueError
        If there is no such model or family.
    """
    unknown = [word for word in words if word not in (*MODELS, *FAMILIES)]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not known: use any of {', '.join((*FAMILIES, *MODELS))}.")
    models = [model for word in words for model in FAMILIES.get(word, (word,))]
    return tuple(dict.fromkeys([REFERENCE, *models, *map(limited, times)]))


def cells(
    budget: Budget, data_dir: Path | None, train_rows: Callable[[str, int, Path | None], int] = train_rows
) -> Iterator[list[Cell]]:
    """The cells of one data set, fold and size at a time; slow models when all others are done.

    A set takes part in the sizes of which it has the rows, and with all its rows in the first one of which it has not.
    """
    for slow in (False, True):
        models = [model for model in budget.models if (model in _SLOW) == slow]
        for fold in range(max(budget.folds, budget.small_folds) if models else 0):
            for size in sorted(set(budget.rows)):
                smaller = max((other for other in budget.rows if other < size), default=0)
                for name in budget.sets:
                    there = train_rows(name, fold, data_dir)
                    wanted = fold < budget.folds or (fold < budget.small_folds and there < _SMALL)
                    if wanted and smaller < there:
                        yield [Cell(name, fold, model, min(size, there), size) for model in models]
