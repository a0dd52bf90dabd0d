"""The result of a comparison: scores of each fold, costs, and the verdict."""

from __future__ import annotations

import io
import json
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from boostbp.comparison import rendering
from boostbp.comparison.contenders import Contender
from boostbp.comparison.folds import Fold, test_ratio
from boostbp.comparison.measures import RARE, Measure, rarer
from boostbp.comparison.measuring import Job, Outcome, TableData
from boostbp.comparison.processes import ModelProcesses, model_processes
from boostbp.comparison.searches import searched
from boostbp.comparison.verdict import Judgement, Scored
from boostbp.runtime import messages
from boostbp.runtime.arrays import Floats
from boostbp.runtime.atomic_write import atomic_write
from boostbp.runtime.versions import versions

_WIDTH = 120  # columns of a comparison as text


Watch = Callable[[str, int, int], None]  # label of a model, number of the fold from 0, number of all folds


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonPlan:
    """A comparison before it runs."""

    name: str  # of the table
    data: TableData
    contenders: Sequence[Contender]
    metric: str  # name of the metric of the verdict, among `measures`
    measures: Mapping[str, Measure]
    reference: str  # label of a contender
    folds: Sequence[Fold]
    tune: int
    n_jobs: int
    seed: int
    settings: Mapping[str, Any]  # as the user gave them

    def run(self, watch: Watch | None = None) -> Comparison:
        """Train and measure all models, fold by fold; a model that failed is left out of further folds.

        After Ctrl-C, the result has what was measured, unless a model has no fold: then KeyboardInterrupt goes on.
        """
        outcomes: dict[str, list[Outcome]] = {contender.label: [] for contender in self.contenders}
        try:
            with model_processes(self.data) as processes:
                for number in range(len(self.folds)):
                    self._run_fold(number, outcomes, processes, watch)
        except KeyboardInterrupt:
            if not all(outcomes.values()):
                raise
            messages.warn("the comparison was interrupted: it has the folds that all models completed.")
            return Comparison(self, outcomes, interrupted=True)
        return Comparison(self, outcomes)

    def _run_fold(
        self, number: int, outcomes: Mapping[str, list[Outcome]], processes: ModelProcesses, watch: Watch | None
    ) -> None:
        seconds = 0.0
        for contender in sorted(self.contenders, key=searched):  # a search has the seconds of the others
            listed = outcomes[contender.label]
            if listed and listed[-1].state != "ran":
                continue
            if watch is not None:
                watch(contender.label, number, len(self.folds))
            options = self.measures, self.n_jobs, self.seed + number, self.tune, seconds
            listed.append(processes.run(Job(contender, self.folds[number], *options, rehearse=not number)))
            if not searched(contender) and listed[-1].state == "ran":
                seconds = max(seconds, listed[-1].fit_seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
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

    plan: ComparisonPlan
    outcomes: Mapping[str, Sequence[Outcome]] = field(repr=False)
    interrupted: bool = False

    @property
    def models(self) -> tuple[str, ...]:
        """Labels of the models."""
        return tuple(self.outcomes)

    @property
    def states(self) -> dict[str, str]:
        """Whether each model ran, or why not."""
        return {model: self._state(outcomes) for model, outcomes in self.outcomes.items()}

    @staticmethod
    def _state(outcomes: Sequence[Outcome]) -> str:
        last = outcomes[-1]
        if last.state == "ran":
            return "ran"
        fold = f"fold {len(outcomes)}: " if len(outcomes) > 1 else ""
        return f"{last.state}: {fold}{last.reason}"

    @property
    def ran(self) -> dict[str, list[Outcome]]:
        """The outcomes of the models that ran, of the folds that all of them completed."""
        ran = {model: list(self.outcomes[model]) for model, state in self.states.items() if state == "ran"}
        complete = min(map(len, ran.values()), default=0)
        return {model: outcomes[:complete] for model, outcomes in ran.items()}

    def scores_of(self, model: str, metric: str) -> Floats:
        """Return the scores of a model that ran, (folds,)."""
        return np.array([outcome.scores[metric] for outcome in self.ran[model]])

    @property
    def scores(self) -> dict[str, NDArray[Any]]:
        """Scores and seconds of each fold of the models that ran, as columns."""
        rows = [(model, fold, outcome) for model, listed in self.ran.items() for fold, outcome in enumerate(listed)]
        columns = {"model": [model for model, _, _ in rows], "fold": [fold for _, fold, _ in rows]}
        measured = {metric: [outcome.scores[metric] for _, _, outcome in rows] for metric in self.plan.measures}
        seconds = {"fit_seconds": [outcome.fit_seconds for _, _, outcome in rows]}
        return {name: np.array(values) for name, values in {**columns, **measured, **seconds}.items()}

    @property
    def predicted_rows(self) -> NDArray[np.intp]:
        """Numbers of the test rows of the first folds, each once."""
        tests = [test for _, test in self.plan.folds[: self._first_folds]]
        return np.concatenate(tests) if tests else np.array([], np.intp)

    @property
    def predicted(self) -> dict[str, Floats]:
        """Predictions of `predicted_rows` by the models that ran, which did not learn from these rows."""
        parts = {model: [outcome.predicted for outcome in listed] for model, listed in self.ran.items()}
        return {model: np.concatenate(listed[: self._first_folds]) for model, listed in parts.items() if listed}

    @property
    def _first_folds(self) -> int:
        """Number of completed folds before the first one with a row of an earlier one."""
        used, complete = np.zeros(len(self.plan.data.y), bool), len(next(iter(self.ran.values()), ()))
        for number, (_, test) in enumerate(self.plan.folds[:complete]):
            if used[test].any():
                return number
            used[test] = True
        return complete

    def cost(self, model: str, name: str) -> float | None:
        """Return a cost of a model, a field of `Outcome`: the mean over folds, of memory the largest; None: unknown."""
        values = [getattr(outcome, name) for outcome in self.ran.get(model, ())]
        if not values or None in values:
            return None
        return float(max(values) if name == "peak_bytes" else statistics.fmean(values))

    @property
    def judgement(self) -> Judgement:
        """The models against the reference."""
        models = {
            model: Scored(self.scores_of(model, self.plan.metric), self.cost(model, "fit_seconds") or np.nan)
            for model in self.ran
        }
        return Judgement.of(
            self.plan.measures[self.plan.metric], self.plan.reference, models, test_ratio(self.plan.folds)
        )

    @property
    def verdict(self) -> str:
        """The verdict in sentences."""
        return " ".join(self.judgement.sentences)

    @property
    def facts(self) -> str:
        """The table in words."""
        done, folds = len(next(iter(self.ran.values()), ())), len(self.plan.folds)
        rows, features = self.plan.data.X.shape
        splitting = f"{folds} folds" if done == folds else f"{done} of {folds} folds"
        return f"{self.plan.data.task}, {rows} rows, {features} features, {splitting}"

    @property
    def notes(self) -> list[str]:
        """What a reader must know beside the verdict: models that did not run, a rare class."""
        notes = [f"{model} {state}" for model, state in self.states.items() if state != "ran"]
        y, classes = self.plan.data.y, self.plan.data.classes
        if len(classes) == 2:
            rare = rarer(y)
            n_rare = int(np.sum(y == rare))
            if n_rare < RARE * len(y):
                share = f"{n_rare} of {len(y)} rows ({100 * n_rare / len(y):.2g} %)"
                notes.append(f"Class {str(classes[rare])!r} is rare, with {share}.")
        return notes

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
        from boostbp.comparison.page import write_report

        write_report(Path(path), [self])
