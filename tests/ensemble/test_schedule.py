"""Looks: networks are trained from look to look, and left at one where they promise too little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import ONE_AT_ONCE
from problems import problem_of, scaled

from boostbp import metrics
from boostbp.ensemble import schedule
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidate import NetworkTraining, network, single_layer
from boostbp.ensemble.candidate_settings import as_asked
from boostbp.ensemble.driver import Driver
from boostbp.ensemble.plan import Plan
from boostbp.losses import SquaredError
from boostbp.network.history import Stop

ENDLESS = Budget(None)
TINY = {"epochs": 12}


@pytest.fixture(autouse=True)
def early_looks(tune):
    """At epochs 2, 4, 8 and the last one."""
    tune(FIRST_LOOK=2)


def states_of(problem):
    """The training of a problem to its end, and its state after each epoch."""
    states = []
    whole = NetworkTraining("network", replace(problem, callbacks=[lambda progress: states.append(progress.state())]))
    while not whole.finished:
        whole.advance(ENDLESS.over)
    return whole, states


def test_looks_are_at_twice_the_epoch_each_and_cost_what_lies_between():
    problem = problem_of(**TINY)
    training, seen = NetworkTraining("network", problem), []
    one = training.work / 2
    while not training.finished:
        assert training.work == pytest.approx(one * (min(2 << training.n_pieces, 12) - training.epoch))
        training.advance(ENDLESS.over)
        seen.append((training.epoch, len(training.history) - 1))
    assert seen == [(2, 2), (4, 4), (8, 8), (12, 12)]
    assert training.history.stop is Stop.EPOCHS


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_training_from_look_to_look_is_training_in_one(backend):
    problem = problem_of(backend=backend, **TINY)
    pieces = NetworkTraining("network", problem)
    while not pieces.finished:
        pieces.advance(ENDLESS.over)
    at_once = NetworkTraining("network", problem)
    at_once._first_look = 2**31
    at_once.advance(ENDLESS.over)
    assert at_once.finished
    np.testing.assert_array_equal(pieces.result.held_out, at_once.result.held_out)
    assert pieces.history.loss == at_once.history.loss


def test_best_errors_are_those_until_half_of_the_epochs_and_until_all_of_them():
    training = NetworkTraining("network", problem_of(**TINY))
    training.advance(ENDLESS.over)
    values = training.history.metrics("held_out")
    assert training.best_errors() == (min(values[:2]), min(values[:3]))
    training.advance(ENDLESS.over)
    values = training.history.metrics("held_out")
    assert training.best_errors() == (min(values[:3]), min(values[:5]))


@pytest.mark.parametrize(
    ("before", "now", "first_look", "goes_on"),
    [
        (2.1, 1.99, True, True),  # near enough to the sum's 1 for a first look
        (2.2, 2.09, True, True),  # not near, but will be
        (2.15, 2.08, True, False),
        (1.0, 0.98, True, False),  # near, but has fallen by less than 3 %
        (1.3, 1.2, False, True),  # not near, but will be if it falls as much again
        (1.3, 1.24, False, False),
        (1.0, 0.98, False, False),  # near, but has fallen by less than 3 %
        (1.0, 0.96, False, True),
        (0.5, 0.5, False, False),  # better than the sum, but without a fall
    ],
    ids=str,
)
def test_a_network_goes_on_while_it_is_near_and_falls(before, now, first_look, goes_on):
    assert schedule.promises(before, now, 1.0, first_look=first_look) == goes_on


def test_metrics_that_grow_are_errors_from_1_down():
    problem = problem_of()
    metric = replace(problem.evaluation.metric, greater_is_better=True)
    growing = replace(problem, evaluation=replace(problem.evaluation, metric=metric))
    assert problem.error_of(0.9) == 0.9
    assert growing.error_of(0.9) == pytest.approx(0.1)


def trained(tune, problem, *, least_fall, near=1e9, limit=1e9, names=("network",), budget=None):
    """Networks beside a sum of one poor single layer."""
    tune(MIN_FALL=least_fall, NEAR=near, FIRST_NEAR=near)
    driver = Driver(problem, budget or Budget(None), Plan.of(problem))
    driver.begin([single_layer("poor", lambda problem: problem.settings.layers[-1])], 1)
    before = driver.spent
    interrupt = None
    try:
        schedule.train_networks([network(name, as_asked) for name in names], driver, limit)
    except KeyboardInterrupt as reason:
        interrupt = reason
    return driver, driver.spent - before, interrupt


@pytest.mark.parametrize(("least_fall", "epochs"), [(-1.0, 12), (1e9, 2)])
def test_a_network_is_left_at_a_look(tune, least_fall, epochs):
    driver, work, interrupt = trained(tune, problem_of(**TINY), least_fall=least_fall)
    history = driver.trained()[1].history
    assert interrupt is None
    assert len(history) - 1 == epochs
    assert history.stop is (Stop.EPOCHS if epochs == 12 else Stop.QUALITY)
    whole = NetworkTraining("network", problem_of(**TINY))
    assert work == pytest.approx(whole.work / 2 * epochs)
    assert driver.trained()[1].held_out.shape == (120, 1)


def test_a_network_that_is_far_off_is_left_at_the_first_look(tune):
    driver, _, _ = trained(tune, problem_of(**TINY), least_fall=-1.0, near=-0.9)
    assert len(driver.trained()[1].history) - 1 == 2
    assert driver.trained()[1].history.stop is Stop.QUALITY


def test_work_beyond_the_limit_is_not_begun(tune):
    one = NetworkTraining("network", problem_of(**TINY)).work / 2
    driver, work, _ = trained(tune, problem_of(**TINY), least_fall=-1.0, limit=0.0)
    assert (driver.networks, work) == ({}, 0.0)
    spent = driver.spent
    driver, work, _ = trained(tune, problem_of(**TINY), least_fall=-1.0, limit=spent + 7.5 * one)
    assert work == pytest.approx(4 * one)
    assert driver.trained()[1].history.stop is Stop.QUALITY


def test_the_next_one_is_that_which_is_expected_to_be_best(tune):
    """All are looked at once in their order, and then one by one."""
    turns, original = [], NetworkTraining.advance

    def advance(self, *args):
        turns.append(self.name)
        original(self, *args)
        self.history.epochs[:] = [replace(epoch, metrics={"held_out": errors[self.name]}) for epoch in self.history]
        errors[self.name] *= 0.5
        return self

    errors = {"network": 3.0, "second": 2.0, "third": 1.0}
    tune(NetworkTraining, advance=advance)
    trained(tune, problem_of(epochs=4), least_fall=-1.0, names=tuple(errors))
    assert turns == ["network", "second", "third", "third", "second", "network"]


@pytest.mark.parametrize("diverging", ["variant", "network"])
def test_a_network_that_diverges_is_left_out(fails, tune, diverging):
    fails(NetworkTraining, "advance", FloatingPointError("too far"), lambda one, *_: one.name == diverging)
    names = ("network", "variant", "last")
    driver, _, interrupt = trained(tune, problem_of(), least_fall=-1.0, names=names)
    assert list(driver.networks) == [name for name in names if name != diverging]
    assert {name: str(failure) for name, failure in driver.failed.items()} == {diverging: "too far"}
    assert interrupt is None


@pytest.mark.parametrize("epoch", [0, 1, 5])
@pytest.mark.usefixtures("unrounded")
def test_an_interrupt_keeps_the_best_epoch_and_the_other_networks(tune, epoch):
    def press(progress):
        if progress.epoch.epoch == epoch and len(progress.history) == epoch + 1:
            raise KeyboardInterrupt

    problem = replace(problem_of(**TINY), callbacks=[press])
    driver, _, interrupt = trained(tune, problem, least_fall=-1.0)
    assert isinstance(interrupt, KeyboardInterrupt)
    history = driver.trained()[1].history
    assert len(history) - 1 == epoch
    assert history.stop is Stop.INTERRUPTED
    best = min(range(epoch + 1), key=history.metrics("held_out").__getitem__)
    assert history.best_epoch == best
    value = metrics.default_metric(SquaredError())(driver.trained()[1].held_out, scaled(120, 1)[1], np.ones(120))
    assert value == pytest.approx(history.metrics("held_out")[best])


def test_the_end_of_the_time_ends_a_network_at_its_epoch(tune):
    class Clock(Budget):
        calls = 0

        def over(self, *later, here=False):
            self.calls += len(later) > 1  # of the network: before a look, and after each epoch
            return self.calls > 6

    driver, _, interrupt = trained(tune, problem_of(**TINY), least_fall=-1.0, budget=Clock(1e9))
    assert interrupt is None
    history = driver.trained()[1].history
    assert history.stop is Stop.TIME
    assert 2 < len(history) - 1 < 12


def test_a_training_that_is_resumed_at_any_epoch_is_judged_as_at_first(tune):
    problem = problem_of(epochs=5)
    _, states = states_of(problem)
    assert len(states) == 6
    for least_fall in (-1.0, 1e9):  # to the end, and left at epoch 4
        expected = trained(tune, problem, least_fall=least_fall)
        left_at = expected[0].trained()[1].history.epochs[-1].epoch
        for state in states[: left_at + 1]:
            driver, work, _ = trained(tune, replace(problem, resume=state), least_fall=least_fall)
            one, other = driver.trained()[1], expected[0].trained()[1]
            np.testing.assert_array_equal(one.held_out, other.held_out)
            assert one.history.loss == other.history.loss
            assert one.history.metrics("held_out") == other.history.metrics("held_out")
            assert (one.history.stop, one.history.best_epoch) == (other.history.stop, other.history.best_epoch)
            assert work == expected[1]


def test_epochs_that_were_asked_for_are_all_run(tune):
    """`fit_more` begins from a state of which patience counts anew: no look ends that, and no limit."""
    problem = problem_of(**TINY)
    _, states = states_of(problem)
    more = replace(problem, resume=replace(states[3], since=3))
    driver, _, _ = trained(tune, more, least_fall=1e9, near=-0.9, limit=0.0)
    assert len(driver.trained()[1].history) - 1 == 12
    assert driver.trained()[1].history.stop is Stop.EPOCHS
