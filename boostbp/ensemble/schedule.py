"""Schedule: the order of training. It is chosen so that a fit has a good model whenever it stops."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from boostbp.backends.failures import attempted
from boostbp.ensemble import constants
from boostbp.ensemble.budget import LEVELS, QualityLevel
from boostbp.ensemble.candidate import Candidate, CandidateKind, NetworkTraining
from boostbp.ensemble.driver import Driver, Turn
from boostbp.ensemble.few_features import clearly_better, on_few_features
from boostbp.ensemble.plan import LAYER_KINDS
from boostbp.network.choice import NETWORK
from boostbp.runtime.group import workers

FIRST_STAGE = "first layers"  # the stage with which every fit begins
LAYERS_TIME = 0.5  # share of a time limit for the layers that precede a network. Not varied
LONG = 60.0  # seconds; a fit that may take longer reports the seconds of lower qualities. Arbitrary


def train_first_layers(driver: Driver) -> None:
    """Train the first layers, on few features if that is better, except for those that are clearly worse in a trial."""
    if driver.plan.drops_features:
        first = driver.plan.candidates[:1]
        driver.begin(first, constants.FIRST_LAYER_PIECES, stage=FIRST_STAGE)
        few = on_few_features(driver)
        if few is not None:
            few.begin(few.plan.candidates[:1], constants.FIRST_LAYER_PIECES, stage=FIRST_STAGE)
            if clearly_better(few, driver):
                driver.continue_as(few)
    driver.begin_best(driver.plan.of_kind(*LAYER_KINDS), stage=FIRST_STAGE)


def train_stages(driver: Driver) -> None:
    """Train candidates of all kinds in five stages.

    1. The first two layers are boosted to their end. They gain most for their seconds, and their work is the unit of
       the quality's limits.
    2. The other layers on features get short trials.
    3. The layers that promise most are boosted further.
    4. Networks are trained, as long as they promise enough for their work.
    5. Output layers are boosted on the networks that have weight.

    The order depends only on losses and counted work, and so not on the number of threads.
    """
    plan = driver.plan
    level, layers, networks = plan.level, plan.of_kind(*LAYER_KINDS), plan.of_kind(CandidateKind.NETWORK)
    begun = time.perf_counter()
    while layers and not driver.layers:  # the next ones, if the first ones fail
        driver.begin(layers[: constants.FIRST_LAYERS], None, stage=FIRST_STAGE)
        layers = layers[constants.FIRST_LAYERS :]
    if not driver.layers:
        return
    first = driver.spent
    driver.report("layers", hint=cost_hint(level, time.perf_counter() - begun, networks=bool(networks)))
    driver.total = level.effort(networks=bool(networks)).work * first
    # From quality 2 on, the limit always leaves work for some trials.
    trials = max(constants.TRIALS_WORK * level.layers.work * first, 1.01 * first)
    layers = layers[: level.trials]
    driver.begin(layers, constants.TRIAL_PIECES, limit=trials)
    if not (plan.network_needed or depth_promises(driver)):
        networks = []
    driver.total = limit = level.effort(networks=bool(networks)).work * first
    layers = [layer for layer in layers if layer.name not in driver.layers and layer.name not in driver.failed]
    driver.begin(layers, constants.TRIAL_PIECES, limit=constants.TRIALS_WORK * limit)
    driver.run(limit * (constants.LAYERS_WORK if networks else 1.0))
    train_networks(networks, driver, constants.NETWORKS_WORK * limit)
    if not driver.others:
        return
    weights, _ = driver.sum()
    on_networks = [layer for layer in plan.of_kind(CandidateKind.OUTPUT_LAYER) if weights.get(layer.needs or "")]
    for layer in sorted(on_networks, key=lambda layer: -weights[str(layer.needs)]):
        if driver.spent * (1.0 + driver.refit_share()) < constants.OUTPUTS_WORK * limit:
            driver.begin([layer], constants.TRIAL_PIECES, stage=layer.name)
    driver.run(limit)


def train_one_network(driver: Driver) -> None:
    """Train one network and layers beside it.

    The layers on features come first, as they are good soon. The network follows, for as long as its epochs gain, and
    then output layers on it. An interrupt before the network drops the layers, too, as there is no model without it.
    """
    [network] = driver.plan.of_kind(CandidateKind.NETWORK)
    try:
        with driver.budget.part(LAYERS_TIME):
            driver.begin(driver.plan.of_kind(CandidateKind.SINGLE_LAYER), None, stage=FIRST_STAGE)
        _train_one(network, driver)
        driver.begin(driver.plan.of_kind(CandidateKind.OUTPUT_LAYER), None, stage="output layers")
    finally:
        if not driver.others:
            driver.layers.clear()


def _train_one(candidate: Candidate, driver: Driver) -> None:
    """Train a network until its error has hardly fallen in the second half of its epochs, or to its end."""
    training = candidate.begin(driver.problem, None)
    assert isinstance(training, NetworkTraining)
    driver.total = driver.spent + training.epoch_work * driver.problem.settings.epochs
    to_end = driver.plan.level.thorough or training.required
    try:
        going = True
        while going:
            before = training.n_pieces
            driver.report(training.name)
            driver.spent += training.work
            driver.train({training.name: _to_next_look(training, driver, driver.refit_seconds())})
            if training.name in driver.failed:
                raise driver.failed[training.name]
            going = not training.finished and training.n_pieces > before
            going = going and (to_end or falls(*training.best_errors()))
    finally:
        _keep([training], driver)


def _to_next_look(training: NetworkTraining, driver: Driver, later: float) -> Turn:
    return Turn(lambda: training, 1, partial(driver.budget.over, later), cuts=True)


def _keep(networks: Sequence[NetworkTraining], driver: Driver) -> None:
    """End the training of networks, and let those with an epoch be part of the sum."""
    for training in networks:
        training.leave(driver.budget)
    driver.others += [training.result for training in networks if training.history.epochs]


def depth_promises(driver: Driver) -> bool:
    """Return whether networks are worth a trial, by the losses of layers in their trials; True if a kind is missing.

    Networks are sums of smooth functions of directions. They gain where leaves with slopes, on the features or on
    directions, clearly beat constant leaves, or where leaves on directions clearly beat those on the features. Deep
    trees are not compared, as they approximate any function by steps. Only the rounds of a trial are compared: with
    many rows and rounds, constant leaves approximate any function, too.
    """
    problem, scores = driver.problem, dict.fromkeys(("constant", "features", "directions"), np.inf)
    depth = problem.settings.layers[-1].growth.max_depth
    for training in driver.layers.values():
        slopes = training.settings.basis.columns_per_feature > 0
        if not slopes or training.settings.growth.max_depth <= depth:
            kind = "constant" if not slopes else "directions" if training.below.layers else "features"
            scores[kind] = min(scores[kind], training.trial_score)
    constant, features, directions = scores.values()
    if not np.isfinite([constant, features]).all():
        return True
    is_smooth = constant - min(features, directions) >= constants.SLOPES_LEAD * problem.scale_of(constant)
    gains = features - directions >= constants.DIRECTIONS_LEAD * problem.scale_of(features)
    return workers().agree(is_smooth or gains)


def cost_hint(level: QualityLevel, seconds: float, *, networks: bool) -> str:
    """Return an estimate of the seconds of this fit and of lower qualities, from those of the first layers, or ""."""

    def cost(rung: QualityLevel) -> str:
        return " to ".join(f"{work * seconds:.0f}" for work in rung.costs(networks=networks)) + " s"

    highest = level.costs(networks=networks)[-1]
    if highest * seconds < LONG:
        return ""
    lower = [(quality, rung) for quality, rung in LEVELS.items() if rung.costs(networks=networks)[-1] < highest]
    costs = ", ".join(f"quality={quality} {cost(rung)}" for quality, rung in lower)
    or_else = f"; lower qualities take less: {costs}" if lower else ""
    more = ", the most where networks gain" if networks and level.networks is not None else ""
    return f"this fit may take {cost(level)}{more}{or_else}. max_time= or Ctrl-C ends it early, in a good model."


def train_networks(candidates: Sequence[Candidate], driver: Driver, limit: float) -> None:
    """Train networks from look to look while they promise enough, the one with the lowest expected error first.

    The user's network begins last, and only if another one promised enough at its first look: if back-propagation
    through cheap hidden units gains nothing, it hardly gains through trees. A network that is needed is trained until
    its first look in any case.

    No network is trained further once the work reaches `limit`.
    """
    begun: list[NetworkTraining] = []
    going: list[NetworkTraining] = []
    problem = driver.problem
    layers_error = workers().agree(problem.error_of(problem.evaluation.score(driver.sum()[1], problem.held_out)))

    def look(training: NetworkTraining, *, required: bool) -> bool:
        """Train until the next look if there is work left for it, and return whether the network promises enough."""
        later, left = driver.refit_seconds(), limit - driver.spent
        epoch = 0.0 if required else driver.seconds_of(training.epoch_work)
        if (training.work > left and not required) or driver.budget.over(later, epoch):
            return False
        driver.report(training.name)
        driver.spent += min(training.work, max(left, 0.0))
        if not training.n_pieces:
            begun.append(training)
        driver.train({training.name: _to_next_look(training, driver, later)})
        if training.name in driver.failed:
            return False
        promising = promises(*training.best_errors(), layers_error, first_look=training.n_pieces == 1)
        if promising and not training.finished:
            going.append(training)
        return promising

    try:
        promised = False
        for candidate in candidates:
            training = attempted(partial(candidate.begin, problem, None))
            if isinstance(training, Exception):
                driver.failed[candidate.name] = training
                continue
            assert isinstance(training, NetworkTraining)
            required = training.required or (driver.plan.network_needed and training.name == NETWORK)
            if required or promised or training.name != NETWORK or not begun:
                promised |= look(training, required=required)
        while going:
            training = min(going, key=lambda training: expected_error(*training.best_errors()))
            going.remove(training)
            look(training, required=training.required)
    finally:
        _keep(begun, driver)


def expected_error(before: float, now: float) -> float:
    """Return the error after twice the epochs, if its fall in the second half of the epochs so far goes on."""
    return now - (before - now)


def falls(before: float, now: float) -> bool:
    """Return whether a network's error has fallen enough in the second half of its epochs."""
    return before - now >= constants.MIN_FALL * abs(now)


def promises(before: float, now: float, layers_error: float, *, first_look: bool) -> bool:
    """Return whether a network is worth as many epochs again as it has had.

    It is if its held-out error is falling, and is near that of the sum of layers or soon will be.
    """
    near = layers_error + (constants.FIRST_NEAR if first_look else constants.NEAR) * abs(layers_error)
    return min(now, expected_error(before, now)) <= near and falls(before, now)
