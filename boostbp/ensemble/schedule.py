"""Schedule: the order of training. It is chosen so that a fit has a good model whenever it stops."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from boostbp.backends.failures import attempted
from boostbp.ensemble import constants
from boostbp.ensemble.budget import LEVELS, QualityLevel
from boostbp.ensemble.candidate import Candidate, CandidateKind, NetworkTraining
from boostbp.ensemble.candidate_settings import first_layer, varied
from boostbp.ensemble.driver import FIRST_STAGE, Driver
from boostbp.ensemble.few_features import clearly_better, on_few_features
from boostbp.ensemble.plan import LAYER_KINDS
from boostbp.network.choice import NETWORK
from boostbp.network.layers.layer_spec import OUTPUT
from boostbp.runtime.group import workers

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
    if not driver.networks:
        return
    weights, _ = driver.sum()
    on_networks = [layer for layer in plan.of_kind(CandidateKind.OUTPUT_LAYER) if weights.get(layer.needs or "")]
    for layer in sorted(on_networks, key=lambda layer: -weights[str(layer.needs)]):
        if driver.spent + driver.refit_work() < constants.OUTPUTS_WORK * limit:
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
        if not driver.networks:
            driver.layers.clear()


def _train_one(candidate: Candidate, driver: Driver) -> None:
    """Train a network until its error has hardly fallen in the second half of its epochs, or to its end."""
    network: NetworkTraining = candidate.begin(driver.problem, None)
    driver.total = driver.spent + network.epoch_work * driver.problem.settings.epochs
    to_end = driver.plan.level.thorough or network.required
    try:
        going = True
        while going:
            before = network.n_pieces
            driver.report(network.name)
            driver.train(driver.turn_of(network, 1), driver.networks)
            if network.name in driver.failed:
                raise driver.failed[network.name]
            going = not network.finished and network.n_pieces > before
            going = going and (to_end or falls(*network.best_errors()))
    finally:
        network.leave(driver.budget)


def train_alone(driver: Driver) -> None:
    """Train the user's network or single layer to its end, without models beside it."""
    network = NetworkTraining(NETWORK, driver.problem)
    try:
        driver.train(driver.turn_of(network), driver.networks)
    finally:
        network.leave(driver.budget)
    if NETWORK in driver.failed:
        raise driver.failed[NETWORK]


def train_fixed_layer(driver: Driver) -> None:
    """Train the first layer alone, with the user's or the default number of rounds."""
    problem = driver.problem
    layer = varied(problem, first_layer(problem), n_estimators=OUTPUT.n_estimators)
    settings = replace(problem.settings, layers=(layer,), units=(), epochs=0, output_target="loss")
    settings = replace(settings, structure_samples=None)
    driver.problem = replace(problem, settings=settings, backend=problem.growing_backend)
    train_alone(driver)


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
    problem, promised = driver.problem, False
    layers_error = workers().agree(problem.error_of(problem.evaluation.score(driver.sum()[1], problem.held_out)))

    def look(network: NetworkTraining, *, required: bool) -> bool:
        """Train until the next look if there is work left for it, and return whether the network promises enough."""
        before, epoch = driver.spent, 0.0 if required else driver.seconds_of(network.epoch_work)
        if (network.work > limit - before and not required) or driver.budget.over(driver.refit_seconds(), epoch):
            return False
        driver.report(network.name)
        if not network.n_pieces:
            begun.append(network)
        driver.train(driver.turn_of(network, 1), driver.networks)
        if required:  # it leaves work for output layers
            driver.spent = min(driver.spent, max(before, limit))
        if network.name in driver.failed:
            return False
        promising = promises(*network.best_errors(), layers_error, first_look=network.n_pieces == 1)
        if promising and not network.finished:
            going.append(network)
        return promising

    try:
        for candidate in candidates:
            network: NetworkTraining | Exception = attempted(partial(candidate.begin, problem, None))
            if isinstance(network, Exception):
                driver.failed[candidate.name] = network
                continue
            required = network.required or (driver.plan.network_needed and network.name == NETWORK)
            if required or promised or network.name != NETWORK or not begun:
                promised |= look(network, required=required)
        while going:
            network = min(going, key=lambda network: expected_error(*network.best_errors()))
            going.remove(network)
            look(network, required=network.required)
    finally:
        for network in begun:
            network.leave(driver.budget)


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
