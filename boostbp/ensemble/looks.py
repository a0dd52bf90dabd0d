"""Looks: how the metric of a boosted layer went with its rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from boostbp.ensemble.problem import Problem
from boostbp.ensemble.trained_candidate import TrainedCandidate
from boostbp.layers import Layer
from boostbp.layers.rounds import rounds_of, staged, stages
from boostbp.network.history import Look
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats


def looks_of_candidate(lead: TrainedCandidate | None, problem: Problem) -> list[Look]:
    """Return the scores of a candidate after each piece of its output layer; without one, those of the constant."""
    if lead is None:
        return looks_of(Network((), problem.baseline), problem)
    return looks_of(lead.model, problem, () if lead.plan is None else lead.plan.pieces)


def looks_of(model: Network, problem: Problem, pieces: Sequence[Layer] = ()) -> list[Look]:
    """Return the scores of a network after some rounds of its output layer, 0 among them.

    It is looked at after each of the `pieces` that the output layer was boosted in, or else after the rounds that
    `stages` says. Without layers it is a constant.
    """
    pieces = [piece for piece in pieces if rounds_of(piece.forest)]  # a base alone has none
    if pieces or not model.layers:
        numbers = np.cumsum([0, *(rounds_of(piece.forest) for piece in pieces)]).tolist()
    else:
        numbers = sorted({0, *stages(rounds_of(model.layers[-1].forest))})
    n_threads = problem.settings.n_threads

    def growing(X: Floats) -> Iterator[Floats]:
        h = model.output_input(X, n_jobs=n_threads)
        if pieces or not model.layers:
            yield (output := np.zeros((X.shape[0], len(model.baseline))))
            for piece in pieces:
                yield (output := output + piece.predict(h, n_jobs=n_threads))
        else:
            for _, output in staged(model.layers[-1].forest, h, numbers, n_threads=n_threads):
                yield output

    evaluation, scores = problem.evaluation, dict[str, list[float]]()
    for part in evaluation.sets if evaluation.metric is not None else ():
        raws = (output + model.baseline for output in growing(part.rows.X))
        scores[part.name] = [evaluation.score(raw, part.rows) for raw in raws]
    return [Look(n, {name: of[place] for name, of in scores.items()}) for place, n in enumerate(numbers)]
