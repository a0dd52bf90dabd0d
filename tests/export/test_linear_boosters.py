"""LightGBM's boosters of linear trees as ONNX: what their own predict gives."""

from __future__ import annotations

import numpy as np
import pytest

import boostbp

lightgbm = pytest.importorskip("lightgbm")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
QUIET = {"verbose": -1, "num_threads": 1, "seed": 0}


def table(rows, missing, seed=0):
    """Numbers and codes of a category, and a target that needs both."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5))
    X[:, 4] = rng.integers(0, 50, rows)
    y = 2.0 * X[:, 0] + np.sin(3.0 * X[:, 1]) * X[:, 2] + X[:, 4] % 3 + 0.1 * rng.normal(size=rows)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def trained(X, y, rounds=20, **params):
    data = lightgbm.Dataset(X, y, categorical_feature=[4])
    return lightgbm.train({**QUIET, "linear_tree": True, **params}, data, rounds)


def hard_rows(booster, X):
    """Rows with missing values where training had none, fractions of codes, unseen codes, cells on thresholds."""
    rng = np.random.default_rng(1)
    rows = np.concatenate([X, X * 1.3, X])
    rows[:, 4] = np.concatenate([X[:, 4], X[:, 4] + 0.7, rng.choice([-3.0, -0.5, 60.0, 1e9], len(X))])
    frame = booster.trees_to_dataframe()
    splits = frame[(frame.decision_type == "<=") & frame.split_feature.notna()]
    splits = splits[splits.threshold.astype(float).abs() < 1e100]  # beyond are those that ask for missing values
    chosen = splits.iloc[rng.integers(0, len(splits), len(X))]
    feature = chosen.split_feature.str.removeprefix("Column_").astype(int).to_numpy()
    rows[np.arange(len(X)), feature] = chosen.threshold.astype(float).to_numpy()
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def assert_same(booster, rows):
    graph = boostbp.lightgbm_linear_to_onnx(booster)
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    [prediction] = session.run(None, {"X": rows})
    expected = booster.predict(rows)
    assert prediction.shape == expected.shape
    np.testing.assert_allclose(prediction, expected, rtol=0, atol=1e-12 * expected.std())


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("linear", [True, False])
def test_predictions_are_those_of_the_booster(linear, missing):
    X, y = table(3000, missing)
    booster = trained(X, y, rounds=60, linear_tree=linear)
    rows = hard_rows(booster, X)
    if linear:  # what converters leave out
        constant = trained(X, y, rounds=60, linear_tree=False)
        assert np.abs(constant.predict(rows) - booster.predict(rows)).max() > 0.1
    assert_same(booster, rows)


TARGETS = {
    "huber": lambda y: y,
    "quantile": lambda y: y,
    "poisson": lambda y: np.round(np.exp(y / 3)),
    "gamma": lambda y: np.exp(y / 3),
    "tweedie": lambda y: np.exp(y / 3) * (y > 0),
    "binary": lambda y: y > 1,
    "cross_entropy": lambda y: 1 / (1 + np.exp(-y)),
    "multiclass": lambda y: np.searchsorted([0, 1, 2], y),
    "multiclassova": lambda y: np.searchsorted([0, 1, 2], y),
}


@pytest.mark.parametrize("objective", TARGETS)
def test_objectives(objective):
    X, y = table(600, 0.1)
    params = {"num_class": 4} if objective.startswith("multi") else {}
    params |= {"sigmoid": 1.7} if objective in ("binary", "multiclassova") else {}
    booster = trained(X, TARGETS[objective](y).astype(float), rounds=6, objective=objective, **params)
    assert_same(booster, hard_rows(booster, X))


def test_the_best_iteration_is_taken():
    X, y = table(600, 0.0)
    data, valid = lightgbm.Dataset(X[:300], y[:300]), lightgbm.Dataset(X[300:], y[300:])
    stop = lightgbm.early_stopping(3, verbose=False)
    how = {**QUIET, "linear_tree": True, "learning_rate": 0.5}
    booster = lightgbm.train(how, data, 100, valid_sets=[valid], callbacks=[stop], keep_training_booster=True)
    assert 0 < booster.best_iteration < booster.current_iteration()
    assert_same(booster, X)


def test_a_booster_of_constants():
    X, _ = table(100, 0.0)
    assert_same(trained(X, np.ones(100), rounds=2), X)


def test_what_is_not_supported_is_refused_by_name():
    X, y = table(300, 0.0)
    model = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(X, y)
    with pytest.raises(TypeError, match=r"booster is a LGBMRegressor.*pass its booster_"):
        boostbp.lightgbm_linear_to_onnx(model)
    with pytest.raises(TypeError, match="booster is a str"):
        boostbp.lightgbm_linear_to_onnx("model.txt")
    X[::3, 0] = 0.0
    for params, reason in [
        ({"reg_sqrt": True}, r"objective='regression sqrt' is not supported"),
        ({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "linear_tree": False}, "boosting='rf'"),
        ({"zero_as_missing": True, "linear_tree": False}, "zero_as_missing=True is not supported"),
    ]:
        with pytest.raises(ValueError, match=reason):
            boostbp.lightgbm_linear_to_onnx(trained(X, y, rounds=3, **params))
