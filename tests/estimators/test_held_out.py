"""Rows that are held out of those to learn from."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from sklearn.metrics import log_loss

from boostbp import BoostBPClassifier
from boostbp.estimators import held_out
from boostbp.estimators.held_out import hold_out
from boostbp.estimators.request import Request
from boostbp.inputs.rows import Rows
from boostbp.trees.sparse import Table


def parts(labels, seed=0):
    """Labels that are learned from, and those held out."""
    rows = np.arange(len(labels), dtype=np.float64)[:, None]
    all_rows = Rows(Table(rows), labels[:, None].astype(float), np.ones(len(labels)))
    kept, sets = hold_out(Request.of(BoostBPClassifier(random_state=seed)), all_rows, labels)
    held = [*(part.rows.X for part in sets), np.empty((0, 1))]
    every = np.concatenate([kept.X, *held]).ravel()
    assert np.array_equal(np.sort(every), rows.ravel())
    assert len(kept) == len(kept.weight) == len(kept.X)
    return labels[kept.X.ravel().astype(int)], labels[held[0].ravel().astype(int)]


@pytest.mark.parametrize("sizes", [[119, 1], [180, 19, 1], [5] * 60, [2] * 40, [98, 1, 1], [1] * 60, [1] * 59 + [2]])
def test_every_class_is_learned_from(sizes):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    for seed in range(20):
        learned, _ = parts(labels, seed)
        assert set(learned) == set(range(len(sizes)))


def test_a_lone_row_does_not_keep_others_from_their_shares():
    for seed in range(20):
        _, held = parts(np.repeat([0, 1, 2], [180, 19, 1]), seed)
        assert np.bincount(held, minlength=3).tolist() == [45, 5, 0]


def test_the_only_row_of_a_class_is_not_denied():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), np.arange(120) == 7
    settings = {"n_estimators": 5, "epochs": 1, "deep": True}
    models = [BoostBPClassifier((2,), **parameters(random_state=seed, **settings)).fit(X, y) for seed in range(8)]
    assert min(model.predict_proba(X)[:, 1].mean() for model in models) > 1 / 1000


def test_few_rows_do_not_make_classes_sure_of_themselves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1040, 5))
    y = rng.random(1040) < 1 / (1 + np.exp(-X[:, 0]))
    model = BoostBPClassifier((2,), **parameters(n_estimators=10, epochs=5, random_state=0)).fit(X[:40], y[:40])
    assert log_loss(y[40:], model.predict_proba(X[40:])) < 0.8  # a constant has .69


@pytest.mark.parametrize("given", [True, False])
def test_early_stopping_may_be_a_bool_of_numpy(given):
    """As a grid over `np.array([True, False])` gives it."""
    labels = np.arange(60) % 2
    asked = BoostBPClassifier(early_stopping=np.bool_(given), random_state=0)
    all_rows = Rows(Table(np.arange(60.0)[:, None]), labels[:, None].astype(float), np.ones(60))
    kept, sets = hold_out(Request.of(asked), all_rows, labels)
    assert (len(kept), len(sets)) == ((54, 1) if given else (60, 0))


def test_n_iter_no_change_is_not_looked_at_without_early_stopping_of_numpy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    how = {"n_estimators": 1, "epochs": 6, "n_iter_no_change": 1, "deep": True, "random_state": 0}
    how["eval_metric"] = ("never better", lambda y, p: 0.0, False)
    lengths = [
        len(
            BoostBPClassifier((2,), **parameters(early_stopping=stopping, **how))
            .fit(X, X[:, 0] > 0, eval_set=(X, X[:, 0] > 0))
            .history_
        )
        for stopping in (False, np.False_, True, np.True_)
    ]
    assert lengths[0] == lengths[1] == 7
    assert lengths[2] == lengths[3] < 7


@pytest.mark.parametrize("validation", [0.1, 0.3, "last"])
def test_of_many_rows_no_more_are_held_out_than_a_choice_needs(tune, validation):
    tune(held_out, LARGE_N=300, MAX_HELD=20)

    def count(rows, **changes):
        asked = BoostBPClassifier(validation=validation, random_state=0, **changes)
        strata = None if validation == "last" else np.arange(rows) % 3
        table = Table(np.arange(rows, dtype=np.float64)[:, None])
        _, [held] = hold_out(Request.of(asked), Rows(table, np.zeros((rows, 1)), np.ones(rows)), strata)
        return len(held.rows)

    share = 0.1 if validation == "last" else validation
    asked_for = validation == 0.3  # other shares than the default one are taken at their word
    assert [count(300), count(1000)] == ([90, 300] if asked_for else [20, 20])
    assert count(299) == max(50, np.ceil(share * 299))
    assert count(1000, early_stopping=True) == pytest.approx(share * 1000)  # taken at its word
