"""What the finished cells say: scores over folds, paired differences, ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.accuracy.plan import NETWORKS, SINGLE

__all__ = [
    "RIVALS",
    "SHALLOW",
    "Difference",
    "Overall",
    "Scores",
    "difference",
    "overall",
    "scores",
    "standard_error",
]

SHALLOW = (*SINGLE, "average")
RIVALS = (*SHALLOW, *NETWORKS)
Line = Mapping[str, Any]
Scores = dict[str, dict[str, dict[int, Line]]]  # by data set, model and fold


@dataclass(frozen=True, slots=True)
class Difference:
    """A deep model against the rival with the best mean test score, fold by fold; negative is better.

    Attributes
    ----------
    rival : str
    mean, error : float
        Of the differences of the test scores, and its standard error (NaN for a single fold).
    relative : float
        Mean test score over the rival's.
    """

    rival: str
    mean: float
    error: float
    relative: float

    @property
    def verdict(self) -> str:
        """Won or lost by more than one standard error, or neither; one fold tells neither."""
        if np.isnan(self.error) and np.isfinite(self.mean):
            return "one fold"
        if abs(self.mean) <= self.error:
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
    """Lines of cells that ran, by data set, model and fold; the last one of a cell counts. NaN is infinitely bad."""
    found: Scores = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        if line["state"] == "ran":
            line = {**line, "score": float(np.nan_to_num(line["score"], nan=np.inf, posinf=np.inf))}
            found[line["set"]][line["model"]][line["fold"]] = line
    return found


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; NaN for less than two values, and where one is infinite."""
    if len(values) < 2 or not np.isfinite(values).all():
        return float("nan")
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def difference(models: Mapping[str, Mapping[int, Line]], name: str, rivals: Sequence[str]) -> Difference | None:
    """A model against the best of some rivals, on the folds that all of them finished; None if there is none."""
    folds = [fold for fold in sorted(models.get(name, {})) if all(fold in models.get(rival, {}) for rival in rivals)]
    if not folds or not rivals:
        return None
    means = {rival: float(np.mean([models[rival][fold]["score"] for fold in folds])) for rival in rivals}
    best = min(means, key=means.__getitem__)
    ours = [models[name][fold]["score"] for fold in folds]
    gaps = [score - models[best][fold]["score"] for score, fold in zip(ours, folds, strict=True)]
    return Difference(best, float(np.mean(gaps)), standard_error(gaps), float(np.mean(ours) / means[best]))


def overall(found: Scores, models: Sequence[str]) -> dict[str, Overall]:
    """Each model over the sets on which all of the models finished the same folds; equal ones share their ranks."""
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
    ranks, best = rankdata(table, axis=1), table.min(axis=1, keepdims=True)
    return {
        model: Overall(
            float(ranks[:, k].mean()),
            float(np.mean(table[:, k] == best[:, 0])),
            float((table[:, k] / best[:, 0]).max()),
            len(table),
        )
        for k, model in enumerate(models)
    }
