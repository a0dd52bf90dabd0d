"""Fits that happen whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from boostbp.estimators import session
from boostbp.floats import usual_floats
from boostbp.trees import interrupts, threads

P = ParamSpec("P")
R = TypeVar("R")


def all_or_nothing(fit: Callable[P, R]) -> Callable[P, R]:
    """Make a fit that fails leave the estimator as it was: never a network of one fit with the columns of another.

    One that is interrupted when there is a model raises that when the estimator has it. A fit also is the same for any
    number of BLAS's threads, and for any `np.seterr`.
    """

    @wraps(fit)
    @usual_floats()
    @interrupts.deferred()
    @threads.single_threaded_blas()
    def whole(*args: P.args, **options: P.kwargs) -> R:
        estimator = args[0]
        before = dict(vars(estimator))
        try:
            fitted = fit(*args, **options)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise
        session.raise_interrupt(estimator)
        return fitted

    return whole
