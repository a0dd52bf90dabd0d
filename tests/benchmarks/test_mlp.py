"""Multi-layer perceptrons, the neural rivals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from benchmarks.rivals.mlp import MLPClassifier, MLPRegressor  # noqa: E402

SMALL = {"hidden_layer_sizes": (32,), "epochs": 40, "batch_size": 32, "learning_rate": 0.01}


def smooth(rows=400):
    X = np.random.default_rng(0).uniform(size=(rows, 3))
    return X, np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2]


def fitted(X, y, kind=MLPRegressor, **changes):
    return kind(**{**SMALL, **changes}).fit(X[100:], y[100:], eval_set=[(X[:100], y[:100])])


def test_smooth_target_is_learnt_in_any_units():
    X, y = smooth()
    model = fitted(X, y)
    assert model.score(X[:100], y[:100]) > 0.97
    other = fitted(X * [1e6, 1.0, 1e-6] + [0.0, 7.0, 0.0], 1e5 * y + 3.0)
    np.testing.assert_allclose(
        other.predict(X * [1e6, 1.0, 1e-6] + [0.0, 7.0, 0.0]), 1e5 * model.predict(X) + 3.0, rtol=0, atol=2e3
    )


def test_best_epoch_is_kept_and_training_ends_when_it_is_over():
    X, y = smooth()
    noisy = y + np.random.default_rng(1).normal(size=len(y))
    model = fitted(X, noisy, epochs=500, n_iter_no_change=5, hidden_layer_sizes=(64, 64))
    losses, best = model.history_.losses, model.history_.best_epoch
    assert len(losses) == best + 5 < 500
    assert losses[best - 1] == min(losses)
    std = noisy[100:].std()
    assert np.mean((model.predict(X[:100]) - noisy[:100]) ** 2) / std**2 == pytest.approx(min(losses), rel=1e-5)


def test_same_seed_same_network_and_the_generator_of_others_is_left_alone():
    X, y = smooth()
    before = torch.random.get_rng_state()
    one, two = (fitted(X, y, epochs=3, dropout=0.2).predict(X) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(one, two)


def test_classes_of_a_table_with_categories_and_missing_values():
    X, _ = smooth()
    colour = np.random.default_rng(2).integers(0, 3, len(X))
    frame = pd.DataFrame({"a": X[:, 0], "colour": pd.Categorical(np.array(["red", "green", "blue"])[colour])})
    frame.loc[::9, "a"] = np.nan
    y = colour
    model = MLPClassifier(**SMALL).fit(frame[100:], y[100:], eval_set=[(frame[:100], y[:100])])
    proba = model.predict_proba(frame[:100])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (model.predict(frame[:100]) == y[:100]).all()
