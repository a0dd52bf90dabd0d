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
from boostbp.group import workers
from boostbp.network.history import NETWORK

__all__ = ["shared", "train_all"]


def train_all(
    candidates: Sequence[Candidate],
    problem: Problem,
    rung: Rung,
    budget: Budget,
    results: list[TrainedCandidate],
    *,
    network_wanted: bool = False,
) -> KeyboardInterrupt | None:
    """Train candidates and add what comes of them to `results`; return the interrupt, if one came.

    The first two, which do best for their seconds, are boosted to their end: their work is the measure of the rung's.
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
        return _train_in_turn(race, layers, networks, outputs, problem, rung, network_wanted)
    finally:
        results.extend(race.trained())


def _train_in_turn(
    race: Race,
    layers: Sequence[Candidate],
    networks: Sequence[Candidate],
    outputs: Sequence[Candidate],
    problem: Problem,
    rung: Rung,
    network_wanted: bool,
) -> KeyboardInterrupt | None:
    interrupt = race.begin(layers[: constants.FIRST_LAYERS], None)
    first = race.spent
    race.most = limit = rung.work * first
    auditions = max(constants.AUDITIONS_WORK * limit, 1.01 * first)  # some of them in any case, but at quality 1
    interrupt = (
        interrupt
        or race.begin(layers[constants.FIRST_LAYERS :], constants.AUDITION_PIECES, limit=auditions)
        or race.run(limit * (constants.LAYERS_WORK if networks else 1.0))
        or _train_networks(networks, race, problem, constants.NETWORKS_WORK * limit, wanted=network_wanted)
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
    candidates: Sequence[Candidate], race: Race, problem: Problem, limit: float, *, wanted: bool = False
) -> KeyboardInterrupt | None:
    """Train networks from look to look, next the one that is expected to be best, while they promise enough.

    The one that was asked for is begun last, and only if another promised enough at its first look: where nothing is
    gained by back-propagation through cheap hidden units, hardly anything is through trees.

    Parameters
    ----------
    limit : float
        Work beyond which none goes on.
    wanted : bool
        Whether the network that was asked for is trained until its first look in any case.
    """
    begun: list[NetworkTraining] = []
    going: list[NetworkTraining] = []
    aim = workers().agree(_error(problem, problem.metric_of(race.sum()[1])))

    def look(training: NetworkTraining, *, required: bool) -> bool:
        """Train until the next look, if there is work left for it; whether it promises enough there."""
        later, left = race.refit_share(), limit - race.spent
        if (training.work > left and not required) or race.budget.over(later):
            return False
        race.tell(training.name)
        race.spent += min(training.work, max(left, 0.0))
        if not training.looks:
            begun.append(training)
        try:
            training.advance(race.budget, later)
        except FloatingPointError:  # it diverged in its first epoch
            if training.name == NETWORK:
                raise
            return False
        if training.history.interrupt is not None:
            raise training.history.interrupt
        promising = _promising(training, problem, aim)
        if promising and not training.finished:
            going.append(training)
        return promising

    try:
        promised = False
        for candidate in candidates:
            training = candidate.begin(problem, None)
            assert isinstance(training, NetworkTraining)
            required = training.required or (wanted and training.name == NETWORK)
            if required or promised or training.name != NETWORK or not begun:
                promised |= look(training, required=required)
        while going:
            training = min(going, key=lambda one: _expected(one, problem))
            going.remove(training)
            look(training, required=training.required)
    except KeyboardInterrupt as interrupt:
        return interrupt
    finally:
        for training in begun:
            training.leave(race.budget)
        race.others += [training.result for training in begun if training.history.epochs]
    return None


def _expected(training: NetworkTraining, problem: Problem) -> float:
    """Return the error after as many epochs again, if it falls as it has since half of them."""
    before, now = (_error(problem, value) for value in training.best_metrics())
    return now - (before - now)


def _promising(training: NetworkTraining, problem: Problem, aim: float) -> bool:
    """Whether a network is worth as many epochs again.

    It is if its held-out error is near that of the sum of layers, or will be, and is falling.
    """
    before, now = (_error(problem, value) for value in training.best_metrics())
    near = aim + (constants.FIRST_NEAR if training.looks == 1 else constants.NEAR) * abs(aim)
    return min(now, _expected(training, problem)) <= near and before - now >= constants.LEAST_FALL * abs(now)


def _error(problem: Problem, value: float) -> float:
    """A metric as an error; those that grow with accuracy are 1 at best, or have no bound and no scale."""
    assert problem.metric is not None
    return 1.0 - value if problem.metric.greater_is_better else value


def shared(problem: Problem, n_most: int | None = None) -> tuple[Problem, int]:
    """Return the problem on the threads of one candidate, and how many, `n_most` at most, are trained at a time."""
    n_at_once = n_parallel(len(problem.y), problem.settings.n_threads) if workers().alone else 1
    if n_most is not None:
        n_at_once = min(n_at_once, n_most)
    return problem.with_threads(problem.settings.n_threads // n_at_once), n_at_once
