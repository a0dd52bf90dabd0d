"""Offsets: what is added to raw outputs, against closed forms, LightGBM's initial scores and shifted targets."""

from __future__ import annotations

from itertools import product

import lightgbm
import numpy as np
import pandas as pd
import pytest
import sklearn
from flat_parameters import parameters
from helpers import BACKENDS, ONE_AT_ONCE
from scipy.special import expit, softmax
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import boostbp
from boostbp import BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.inputs.rows import NO_OFFSET, Rows
from boostbp.losses import Gamma, Huber, Logistic, Poisson, Quantile, Softmax, SquaredError, Tweedie, traits_of
from boostbp.network.steps import best_constant
from boostbp.trees.sparse import Table

MODELS = {
    "network": {"hidden_layer_sizes": (3,), "deep": True, "epochs": 3},
    "moved": {"hidden_layer_sizes": (3,), "deep": True, "epochs": 3, "output_target": "moved"},
    "single": {"hidden_layer_sizes": ()},
    "ensemble": {"hidden_layer_sizes": (3,), "n_estimators": 12, "epochs": 2},
    "mean": {"hidden_layer_sizes": (3,), "n_estimators": 5, "epochs": 1, "quality": 5},
}
PAIRS = [
    pytest.param(backend, kind, marks=[pytest.mark.slow] if kind == "mean" else [])  # of four such models
    for backend, kind in product(BACKENDS, MODELS)
    if backend == "lightgbm" or kind in ("network", "single")
]
every_model = pytest.mark.parametrize(("backend", "kind"), PAIRS)
TREES = {"n_estimators": 30, "learning_rate": 0.1, "max_depth": 3, "reg_lambda": 0.0, "random_state": 0}
PLAIN = {"basis": "constant", "base": "zero", "extra_trees": False, "max_bins": 255, "early_stopping": False}
QUANTILES = {"loss": "quantile", "alpha": [0.1, 0.5, 0.9]}


def counted(rows=600, seed=0):
    """Features, exposures from a tenth to ten, and counts of a rate in proportion to them."""
    rng = np.random.default_rng(seed)
    X, exposure = rng.normal(size=(rows, 3)), np.exp(rng.uniform(-2.3, 2.3, rows))
    return X, exposure, rng.poisson(exposure * np.exp(np.sin(X[:, 0]) + 0.5 * (X[:, 1] > 0))).astype(float)


def model_of(kind, **changes):
    fast = {"n_estimators": 20, "random_state": 0}
    return BoostBPRegressor(**parameters(**(fast | MODELS[kind] | changes)))


@every_model
def test_squared_error_with_an_offset_is_the_fit_of_what_is_left(backend, kind):
    X, exposure, y = counted(300)
    offset = 3.0 * X[:, 2] + np.log(exposure)
    weight = np.arange(300) % 3
    model = model_of(kind, backend=backend).fit(X, y, weight, offset=offset)
    plain = model_of(kind, backend=backend).fit(X, y - offset, weight)
    np.testing.assert_allclose(model.predict(X, offset=0), plain.predict(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.predict(X, offset=offset), plain.predict(X) + offset, rtol=0, atol=1e-9)
    assert model.history_.scores["held_out"] == pytest.approx(plain.history_.scores["held_out"])


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
@pytest.mark.parametrize("kind", ["network", "single"])
def test_rates_are_those_of_counts_by_exposure(backend, kind):
    X, exposure, y = counted()
    groups = (X[:, :1] > 0).astype(float)
    how = {"n_estimators": 100, "learning_rate": 0.3, "early_stopping": False, "reg_lambda": 0.0, "base_lambda": 0.0}
    model = model_of(kind, backend=backend, loss="poisson", **how).fit(groups, y, offset=np.log(exposure))
    for group in (0.0, 1.0):
        rows = groups[:, 0] == group
        [rate] = model.predict([[group]], offset=0)
        assert rate == pytest.approx(y[rows].sum() / exposure[rows].sum(), rel=1e-3)
        assert model.predict([[group]], offset=[np.log(7.0)])[0] == pytest.approx(7.0 * rate)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_constant_leaves_are_those_of_lightgbm_with_an_initial_score(loss):
    X, exposure, y = counted()
    y, offset = y + (loss == "gamma"), np.log(exposure)
    model = BoostBPRegressor(**parameters(hidden_layer_sizes=(), loss=loss, **TREES, **PLAIN))
    start = model.fit(X, y, offset=offset).network_.baseline[0]
    expected = start + _lightgbm(X, y, offset + start, {"objective": loss})
    np.testing.assert_allclose(np.log(model.predict(X, offset=0)), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_odds_are_those_of_lightgbm_with_an_initial_score(n_classes):
    X, *_ = counted()
    rng = np.random.default_rng(1)
    offset = rng.normal(size=(len(X), 1 if n_classes == 2 else 3))
    y = np.argmax(np.hstack([offset + X[:, :1] * np.arange(offset.shape[1]), np.zeros((len(X), 2 - n_classes % 2))]), 1)
    y = (expit(X[:, 0] + offset[:, 0]) > rng.uniform(size=len(X))).astype(int) if n_classes == 2 else y % 3
    model = BoostBPClassifier(**parameters(hidden_layer_sizes=(), **TREES, **PLAIN)).fit(X, y, offset=offset)
    start = model.network_.baseline
    native = {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": 3}
    expected = _lightgbm(X, y, np.squeeze(offset + start), native).reshape(len(X), -1) + start
    raw = model.decision_function(X, offset=0).reshape(len(X), -1)
    np.testing.assert_allclose(raw, expected, rtol=0, atol=1e-6)
    total = raw + offset
    np.testing.assert_allclose(model.decision_function(X, offset=offset).reshape(len(X), -1), total)
    probability = np.hstack([1 - expit(total), expit(total)]) if n_classes == 2 else softmax(total, axis=1)
    np.testing.assert_allclose(model.predict_proba(X, offset=offset), probability)
    np.testing.assert_array_equal(model.predict(X, offset=offset), probability.argmax(axis=1))


def _lightgbm(X, y, score, native):
    how = native | {"learning_rate": 0.1, "max_depth": 3, "num_leaves": 8, "min_sum_hessian_in_leaf": 0.0}
    how |= {"verbosity": -1, "num_threads": 1, "boost_from_average": False}
    booster = lightgbm.train(how, lightgbm.Dataset(X, y, init_score=score), 30)
    return booster.predict(X, raw_score=True)


def rows_of(y, weight, offset=NO_OFFSET):
    return Rows(Table(np.zeros((len(y), 1))), y, weight, offset)


@pytest.mark.parametrize(
    "loss", [Poisson(), Gamma(), Tweedie(1.3), Logistic(), Softmax(), SquaredError(), Huber(), Quantile(0.8)], ids=str
)
def test_the_best_constant_beside_an_offset_has_no_slope(loss):
    rng = np.random.default_rng(0)
    weight, columns = rng.uniform(size=400), 3 if loss.name == "softmax" else 1
    offset = rng.normal(scale=2.0 if columns == 3 else 8.0, size=(400, columns))
    y = rng.gamma(2.0, size=(400, 1))
    if traits_of(loss).task == "classification":
        y = np.eye(3)[rng.integers(0, 3, 400)] if columns == 3 else rng.integers(0, 2, (400, 1)).astype(float)
    constant = best_constant(loss, rows_of(y, weight, offset))
    moves = [0.0, *(size * output for size in (-0.01, 0.01) for output in np.eye(columns))]
    best, *others = (weight @ loss.value(constant + move + offset, y) for move in moves)
    assert best <= min(others)
    np.testing.assert_array_equal(best_constant(loss, rows_of(y, weight)), loss.baseline(y, weight))
    same = best_constant(loss, rows_of(y, weight, np.full_like(offset, 0.7)))
    shifted = loss.baseline(y - 0.7, weight) if loss.scale_free else loss.baseline(y, weight) - 0.7
    np.testing.assert_allclose(loss.link(same[None]), loss.link(shifted[None]), rtol=1e-6)


def test_the_best_constant_of_counts_is_their_sum_by_the_exposures():
    _, exposure, y = counted()
    offset = np.log(exposure)[:, None]
    [constant] = best_constant(Poisson(), rows_of(y[:, None], np.ones(len(y)), offset))
    assert constant == pytest.approx(np.log(y.sum() / exposure.sum()), abs=1e-8)
    [none] = best_constant(Poisson(), rows_of(np.zeros((len(y), 1)), np.ones(len(y)), offset))
    assert np.isfinite(none)
    assert none < -10


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_evaluation_sets_have_offsets_of_their_own(backend):
    X, exposure, y = counted()
    offset, few = np.log(exposure), slice(0, 200)
    fit = {"X": X[200:], "y": y[200:], "offset": offset[200:]}
    sets = {"eval_set": [(X[few], y[few]), (X[few], y[few])], "eval_offset": (offset[few], np.zeros(200))}
    model = model_of("network", backend=backend, loss="poisson").fit(**fit, **sets)
    predicted = model.predict(X[few], offset=offset[few]), model.predict(X[few], offset=0)
    expected = [np.mean(p - y[few] * np.log(p)) for p in predicted]
    assert list(model.history_.scores.values()) == pytest.approx(expected)
    single = model_of("network", backend=backend, loss="poisson")
    single.fit(**fit, eval_X=X[few], eval_y=y[few], eval_offset=offset[few])
    np.testing.assert_array_equal(single.predict(X, offset=0), model.predict(X, offset=0))


def test_offsets_of_many_rows_are_carried_to_samples_and_pieces(tune):
    tune(MANY_ROWS=500, MANY_ROWS_SAMPLE=300)
    X, exposure, y = counted(900)
    offset = np.log(exposure)
    model = model_of("ensemble").fit(X, y, offset=offset)
    plain = model_of("ensemble").fit(X, y - offset)
    np.testing.assert_allclose(model.predict(X, offset=0), plain.predict(X), rtol=0, atol=1e-9)


def test_several_outputs_have_offsets_each():
    X, exposure, y = counted(300)
    Y, offset = np.column_stack([y, X[:, 0]]), np.column_stack([np.log(exposure), 5.0 * X[:, 1]])
    frame = pd.DataFrame(offset, columns=["a", "b"])
    model = model_of("network").fit(X, Y, offset=frame)
    np.testing.assert_allclose(model.predict(X, offset=0), model_of("network").fit(X, Y - offset).predict(X), atol=1e-9)
    np.testing.assert_allclose(model.predict(X, offset=frame), model.predict(X, offset=0) + offset)


def test_a_file_predicts_with_an_offset(tmp_path):
    X, exposure, y = counted(300)
    model = model_of("network", loss="poisson").fit(X, y, offset=np.log(exposure))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, offset=np.log(exposure)), model.predict(X, offset=np.log(exposure)))


@pytest.mark.parametrize(("n_classes", "how"), [(0, {}), (0, QUANTILES), (2, {}), (3, {})])
def test_a_graph_has_an_offset_as_a_second_input(n_classes, how):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, exposure, y = counted(300)
    offset = np.column_stack([np.log(exposure)] * 3) * [1.0, -1.0, 0.3]
    offset = offset if n_classes == 3 else offset[:, :1]
    kind = BoostBPClassifier if n_classes else BoostBPRegressor
    target = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y) if n_classes else y
    model = kind((3,), deep=True, epochs=2, n_estimators=5, random_state=0, **how).fit(X, target, offset=offset)
    graph = boostbp.to_onnx(model, offset=True).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    *_, made = session.run(None, {"X": X, "offset": offset})
    expected = model.predict_proba(X, offset=offset) if n_classes else model.predict(X, offset=offset)
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match=r"offset=True is not supported for an auto-encoder"):
        boostbp.to_onnx(boostbp.BoostBPAutoencoder((2,), epochs=1, random_state=0).fit(X), offset=True)


def test_training_goes_on_with_its_offset_only(tmp_path):
    X, exposure, y = counted(300)
    how = {"loss": "poisson", "epochs": 2}
    fit = {"offset": np.log(exposure), "checkpoint": tmp_path / "state"}
    model_of("network", **how).fit(X, y, **fit)
    more = model_of("network", **how | {"epochs": 4}).fit(X, y, **fit)
    whole = model_of("network", **how | {"epochs": 4}).fit(X, y, offset=np.log(exposure))
    np.testing.assert_array_equal(more.predict(X, offset=0), whole.predict(X, offset=0))
    with pytest.raises(ValueError, match=r"belongs to another fit: .*offset differs"):
        model_of("network", **how).fit(X, y, **fit | {"offset": exposure})


def test_scikit_learn_routes_offsets():
    X, exposure, y = counted(300)
    offset = np.log(exposure)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(model_of("single"), X, y, params={"offset": offset}, cv=3, return_estimator=True)
        assert len({model.network_.baseline[0] for model in found["estimator"]}) == 3
        pipeline = make_pipeline(StandardScaler(), model_of("single")).fit(X, y, offset=offset)
        expected = pipeline.predict(X, offset=np.zeros(300)) + offset
        np.testing.assert_allclose(pipeline.predict(X, offset=offset), expected)


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (np.zeros(5), r"offset has shape \(5,\): give \(300,\)"),
        (np.zeros((300, 2)), r"offset has shape \(300, 2\)"),
        (np.full(300, np.nan), "offset contains NaN: 300 of 300 rows"),
        (np.full(300, np.inf), "offset contains infinity"),
        (["a"] * 300, "offset holds text"),
        ("exposure", "offset='exposure' is not an array"),
        (0.5, "offset=0.5 is not an array"),
    ],
)
def test_offsets_that_cannot_be_read_are_refused(offset, message):
    X, _, y = counted(300)
    with pytest.raises(ValueError, match=message):
        model_of("single").fit(X, y, offset=offset)
    model = model_of("single").fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict(X, offset=offset)


def test_exposures_in_the_place_of_their_logarithms_are_refused():
    X, exposure, y = counted(300)
    days = 365.0 * exposure
    with pytest.raises(
        ValueError, match=r"offset holds .*, and loss='poisson' .* to 50: give the logarithm of the exposure"
    ):
        model_of("single", loss="poisson").fit(X, y, offset=days)
    model = model_of("single", loss="gamma").fit(X, y + 1.0, offset=np.log(days))
    with pytest.raises(ValueError, match=r"offset holds -50, and loss='gamma' .* from -40 to 40"):
        model.predict(X, offset=np.full(300, -50.0))
    with pytest.raises(ValueError, match=r"eval_set\[0\]: eval_offset holds"):
        model.fit(X, y + 1.0, offset=np.log(days), eval_set=(X, y + 1.0), eval_offset=days)
    with pytest.raises(ValueError, match=r"offset contains large numbers: .* holds 1e\+101"):
        model_of("single").fit(X, y, offset=np.full(300, 1e101))


def test_evaluation_sets_without_their_offsets_are_refused():
    X, _, y = counted(300)
    with pytest.raises(ValueError, match=r"eval_set\[0\]: offset is given without eval_offset"):
        model_of("single").fit(X, y, offset=y, eval_set=(X, y))
    with pytest.raises(ValueError, match=r"eval_set\[0\]: eval_offset is given without offset"):
        model_of("single").fit(X, y, eval_set=(X, y), eval_offset=y)
    with pytest.raises(ValueError, match="eval_offset holds a ndarray for 0 evaluation sets"):
        model_of("single").fit(X, y, offset=y, eval_offset=y)
