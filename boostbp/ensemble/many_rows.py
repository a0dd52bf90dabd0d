"""Many rows: a sample of the rows chooses the parts of the model, which are then boosted on all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from boostbp.ensemble import constants
from boostbp.ensemble.average import average_of
from boostbp.ensemble.candidate import Candidate, CandidateKind
from boostbp.ensemble.candidate_settings import most_rounds
from boostbp.ensemble.driver import FIRST_STAGE, Driver
from boostbp.ensemble.output_layers import LayerTraining, TrainedCandidate, distinct
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.schedule import train_stages
from boostbp.network.monitor import Stage
from boostbp.runtime.group import training_in


def train_first_of_many(driver: Driver) -> None:
    """Choose the first layer on a sample of the rows, and boost it to its end on all of them."""
    tried: list[TrainedCandidate] = []  # on the sample
    try:
        first = _first_layer(driver, tried)
        if driver.budget.spent:
            driver.others += tried
        _boost(first, driver, FIRST_STAGE)
    except KeyboardInterrupt:
        driver.others = driver.others or tried
        raise


def train_many(driver: Driver) -> None:
    """Train the candidates of a driver.

    A sample of the rows chooses the first layer, which is boosted to its end on all rows. Then all stages of a fit on a
    smaller table run on a sample. Finally, the models with weight in that fit get new output layers, boosted to their
    end on all rows above the same hidden layers, in the order of their weights.
    """
    train_first_of_many(driver)
    first = driver.spent
    driver.total = constants.ALL_ROWS_WORK * driver.plan.level.effort(networks=True).work * first
    if len(driver.plan.candidates) == 1 or driver.budget.over():
        return
    sample = _sample_of(driver)
    try:
        with driver.budget.part(constants.SAMPLE_TIME), training_in(sample.problem.rows.group):
            train_stages(sample)
        found = sample.trained()
        networks = any(part.history is not None for part in found)
        driver.total = constants.ALL_ROWS_WORK * driver.plan.level.effort(networks=networks).work * first
        _train_chosen(found, driver)
    finally:
        names = _names(driver)
        driver.others += _on_some_rows([part for part in sample.trained() if part.name not in names])


def _on_some_rows(trained: Sequence[TrainedCandidate]) -> list[TrainedCandidate]:
    """Mark the names of layers that were trained on a sample. Networks keep theirs, as all were trained on it."""
    return [part if part.history is not None else replace(part, name=f"{part.name}, some rows") for part in trained]


def _first_layer(driver: Driver, tried: list[TrainedCandidate]) -> Candidate:
    """Return the best candidate on a sample of the rows, among those that the lowest quality tries.

    What was trained on the sample is added to `tried`, also before Ctrl-C.
    """
    candidates = driver.plan.first_layers
    if len(candidates) == 1:
        return candidates[0]
    sample = Driver(driver.problem.on_some_rows(), driver.budget, driver.plan, failed=driver.failed)
    try:
        with training_in(sample.problem.rows.group):
            sample.audition(candidates, stage=FIRST_STAGE)
    finally:
        tried += _on_some_rows(sample.trained())
    chosen = [candidate for candidate in candidates if candidate.name in sample.layers]
    return (chosen or candidates)[0]


def _sample_of(driver: Driver) -> Driver:
    """Return the driver on a sample of the rows.

    In reports the sample takes the share `SAMPLE_TIME` of the remaining progress, and boosting on all rows the rest.
    """
    done, problem = driver.share, driver.problem
    middle = done + constants.SAMPLE_TIME * (1.0 - done)

    def report(stage: Stage) -> None:
        share = done + (middle - done) * min(stage.share, 1.0)
        problem.report(replace(stage, name=f"{stage.name}, some rows", share=share))

    def report_chosen(stage: Stage) -> None:
        problem.report(replace(stage, share=1.0 - (1.0 - stage.share) * (1.0 - middle) / (1.0 - done)))

    driver.problem = replace(problem, report=report_chosen)
    sample = replace(problem.on_some_rows(), report=report)
    return Driver(sample, driver.budget, driver.plan, failed=driver.failed)


def _boost(candidate: Candidate, driver: Driver, stage: str) -> None:
    """Boost a layer to its end on all rows, and keep only the result, as its bound input takes much memory."""
    try:
        driver.begin([candidate], None, stage=stage)
    finally:
        driver.others += [training.result for training in driver.layers.values()]
        driver.layers.clear()


def _names(driver: Driver) -> set[str]:
    return {part.name for part in driver.trained()}


def _train_chosen(found: Sequence[TrainedCandidate], driver: Driver) -> None:
    """Boost the output layers of the models with weight on all rows, while that lowers the loss of the sum.

    Models with the same hidden layers hardly differ, so only one of them is boosted.
    """
    problem = driver.problem
    average = average_of(distinct(found), problem)
    by_weight = sorted(zip(average.weights, average.parts, strict=True), key=lambda pair: -pair[0])
    below: set[str | None] = set()
    score, without_gain = driver.score(), 0
    for _, part in by_weight:
        if driver.spent >= driver.total or without_gain == constants.PATIENCE_ALL_ROWS:
            break
        if driver.budget.over(driver.begin_seconds):
            break
        name = part.name if part.history is None else f"{part.name}, final output layer"
        if part.plan is None or name in _names(driver) or part.network in below:
            continue
        if part.network is not None:
            below.add(part.network)
        kind = CandidateKind.SINGLE_LAYER if part.network is None else CandidateKind.OUTPUT_LAYER
        _boost(Candidate(name, kind, partial(_begin_again, name, part)), driver, "layers")
        before, score = score, driver.score()
        gains = before - score >= constants.MIN_PROMISE * problem.scale_of(score)
        without_gain = 0 if gains else without_gain + 1


def _begin_again(name: str, part: TrainedCandidate, problem: Problem, needed: object) -> LayerTraining:
    """Begin to boost the output layer of a model on all rows, above the same hidden layers."""
    assert part.plan is not None
    growth = replace(part.plan.settings.growth, n_threads=problem.settings.layers[-1].growth.n_threads)
    settings = replace(part.plan.settings, n_estimators=most_rounds(problem), growth=growth)
    below = replace(part.model, layers=part.model.layers[:-1], baseline=problem.baseline)
    return LayerTraining.begin(name, part.network, lambda _: settings, problem, below)
