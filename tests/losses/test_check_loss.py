"""check_loss: members that contradict each other are refused with both numbers, by an independent derivative."""

from __future__ import annotations

import re

import numpy as np
import pytest
from helpers import kind_of_target, losses_of_outputs
from user_losses import LogCosh, UserLoss

from boostbp import check_loss, losses
from boostbp.backends import ConformanceError
from boostbp.losses.checked_loss import try_loss

rng = np.random.default_rng(0)
Y = rng.standard_normal(80)

MEMBERS = ("name", "scale_free", "value", "gradient", "hessian", "link", "baseline")  # all but check


def target_of(loss):
    if kind_of_target(loss) != "classes":
        return np.abs(Y) + 0.1
    return (Y > 0).astype(float) if loss.name == "logistic" else np.eye(3)[rng.integers(0, 3, 80)]


@pytest.mark.parametrize("loss", losses_of_outputs(), ids=lambda loss: loss.name)
def test_losses_of_the_package_pass(loss):
    report = check_loss(loss, target_of(loss), sample_weight=np.linspace(0.5, 2.0, 80))
    assert report.gradient_error < 1e-3
    assert report.curved == (not loss.scale_free)
    assert report.separable == (loss.name not in ("softmax", "quantiles"))
    assert str(report).startswith(f"loss {loss.name!r}:\n  gradient: agrees with differences of value")


def test_a_name_is_a_loss():
    assert str(check_loss("mse", Y)) == str(check_loss(losses.SquaredError(), Y))


def test_the_report_says_how_far_hessian_and_baseline_are_from_the_best():
    report = check_loss(LogCosh(), Y)
    assert (report.curved, report.separable) == (True, True)
    assert report.hessian_error < 1e-2
    assert "near the best constant" in str(report)  # the mean is not the minimum of log cosh
    twice = check_loss(UserLoss(hessian=lambda h, y: np.full(h.shape, 2.0)), Y)
    assert twice.hessian_error == pytest.approx(1.0, rel=1e-3)
    assert "hessian: 2 times the second derivative on average, at least 2 times" in str(twice)


WRONG = {
    "factor": (
        UserLoss(gradient=lambda h, y: 2.0 * (h - y)),
        r"its gradient is (-?[\d.]+) in row \d+, .* but finite differences",
    ),
    "hessian a third": (
        LogCosh(hessian=lambda h, y: np.maximum(1.0 - np.tanh(h - y) ** 2, 1e-6) / 3.0),
        r"its hessian is [\d.]+ in row \d+, .* but finite differences of gradient\(\)",
    ),
    "baseline": (UserLoss(baseline=lambda y, weight: np.ones(1)), r"its baseline is \[1\.\], of mean loss .* has"),
    "inverse link": (
        UserLoss(link=np.exp, inverse_link=lambda p: np.log(p) + 1.0),
        r"its inverse_link is .* but the raw output before link\(\) was",
    ),
    "homogeneous": (UserLoss(homogeneous=True), "its value is .* but homogeneous = True means"),
    "least squares": (LogCosh(least_squares=True), "its value is .* but least_squares = True means"),
}


@pytest.mark.parametrize(("loss", "message"), WRONG.values(), ids=WRONG)
def test_members_that_contradict_each_other_are_refused_with_both_numbers(loss, message):
    with pytest.raises(ConformanceError, match=message):
        check_loss(loss, Y)


def test_both_numbers_are_those_of_the_row():
    with pytest.raises(ConformanceError) as raised:
        check_loss(WRONG["factor"][0], Y)
    numbers = re.search(
        r"gradient is (\S+) in row .* differences of value\(\) give (\S+): return", str(raised.value)
    ).groups()
    assert float(numbers[0]) == pytest.approx(2.0 * float(numbers[1]), rel=1e-4)


def test_what_no_fit_could_use_is_refused_as_there():
    with pytest.raises(ValueError, match="writes into h or y"):
        check_loss(UserLoss(gradient=lambda h, y: np.subtract(h, y, out=h)), Y)
    with pytest.raises(TypeError, match="lacks check"):
        check_loss(type("Short", (), dict.fromkeys(MEMBERS))(), Y)
    with pytest.raises(ValueError, match="loss='poisson' takes counts"):
        check_loss("poisson", Y)


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "huber"])
def test_kinks_at_which_most_rows_lie_are_no_steep_gradient(loss):
    """Most targets of an amount are 0, where the median is: differences across a kink grow as steps get shorter."""
    y = np.append(np.zeros(60), np.arange(20.0))[:, None]
    tried = try_loss(losses.load_loss(loss, n_outputs=1), np.zeros(1), y)
    assert (tried.curved, tried.separable) == (False, True)
    try_loss(losses.load_loss(loss, n_outputs=1), np.zeros(1), y[:1])


def test_what_follows_from_a_loss_is_found_out():
    y = rng.standard_normal((50, 2))
    mixed = UserLoss(gradient=lambda h, y: (h - y) @ np.array([[1.0, 0.5], [0.5, 1.0]]), value=lambda h, y: (
        0.5 * ((h - y) @ np.array([[1.0, 0.5], [0.5, 1.0]]) * (h - y)).sum(axis=1)))  # fmt: skip
    assert try_loss(UserLoss(), np.zeros(2), y).separable
    assert not try_loss(mixed, np.zeros(2), y).separable
    assert not try_loss(UserLoss(), np.zeros(2), y).curved
    assert try_loss(LogCosh(), np.zeros(2), y).curved
    for far in (1e-3, 1e6):  # in any unit of a target that is not brought to one
        assert try_loss(LogCosh(scale_free=False), np.zeros(1), far * y[:, :1]).curved
