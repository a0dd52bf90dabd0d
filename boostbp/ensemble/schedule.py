"""Schedule: what is trained when, so that a fit is good whenever it stops."""

from __future__ import annotations

from collections.abc import Sequence

from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidate import Candidate, Kind, NetworkTraining
from boostbp.ensemble.ladder import Rung
from boostbp.ensemble.parallel import n_parallel
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.race import Race
from boostbp.ensemble.trained_candidate import TrainedCandidate
from boostbp.network.history import NETWORK

__all__ = ["shared", "train_all"]


def train_all(
    candidates: Sequence[Candidate],
    problem: Problem,
    rung: Rung,
    budget: Budget,
    results: list[TrainedCandidate],
) -> KeyboardInterrupt | None:
    """Train candidates and add what comes of them to `results`; return the interrupt, if one came.

    The first one, which does best alone for its seconds, is boosted to its end: its work is the measure of the rung's.
    Then come short auditions of the other layers on features, a race of those that promise most, networks for as long
    as they are worth their work beside the layers, and output layers on the networks that have weight.

    The order depends on losses and on counted work alone. What it takes at a time does not depend on the threads, but
    they share it.
    """
    narrow, n_at_once = shared(problem)
    race = Race(narrow, budget, n_at_once, refit=rung.refit and problem.held_out.from_training)
    layers = [one for one in candidates if one.kind in (Kind.SINGLE_LAYER, Kind.DIRECTIONS)]
    networks = [one for one in candidates if one.kind is Kind.NETWORK]
    outputs = [one for one in candidates if one.kind is Kind.OUTPUT_LAYER]
    try:
        return _train_in_turn(race, layers, networks, outputs, problem, rung)
    finally:
        results.extend(race.trained())


def _train_in_turn(
    race: Race,
    layers: Sequence[Candidate],
    networks: Sequence[Candidate],
    outputs: Sequence[Candidate],
    problem: Problem,
    rung: Rung,
) -> KeyboardInterrupt | None:
    interrupt = race.begin(layers[:1], None)
    first = race.spent
    race.most = limit = rung.work * first
    auditions = max(constants.AUDITIONS_WORK * limit, 1.01 * first)  # some of them in any case, but at quality 1
    interrupt = (
        interrupt
        or race.begin(layers[1:], constants.AUDITION_PIECES, limit=auditions)
        or race.run(limit * (constants.LAYERS_WORK if networks else 1.0))
        or _train_networks(networks, race, problem, constants.NETWORKS_WORK * limit, asked_for=rung.asked_for)
    )
    if interrupt is not None or not race.others:
        return interrupt
    weights, _ = race.sum()
    on_top = [one for one in outputs if one.needs is not None and weights.get(one.needs)]
    on_top.sort(key=lambda one: -weights[str(one.needs)])
    for one in on_top:
        if race.spent * (1.0 + race.refit_share()) < constants.OUTPUTS_WORK * limit:
            interrupt = interrupt or race.begin([one], constants.AUDITION_PIECES)
    return interrupt or race.run(limit)


def _train_networks(
    candidates: Sequence[Candidate], race: Race, problem: Problem, limit: float, *, asked_for: bool = False
) -> KeyboardInterrupt | None:
    """Train networks from look to look, next the one that is expected to be best, while they promise enough.

    Each is given up at a look where its held-out metric is not near that of the sum of layers, and will not be after
    as many epochs again if it falls as in the last ones; and where it has not fallen by enough since the last look.

    Parameters
    ----------
    limit : float
        Work beyond which none goes on.
    asked_for : bool
        Whether the network that was asked for is trained until its first look in any case.
    """
    waiting, going = list(candidates), list[NetworkTraining]()
    begun: list[NetworkTraining] = []
    aim = _error(problem, problem.metric_of(race.sum()[1]))

    def expected(training: NetworkTraining) -> float:
        before, now = (_error(problem, value) for value in training.best_metrics())
        return now - (before - now if training.looks > 1 else 0.0)

    try:
        while waiting or going:
            if waiting:
                training = waiting.pop(0).begin(problem, None)
                assert isinstance(training, NetworkTraining)
            else:
                training = min(going, key=expected)
                going.remove(training)
            later = race.refit_share()
            left = limit - race.spent
            wanted = training.required or (asked_for and training.name == NETWORK and not training.looks)
            if (training.work > left and not wanted) or race.budget.over(later):
                continue
            race.tell(training.name)
            race.spent += min(training.work, max(left, 0.0))
            if not training.looks:
                begun.append(training)
            try:
                training.advance(race.budget, later)
            except FloatingPointError:  # it diverged in its first epoch
                if training.name == NETWORK:
                    raise
                continue
            if training.history.interrupt is not None:
                return training.history.interrupt
            if not training.finished and _promising(training, problem, aim, expected(training)):
                going.append(training)
    except KeyboardInterrupt as interrupt:
        return interrupt
    finally:
        for training in begun:
            training.leave(race.budget)
        race.others += [training.result for training in begun if training.history.epochs]
    return None


def _promising(training: NetworkTraining, problem: Problem, aim: float, expected: float) -> bool:
    """Whether a network is worth as many epochs again."""
    before, now = (_error(problem, value) for value in training.best_metrics())
    near = aim + (constants.FIRST_NEAR if training.looks == 1 else constants.NEAR) * abs(aim)
    if min(now, expected) > near:
        return False
    return training.looks == 1 or before - now >= constants.LEAST_FALL * abs(now)


def _error(problem: Problem, value: float) -> float:
    """A metric as an error; those that grow with accuracy are 1 at best, or have no bound and no scale."""
    assert problem.metric is not None
    return 1.0 - value if problem.metric.greater_is_better else value


def shared(problem: Problem, n_most: int | None = None) -> tuple[Problem, int]:
    """Return the problem on the threads of one candidate, and how many, `n_most` at most, are trained at a time."""
    n_at_once = n_parallel(len(problem.y), problem.settings.n_threads)
    if n_most is not None:
        n_at_once = min(n_at_once, n_most)
    return problem.with_threads(problem.settings.n_threads // n_at_once), n_at_once
