"""Rounds in the core that fail: errors of growth and of a loss end the fit as themselves."""

from __future__ import annotations

import numpy as np
import pytest
from user_losses import LogCosh
from xgboost.core import XGBoostError

from boostbp.backends._xgboost_ubj import UNKNOWN_MODEL as NOT_READ_UBJ
from boostbp.backends.xgboost import XGBoostGrower
from boostbp.network.layers import LossObjective
from boostbp.network.layers.boosting import Boosting
from boostbp.trees.tree import Tree, Trees, as_trees
from tests.network.layers.test_boosting import (
    CLASSES,
    LIBRARIES,
    MIXED,
    NUMBERS,
    SETTINGS,
    WEIGHT,
    Y,
    fitted,
    loss_of,
    squared,
)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("failure", [KeyboardInterrupt, ZeroDivisionError, GeneratorExit])
def test_an_error_of_a_loss_ends_the_fit(failure, library, monkeypatch):
    """It is raised in the third round, within the call of the core."""
    rounds, of_round = [], Boosting.derivatives

    def derivatives(*args):
        rounds.append(len(rounds))
        if len(rounds) == 3:
            raise failure("of the loss")
        return of_round(*args)

    monkeypatch.setattr(Boosting, "derivatives", derivatives)
    with pytest.raises(failure, match="of the loss"):
        fitted(MIXED, SETTINGS, loss_of("logistic", CLASSES[:, :1]), backend=library)
    assert len(rounds) == 3


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("failure", [XGBoostError, KeyboardInterrupt, GeneratorExit])
def test_an_error_of_growth_ends_the_fit(failure, number, monkeypatch):
    grown, of_round = [], XGBoostGrower._round

    def grow(*args):
        grown.append(of_round(*args))
        if len(grown) == number:
            raise failure("of the library")
        return grown[-1]

    monkeypatch.setattr(XGBoostGrower, "_round", grow)
    with pytest.raises(failure, match="of the library"):
        fitted(MIXED, SETTINGS, squared(1), backend="xgboost")
    assert len(grown) == number


@pytest.mark.parametrize(
    ("trees", "message"),
    [(Trees.stumps(2), "2 trees instead of 1"), (Tree.of([7], [0.0], [-1], [-2], [False]), NOT_READ_UBJ)],
    ids=["their number", "a feature"],
)
def test_trees_that_do_not_fit_are_refused(trees, message, monkeypatch):
    monkeypatch.setattr(XGBoostGrower, "_round", lambda *_: as_trees([trees]) if isinstance(trees, Tree) else trees)
    with pytest.raises(ValueError, match=message):
        fitted(NUMBERS, SETTINGS, squared(1), backend="xgboost")


def test_derivatives_that_are_not_finite_name_their_round():
    class Overflowing(LogCosh):
        scale_free = False

        def gradient(self, h, y):
            return np.where(np.abs(h) > 0.3, np.nan, super().gradient(h, y))

    goal = LossObjective.of(Overflowing(), Y[:, :1], WEIGHT, np.zeros(1))
    with pytest.raises(ValueError, match=r"in round [2-9]\d* of training"):
        fitted(NUMBERS, SETTINGS, goal)
