"""Steps move hidden variables by their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from hypothesis import given
from hypothesis import strategies as st

from boostbp import BoostBPRegressor
from boostbp.network.steps import PLATEAU_EPOCHS, STEPS, Normalised, Plain, moved, pace_after, rule_of, std

seeds = st.integers(0, 2**20)


def make(seed, rows=30, units=3):
    rng = np.random.default_rng(seed)
    h = rng.standard_normal((rows, units)) * [0.1, 1.0, 40.0] + [0.0, 5.0, -300.0]
    m, g = rng.standard_normal((2, rows, units))
    return h, m, g, rng.uniform(0.1, 3.0, rows)


def rms(a, weight):
    return np.sqrt(np.average(np.square(a), axis=0, weights=weight))


def test_spread_is_the_weighted_standard_deviation():
    h, _, _, weight = make(0)
    np.testing.assert_allclose(std(h, np.ones(30)), h.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(std(h, weight), np.sqrt(np.diag(np.cov(h.T, aweights=weight, ddof=0))), rtol=1e-12)


@given(seed=seeds, alpha=st.floats(0.01, 2.0), mu=st.floats(0.0, 0.99))
def test_plain_step_is_the_formula_of_the_paper(seed, alpha, mu):
    h, m, g, weight = make(seed)
    target, moved = Plain(alpha, mu).move(h, m, g, weight)
    np.testing.assert_allclose(moved, mu * m + (1 - mu) * g, rtol=1e-12)
    np.testing.assert_allclose(target, h - alpha * (mu * m + (1 - mu) * g), rtol=1e-12)


def test_momentum_is_the_running_mean_of_gradients():
    h, m, _, weight = make(1)
    g = np.random.default_rng(2).standard_normal((4, 30, 3))
    for step in (Plain(0.5, 0.7), Normalised(0.5, 0.7)):
        moved = m
        for gradient in g:
            _, moved = step.move(h, moved, gradient, weight)
        expected = 0.7**4 * m + 0.3 * sum(0.7 ** (3 - i) * g[i] for i in range(4))
        np.testing.assert_allclose(moved, expected, rtol=1e-12, atol=1e-14)


@given(seed=seeds, alpha=st.floats(0.01, 2.0), mu=st.floats(0.0, 0.99))
def test_normalised_step_moves_each_unit_by_alpha_spreads(seed, alpha, mu):
    h, m, g, weight = make(seed)
    target, moved = Normalised(alpha, mu).move(h, m, g, weight)
    np.testing.assert_allclose(rms(target - h, weight), alpha * std(h, weight), rtol=1e-10)
    expected = alpha * std(h, weight) * moved / rms(moved, weight)
    np.testing.assert_allclose(h - target, expected, rtol=1e-8, atol=1e-9)


@given(seed=seeds, scale=st.sampled_from([1e-250, 1e-9, 3.0, 1e9, 1e250]))
def test_normalised_step_does_not_depend_on_the_scale_of_the_loss(seed, scale):
    h, m, g, weight = make(seed)
    step = Normalised(0.3, 0.8)
    expected, _ = step.move(h, m, g, weight)
    target, _ = step.move(h, scale * m, scale * g, weight)
    np.testing.assert_allclose(target, expected, rtol=1e-12, atol=1e-12)


@given(seed=seeds, scale=st.sampled_from([1e-6, 100.0]))
def test_normalised_step_scales_with_the_hidden_variable(seed, scale):
    h, m, g, weight = make(seed)
    step = Normalised(0.3, 0.8)
    expected, _ = step.move(h, m, g, weight)
    target, _ = step.move(scale * h, m, g, weight)
    np.testing.assert_allclose(target, scale * expected, rtol=1e-10)


def test_unit_without_gradient_stays_where_it_is():
    h, m, g, weight = make(3)
    m[:, 1] = g[:, 1] = 0.0
    target, moved = Normalised().move(h, m, g, weight)
    np.testing.assert_array_equal(target[:, 1], h[:, 1])
    assert not moved[:, 1].any()
    assert (target[:, [0, 2]] != h[:, [0, 2]]).all()


def test_constant_unit_stays_where_it_is():
    h, m, g, weight = make(4)
    h[:, 1] = 2.0
    target, _ = Normalised().move(h, m, g, weight)
    np.testing.assert_allclose(target[:, 1], 2.0, rtol=1e-12)


@pytest.mark.parametrize("step", [Plain(), Normalised()])
def test_weights_are_repeated_rows(step):
    h, m, g, _ = make(5)
    times = np.random.default_rng(6).integers(0, 4, 30)
    target, moved = step.move(h, m, g, times.astype(float))
    h, m, g = (np.repeat(a, times, axis=0) for a in (h, m, g))
    expected, after_repeats = step.move(h, m, g, np.ones(times.sum()))
    np.testing.assert_allclose(np.repeat(target, times, axis=0), expected, rtol=1e-10)
    np.testing.assert_allclose(np.repeat(moved, times, axis=0), after_repeats, rtol=1e-10)


@pytest.mark.parametrize("step", [Plain(), Normalised()])
def test_step_leaves_its_arguments_alone(step):
    h, m, g, weight = make(7)
    before = [a.copy() for a in (h, m, g, weight)]
    step.move(h, m, g, weight)
    for one, other in zip(before, (h, m, g, weight), strict=True):
        np.testing.assert_array_equal(one, other)


@given(
    losses=st.lists(st.floats(0.1, 10.0), max_size=80),
    decay=st.sampled_from([0.25, 0.5, 1.0]),
)
def test_moves_get_shorter_for_each_wait_without_a_new_low(losses, decay):
    waits, since = 0, 0
    for k, loss in enumerate(losses):
        if loss < min(losses[:k], default=np.inf):
            since = k
        elif (k - since) % PLATEAU_EPOCHS == 0:
            waits += 1
    assert pace_after(losses, decay) == decay**waits


def test_plateau_shorter_than_patience_is_crossed_at_full_length():
    falling = [10.0 - k for k in range(5)]
    plateau = [6.5] * (PLATEAU_EPOCHS - 1)
    assert pace_after([*falling, *plateau], 0.5) == 1.0
    assert pace_after([*falling, *plateau, 5.0, *plateau], 0.5) == 1.0
    assert pace_after([*falling, *plateau, 6.5], 0.5) == 0.5


# ---------------------------------------------------------------------------- by name, or the user's own


class Signs:
    """A rule of one's own: each entry moves by one size against the sign of its gradient."""

    alpha, decay = 0.05, 1.0

    def move(self, h, m, g, weight):
        return h - self.alpha * np.sign(g), m


class Returning(Signs):
    """One that returns what it is told to."""

    def __init__(self, of_move):
        self.of_move = of_move

    def move(self, h, m, g, weight):
        return self.of_move(h, m, g, weight)


def fitted(**changes):
    X, y = np.random.default_rng(0).normal(size=(80, 3)), np.random.default_rng(1).normal(size=80)
    how = {"n_estimators": 3, "epochs": 3, "deep": True, "early_stopping": False, "random_state": 0, "max_depth": 2}
    return BoostBPRegressor((3,), **parameters(**(how | changes))).fit(X, y).predict(X)


@pytest.mark.parametrize("name", STEPS)
def test_a_name_and_its_numbers_are_the_rule_of_that_name(name):
    rule = STEPS[name](0.3, 0.6)
    assert rule_of(name, 0.3, 0.6) == rule
    assert rule_of(rule, 0.1, 0.1) is rule
    expected = fitted(step=name, step_size=0.3, momentum=0.6)
    np.testing.assert_array_equal(fitted(step=rule, step_size=0.1, momentum=0.1), expected)


def test_a_rule_of_ones_own_moves_hidden_variables():
    assert not np.array_equal(fitted(step=Signs()), fitted())


@pytest.mark.parametrize(
    ("step", "numbers", "message"),
    [
        ("leap", (0.1, 0.1), "step='leap' is not known: use one of 'normalised', 'plain'"),
        (3, (0.1, 0.1), "step=3 lacks alpha, decay, move"),
        (object, (0.1, 0.1), r"step=object is a class: pass an object of it, object\(\)"),
        ("plain", (0.0, 0.1), "step_size=0.0 is not a positive number"),
        ("plain", (np.inf, 0.1), "step_size=inf"),
        ("plain", (0.1, 1.0), r"momentum=1.0 is not in \[0, 1\)"),
        ("plain", (0.1, True), "momentum=True"),
    ],
)
def test_what_is_no_rule_is_refused_with_the_cure(step, numbers, message):
    with pytest.raises((TypeError, ValueError), match=message):
        rule_of(step, *numbers)


@pytest.mark.parametrize("rule", [Plain, Normalised])
@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"alpha": np.nan}, {"mu": 1.0}, {"decay": 0.0}, {"decay": 1.5}])
def test_numbers_out_of_bounds_are_refused_by_name(rule, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        rule(**wrong)


def test_a_rule_may_return_what_it_was_given():
    h, m, g, weight = make(9)
    target, momentum = moved(Returning(lambda h, m, g, weight: (np.sign(g).astype(int), m)), h, m, g, weight)
    np.testing.assert_array_equal(target, np.sign(g))
    assert target.dtype == float
    momentum += 1.0
    np.testing.assert_array_equal(momentum, m + 1.0)


@pytest.mark.parametrize(
    ("of_move", "message"),
    [
        (
            lambda h, m, g, weight: (h[:, 0], m),
            r"the target that its move\(\) returns is an array of float64 \(30,\): .* shape of h, \(30, 3\)",
        ),
        (lambda h, m, g, weight: (h, 0.0), r"the momentum that its move\(\) returns is 0.0"),
        (
            lambda h, m, g, weight: (h.astype(str), m),
            r"the target that its move\(\) returns is an array of <U\d+ \(30, 3\)",
        ),
        (lambda h, m, g, weight: (np.subtract(h, g, out=h), m), "writes into h, m, g or weight.*use copies"),
        (lambda h, m, g, weight: h, r"its move\(\) returns a ndarray: return \(target, momentum\)"),
    ],
)
def test_a_rule_that_does_not_return_what_it_must_is_refused(of_move, message):
    with pytest.raises(ValueError, match=message):
        moved(Returning(of_move), *make(8))
