"""Schedule: the order of training, in which a fit has a good model whenever it stops."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from boostbp.backends.failures import attempted
from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidate import Candidate, CandidateKind, NetworkTraining
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.quality_levels import LEVELS, QualityLevel
from boostbp.ensemble.race import Race
from boostbp.ensemble.trained_candidate import TrainedCandidate
from boostbp.network.choice import NETWORK
from boostbp.runtime.group import workers

FIRST_STAGE = "first layers"  # the stage with which every fit begins
LONG = 60.0  # seconds; a fit that may take longer reports what lower qualities take. Arbitrary: a minute of waiting


@dataclass(frozen=True, slots=True)
class EnsembleRun:
    """The candidates of an average, the problem they are trained on, and the results so far.

    Attributes
    ----------
    network_needed : bool
        Whether the user's network is trained, whatever it promises.
    trained : list of TrainedCandidate
    failed : dict of str to Exception
        Candidates that failed for numerical reasons, by name.
    """

    candidates: Sequence[Candidate]
    problem: Problem
    level: QualityLevel
    budget: Budget
    network_needed: bool = False
    trained: list[TrainedCandidate] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)

    def of_kind(self, *kinds: CandidateKind) -> list[Candidate]:
        """Return the candidates of some kinds."""
        return [candidate for candidate in self.candidates if candidate.kind in kinds]

    def race(self, *, refit: bool) -> Race:
        """Return a race that has not begun; the candidates that it trains at a time share the threads."""
        problem, n_at_once = split_threads(self.problem)
        return Race(problem, self.budget, n_at_once, refit=refit, failed=self.failed)


def train_all(run: EnsembleRun) -> KeyboardInterrupt | None:
    """Train the candidates of a run; return the interrupt, if one came.

    A quality of one layer trains the first candidate, or another one that is clearly ahead after a piece. Higher
    qualities have five stages:

    1. The first two layers are boosted to their end. They do best for their seconds, and their work is the unit of
       the quality's limits.
    2. The other layers on features get short trials.
    3. The layers that promise most race on.
    4. Networks are trained, as long as they are worth their work beside the layers.
    5. Output layers are boosted on the networks that have weight.

    The order depends on losses and on counted work alone, and so not on the number of threads.
    """
    race = run.race(refit=run.level.refit and run.problem.learns_held_out)
    try:
        return _train_in_turn(race, run)
    finally:
        run.trained.extend(race.trained())


def train_one_network(run: EnsembleRun) -> KeyboardInterrupt | None:
    """Train one network and layers beside it; return the interrupt, if one came.

    The layers on features come first, as they are good at once. The network follows, for as long as its epochs gain,
    and then output layers on it. Nothing is added to `run` if an interrupt comes before the network: without it there
    is no model.
    """
    race = run.race(refit=run.level.refit and run.problem.learns_held_out)
    [network] = run.of_kind(CandidateKind.NETWORK)
    interrupt = (
        race.begin(run.of_kind(CandidateKind.SINGLE_LAYER), None, stage=FIRST_STAGE)
        or _train_one(network, race, run.problem, to_end=run.level.all_epochs)
        or race.begin(run.of_kind(CandidateKind.OUTPUT_LAYER), None, stage="output layers")
    )
    if race.others:
        run.trained.extend(race.trained())
    return interrupt


def _train_one(candidate: Candidate, race: Race, problem: Problem, *, to_end: bool) -> KeyboardInterrupt | None:
    """Train a network until its error has hardly fallen since half of its epochs, or to its end."""
    training = candidate.begin(problem, None)
    assert isinstance(training, NetworkTraining)
    race.total = race.spent + training.work_of_all
    try:
        going = True
        while going:
            race.report(training.name)
            race.spent += training.work
            training.advance(race.budget, race.refit_share())
            going = not training.finished and (to_end or training.required or falls(*_best_errors(training, problem)))
    except KeyboardInterrupt as interrupt:
        return interrupt
    training.leave(race.budget)
    race.others.append(training.result)
    return training.history.interrupt


def _train_in_turn(race: Race, run: EnsembleRun) -> KeyboardInterrupt | None:
    problem, level = run.problem, run.level
    layers = run.of_kind(CandidateKind.SINGLE_LAYER, CandidateKind.DIRECTIONS)
    networks = run.of_kind(CandidateKind.NETWORK)
    if level.one_layer:
        return race.begin_best(layers, stage=FIRST_STAGE)
    wanted = run.network_needed or problem.resume is not None
    if problem.has_several_classes and not (wanted or level.networks_of_classes):
        networks = []
    begun, interrupt = time.perf_counter(), None
    while interrupt is None and layers and not race.layers:  # more than once if the first ones fail
        interrupt = race.begin(layers[: constants.FIRST_LAYERS], None, stage=FIRST_STAGE)
        layers = layers[constants.FIRST_LAYERS :]
    if not race.layers:
        return interrupt
    first = race.spent
    race.report("layers", hint=cost_hint(level, time.perf_counter() - begun, networks=bool(networks)))
    race.total = level.effort(networks=bool(networks)).work * first
    # At quality 2 and above there is always time for some trials.
    trials = max(constants.TRIALS_WORK * level.layers.work * first, 1.01 * first)
    interrupt = interrupt or race.begin(layers, constants.TRIAL_PIECES, limit=trials)
    if not (wanted or slopes_win(race)):
        networks = []
    race.total = limit = level.effort(networks=bool(networks)).work * first
    layers = [one for one in layers if one.name not in race.layers and one.name not in race.failed]
    interrupt = (
        interrupt
        or race.begin(layers, constants.TRIAL_PIECES, limit=constants.TRIALS_WORK * limit)
        or race.run(limit * (constants.LAYERS_WORK if networks else 1.0))
        or train_networks(networks, race, problem, constants.NETWORKS_WORK * limit, wanted=run.network_needed)
    )
    if interrupt is not None or not race.others:
        return interrupt
    weights, _ = race.sum()
    on_networks = [one for one in run.of_kind(CandidateKind.OUTPUT_LAYER) if weights.get(one.needs or "")]
    for one in sorted(on_networks, key=lambda one: -weights[str(one.needs)]):
        if race.spent * (1.0 + race.refit_share()) < constants.OUTPUTS_WORK * limit:
            interrupt = interrupt or race.begin([one], constants.TRIAL_PIECES, stage=one.name)
    return interrupt or race.run(limit)


def slopes_win(race: Race) -> bool:
    """Return whether leaves with slopes clearly beat constant leaves in a trial; True if either kind is missing.

    Networks are sums of smooth functions. Where they gain, leaves with slopes gain as well. Where slopes gain little,
    the target has steps, or is noise. Only the rounds of a trial count: in ever more rounds on many rows, constant
    leaves come near to any function.
    """
    problem, scores = race.problem, {False: np.inf, True: np.inf}
    for training in race.layers.values():
        slopes = training.boosting.settings.basis.columns_per_feature > 0
        scores[slopes] = min(scores[slopes], training.trial_score)
    if not np.isfinite([*scores.values()]).all():
        return True
    return workers().agree(scores[False] - scores[True] >= constants.SLOPES_LEAD * problem.scale_of(scores[False]))


def cost_hint(level: QualityLevel, seconds: float, *, networks: bool) -> str:
    """Return what this fit and lower qualities may take, by the seconds of the first layers; "" if that is short."""

    def cost(one: QualityLevel) -> str:
        return " to ".join(f"{work * seconds:.0f}" for work in one.costs(networks=networks)) + " s"

    highest = level.costs(networks=networks)[-1]
    if highest * seconds < LONG:
        return ""
    lower = [(quality, one) for quality, one in LEVELS.items() if one.costs(networks=networks)[-1] < highest]
    costs = ", ".join(f"quality={quality} {cost(one)}" for quality, one in lower)
    or_else = f"; lower qualities take less: {costs}" if lower else ""
    more = ", the most where networks gain" if networks and level.networks is not None else ""
    return f"this fit may take {cost(level)}{more}{or_else}. max_time= or Ctrl-C ends it early, in a good model."


def train_networks(
    candidates: Sequence[Candidate], race: Race, problem: Problem, limit: float, *, wanted: bool = False
) -> KeyboardInterrupt | None:
    """Train networks from look to look while they promise enough; the one expected to be best comes next.

    The user's network is begun last, and only if another one promised enough at its first look. Where back-propagation
    through cheap hidden units gains nothing, it hardly gains through trees.

    Parameters
    ----------
    limit : float
        No network goes on after this much work.
    wanted : bool
        Whether the user's network is trained until its first look in any case.
    """
    begun: list[NetworkTraining] = []
    going: list[NetworkTraining] = []
    layers_error = workers().agree(error_of(problem, problem.metric_of(race.sum()[1])))

    def look(training: NetworkTraining, *, required: bool) -> bool:
        """Train until the next look if there is work left for it, and return whether the network promises enough."""
        later, left = race.refit_share(), limit - race.spent
        if (training.work > left and not required) or race.budget.over(later):
            return False
        race.report(training.name)
        race.spent += min(training.work, max(left, 0.0))
        if not training.looks:
            begun.append(training)
        failure = attempted(partial(training.advance, race.budget, later))
        if failure is not None:
            race.failed[training.name] = failure
            return False
        if training.history.interrupt is not None:
            raise training.history.interrupt
        promising = promises(*_best_errors(training, problem), layers_error, first_look=training.looks == 1)
        if promising and not training.finished:
            going.append(training)
        return promising

    try:
        promised = False
        for candidate in candidates:
            training = attempted(partial(candidate.begin, problem, None))
            if isinstance(training, Exception):
                race.failed[candidate.name] = training
                continue
            assert isinstance(training, NetworkTraining)
            required = training.required or (wanted and training.name == NETWORK)
            if required or promised or training.name != NETWORK or not begun:
                promised |= look(training, required=required)
        while going:
            training = min(going, key=lambda one: expected_error(*_best_errors(one, problem)))
            going.remove(training)
            look(training, required=training.required)
    except KeyboardInterrupt as interrupt:
        return interrupt
    finally:
        for training in begun:
            training.leave(race.budget)
        race.others += [training.result for training in begun if training.history.epochs]
    return None


def _best_errors(training: NetworkTraining, problem: Problem) -> tuple[float, float]:
    """Return the lowest held-out error until half of the epochs of the last look, and until all of them."""
    before, now = training.best_metrics()
    return error_of(problem, before), error_of(problem, now)


def expected_error(before: float, now: float) -> float:
    """Return the error after as many epochs again, if it falls as it has since half of them."""
    return now - (before - now)


def falls(before: float, now: float) -> bool:
    """Return whether a network's error has fallen enough since half of its epochs."""
    return before - now >= constants.MIN_FALL * abs(now)


def promises(before: float, now: float, layers_error: float, *, first_look: bool) -> bool:
    """Return whether a network is worth as many epochs again.

    It is if its held-out error is falling, and is or soon will be near that of the sum of layers.
    """
    share = constants.FIRST_NEAR if first_look else constants.NEAR
    near = layers_error + share * abs(layers_error)
    return min(now, expected_error(before, now)) <= near and falls(before, now)


def error_of(problem: Problem, value: float) -> float:
    """Return a metric as an error: metrics that grow with accuracy are at most 1, or have no bound and no scale."""
    assert problem.evaluation.metric is not None
    return 1.0 - value if problem.evaluation.metric.greater_is_better else value


def split_threads(problem: Problem, limit: int | None = None) -> tuple[Problem, int]:
    """Return the problem with the threads of one candidate, and the number of candidates at a time, up to `limit`."""
    few_rows = len(problem.rows) < constants.MAX_PARALLEL_ROWS
    n_at_once = min(problem.settings.n_threads, constants.MAX_PARALLEL) if few_rows and workers().is_single else 1
    if limit is not None:
        n_at_once = min(n_at_once, limit)
    return problem.with_threads(problem.settings.n_threads // n_at_once), n_at_once
