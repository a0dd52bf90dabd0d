"""Schedule: what is trained when, so that a fit is good whenever it stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from boostbp.backends.failures import attempted
from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidate import Candidate, Kind, NetworkTraining
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.quality_levels import LEVELS, QualityLevel
from boostbp.ensemble.race import Race
from boostbp.ensemble.trained_candidate import TrainedCandidate
from boostbp.network.choice import NETWORK
from boostbp.runtime.compiling import working_time
from boostbp.runtime.group import workers

FIRST_STAGE = "first layers"  # what every fit begins with
LONG = 60.0  # seconds of a fit from which on it is said what a lower quality takes


@dataclass(frozen=True, slots=True)
class EnsembleRun:
    """The candidates of an average, what they are trained on, and the results so far.

    Attributes
    ----------
    network_wanted : bool
        Whether the network that was asked for is trained whatever it promises.
    trained : list of TrainedCandidate
    failed : dict of str to Exception
        Candidates that failed for numerical reasons, by name.
    """

    candidates: Sequence[Candidate]
    problem: Problem
    level: QualityLevel
    budget: Budget
    network_wanted: bool = False
    trained: list[TrainedCandidate] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)

    def of_kind(self, *kinds: Kind) -> list[Candidate]:
        """Return the candidates of some kinds."""
        return [one for one in self.candidates if one.kind in kinds]

    def race(self, *, refit: bool) -> Race:
        """Return a race that has not begun, with the threads shared by the candidates that it trains at a time."""
        narrow, n_at_once = split_threads(self.problem)
        return Race(narrow, self.budget, n_at_once, refit=refit, failed=self.failed)


def train_all(run: EnsembleRun) -> KeyboardInterrupt | None:
    """Train the candidates of a run; return the interrupt, if one came.

    At a level of one layer that is the first one, or the one that is ahead of it after a piece of each. At others the
    first two, which do best for their seconds, are boosted to their end: their work is the measure of the level's.
    Then come short trials of the other layers on features, a race of those that promise most, networks for as long
    as they are worth their work beside the layers, and output layers on the networks that have weight.

    The order depends on losses and on counted work alone. What it takes at a time does not depend on the threads, but
    they share it.
    """
    race = run.race(refit=run.level.refit and run.problem.learns_held_out)
    try:
        return _train_in_turn(race, run)
    finally:
        run.trained.extend(race.trained())


def train_network(run: EnsembleRun) -> KeyboardInterrupt | None:
    """Train one network and layers beside it; return the interrupt, if one came.

    The layers on features come first, as they are good at once; then the network, for as long as its epochs gain, and
    output layers on it. If it was not begun when an interrupt came, nothing is added: without it there is no model.
    """
    race = run.race(refit=run.level.refit and run.problem.learns_held_out)
    [network] = run.of_kind(Kind.NETWORK)
    interrupt = (
        race.begin(run.of_kind(Kind.SINGLE_LAYER), None, stage=FIRST_STAGE)
        or _train_one(network, race, run.problem, to_end=run.level.all_epochs)
        or race.begin(run.of_kind(Kind.OUTPUT_LAYER), None, stage="output layers")
    )
    if race.others:
        run.trained.extend(race.trained())
    return interrupt


def _train_one(candidate: Candidate, race: Race, problem: Problem, *, to_end: bool) -> KeyboardInterrupt | None:
    """Train a network until the error has hardly fallen since half of its epochs, or to its end."""
    training = candidate.begin(problem, None)
    assert isinstance(training, NetworkTraining)
    race.most = race.spent + training.work_of_all
    try:
        going = True
        while going:
            race.tell(training.name)
            race.spent += training.work
            training.advance(race.budget, race.refit_share())
            going = not training.finished and (to_end or training.required or _falls(training, problem))
    except KeyboardInterrupt as interrupt:
        return interrupt
    training.leave(race.budget)
    race.others.append(training.result)
    return training.history.interrupt


def _train_in_turn(race: Race, run: EnsembleRun) -> KeyboardInterrupt | None:
    problem, level = run.problem, run.level
    layers, networks = run.of_kind(Kind.SINGLE_LAYER, Kind.DIRECTIONS), run.of_kind(Kind.NETWORK)
    if level.one_layer:
        return race.begin_best(layers, stage=FIRST_STAGE)
    asked = run.network_wanted or problem.resume is not None
    if problem.has_several_classes and not (asked or level.networks_of_classes):
        networks = []
    begun = working_time()
    interrupt = race.begin(layers[: constants.FIRST_LAYERS], None, stage=FIRST_STAGE)
    rest = layers[constants.FIRST_LAYERS :]
    while interrupt is None and rest and not race.entrants:  # the first ones failed
        interrupt = race.begin(rest[: constants.FIRST_LAYERS], None, stage=FIRST_STAGE)
        rest = rest[constants.FIRST_LAYERS :]
    if not race.entrants:
        return interrupt
    first = race.spent
    race.tell("layers", hint=_hint(level, working_time() - begun, networks=bool(networks)))
    race.most = level.effort(networks=bool(networks)).work * first
    trials = constants.TRIALS_WORK * level.layers.work * first
    trials = max(trials, 1.01 * first)  # some of them in any case, but at quality 1
    interrupt = interrupt or race.begin(rest, constants.TRIAL_PIECES, limit=trials)
    if not (asked or _bent(race)):
        networks = []
    race.most = limit = level.effort(networks=bool(networks)).work * first
    rest = [one for one in rest if one.name not in race.entrants and one.name not in race.failed]
    interrupt = interrupt or race.begin(rest, constants.TRIAL_PIECES, limit=constants.TRIALS_WORK * limit)
    interrupt = (
        interrupt
        or race.run(limit * (constants.LAYERS_WORK if networks else 1.0))
        or _train_networks(networks, race, problem, constants.NETWORKS_WORK * limit, wanted=run.network_wanted)
    )
    if interrupt is not None or not race.others:
        return interrupt
    weights, _ = race.sum()
    on_top = [one for one in run.of_kind(Kind.OUTPUT_LAYER) if one.needs is not None and weights.get(one.needs)]
    on_top.sort(key=lambda one: -weights[str(one.needs)])
    for one in on_top:
        if race.spent * (1.0 + race.refit_share()) < constants.OUTPUTS_WORK * limit:
            interrupt = interrupt or race.begin([one], constants.TRIAL_PIECES, stage=one.name)
    return interrupt or race.run(limit)


def _bent(race: Race) -> bool:
    """Whether leaves with slopes do much better than constant ones in as many rounds, of all layers; or nothing tells.

    Networks are sums of smooth functions. What they are good for, leaves with slopes gain by as well; where these gain
    little, there are steps, or noise. In ever more rounds on many rows constant leaves come near to any function.
    """
    problem, scores = race.problem, {False: np.inf, True: np.inf}
    for entrant in race.entrants.values():
        boosting = entrant.training.boosting
        slopes = boosting.settings.basis.columns_per_feature > 0
        scores[slopes] = min(scores[slopes], boosting.trial_score)
    if not np.isfinite([*scores.values()]).all():
        return True
    return workers().agree(scores[False] - scores[True] >= constants.LEAST_BEND * problem.scale_of(scores[False]))


def _hint(level: QualityLevel, seconds: float, *, networks: bool) -> str:
    """What lower qualities would take, by the seconds of the first layers, if this fit may take long."""

    def cost(one: QualityLevel) -> str:
        return " to ".join(f"{work * seconds:.0f}" for work in one.costs(networks=networks)) + " s"

    most = level.costs(networks=networks)[-1]
    if most * seconds < LONG:
        return ""
    lower = [(quality, one) for quality, one in LEVELS.items() if one.costs(networks=networks)[-1] < most]
    each = ", ".join(f"quality={quality} {cost(one)}" for quality, one in lower)
    or_else = f"; lower qualities take less: {each}" if lower else ""
    more = ", the most where networks gain" if networks and level.networks is not None else ""
    return f"this fit may take {cost(level)}{more}{or_else}. max_time= or Ctrl-C ends it early, in a good model."


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
        failure = attempted(partial(training.advance, race.budget, later))
        if failure is not None:
            race.failed[training.name] = failure
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
            training = attempted(partial(candidate.begin, problem, None))
            if isinstance(training, Exception):
                race.failed[candidate.name] = training
                continue
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
    now = _error(problem, training.best_metrics()[1])
    near = aim + (constants.FIRST_NEAR if training.looks == 1 else constants.NEAR) * abs(aim)
    return min(now, _expected(training, problem)) <= near and _falls(training, problem)


def _falls(training: NetworkTraining, problem: Problem) -> bool:
    """Whether a network's held-out error has fallen since half of its epochs, by enough to go on."""
    before, now = (_error(problem, value) for value in training.best_metrics())
    return before - now >= constants.LEAST_FALL * abs(now)


def _error(problem: Problem, value: float) -> float:
    """A metric as an error; those that grow with accuracy are 1 at best, or have no bound and no scale."""
    assert problem.evaluation.metric is not None
    return 1.0 - value if problem.evaluation.metric.greater_is_better else value


def split_threads(problem: Problem, n_most: int | None = None) -> tuple[Problem, int]:
    """Return the problem on the threads of one candidate, and how many, `n_most` at most, are trained at a time."""
    few_rows = len(problem.rows) < constants.MAX_PARALLEL_ROWS
    n_at_once = min(problem.settings.n_threads, constants.MAX_PARALLEL) if few_rows and workers().is_single else 1
    if n_most is not None:
        n_at_once = min(n_at_once, n_most)
    return problem.with_threads(problem.settings.n_threads // n_at_once), n_at_once
