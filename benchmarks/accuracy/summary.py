"""What the finished cells say: scores over folds, paired differences, ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.accuracy.plan import MODELS, NETWORKS, SINGLE

__all__ = ["RIVALS", "Difference", "Overall", "Scores", "difference", "overall", "scores", "standard_error"]

RIVALS = (*SINGLE, "average", *NETWORKS)
Line = Mapping[str, Any]
Scores = dict[str, dict[str, dict[int, Line]]]  # by data set, model and fold


@dataclass(frozen=True, slots=True)
class Difference:
    """A deep model against the rival that validation likes best, fold by fold; negative is better.

    Attributes
    ----------
    rivals : tuple of str
        The rival of each fold.
    mean, error : float
        Of the differences of the test scores, and its standard error (NaN for a single fold).
    relative : float
        Mean test score over the rival's.
    """

    rivals: tuple[str, ...]
    mean: float
    error: float
    relative: float

    @property
    def verdict(self) -> str:
        """Won or lost by more than one standard error, or neither."""
        if not np.isfinite(self.error) or abs(self.mean) <= self.error:
            return "even"
        return "won" if self.mean < 0 else "lost"


@dataclass(frozen=True, slots=True)
class Overall:
    """A model over all sets: mean rank, share of the sets on which it has the best score, worst score over the best."""

    rank: float
    share_best: float
    worst: float
    sets: int


def scores(lines: Iterable[Line]) -> Scores:
    """Lines of cells that ran, by data set, model and fold; the last one of a cell counts."""
    found: Scores = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        if line["state"] == "ran" and np.isfinite(line["score"]):
            found[line["set"]][line["model"]][line["fold"]] = line
    return found


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; NaN for less than two values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def difference(models: Mapping[str, Mapping[int, Line]], name: str, rivals: Sequence[str]) -> Difference | None:
    """A model against the best of some rivals; None if there is no fold on which all that ran can be compared."""
    rivals = [rival for rival in rivals if models.get(rival)]
    folds = sorted(models.get(name, {}))
    folds = [fold for fold in folds if all(fold in models[rival] for rival in rivals)]
    if not folds or not rivals:
        return None
    best = [min(rivals, key=lambda rival: models[rival][fold]["valid"]) for fold in folds]
    ours = [models[name][fold]["score"] for fold in folds]
    theirs = [models[rival][fold]["score"] for rival, fold in zip(best, folds, strict=True)]
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    return Difference(tuple(best), float(np.mean(gaps)), standard_error(gaps), float(np.mean(ours) / np.mean(theirs)))


def overall(found: Scores, models: Sequence[str] = MODELS) -> dict[str, Overall]:
    """Each model over the sets on which all of the models finished the same folds."""
    models = [model for model in models if any(model in of_set for of_set in found.values())]
    means = []
    for of_set in found.values():
        folds = [set(of_set.get(model, {})) for model in models]
        shared = set.intersection(*folds) if folds else set()
        if shared:
            means.append([np.mean([of_set[model][fold]["score"] for fold in shared]) for model in models])
    if not means:
        return {}
    table = np.array(means)  # (sets, models)
    ranks = 1 + (table[:, None, :] < table[:, :, None]).sum(axis=2)
    best = table.min(axis=1, keepdims=True)
    return {
        model: Overall(
            float(ranks[:, k].mean()),
            float(np.mean(table[:, k] == best[:, 0])),
            float((table[:, k] / best[:, 0]).max()),
            len(table),
        )
        for k, model in enumerate(models)
    }
