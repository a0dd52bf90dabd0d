"""What came out of cells: scores by fold, lines of the tables, and verdicts, which wait for the last cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from examples.paper.common import Row

__all__ = ["at_least", "at_most", "ended", "row", "scores", "verdict"]

Found = list[tuple[dict[str, Any], dict[str, Any]]]


def scores(found: Found, data: str) -> dict[str, dict[int, float]]:
    """Score of each fold, the mean over its seeds, by model; what exploded, or was not run, has none."""
    made: dict[str, dict[int, list[float]]] = {}
    for about, outcome in found:
        if about.get("data") == data:
            of_fold = made.setdefault(about["model"], {})
            if "score" in outcome:
                of_fold.setdefault(about["fold"], []).append(outcome["score"])
    return {model: {fold: float(np.mean(each)) for fold, each in folds.items()} for model, folds in made.items()}


def ended(outcomes: Iterable[dict[str, Any]]) -> bool:
    """Whether cells came to an end, be it an explosion; not if data, a library or a line of code failed them."""
    return not any({"missing", "broken"} & outcome.keys() for outcome in outcomes)


def verdict(outcomes: list[dict[str, Any]], reached: Callable[[], bool]) -> bool | None:
    """None before all cells have ended; an explosion reaches nothing."""
    if not outcomes or not ended(outcomes):
        return None
    return not any("failed" in outcome for outcome in outcomes) and bool(reached())


def row(
    found: Found,
    data: str,
    model: str,
    paper: str = "",
    aim: str = "",
    reached: Callable[[float], bool] | None = None,
    label: str = "",
) -> Row:
    """A line of the table: a model's scores, seconds of a cell, weight of networks, whether the mean is as it should.

    Parameters
    ----------
    reached : callable, optional
        Whether a mean is what `aim` says.
    label : str
        Name in the table, if not the model's.
    """
    outcomes = [outcome for about, outcome in found if (about.get("data"), about["model"]) == (data, model)]
    values = list(scores(found, data).get(model, {}).values())
    judged = None if reached is None else verdict(outcomes, lambda: reached(float(np.mean(values))))
    scored = [outcome for outcome in outcomes if "score" in outcome]
    seconds = [outcome["seconds"] for outcome in scored if "seconds" in outcome]
    notes = [f"{np.mean(seconds):.0f} s"] if seconds else []
    weights = [one.get("networks") for outcome in scored for one in outcome.get("chosen", ())]
    if weights and None not in weights:
        notes.append(f"weight of networks {np.mean(weights):.2f}")
    return Row(data, label or model, values, paper, aim, judged, ", ".join(notes))


def at_least(aim: float) -> Callable[[float], bool]:
    """Whether an accuracy, to four digits as the paper gives it, is as good."""
    return lambda mean: round(mean, 4) >= aim


def at_most(aim: float) -> Callable[[float], bool]:
    """Whether an error, to four digits, is as good."""
    return lambda mean: round(mean, 4) <= aim
