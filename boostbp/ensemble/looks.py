"""Looks: the metric of a boosted layer after some of its rounds."""

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
    """Return the scores of the leading candidate after each piece of its output layer; of the constant if None."""
    if lead is None:
        return looks_of(Network((), problem.baseline), problem)
    return looks_of(lead.model, problem, () if lead.plan is None else lead.plan.pieces)


def looks_of(model: Network, problem: Problem, pieces: Sequence[Layer] = ()) -> list[Look]:
    """Return the scores of a network after some rounds of its output layer, from 0 on.

    They are those after each of the `pieces` of the output layer or, without pieces, after the rounds of `stages`. A
    network without layers is a constant.
    """
    pieces = [piece for piece in pieces if rounds_of(piece.forest)]  # a base alone has no rounds
    if pieces or not model.layers:
        numbers = np.cumsum([0, *(rounds_of(piece.forest) for piece in pieces)]).tolist()
    else:
        numbers = sorted({0, *stages(rounds_of(model.layers[-1].forest))})
    n_threads = problem.settings.n_threads

    def outputs(X: Floats) -> Iterator[Floats]:
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
        raws = (output + model.baseline for output in outputs(part.rows.X))
        scores[part.name] = [evaluation.score(raw, part.rows) for raw in raws]
    return [Look(n, {name: values[i] for name, values in scores.items()}) for i, n in enumerate(numbers)]
