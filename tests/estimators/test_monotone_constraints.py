"""Monotone constraints of estimators: kept by the whole model, by names, in files; refused where they cannot be."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from helpers import ONE_AT_ONCE, needs_torch
from monotone import thresholds_of, violations
from sklearn.base import clone

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor

SIGNS = (1, 0, -1, 0)
NAMED = {"monotone_constraints": {"price": 1, "age": -1}}
NUMBERED = {"monotone_constraints": SIGNS}
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 4))
X[rng.random(X.shape) < 0.05] = np.nan
Z = np.nan_to_num(X)
y = 2 * np.tanh(Z[:, 0]) + Z[:, 0] * Z[:, 1] - 0.5 * Z[:, 2] + np.sin(3 * Z[:, 2]) + 0.3 * rng.normal(size=len(X))
FRAME = pd.DataFrame(X, columns=["price", "a", "age", "b"])


def share(model, predict=None):
    predict = predict or (lambda rows: model.predict(rows))
    return violations(predict, X, SIGNS, thresholds_of(model.network_.layers[-1].forest))


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_the_average_of_single_layers_keeps_to_them(backend):
    model = BoostBPRegressor(quality=2, backend=backend, output=NUMBERED, random_state=0).fit(X, y)
    assert "constant leaves" in model.summary()
    assert share(model) == 0
    free = BoostBPRegressor(quality=2, backend=backend, deep=False, random_state=0).fit(X, y)
    assert share(free) > 0.01


@pytest.mark.parametrize(
    "how",
    [{"hidden_layer_sizes": ()}, {"quality": 1}, {"deep": False, "quality": 2}, {"early_stopping": False, "epochs": 5}],
    ids=repr,
)
def test_single_layers_keep_to_them(how):
    model = BoostBPRegressor(**how, output=NUMBERED, random_state=0).fit(X, y)
    assert share(model) == 0
    assert all(len(network.layers) == 1 for network in [model.network_])


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "poisson", "gamma"])
def test_predictions_of_other_losses_keep_to_them(loss):
    target = np.exp(y) if loss in ("poisson", "gamma") else y
    model = BoostBPRegressor(quality=1, loss=loss, output=NUMBERED, random_state=0).fit(X, target)
    assert share(model) == 0


def test_probabilities_of_two_classes_keep_to_them():
    model = BoostBPClassifier(quality=2, output=NUMBERED, random_state=0).fit(X, y > 0)
    assert share(model, lambda rows: model.predict_proba(rows)[:, 1]) == 0
    assert share(model, lambda rows: model.decision_function(rows)) == 0
    assert model.score(X, y > 0) > 0.8


def test_columns_are_called_by_their_names():
    named = BoostBPRegressor((), output=NAMED, random_state=0).fit(FRAME, y)
    numbered = BoostBPRegressor((), output=NUMBERED, random_state=0).fit(X, y)
    np.testing.assert_array_equal(named.predict(FRAME), numbered.predict(X))
    with pytest.raises(ValueError, match=r"names \['prize'\], but the columns are \['price', 'a', 'age', 'b'\]"):
        BoostBPRegressor((), output={"monotone_constraints": {"prize": 1}}).fit(FRAME, y)
    with pytest.raises(ValueError, match="X has no column names"):
        BoostBPRegressor((), output=NAMED).fit(X, y)


def test_signs_of_0_give_the_free_model():
    free, zeros = (
        BoostBPRegressor((), output=output, random_state=0).fit(X, y)
        for output in (None, {"monotone_constraints": [0, 0, 0, 0]})
    )
    np.testing.assert_array_equal(free.predict(X), zeros.predict(X))


def test_files_and_clones_hold_them(tmp_path):
    model = BoostBPRegressor((), output=NAMED, random_state=0).fit(FRAME, y)
    boostbp.save(model, tmp_path / "model.bbp")
    loaded = boostbp.load(tmp_path / "model.bbp")
    assert loaded.output == NAMED
    np.testing.assert_array_equal(loaded.predict(FRAME), model.predict(FRAME))
    np.testing.assert_array_equal(clone(loaded).fit(FRAME, y).predict(FRAME), model.predict(FRAME))
    assert copy.deepcopy(model).get_params()["output__monotone_constraints"] == NAMED["monotone_constraints"]


@pytest.mark.parametrize(
    ("model", "target", "cure"),
    [
        (BoostBPRegressor(deep=True, output=NUMBERED), y, "not supported in a hidden layer, or beside other layers"),
        (BoostBPRegressor(deep=True, hidden=NUMBERED), y, "not supported in a hidden layer"),
        (
            BoostBPRegressor(output=NUMBERED),
            np.stack([y, y], axis=1),
            "not supported with 2 outputs",
        ),
        (BoostBPRegressor(loss="quantile", alpha=[0.1, 0.9], output=NUMBERED), y, "with 2 outputs"),
        (BoostBPClassifier(output=NUMBERED), np.digitize(y, [-1, 1]), "with 3 outputs"),
        (BoostBPRegressor(output=NUMBERED | {"leaves": "native"}), y, "leaves='native' is not supported with"),
        (BoostBPRegressor(output=NUMBERED | {"base": "additive"}), y, "base='additive' is not supported with"),
        (BoostBPRegressor(output={"monotone_constraints": [1, 0]}), y, "has 2 signs, but X has 4 columns"),
        (BoostBPAutoencoder((2,), output=NUMBERED), None, "not supported in a hidden layer, or beside other layers"),
    ],
    ids=repr,
)
def test_what_cannot_keep_to_them_is_refused(model, target, cure):
    with pytest.raises(ValueError, match=cure):
        model.fit(*[Z] if target is None else [X, target])


def test_the_training_of_a_network_is_not_kept():
    with pytest.raises(ValueError, match="keep_state=True with monotone_constraints is not supported"):
        BoostBPRegressor(output=NUMBERED).fit(X, y, keep_state=True)


def test_an_earlier_model_is_refused():
    earlier = BoostBPRegressor(()).fit(X, y)
    with pytest.raises(ValueError, match="init_model is not supported with monotone_constraints"):
        BoostBPRegressor((), output=NUMBERED).fit(X, y, init_model=earlier)


@needs_torch
def test_torch_layers_are_refused():
    from boostbp.torch import GBDTModule

    with pytest.raises(ValueError, match="not supported in a hidden layer, or beside other layers"):
        GBDTModule(4, 1, NUMBERED)
