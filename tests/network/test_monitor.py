"""The monitor of a training keeps the best epoch and the best rounds."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor, backends, losses, metrics
from boostbp.network.monitor import Monitor
from boostbp.network.settings import Settings
from tests.network.test_backprop import paper_layer, train
from tests.support.problems import watched

rng = np.random.default_rng(0)
H = rng.uniform(-1, 1, (400, 4))
TARGETS = np.column_stack([np.sin(3 * H[:, 0]) + H[:, 1], H[:, 2] * H[:, 3]])


def test_best_rounds_cannot_score_worse_on_the_set_that_chooses_them(monkeypatch):
    y, noise = TARGETS[:, 0], rng.standard_normal(400)
    common = {"deep": True, "epochs": 2, "n_estimators": [5, 80], "random_state": 0}

    def history():
        model = BoostBPRegressor((4,), **parameters(**common))
        return model.fit(H[:300], (y + noise)[:300], eval_set=[(H[300:], (y + noise)[300:])]).history_

    scores = {True: history()}
    monkeypatch.setattr(Monitor, "_cut", lambda monitor, network: network)
    scores[False] = history()
    assert scores[True].loss == scores[False].loss  # what is kept does not change what is trained
    assert all(a <= b for a, b in zip(scores[True].metrics("valid_0"), scores[False].metrics("valid_0"), strict=True))
    assert min(scores[True].metrics("valid_0")) < min(scores[False].metrics("valid_0"))


ROWS, ROUNDS, BETA, DEPTH, LEAF, LAMBDA = 400, 4, 0.3, 3, 25, 1.0


def data(seed=0):
    X, y = make_friedman1(ROWS, n_features=5, random_state=seed)
    return np.ascontiguousarray(X), ((y - y.mean()) / y.std()).reshape(-1, 1)


def small(**changes):
    words = {"epochs": 4, "n_estimators": 8, "max_depth": 3, "random_state": 0} | changes
    alone = {"deep": True} if words.get("early_stopping") is False else {}
    return BoostBPRegressor((6,), **parameters(**alone, **words))


@pytest.mark.usefixtures("unrounded")
def test_best_epoch_is_restored_and_is_the_best_of_the_history():
    X, Y = data()
    Xv, Yv = data(1)
    model = small(epochs=12, n_iter_no_change=3, deep=True).fit(X, Y.ravel(), eval_set=[(Xv, Yv.ravel())])
    history = model.history_
    values = history.metrics("valid_0")
    assert history.best_epoch == int(np.argmin(values))
    [loss] = [one.loss for one in history.choice.candidates if one.name == "network"]  # of the network of that epoch
    assert model.model_.targets.scale[0] * np.sqrt(2 * loss) == pytest.approx(min(values), rel=1e-9)
    assert len(history) - 1 - history.best_epoch <= 3


def test_evaluation_sets_do_not_change_the_epochs():
    X, Y = data()
    settings = Settings(layers=(paper_layer(),) * 2, units=(4,), epochs=2)
    common = {
        "backend": backends.load_backend("sklearn"),
        "loss": losses.SquaredError(),
        "settings": settings,
        "weight": np.ones(ROWS),
    }
    _, alone = train(X, Y, **common)
    metric = metrics.default_metric(losses.SquaredError())
    _, seen = train(X, Y, evaluation=watched(X[:50], Y[:50], metric=metric), **common)
    assert alone.loss == seen.loss
