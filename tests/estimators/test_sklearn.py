"""Every check that scikit-learn has for estimators, on every library, without exceptions."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.backends import available

SMALL = {"hidden_layer_sizes": (3,), "n_estimators": 4, "max_depth": 3, "epochs": 2}
# The reference backend takes the same checks once: its own conformance is tested with the backends.
LIBRARIES = [name for name in available() if name != "sklearn"]
CASES = [
    pytest.param(estimator, check, id=f"{backend}-{type(estimator).__name__}-{check.func.__name__}-{number}")
    for backend in LIBRARIES
    for kind in (BoostBPRegressor, BoostBPClassifier, BoostBPAutoencoder)
    for number, (estimator, check) in enumerate(estimator_checks_generator(kind(backend=backend, **SMALL)))
]


@pytest.mark.parametrize(("estimator", "check"), CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    try:
        check(estimator)
    except Exception as error:
        if type(error).__name__ == "SkipTest":
            pytest.skip(str(error))
        raise


@pytest.mark.parametrize("backend", LIBRARIES)
@pytest.mark.parametrize("kind", [BoostBPRegressor, BoostBPClassifier])
def test_default_parameters_but_fewer_epochs_pass_the_learning_checks(kind, backend):
    for estimator, check in estimator_checks_generator(kind(backend=backend, n_jobs=2, epochs=3)):
        if check.func.__name__ in {"check_classifiers_train", "check_regressors_train"}:
            check(estimator)
