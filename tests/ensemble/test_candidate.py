"""Residual quantiles: the mean of a target, moved to each of several levels."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BACKENDS, interrupted_fit
from problems import LAYER, problem_of, scaled
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_pinball_loss

from boostbp import BoostBPRegressor, load, save, to_onnx
from boostbp.ensemble.candidate import directions_of, mean_and_quantiles, single_layer
from boostbp.ensemble.output_layers import LayerTraining
from boostbp.losses import Quantiles
from boostbp.losses.base import weighted_quantile

LEVELS = (0.05, 0.5, 0.9)
MEAN = single_layer("mean", lambda problem: LAYER)


def copies(rows, seed):
    X, y = scaled(rows, seed)
    return X, np.repeat(y, len(LEVELS), axis=1)


def problem(**how):
    return problem_of(copies(240, 0), copies(120, 1), loss=Quantiles(LEVELS), **how)


def trained(candidate, of, needed=None, pieces=3):
    training = candidate.begin(of, needed)
    for _ in range(pieces):
        training = training.advance()
    return training


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_level_is_the_mean_and_a_quantile_of_held_out_residuals(backend):
    of = problem(backend=backend)
    result = trained(mean_and_quantiles(MEAN), of).result
    mean = trained(MEAN, problem_of(backend=backend)).result
    residuals = of.target[:, :1] - mean.held_out
    for k, level in enumerate(LEVELS):
        distance = weighted_quantile(residuals, of.held_out.weight, level)
        np.testing.assert_allclose(result.held_out[:, [k]], mean.held_out + distance, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.model.predict(of.held_out.X), result.held_out, rtol=0, atol=1e-12)
    assert result.plan is None


def test_directions_of_the_mean_have_the_same_distances_in_all_rows():
    of = problem()
    mean = trained(mean_and_quantiles(MEAN), of).result
    along = mean_and_quantiles(directions_of("mean", lambda problem: LAYER, name="directions of the mean"))
    result = trained(along, of, mean).result
    np.testing.assert_allclose(result.model.predict(of.held_out.X), result.held_out, rtol=0, atol=1e-12)
    assert np.ptp(np.diff(result.held_out, axis=1), axis=0).max() < 1e-12


@pytest.mark.parametrize(
    "names",
    [
        ("mean", "directions of the mean"),
        pytest.param(("mean",), marks=pytest.mark.slow),
        pytest.param(("mean", "single layer"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_sums_with_residual_quantiles_are_models_like_others(choose, names, tmp_path):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    choose(*names)
    X, y = make_friedman1(300, n_features=5, noise=1.0, random_state=0)
    model = BoostBPRegressor(loss="quantile", alpha=LEVELS, epochs=1, random_state=0).fit(X, y)
    assert {one.name for one in model.history_.choice.candidates if one.weight} == set(names)
    predicted = model.predict(X)
    assert predicted.shape == (300, 3)
    found = model.attributions(X[:5])
    targets = model.model_.targets
    np.testing.assert_allclose(
        found.base_values + found.values.sum(axis=-1),
        model._raw(X[:5]) * targets.scale + targets.shift,
        rtol=1e-6,
    )
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), predicted)
    graph = to_onnx(model)
    onnx.checker.check_model(graph)
    [served] = runtime.InferenceSession(graph.SerializeToString()).run(None, {"X": X})
    np.testing.assert_allclose(served, predicted, rtol=0, atol=1e-12 * y.std())


def test_where_noise_is_the_same_everywhere_the_mean_gets_near_the_true_quantiles():
    X, y = make_friedman1(2500, n_features=5, noise=1.0, random_state=0)
    model = BoostBPRegressor(loss="quantile", alpha=LEVELS, deep=False, random_state=0).fit(X[:1000], y[:1000])
    weights = {one.name: one.weight for one in model.history_.choice.candidates}
    assert sum(weight for name, weight in weights.items() if "mean" in name) > 0.3
    predicted, plain = model.predict(X[1000:]), BoostBPRegressor(loss="quantile", alpha=LEVELS, quality=1)
    plain = plain.fit(X[:1000], y[:1000]).predict(X[1000:])
    losses = [
        np.mean([mean_pinball_loss(y[1000:], of[:, k], alpha=level) for k, level in enumerate(LEVELS)])
        for of in (predicted, plain)
    ]
    assert losses[0] < 0.9 * losses[1]


def test_no_other_loss_has_residual_quantiles():
    X, y = make_friedman1(200, n_features=5, noise=1.0, random_state=0)
    for loss in ("squared_error", "quantile"):
        model = BoostBPRegressor(loss=loss, deep=False, random_state=0).fit(X, y)
        assert not any("mean" in one.name for one in model.history_.choice.candidates)


def test_an_interrupt_leaves_a_model_of_what_is_there(press, tune):
    X, y = make_friedman1(300, n_features=5, noise=1.0, random_state=0)
    tune(PIECE_ROUNDS=5)
    press(LayerTraining, "advance", 4)
    model = BoostBPRegressor(loss="quantile", alpha=LEVELS, deep=False, random_state=0)
    assert np.isfinite(interrupted_fit(model, X, y).predict(X)).all()
