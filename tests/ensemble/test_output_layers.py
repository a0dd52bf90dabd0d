"""Output layers grown to their end: where the held-out loss says so, whatever constant is missing in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from boostbp import backends
from boostbp.backends.base import TreeParams
from boostbp.ensemble import constants
from boostbp.ensemble.output_layers import LayerTraining
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.refits import boost_again
from boostbp.inputs.rows import Rows
from boostbp.losses import Poisson
from boostbp.network.layers import LayerSettings
from boostbp.network.monitor import NetworkTask
from boostbp.network.network import Network
from boostbp.network.settings import Settings
from boostbp.trees.basis import Polynomial
from boostbp.trees.sparse import Table
from tests.support.problems import watched

pytestmark = pytest.mark.full_length
LAYER = LayerSettings(4000, growth=TreeParams(max_depth=3, min_samples_leaf=10), learning_rate=0.1, basis=Polynomial(1))


@pytest.fixture(autouse=True)
def whole_pieces(tune):
    tune(PIECE_ROUNDS=25, MAX_PIECES=160)


@dataclass(frozen=True, slots=True)
class Missing(Poisson):
    """The likelihood of counts without a constant."""

    constant: float = 0.0
    name: ClassVar[str] = "missing"

    def value(self, h, y):
        return Poisson.value(self, h, y) - self.constant


def counts(rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, 5))
    return X, rng.poisson(np.exp(3.9 + 0.1 * np.sin(6 * X[:, :1])))[:, :1].astype(np.float64)


def problem_of(missing=0.0):
    """Counts of 50 or so."""
    (X, y), (held_out, held_out_y) = counts(240, 0), counts(120, 1)
    task = NetworkTask(
        rows=Rows(Table(X), y, np.ones(len(y))),
        backend=backends.load_backend("lightgbm"),
        loss=Missing(constant=missing),
        settings=Settings(layers=(LAYER,), units=()),
        evaluation=watched(held_out, held_out_y),
    )
    return Problem.of(task)


def begin(problem, layer=LAYER):
    return LayerTraining.begin("layer", None, lambda _: layer, problem, Network((), problem.baseline))


def boosted(missing):
    """A layer on them; and the held-out loss before the first piece and after each."""
    problem = problem_of(missing)
    boosting = begin(problem)
    scores = [problem.score(boosting.raw)]
    while not boosting.finished:
        boosting = boosting.advance()
        scores.append(problem.score(boosting.raw))
    raw = boosting.result.model.predict(problem.held_out.X)
    np.testing.assert_allclose(raw, boosting.best_raw, rtol=1e-12)
    return boosting, np.array(scores)


def test_the_best_piece_is_kept_where_losses_are_below_0():
    boosting, scores = boosted(missing=0.0)
    pieces = len(boosting.result.plan.pieces)
    assert scores.max() < 0
    assert len(scores) - 1 <= pieces + constants.MAX_PATIENCE < constants.MAX_PIECES
    gain = scores[0] - scores.min()
    least = constants.MAX_PATIENCE * constants.MIN_GAIN_OF_FIRST * gain
    assert scores[pieces] == pytest.approx(scores.min(), abs=least)


def test_boosting_waits_for_two_pieces_at_first_and_for_three_later_on():
    problem = problem_of()
    boosting = begin(problem)
    ends = {}
    for n_pieces in range(1, 8):
        boosting = boosting.advance()
        for best in range(1, n_pieces + 1):
            if replace(boosting, best=best).finished:
                ends.setdefault(best, n_pieces)
    assert ends == {1: 3, 2: 4, 3: 6, 4: 7}


@pytest.mark.parametrize("missing", [-1e3, -150.0, 1e3])
def test_a_constant_in_the_loss_changes_nothing(missing):
    boosting, expected = boosted(missing)[0], boosted(0.0)[0]
    assert len(boosting.result.plan.pieces) == len(expected.result.plan.pieces)
    np.testing.assert_array_equal(boosting.best_raw, expected.best_raw)


def test_a_piece_more_leaves_what_was_before():
    problem = problem_of()
    one = begin(problem).advance()
    raw, pieces = one.raw.copy(), one.boosted.pieces
    ways = [one.advance().advance(), one.advance().advance()]
    np.testing.assert_array_equal(one.raw, raw)
    assert one.boosted.pieces == pieces
    np.testing.assert_array_equal(ways[0].raw, ways[1].raw)  # it can be gone on with twice


def test_a_plan_is_the_same_layer_again_on_the_same_rows():
    problem = problem_of()
    boosting = begin(problem, replace(LAYER, learning_rate=0.01)).advance()
    while not boosting.finished:
        boosting = boosting.advance()
    assert len(boosting.result.plan.pieces) > 1
    again = boost_again(problem, boosting.result.plan)
    [layer] = boosting.result.model.layers
    np.testing.assert_array_equal(again.predict(problem.rows.X), layer.predict(problem.rows.X))
    asked = []
    assert boost_again(problem, boosting.result.plan, over=lambda: bool(asked) or asked.append(1)) is None
