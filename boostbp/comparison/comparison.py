"""The result of a comparison as users see it: printed, in a notebook, as JSON, as a page; and its run."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from boostbp.comparison import page, rendering
from boostbp.comparison.measured import ComparisonPlan, Measured
from boostbp.comparison.measuring import FoldOutcome, Job
from boostbp.comparison.processes import ModelProcesses, model_processes
from boostbp.comparison.searches import searched
from boostbp.runtime.atomic_write import atomic_write
from boostbp.runtime.versions import versions

_WIDTH = 120  # columns of a comparison as text
Watch = Callable[[str, int, int], None]  # label of a model, number of the fold from 0, number of all folds


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Measured):
    """What `boostbp.compare` measured; printed, it is the verdict and a table.

    Attributes
    ----------
    verdict : str
        Which model to use, by how much it is better, and what it costs.
    scores : dict of str to ndarray
        A row for each model and fold, as columns of a data frame: ``pandas.DataFrame(result.scores)``.
    models : tuple of str
        Labels of the models.
    states : dict of str to str
        "ran" for each model, or why it did not run.
    judgement : Judgement
        The paired differences from the reference, their intervals and chances.
    interrupted : bool
        Whether Ctrl-C ended the comparison.
    """

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=_WIDTH, record=True, highlight=False, markup=False, emoji=False)
        for part in (self.verdict, *rendering.tables_for(self, console), *self.notes):
            console.print(part, soft_wrap=isinstance(part, str))
        return console.export_text().rstrip("\n")

    def _repr_html_(self) -> str:
        return rendering.as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but predictions as plain values."""
        judgement = self.judgement
        models = [
            {
                "model": model,
                "state": self.states[model],
                "scores": {
                    name: float(self.scores_of(model, name).mean()) for name in self.plan.measures if model in self.ran
                },
                "folds": [dict(outcome.scores) for outcome in self.ran.get(model, ())],
                **{
                    name: self.cost(model, name) for name in ("fit_seconds", "row_seconds", "peak_bytes", "model_bytes")
                },
                "difference": rendering.difference_facts(judgement, model),
            }
            for model in self.models
        ]
        return {
            "verdict": self.verdict,
            "facts": self.facts,
            "notes": self.notes,
            "metric": self.plan.metric,
            "reference": self.plan.reference,
            "settings": {
                name: value if isinstance(value, int) else str(value) for name, value in self.plan.settings.items()
            },
            "models": models,
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the comparison as JSON, with versions; write it to a file if `path` is given."""
        text = json.dumps({"machine": versions(), **self.to_dict()}, indent=2)
        if path is not None:
            with atomic_write(Path(path)) as part:
                part.write_text(text, encoding="utf-8")
        return text

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write a report with pictures as one file, which needs the extra `report`."""
        page.write_report(Path(path), [self])


def run(plan: ComparisonPlan, watch: Watch | None = None) -> Comparison:
    """Train and measure all models, fold by fold; a model that failed is left out of further folds.

    After Ctrl-C, the result has what was measured, unless a model has no fold: then KeyboardInterrupt goes on.
    """
    outcomes: dict[str, list[FoldOutcome]] = {contender.label: [] for contender in plan.contenders}
    try:
        with model_processes(plan.data) as processes:
            for number in range(len(plan.folds)):
                run_fold(plan, number, outcomes, processes, watch)
    except KeyboardInterrupt:
        if not all(outcomes.values()):
            raise
        return Comparison(plan, outcomes, interrupted=True)
    return Comparison(plan, outcomes)


def run_fold(
    plan: ComparisonPlan,
    number: int,
    outcomes: Mapping[str, list[FoldOutcome]],
    processes: ModelProcesses,
    watch: Watch | None = None,
) -> None:
    """Train all models on a fold, and append their outcomes."""
    seconds = 0.0
    for contender in sorted(plan.contenders, key=searched):  # a search has the seconds of the others
        listed = outcomes[contender.label]
        if listed and listed[-1].state != "ran":
            continue
        if watch is not None:
            watch(contender.label, number, len(plan.folds))
        options = plan.measures, plan.n_jobs, plan.seed + number, plan.tune, seconds
        listed.append(processes.run(Job(contender, plan.folds[number], *options, rehearse=not number)))
        if not searched(contender) and listed[-1].state == "ran":
            seconds = max(seconds, listed[-1].fit_seconds)
