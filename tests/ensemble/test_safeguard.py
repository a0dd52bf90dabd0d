"""No model is worse on the rows that judge it than the constant; on noise it is that constant, and no fit raises."""

from __future__ import annotations

import numpy as np
import pytest
from user_losses import UserLoss

from boostbp import BoostBPClassifier, BoostBPRegressor, load, plots, save, to_c
from boostbp.network.choice import CONSTANT
from boostbp.network.history import NETWORK

rng = np.random.default_rng(5)
X = rng.standard_normal((140, 5))
TRAIN, HELD = slice(0, 100), slice(100, 140)
TARGETS = {
    "numbers": (BoostBPRegressor, "squared_error", rng.standard_normal(140)),
    "far off": (BoostBPRegressor, "absolute_error", rng.standard_t(1.0, 140)),
    "counts": (BoostBPRegressor, "poisson", rng.poisson(2.0, 140).astype(float)),
    "two classes": (BoostBPClassifier, "log_loss", rng.integers(0, 2, 140)),
    "three classes": (BoostBPClassifier, "log_loss", rng.integers(0, 3, 140)),
}
WAYS = {
    "1": {"quality": 1},
    "2, no network": {"quality": 2, "deep": False},
    "network": {"deep": True, "epochs": 3},
    "network to targets": {"deep": True, "epochs": 3, "backprop": {"output_target": "moved"}},
    "one layer": {"hidden_layer_sizes": ()},
}


def loss_of(model, X, y, raw=None):
    """Mean held-out loss of a model, or of one raw output for all rows, computed from the formulas."""
    raw = model.network_.predict(model._read(X).X) if raw is None else np.tile(raw, (len(y), 1))
    targets = model.model_.targets
    if isinstance(model, BoostBPClassifier):
        y = y[:, None] == (model.classes_[1:] if raw.shape[1] == 1 else model.classes_)
        return targets.loss.value(raw, y.astype(float)).mean()
    return targets.loss.value(raw, targets.to_loss(y[:, None])).mean()


def constant_of(model, y):
    if isinstance(model, BoostBPClassifier):
        target = (y[:, None] == (model.classes_[1:] if len(model.classes_) == 2 else model.classes_)).astype(float)
    else:
        target = (y[:, None] - model.model_.targets.shift) / model.model_.targets.scale
    return model.model_.targets.loss.baseline(target, np.ones(len(y)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", TARGETS)
def test_noise_gives_no_model_worse_than_the_constant(kind, way):
    estimator, loss, y = TARGETS[kind]
    how = {"hidden_layer_sizes": (4,), "random_state": 0, "loss": loss} | WAYS[way]
    model = estimator(how.pop("hidden_layer_sizes"), **how).fit(X[TRAIN], y[TRAIN], eval_set=(X[HELD], y[HELD]))
    constant = loss_of(model, X[HELD], y[HELD], constant_of(model, y[TRAIN]))
    slack = 2e-3 if kind.endswith("classes") else 1e-6  # labels are smoothed where models are compared
    start = 0.0 if way == "network to targets" and kind != "numbers" else None  # the paper's start, not a constant
    if start is not None:
        constant = max(constant, loss_of(model, X[HELD], y[HELD], np.zeros(model.network_.baseline.shape)))
    assert loss_of(model, X[HELD], y[HELD]) <= constant + slack


def test_the_constant_is_a_model_like_others(tmp_path):
    y = X[:, 0]
    for how in ({"quality": 1}, {"deep": True, "epochs": 3}):
        model = BoostBPRegressor((4,), random_state=0, **how).fit(X[TRAIN], y[TRAIN], eval_set=(X[HELD], -y[HELD]))
        assert model.summary().startswith("The model is a constant.")
        np.testing.assert_allclose(model.predict(X), y[TRAIN].mean())
        save(model, tmp_path / "constant.boostbp")
        np.testing.assert_array_equal(load(tmp_path / "constant.boostbp").predict(X), model.predict(X))
        assert "predict" in to_c(model)
        assert np.isfinite(model.feature_importances_).all()
        assert model.jacobian(X[:2]).tolist() == np.zeros((2, 1, 5)).tolist()
        if "deep" in how:
            assert model.transform(X).shape == (140, 4)
            assert model.history_.weight(NETWORK) == 0.0


class TooLong(UserLoss):
    """A squared error whose hessian is right on the rows and at the outputs on which losses are tried, only."""

    def hessian(self, h, y):
        return np.full(h.shape, 1.0 if len(h) <= 64 or np.ptp(h) == 0.0 else 1e-3)


@pytest.mark.parametrize("way", ["1", "network", "all rows"])
def test_a_loss_that_does_not_learn_is_an_error_with_both_losses(way):
    data = np.random.default_rng(0).standard_normal((300, 3))
    how = {"hidden_layer_sizes": (4,), "random_state": 0, "n_estimators": 6, "epochs": 2}
    how |= WAYS.get(way, {"hidden_layer_sizes": (), "early_stopping": False})
    model = BoostBPRegressor(how.pop("hidden_layer_sizes"), loss=TooLong(), **how)
    message = (
        r"worse than a constant: on training rows the mean loss is \S+, that of the constant \S+.*loss=TooLong, which "
        r"boostbp.check_loss\(loss, y\) checks"
    )
    with pytest.raises(ValueError, match=message):
        model.fit(data, data[:, 0] * data[:, 1])


@pytest.mark.parametrize("way", ["2, no network", "one layer"])
def test_its_rounds_until_then_are_a_model(way):
    data = np.random.default_rng(0).standard_normal((300, 3))
    how = {"hidden_layer_sizes": (4,), "random_state": 0, "n_estimators": 6} | WAYS[way]
    model = BoostBPRegressor(how.pop("hidden_layer_sizes"), loss=TooLong(), **how).fit(data, 3.0 + data[:, 0])
    assert model.score(data, 3.0 + data[:, 0]) >= 0.0


@pytest.mark.parametrize("way", ["one layer", "network to targets"])
def test_all_views_of_a_model_that_is_the_constant_are_of_the_constant(way, tmp_path):
    y, how = X[:, 0], {"hidden_layer_sizes": (4,), "random_state": 0} | WAYS[way]
    model = BoostBPRegressor(how.pop("hidden_layer_sizes"), **how)
    model.fit(X[TRAIN], y[TRAIN], eval_set=(X[HELD], -y[HELD]))
    history, score = model.history_, np.sqrt(np.mean(np.square(model.predict(X[HELD]) + y[HELD])))
    assert history.choice.lead == CONSTANT
    assert (model.best_iteration_, history.iterations) == (0, [0])
    assert model.evals_result_ == {"valid_0": {"rmse": [pytest.approx(score)]}}
    assert model.best_score_ == {"valid_0": {"rmse": pytest.approx(score)}}
    if way == "one layer":
        assert model.summary().startswith("The model is a constant.")
        assert history[0].metrics == model.history_.scores
        assert history[0].loss == pytest.approx(np.var(y[TRAIN]) / 2 / model.model_.targets.scale[0] ** 2)
    assert len(plots.training_curves(model)[-1].lines) == 2
    save(model, tmp_path / "model.boostbp")
    assert load(tmp_path / "model.boostbp").history_ == history
