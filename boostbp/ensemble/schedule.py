"""Schedule: which candidates are trained when, on how many threads, and by which share of the time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget, Turn
from boostbp.ensemble.candidate import Candidate, Kind, train
from boostbp.ensemble.parallel import Task, n_parallel, run_tasks, waves_left
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.trained_candidate import TrainedCandidate
from boostbp.network.history import NETWORK

__all__ = ["shared", "train_all"]


def train_all(
    candidates: Sequence[Candidate], problem: Problem, budget: Budget, results: dict[str, TrainedCandidate]
) -> KeyboardInterrupt | None:
    """Train candidates and add what comes of them to `results`, by name; return the interrupt, if one came.

    Without a limit of time, what takes longest is begun first. With one, or on one thread, it is what must be there:
    the network that was asked for, alone and on all threads, then single layers.
    """
    narrow, n_at_once = shared(problem)
    singles = [one for one in candidates if one.kind is Kind.SINGLE_LAYER]
    others = [one for one in candidates if one.kind is not Kind.SINGLE_LAYER]
    asked = [one for one in others if one.name == NETWORK]
    turns = _turns(candidates, problem, budget, n_at_once)

    def run(some: Sequence[Candidate], problem: Problem, n_at_once: int) -> KeyboardInterrupt | None:
        tasks = [Task(one.name, partial(train, one, problem, turns[one.name]), one.needs) for one in some]
        return run_tasks(tasks, n_at_once, budget, results, interrupt_of=lambda trained: trained.interrupt)

    if n_at_once > 1 and budget.seconds is None:
        return run([*others, *singles], narrow, n_at_once)
    interrupt = run(asked, problem, 1)
    if interrupt is None:
        rest = [one for one in others if one.name != NETWORK]
        interrupt = run([*singles, *rest], narrow, n_at_once)
    return interrupt


def shared(problem: Problem, n_most: int | None = None) -> tuple[Problem, int]:
    """Return the problem on the threads of one candidate, and how many, `n_most` at most, are trained at a time."""
    n_at_once = n_parallel(len(problem.y), problem.settings.n_threads)
    if n_most is not None:
        n_at_once = min(n_at_once, n_most)
    return problem.with_threads(problem.settings.n_threads // n_at_once), n_at_once


def _turns(candidates: Sequence[Candidate], problem: Problem, budget: Budget, n_at_once: int) -> dict[str, Turn]:
    """Return the turn of each candidate: single layers share the time of their kind, networks that of theirs."""
    singles = [one.name for one in candidates if one.kind is Kind.SINGLE_LAYER]
    networks = [one.name for one in candidates if one.kind is Kind.NETWORK]
    alone = not networks

    def turn(one: Candidate) -> Turn:
        if one.kind is Kind.SINGLE_LAYER:
            number = singles.index(one.name)
            share = _last_share(problem) if alone else constants.SINGLE_LAYERS_TIME
            return Turn(budget, share, waves_left(len(singles), number, n_at_once), required=number == 0)
        if one.name == NETWORK:
            return Turn(budget, constants.NETWORK_TIME, required=True)
        left = waves_left(len(networks), networks.index(one.needs or one.name), n_at_once)
        share = _last_share(problem) if one.kind is Kind.OUTPUT_LAYER else constants.OTHER_NETWORKS_TIME
        return Turn(budget, share, left)

    return {one.name: turn(one) for one in candidates}


def _last_share(problem: Problem) -> float:
    """Return the share of the time by which all is trained; the rest is for growing again on all rows."""
    return constants.OUTPUT_LAYERS_TIME if problem.held_out.from_training else 1.0
