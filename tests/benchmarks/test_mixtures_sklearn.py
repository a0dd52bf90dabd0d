"""Mixtures keep scikit-learn's conventions."""

from __future__ import annotations

import pytest
from flat_parameters import parameters
from helpers import keeps_convention
from sklearn.utils.estimator_checks import estimator_checks_generator

from benchmarks.mixtures import GBDTNNRegressor, NNGBDTClassifier

pytest.importorskip("torch", reason="needs torch: pip install 'boostbp[torch]'")

SMALL = {"epochs": 1, "max_depth": 2, "n_estimators": 2, "hidden_layer_sizes": (2,), "network_steps": 3, "n_jobs": 1}
LEARNS = {"epochs": 5, "max_depth": 3, "n_estimators": 5, "hidden_layer_sizes": (8,), "n_jobs": 1}
LEARNING = {"check_classifiers_train", "check_regressors_train"}
# A row of weight 2 is two rows but for float32, and for the mini-batches that it comes in. Both kinds share what the
# checks look at: those of the classifier belong to `.ci/run`.
CASES = [
    pytest.param(estimator, check, id=f"{kind.__name__}-{check.func.__name__}-{number}", marks=marks)
    for kind, marks in ((GBDTNNRegressor, ()), (NNGBDTClassifier, pytest.mark.slow))
    for learns in (False, True)
    for number, (estimator, check) in enumerate(
        estimator_checks_generator(kind(**parameters(**(LEARNS if learns else SMALL))))
    )
    if learns == (check.func.__name__ in LEARNING) and "sample_weight_equivalence" not in check.func.__name__
]


@pytest.mark.parametrize(("estimator", "check"), CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    keeps_convention(estimator, check)
