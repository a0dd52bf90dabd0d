"""Every check that scikit-learn has for estimators, on every library, without exceptions."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BACKENDS, WITH_CATEGORIES, keeps_convention
from sklearn import clone, config_context
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, fit_layer

SMALL = {"hidden_layer_sizes": (3,), "n_estimators": 4, "max_depth": 3, "epochs": 2}
# The reference backend takes the same checks once: its own conformance is tested with the backends.
CASES = [
    pytest.param(estimator, check, id=f"{backend}-{type(estimator).__name__}-{check.func.__name__}-{number}")
    for backend in WITH_CATEGORIES
    for kind in (BoostBPRegressor, BoostBPClassifier, BoostBPAutoencoder)
    for number, (estimator, check) in enumerate(estimator_checks_generator(kind(backend=backend, **SMALL)))
]


@pytest.mark.parametrize(("estimator", "check"), CASES)
@pytest.mark.filterwarnings("ignore:transform. no network has weight")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    keeps_convention(estimator, check)


@pytest.mark.full_length
@pytest.mark.parametrize("backend", WITH_CATEGORIES)
@pytest.mark.parametrize("kind", [BoostBPRegressor, BoostBPClassifier])
def test_default_parameters_but_fewer_epochs_pass_the_learning_checks(kind, backend):
    learning = {"check_classifiers_train", "check_regressors_train"}
    checks = estimator_checks_generator(kind(backend=backend, n_jobs=2, epochs=3))
    # once each: memory that cannot be written and other kinds of numbers are checked above
    [(estimator, check)] = [one for one in checks if one[1].func.__name__ in learning and not one[1].keywords]
    check(estimator)


def test_classes_derived_from_ours_keep_all_parameters():
    class Mine(BoostBPRegressor):
        def __init__(self, hidden_layer_sizes=(16,), *, extra=1, **shared):
            self.extra = extra
            super().__init__(hidden_layer_sizes, **shared)

    class MineToo(BoostBPClassifier):
        def __init__(self, hidden_layer_sizes=(16,), **shared):
            super().__init__(hidden_layer_sizes, **shared)

    assert clone(Mine(loss="absolute_error", extra=2)).get_params()["loss"] == "absolute_error"
    assert set(Mine().get_params()) == set(BoostBPRegressor().get_params()) | {"extra"}
    assert clone(MineToo(class_weight="balanced")).class_weight == "balanced"


def test_columns_of_a_lower_layer_have_no_names_whoever_asks_for_a_frame():
    X, y = load_diabetes(return_X_y=True)
    model = BoostBPRegressor((3, 2), n_estimators=2, epochs=1, deep=True, random_state=0)
    with config_context(transform_output="pandas"):
        with pytest.raises(NotFittedError):
            model.transform(X, layer=0)
        model.fit(X, y)
        with pytest.raises(ValueError, match="layer=0 with set_output is not supported"):
            model.transform(X, layer=0)
        assert model.transform(X).shape == (len(X), 2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("deep", ["auto", True])
def test_weights_that_are_shares_are_as_good_as_ones(backend, deep):
    X, y = load_diabetes(return_X_y=True)
    settings = {"n_estimators": 3, "epochs": 1, "deep": deep, "backend": backend, "random_state": 0}
    plain = BoostBPRegressor((2,), **settings).fit(X, y)
    shares = BoostBPRegressor((2,), **settings).fit(X, y, sample_weight=np.full(len(y), 1 / len(y)))
    np.testing.assert_allclose(shares.predict(X), plain.predict(X), rtol=1e-6)
    layers = [fit_layer(X, y, backend=backend, n_estimators=3, sample_weight=w) for w in (None, 1e-3)]
    np.testing.assert_allclose(layers[0].predict(X), layers[1].predict(X), rtol=1e-6)
