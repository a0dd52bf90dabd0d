"""Checks of values: what is let through, as what, and what the error of everything else names."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from boostbp.runtime import checks

NO_NUMBERS = [True, np.bool_(True), "1", None, float("nan"), [1.0]]
PASSES = [
    (lambda v: checks.whole("n", v, 1, 9), [(1, 1), (9.0, 9), (np.int8(3), 3)], [0, 10, 2.5, float("inf")]),
    (lambda v: checks.at_least("n", v, 0.5, 2), [(0.5, 0.5), (Fraction(3, 2), 1.5)], [0.4, 2.1, 10**400]),
    (lambda v: checks.finite("n", v), [(-3, -3.0), (np.float32(0.5), 0.5)], [float("inf"), 10**400]),
    (lambda v: checks.between("n", v, 0, 1), [(0.5, 0.5)], [0, 1, -0.1]),
    (lambda v: checks.share("n", v), [(1, 1.0), (0.1, 0.1)], [0, 1.1]),
    (lambda v: checks.or_else("auto", checks.share)("n", v), [("auto", "auto"), (1, 1.0)], [0]),
]


@pytest.mark.parametrize(("check", "good", "bad"), PASSES)
def test_numbers_within_bounds_pass_and_others_are_named(check, good, bad):
    for value, expected in good:
        assert check(value) == expected
        assert type(check(value)) is type(expected)
    for value in [*bad, *NO_NUMBERS]:
        with pytest.raises(ValueError, match=r"^n=.* is not allowed: give a (whole |finite )?(number|share)") as caught:
            check(value)
        assert f"n={checks.shown(value)}" in str(caught.value)


def test_a_broken_bound_is_the_one_that_is_told():
    with pytest.raises(ValueError, match=r"n=0 is not allowed: give a whole number of at least 1\."):
        checks.whole("n", 0, 1, 9)
    with pytest.raises(ValueError, match=r"n=10 is not allowed: give a whole number of at most 9\."):
        checks.whole("n", 10, 1, 9)


def test_other_values():
    assert checks.signs("n", np.array([1, 0, -1])) == (1, 0, -1)
    assert checks.seconds("n", None) is None
    assert checks.file("n", Path("model")) == "model"
    assert checks.named("n", None) == {}
    assert checks.random_state("n", 7.0).randint(9) == np.random.RandomState(7).randint(9)
    assert [checks.is_container(value) for value in ([], np.zeros(3), "text", b"", np.float64(1), 3)] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "value"),
    [("signs", [1, 2]), ("signs", "+-"), ("seconds", 0), ("file", ""), ("file", "a\0b"), ("named", [1]),
     ("named", {1: 2}), ("random_state", -1)],
)  # fmt: skip
def test_other_values_are_refused_by_name(check, value):
    with pytest.raises(ValueError, match=r"^n(=| has the name)"):
        getattr(checks, check)("n", value)


def test_a_value_is_shown_whatever_it_is():
    class Silent:
        def __repr__(self):
            raise RuntimeError

    assert checks.shown(Silent()) == "<Silent>"
    assert checks.shown("x" * 9999).endswith("... (10001 characters)")
