"""Whatever a parameter is set to: a model, or an error that names the parameter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor

X = np.random.default_rng(0).standard_normal((60, 3))
Y = X[:, 0]
FAST = {"hidden_layer_sizes": (2,), "n_estimators": 2, "epochs": 1, "deep": True, "random_state": 0, "max_time": 10}
ODD = [
    -1, 0.5, float("nan"), 10**30, "x", "", b"x", [], [None], [1, 2, 3], ("singular",), {"a": 1}, object(),
    np.array([1.0, 2.0]), 1 + 2j, [["a"]],
]  # fmt: skip
OWN = {
    "eval_metric": "a function of the user's raises what it raises",
    "verbose": "prints",
}
KINDS = [BoostBPRegressor, BoostBPClassifier, BoostBPAutoencoder]
NAMES = {kind: [name for name in kind().get_params() if name not in OWN] for kind in KINDS}
CASES = [(kind, name) for kind in KINDS for name in NAMES[kind] if kind is KINDS[0] or name not in NAMES[KINDS[0]]]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_model_or_an_error_that_names_the_parameter(kind, name):
    for value in ODD:
        model = kind(**{name: FAST[name] for name in FAST if kind is not BoostBPAutoencoder or name != "deep"})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.set_params(**{name: value})
                model.fit(X, {BoostBPRegressor: Y, BoostBPClassifier: Y > 0, BoostBPAutoencoder: None}[kind])
        except (ValueError, TypeError) as error:
            if name.rpartition("__")[2] not in str(error):
                pytest.fail(f"{name}={value!r}: {error}")
        assert not hasattr(model, "network_") or np.isfinite(model.predict(X)).all()
