"""Losses whose rows depend on each other: proportional hazards over all rows, and pairs within groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from thread_workers import in_group

import boostbp
from boostbp.ensemble import constants
from boostbp.ensemble.problem import Problem
from boostbp.estimators.training import _refuse_divided
from boostbp.inputs.rows import Rows
from boostbp.losses.checked_loss import CheckedLoss, try_loss
from boostbp.network.layers import LossObjective
from boostbp.trees.sparse import Table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Joint:
    """Members that both losses share; `pull` weighs how row j (columns) pulls on row i (rows) in its loss."""

    y: Floats | None = None
    weight: Floats | None = None
    scale_free: ClassVar[bool] = False

    def prepare(self, y: Floats, weight: Floats) -> _Joint:
        return replace(self, y=y.copy(), weight=weight.copy())

    def _of(self, y: Floats) -> tuple[Floats, Floats]:
        """Return target and weights, after a check that they are those of `prepare`."""
        if self.y is None:
            return y, np.ones(len(y))
        assert self.weight is not None
        np.testing.assert_array_equal(y, self.y)
        return y, self.weight

    def link(self, h: Floats) -> Floats:
        return h

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        return np.zeros(1)

    def check(self, y: Floats) -> None:
        pass


class Hazards(_Joint):
    """Negative log partial likelihood of events at distinct times (Cox 1972), quadratic in the number of rows."""

    name = "hazards"
    columns = ("time", "event")
    joint: Literal["rows"] = "rows"

    def _risks(self, h: Floats, y: Floats) -> tuple[Floats, Floats]:
        y, weight = self._of(y)
        risk = (y[:, 0] >= y[:, :1]) * weight * np.exp(h[:, 0])  # [i, j]: row j is at risk when row i has its event
        return risk, weight

    def value(self, h: Floats, y: Floats) -> Floats:
        return y[:, 1] * (np.log(self._risks(h, y)[0].sum(1)) - h[:, 0])

    def gradient(self, h: Floats, y: Floats) -> Floats:
        risk, weight = self._risks(h, y)
        at_risk = (y[:, 0] >= y[:, :1]) * np.exp(h[:, 0])
        return ((weight * y[:, 1] / risk.sum(1)) @ at_risk - y[:, 1])[:, None]

    def hessian(self, h: Floats, y: Floats) -> Floats:
        return np.maximum(self.gradient(h, y) + y[:, 1:], 1e-6)  # at least the second derivative


class Pairs(_Joint):
    """Logistic loss of the pairs within a query of which the first is more relevant."""

    name = "pairs"
    columns = ("grade", "query")
    joint: Literal["groups"] = "groups"

    def _pairs(self, y: Floats) -> Floats:
        y, _ = self._of(y)
        return (y[:, 1:] == y[:, 1]) & (y[:, :1] > y[:, 0])

    def value(self, h: Floats, y: Floats) -> Floats:
        return np.sum(self._pairs(y) * np.logaddexp(0.0, h[:, 0] - h), axis=1)

    def gradient(self, h: Floats, y: Floats) -> Floats:
        y, weight = self._of(y)
        pull = self._pairs(y) / (1.0 + np.exp(h - h[:, 0]))
        return ((weight @ pull) / weight - pull.sum(1))[:, None]

    def hessian(self, h: Floats, y: Floats) -> Floats:
        pairs = self._pairs(y)  # of the same weight, as rows of a query have
        return np.maximum(pairs.sum(0) + pairs.sum(1), 1e-6)[:, None] / 4


def _data(kind: type[_Joint], n_rows: int = 400) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 5))
    signal = X[:, 0] + np.abs(X[:, 1])
    if kind is Hazards:
        return X, np.column_stack([rng.exponential(np.exp(-signal)), rng.random(n_rows) < 0.7]).astype(float)
    grade = np.clip(np.round(signal + rng.standard_normal(n_rows)), 0, 3)
    return X, np.column_stack([grade, np.arange(n_rows) // 10]).astype(float)


@pytest.mark.parametrize("kind", [Hazards, Pairs])
def test_check_loss_compares_derivatives_of_the_sum(kind: type[_Joint]) -> None:
    _, y = _data(kind, 60)
    assert boostbp.check_loss(kind(), y).gradient_error < 1e-3


def test_check_loss_refuses_a_gradient_of_single_rows() -> None:
    class Wrong(Pairs):
        def gradient(self, h: Floats, y: Floats) -> Floats:
            pull = self._pairs(y) / (1.0 + np.exp(h - h[:, 0]))
            return -pull.sum(1)[:, None]  # without the pull on the less relevant rows

    with pytest.raises(AssertionError, match=r"its gradient is .* but finite differences"):
        boostbp.check_loss(Wrong(), _data(Pairs, 60)[1])


@pytest.mark.parametrize("kind", [Hazards, Pairs])
def test_gathered_derivatives_are_those_of_the_weighted_sum(kind: type[_Joint]) -> None:
    _, y = _data(kind)
    weight, rng = np.where(np.arange(400) % 20 < 10, 1.0, 3.0), np.random.default_rng(1)
    objective = LossObjective.of(kind(), y, weight, np.zeros(1))
    fit = rng.standard_normal((400, 1))
    _, gradient, hessian = objective.derivatives(fit)
    direction = rng.standard_normal((400, 1))
    above, below = (objective.derivatives(fit + step * direction)[0] for step in (1e-5, -1e-5))
    assert (above - below) / 2e-5 == pytest.approx(float((gradient * direction).sum()), rel=1e-6)
    assert (hessian > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deep", "quality", "backend"), [(True, 3, "lightgbm"), ("auto", 2, "lightgbm"), (False, 1, "xgboost")]
)
@pytest.mark.parametrize("kind", [Hazards, Pairs])
def test_models_learn_from_other_rows(
    kind: type[_Joint], deep: bool | Literal["auto"], quality: int, backend: str
) -> None:
    X, y = _data(kind)
    model = boostbp.BoostBPRegressor(
        loss=kind(), deep=deep, quality=quality, epochs=4, backend=backend, random_state=0, eval_metric=None
    )
    model.fit(X, y, groups=None if kind is Hazards else y[:, 1])
    other_X, other_y = _data(kind, 600)
    new = slice(400, None)
    scores = model.predict(other_X[new])
    assert scores.shape == (200,)
    fitted, constant = (kind().value(h, other_y[new]).mean() for h in (scores[:, None], np.zeros((200, 1))))
    assert fitted < 0.95 * constant


def test_a_block_of_rows_is_never_passed_alone() -> None:
    # `_of` of the losses above fails if the target is not that of `prepare`; these rows fill several blocks.
    _, y = _data(Pairs, 400)
    y = np.tile(y, (100, 1)) + np.repeat(np.arange(100.0), 400)[:, None] * [0.0, 1000.0]

    class Sums(Pairs):
        def value(self, h: Floats, y: Floats) -> Floats:
            self._of(y)
            return h[:, 0] ** 2

        def gradient(self, h: Floats, y: Floats) -> Floats:
            self._of(y)
            return 2 * h

        def hessian(self, h: Floats, y: Floats) -> Floats:
            return np.full(h.shape, 2.0)

    objective = LossObjective.of(Sums(), y, np.ones(len(y)), np.ones(1))
    assert objective.derivatives(np.zeros((len(y), 1)))[0] == len(y)


def test_several_workers_must_have_whole_groups() -> None:
    _, y = _data(Pairs, 100)

    def refusal(y: Floats, loss: _Joint) -> str:
        try:
            _refuse_divided(loss, Rows(Table(y), y, np.ones(len(y))))
        except ValueError as error:
            return str(error)
        return ""

    # The first of two workers has a third of the rows.
    assert in_group(2, lambda y: refusal(y, Pairs()), y[:90]) == ["", ""]
    assert all("query 3 has rows on 2 workers" in text for text in in_group(2, lambda y: refusal(y, Pairs()), y))
    assert all("train in one process" in text for text in in_group(2, lambda y: refusal(y, Hazards()), y))


def test_an_unprepared_joint_loss_has_weights_of_one() -> None:
    _, y = _data(Pairs, 60)
    tried = try_loss(Pairs(), np.zeros(1), y)
    assert tried.separable
    h = np.linspace(-1, 1, 60)[:, None]
    np.testing.assert_array_equal(tried.value(h, y), tried.prepared(y, np.ones(60)).value(h, y))
    assert CheckedLoss(boostbp.losses.SquaredError()).prepared(y, np.ones(60)).of_rows is None


@pytest.mark.parametrize(("loss", "estimator"), [("ranking", "BoostBPRanker"), ("survival", "BoostBPSurvival")])
def test_losses_of_other_estimators_name_them(loss: str, estimator: str) -> None:
    class Other(Pairs):
        task = loss

    for model in (boostbp.BoostBPRegressor(loss=Other()), boostbp.BoostBPClassifier(loss=Other())):
        with pytest.raises(ValueError, match=f"is for {loss}: use {estimator}"):
            model.fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.slow
def test_the_training_loss_is_that_of_whole_queries() -> None:
    X, y = _data(Pairs, 1000)
    model = boostbp.BoostBPRegressor(loss=Pairs(), quality=1, early_stopping=False, random_state=0).fit(X, y)
    expected = Pairs().value(model.predict(X)[:, None], y).mean()
    assert model.history_[0].loss == pytest.approx(expected, rel=1e-6)


def test_a_sample_of_rows_holds_a_query_that_is_larger_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "MANY_ROWS", 300)
    monkeypatch.setattr(constants, "MANY_ROWS_SAMPLE", 50)
    sampled, on_some_rows = [], Problem.on_some_rows

    def sample(problem: Problem) -> Problem:
        sampled.append(on_some_rows(problem))
        return sampled[-1]

    monkeypatch.setattr(Problem, "on_some_rows", sample)
    X, y = _data(Pairs, 600)
    y[:, 1] = np.arange(600) // 100
    boostbp.BoostBPRegressor(loss=Pairs(), quality=1, random_state=0).fit(X, y, groups=y[:, 1])
    assert [len(problem.rows) for problem in sampled] == [100]
