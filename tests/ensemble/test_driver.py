"""Race: the next pieces go to layers that promise most for their work; work is counted, and decides alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
import problems
import pytest
from helpers import BACKENDS
from problems import problem_of

from boostbp.ensemble import constants
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidate import output_layer_on, single_layer
from boostbp.ensemble.driver import Driver, Turn, promised_gain
from boostbp.ensemble.output_layers import Boosted, TrainedCandidate
from boostbp.ensemble.plan import Plan
from boostbp.runtime import interrupts

LAYER = replace(problems.LAYER, n_estimators=120)  # 40 pieces
SHALLOW = replace(LAYER, growth=replace(LAYER.growth, max_depth=1))
SLOW = replace(LAYER, learning_rate=0.02)
KINDS = {"deep": LAYER, "shallow": SHALLOW, "slow": SLOW, "without base": replace(LAYER, base=None)}
CANDIDATES = [single_layer(name, lambda problem, layer=layer: layer) for name, layer in KINDS.items()]


@pytest.fixture(autouse=True)
def few_rounds_per_piece(tune):
    tune(PIECE_ROUNDS=3, MAX_PIECES=40)


def driver_of(problem=None, n_at_once=1, *, refit=False, budget=None):
    problem = problem or problem_of(n_threads=n_at_once)
    return Driver(problem, budget or Budget(None), replace(Plan.of(problem), refit=refit))


def pieces_of(driver):
    return {name: training.n_pieces for name, training in driver.layers.items()}


@cache
def first_piece():
    return CANDIDATES[0].begin(problem_of(), None).advance()


def layer_at(raw, expected, *, best=None, rounds=3, finished=False):
    """A layer with this raw output of held-out rows, now and as its last piece lets expect."""
    raw, expected, best = (
        np.array(one, dtype=float)[:, None] for one in (raw, expected, raw if best is None else best)
    )
    before = raw - (expected - raw) / constants.PIECES_AHEAD
    training = first_piece()
    boosted = replace(training.boosted, rounds_left=0 if finished else training.boosted.rounds_left)
    settings = replace(training.settings, n_estimators=rounds)
    return replace(training, boosted=boosted, settings=settings, raw=raw, before=before, best_raw=best)


def driver_with(target, **layers):
    target = np.array(target, dtype=float)[:, None]
    driver = driver_of(problem_of(None, (np.zeros((len(target), 5)), target)))
    driver.layers, driver.spent = layers, 1.0
    return driver


# What is promised.


def test_expected_is_on_the_line_through_the_last_two_pieces():
    one = first_piece()
    two = one.advance()
    ahead = (two.expected - one.raw) / (two.raw - one.raw)
    np.testing.assert_allclose(ahead, 1.0 + constants.PIECES_AHEAD)


@pytest.mark.parametrize(
    ("expected", "share"),
    [(0.4, 1.0), (-1.0, 0.5), (-3.0, 0.25)],
    ids=["all of it", "half of it", "a quarter of it"],
)
def test_gain_is_that_of_the_best_share_in_the_sum(expected, share):
    """The sum gives 1 where 0 is right: a loss of .5; a model of raw output e takes it to (1 - share) + share e."""
    layer = layer_at([0.8], [expected])
    driver = driver_with([0.0], it=layer)
    reached = (1.0 - share) + share * expected
    gain = promised_gain(layer, 0.0, np.array([[1.0]]), driver.problem)
    assert gain == pytest.approx(0.5 - 0.5 * reached**2)


def test_gain_of_a_layer_in_the_sum_is_also_that_of_its_weight():
    """A share of the rest for it would do harm: its weight in the sum already moves."""
    layer = layer_at([1.0, -1.0], [0.6, -1.0])
    driver = driver_with([0.0, 0.0], it=layer)
    raw = np.array([[0.1], [0.0]])  # .25 of the layer, and others that take most of it away
    assert promised_gain(layer, 0.0, raw, driver.problem) < 0
    assert promised_gain(layer, 0.25, raw, driver.problem) == pytest.approx(driver.problem.score(raw))


def test_next_are_those_that_promise_most_for_their_work():
    start = {"best": [1.0]}
    layers = {
        "far": layer_at([0.9], [0.6], rounds=20, **start),
        "farther": layer_at([0.8], [0.2], rounds=20, **start),
        "dear": layer_at([0.8], [0.2], rounds=20_000, **start),
        "still": layer_at([1.0], [1.0], **start),
        "farthest, at its end": layer_at([0.75], [0.0], finished=True, **start),
        "cheap": layer_at([0.95], [0.8], rounds=1, **start),
    }
    driver = driver_with([0.0], **layers)
    weights, raw = driver.sum()
    assert weights == {name: pytest.approx(1 / 6) for name in layers}
    assert raw == pytest.approx(1.0)
    # the loss of .5 falls by .32, .48, .48, 0 and .18
    assert driver.most_promising(weights, raw) == ["cheap", "farther", "far"]


def test_what_promises_too_little_ends_it():
    enough = np.sqrt(1.0 - constants.MIN_PROMISE)  # an expected output whose loss is lower by the least share
    for expected, names in ((enough + 1e-5, []), (enough - 1e-5, ["it"])):
        driver = driver_with([0.0], it=layer_at([1.0], [expected], best=[1.0]))
        assert driver.most_promising(*driver.sum()) == names
    driver = driver_with([0.0], it=layer_at([1.0], [1.0]))
    driver.run(np.inf)
    assert driver.spent == 1.0


def test_work_of_the_refit_is_that_of_what_has_weight():
    parts = {"right": layer_at([0.1], [0.0]), "wrong": layer_at([50.0], [40.0])}
    driver = driver_with([0.0], **parts)
    assert driver.refit_work() == 0.0
    driver.plan = replace(driver.plan, refit=True)
    assert driver.refit_work() == parts["right"].refit_work


# Training.


@pytest.mark.parametrize("backend", BACKENDS)
def test_work_is_counted_by_pieces(backend):
    driver = driver_of(problem_of(backend=backend))
    driver.begin(CANDIDATES, 2)
    assert pieces_of(driver) == dict.fromkeys(KINDS, 2)
    driver.run(4 * driver.spent)
    work = {name: training.work for name, training in driver.layers.items()}
    assert driver.spent == pytest.approx(sum(n * work[name] for name, n in pieces_of(driver).items()))
    assert work["shallow"] < work["deep"]
    assert [one.name for one in driver.trained()] == list(KINDS)
    weights, raw = driver.sum()
    np.testing.assert_allclose(sum(weights[one.name] * one.held_out for one in driver.trained()), raw, rtol=1e-12)
    for one in driver.trained():
        np.testing.assert_allclose(one.model.predict(driver.problem.held_out.X), one.held_out, rtol=1e-9)


def test_decisions_do_not_depend_on_threads():
    ways = []
    for n_at_once in (1, 2, 3):
        driver = driver_of(n_at_once=n_at_once)
        driver.begin(CANDIDATES, 2, limit=np.inf)
        driver.run(6 * driver.spent)
        ways.append((pieces_of(driver), driver.spent, driver.sum()[0], driver.sum()[1].tobytes()))
    assert ways[0] == ways[1] == ways[2]
    assert len(set(ways[0][0].values())) > 1  # some went on for longer


@pytest.mark.parametrize("refit", [False, True])
def test_the_driver_ends_at_its_limit(refit):
    driver = driver_of(refit=refit)
    driver.begin(CANDIDATES[:2], 2)
    begun, limit = driver.spent, 3 * driver.spent
    driver.run(limit)
    later = driver.refit_work()
    assert (later > 0) == refit
    most = constants.RACE_PIECES * sum(training.work for training in driver.layers.values())
    assert limit < driver.spent + later
    assert begun < driver.spent <= limit + most
    before = driver.spent
    driver.run(limit)
    assert driver.spent == before


def test_without_a_limit_it_ends_when_nothing_is_promised():
    driver = driver_of()
    driver.begin(CANDIDATES[:2], 2)
    driver.run(np.inf)
    assert driver.most_promising(*driver.sum()) == []
    before = pieces_of(driver)
    driver.run(np.inf)
    assert pieces_of(driver) == before


def test_the_first_one_is_begun_whatever_the_limit_and_no_other():
    driver = driver_of()
    driver.begin(CANDIDATES, None, limit=0.0)
    assert list(pieces_of(driver)) == list(KINDS)[: constants.WAVE]
    assert all(training.finished for training in driver.layers.values())
    driver.begin(CANDIDATES[3:], 1, limit=driver.spent)
    assert len(driver.layers) == constants.WAVE
    driver.begin(CANDIDATES[3:], 1, limit=np.nextafter(driver.spent, np.inf))
    assert list(driver.layers) == list(KINDS)


@pytest.mark.parametrize("n_at_once", [1, 2])
def test_without_time_there_is_one_piece_and_no_other_layer(n_at_once):
    driver = driver_of(n_at_once=n_at_once, budget=Budget(0.0))
    driver.begin(CANDIDATES, 5)
    assert pieces_of(driver) == {CANDIDATES[0].name: 1}
    driver.run(np.inf)
    assert pieces_of(driver) == {CANDIDATES[0].name: 1}
    assert driver.budget.spent


def test_no_round_begins_after_the_end_of_the_time(press):
    """The clock tells the pieces that were boosted, so that time is up within waves, of trials and in the driver."""
    for most in range(1, 16):
        clock = press(Boosted, "advance", 0)

        class Clock(Budget):
            def over(self, *later, here=False, most=most, clock=clock):
                return len(clock) >= most

        driver = driver_of(budget=Clock(1.0))
        driver.begin(CANDIDATES[:2], 3)
        driver.begin(CANDIDATES[2:], 2)
        driver.run(np.inf)
        assert len(clock) == sum(pieces_of(driver).values()) == most
        assert len(driver.layers) == (1 if most < 4 else 2 if most < 7 else 3 if most < 9 else 4)


@pytest.mark.parametrize("refit", [False, True])
def test_time_for_the_refit_is_kept(refit):
    asked = []

    class Clock(Budget):
        def over(self, *later, here=False):
            asked.append(later[0])
            return False

    driver = driver_of(refit=refit, budget=Clock(1e9))
    driver.begin(CANDIDATES[:1], 2)
    assert set(asked) == {0.0}  # the first one may take all of it
    seconds = driver.refit_seconds()
    asked.clear()
    driver.begin(CANDIDATES[1:2], 2)
    assert set(asked) == {seconds}
    asked.clear()
    seconds, work = driver.refit_seconds(), driver.refit_work()
    assert (seconds > 0) == (work > 0) == refit
    driver.run(1.001 * (driver.spent + work))
    assert asked[0] == seconds


def test_what_needs_another_waits_for_it():
    needing = output_layer_on("network", lambda problem: LAYER)
    driver = driver_of()
    driver.begin([CANDIDATES[0], needing], 1)
    assert list(driver.layers) == ["deep"]
    network = driver.trained()[0]
    driver.others.append(TrainedCandidate("network", "network", network.model, network.held_out))
    driver.begin([needing], 1)
    assert list(driver.layers) == ["deep", "network, final output layer"]
    assert [one.name for one in driver.trained()] == ["deep", "network, final output layer", "network"]


# Interrupts.


@pytest.fixture
def interrupted_at(press):
    """Let the piece of a number be interrupted."""
    return partial(press, Boosted, "advance")


@pytest.mark.parametrize("n_at_once", [1, 2])
@pytest.mark.parametrize("number", [2, 5, 9])
def test_an_interrupt_keeps_pieces_that_are_there(interrupted_at, number, n_at_once):
    whole = driver_of()
    whole.begin(CANDIDATES[:1], number - 1)
    interrupted_at(number)
    driver = driver_of(n_at_once=n_at_once)
    with pytest.raises(KeyboardInterrupt):
        driver.begin(CANDIDATES[:1], None)
    assert pieces_of(driver) == {"deep": number - 1}
    assert driver.spent == whole.spent
    np.testing.assert_array_equal(driver.sum()[1], whole.sum()[1])


def test_an_interrupt_in_the_first_piece_leaves_nothing(interrupted_at):
    interrupted_at(1)
    driver = driver_of()
    with pytest.raises(KeyboardInterrupt):
        driver.begin(CANDIDATES, None)
    assert driver.trained() == []


def test_an_interrupt_in_the_race_keeps_all_that_was_begun(interrupted_at):
    driver = driver_of()
    driver.begin(CANDIDATES, 2)
    interrupted_at(2)
    with pytest.raises(KeyboardInterrupt):
        driver.run(np.inf)
    assert sum(pieces_of(driver).values()) == 2 * len(KINDS) + 1
    work = {name: training.work for name, training in driver.layers.items()}
    assert driver.spent == pytest.approx(sum(n * work[name] for name, n in pieces_of(driver).items()))


def test_a_thread_that_is_stopped_hands_over_its_pieces(interrupted_at):
    driver = driver_of()
    driver.begin(CANDIDATES[:1], 1)
    interrupted_at(2, interrupts.Stopped)
    turn = Turn(lambda: driver.layers["deep"], 5, bool)
    with pytest.raises(interrupts.Stopped):
        turn.run()
    assert turn.trial.n_pieces == 2
    interrupted_at(1, interrupts.Stopped)
    turn = Turn(lambda: CANDIDATES[1].begin(driver.problem, None), 2, bool)
    with pytest.raises(interrupts.Stopped):
        turn.run()
    assert not turn.trial.is_trained
