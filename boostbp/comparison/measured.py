"""What a comparison is to measure, and what it measured: scores of each fold, costs, differences."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.comparison.contenders import Contender
from boostbp.comparison.folds import Fold, ratio_of_rows
from boostbp.comparison.measures import RARE, Measure, rarer
from boostbp.comparison.measuring import FoldOutcome, TableData
from boostbp.comparison.verdict import Judgement, Scored
from boostbp.runtime.arrays import Floats


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


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What was measured, fold by fold; a model that failed has outcomes up to its failure."""

    plan: ComparisonPlan
    outcomes: Mapping[str, Sequence[FoldOutcome]] = field(repr=False)
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
    def _state(outcomes: Sequence[FoldOutcome]) -> str:
        last = outcomes[-1]
        if last.state == "ran":
            return "ran"
        fold = f"fold {len(outcomes)}: " if len(outcomes) > 1 else ""
        return f"{last.state}: {fold}{last.reason}"

    @property
    def ran(self) -> dict[str, list[FoldOutcome]]:
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
        """Return a cost of a model, a field of `FoldOutcome`: the mean over folds, or the largest memory."""
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
        completed = self.plan.folds[: len(next(iter(self.ran.values()), ()))] or self.plan.folds
        measure = self.plan.measures[self.plan.metric]
        return Judgement.of(measure, self.plan.reference, models, ratio_of_rows(completed))

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
        notes = ["Interrupted: the folds that all models completed are shown."] if self.interrupted else []
        notes += [f"{model} {state}" for model, state in self.states.items() if state != "ran"]
        y, classes = self.plan.data.y, self.plan.data.classes
        if len(classes) == 2:
            rare = rarer(y)
            n_rare = int(np.sum(y == rare))
            if n_rare < RARE * len(y):
                share = f"{n_rare} of {len(y)} rows ({100 * n_rare / len(y):.2g} %)"
                notes.append(f"Class {str(classes[rare])!r} is rare, with {share}.")
        return notes
