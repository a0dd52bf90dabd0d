"""What the finished cells say: error and seconds over the reference's, set by set and over sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import rankdata

from benchmarks.accuracy.data import SETS
from benchmarks.accuracy.summary import standard_error

__all__ = ["Clock", "Found", "OfModel", "OfSet", "found_in", "overall"]

Clock = Literal["cpu", "wall"]
_TICK = 1e-4  # seconds below which a clock says nothing


@dataclass(frozen=True, slots=True)
class OfSet:
    """A model on a data set, over the folds that it finished.

    Attributes
    ----------
    error, seconds : float
        Mean error over folds over that of the reference, and the same of seconds.
    reference : float
        Mean error of the reference.
    rows, folds : int
        Rows to learn from, and folds.
    """

    error: float
    seconds: float
    reference: float
    rows: int
    folds: int


Found = Mapping[str, Mapping[str, OfSet]]  # by model and data set


@dataclass(frozen=True, slots=True)
class OfModel:
    """A model over data sets.

    Attributes
    ----------
    sets : int
        Those that it finished.
    error, seconds : float
        Geometric means of what it has over the reference's.
    error_error, seconds_error : float
        Their standard errors over sets, as shares of them (of the mean logarithm); NaN for one set.
    won : float
        Share of the sets on which it has less error than the reference; equal is half.
    rank : float or None
        Mean rank of its error among the models that finished at least half of the sets, on the sets that all of those
        finished; None if it is not one of them.
    """

    sets: int
    error: float
    error_error: float
    seconds: float
    seconds_error: float
    won: float
    rank: float | None


def found_in(lines: Iterable[Mapping[str, Any]], clock: Clock) -> Found:
    """What each model has on each set; the last line of a cell counts.

    A log-loss below one over the number of test rows of all folds counts as that much: so few rows cannot tell less,
    and a ratio of two such numbers would outweigh all other sets.
    """
    last = {tuple(line["key"]): line for line in lines if line["state"] == "ran"}
    folds: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for line in last.values():
        folds[line["model"], line["set"]].append(line)
    found: dict[str, dict[str, OfSet]] = defaultdict(dict)
    for (model, name), of_set in folds.items():
        classes = SETS[name].task == "classification"
        least = 1 / sum(line["test_rows"] for line in of_set) if classes else 1e-9
        references = [line["reference"] for line in of_set]
        error, of_reference = (max(_mean(which, "error"), least) for which in (of_set, references))
        found[model][name] = OfSet(
            error / of_reference,
            max(_mean(of_set, clock), _TICK) / max(_mean(references, clock), _TICK),
            of_reference,
            int(of_set[0]["key"][-1]),
            len(of_set),
        )
    return found


def overall(found: Found, sets: Sequence[str]) -> dict[str, OfModel]:
    """Each model over some sets, best mean error first; models that finished none of them are left out."""
    done = {model: [name for name in sets if name in of_model] for model, of_model in found.items()}
    ranks = _ranks(found, done)
    of_models = {
        model: _over([found[model][name] for name in names], ranks.get(model)) for model, names in done.items() if names
    }
    return dict(sorted(of_models.items(), key=lambda item: item[1].error))


def _over(of_sets: Sequence[OfSet], rank: float | None) -> OfModel:
    errors, seconds = (np.log([getattr(each, what) for each in of_sets]) for what in ("error", "seconds"))
    return OfModel(
        len(of_sets),
        float(np.exp(errors.mean())),
        standard_error(list(errors)),
        float(np.exp(seconds.mean())),
        standard_error(list(seconds)),
        float(np.mean((errors < 0) + 0.5 * (errors == 0))),
        rank,
    )


def _ranks(found: Found, done: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Mean rank of each model that finished enough of the sets."""
    most = max(map(len, done.values()), default=0)
    models = [model for model, names in done.items() if names and 2 * len(names) >= most]
    shared = set.intersection(*(set(done[model]) for model in models)) if models else set()
    if not shared:
        return {}
    table = np.array([[found[model][name].error for model in models] for name in sorted(shared)])
    return dict(zip(models, map(float, rankdata(table, axis=1).mean(axis=0)), strict=True))


def _mean(lines: Sequence[Mapping[str, Any]], what: str) -> float:
    return float(np.mean([line[what] for line in lines]))
