"""Every check that scikit-learn has for estimators, on every library, without exceptions."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import ONE_AT_ONCE, WITH_CATEGORIES, keeps_convention
from sklearn import config_context
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, BoostBPSurvival, fit_layer
from boostbp.estimators.base import BaseBoostBP

KINDS = [BoostBPRegressor, BoostBPClassifier, BoostBPAutoencoder, BoostBPSurvival]
SMALL = {"hidden_layer_sizes": (3,), "n_estimators": 4, "max_depth": 3, "epochs": 2}
LEARNING = {"check_classifiers_train", "check_regressors_train"}


def is_slow(backend, check):
    """Whether another case holds nearly the same: with LightGBM, a sparse array, memory that can be written."""
    again = "sparse_matrix" in check.func.__name__ or (check.func.__name__ in LEARNING and check.keywords)
    return again or backend != "lightgbm"


# The reference backend takes the same checks once: its own conformance is tested with the backends.
CASES = [
    pytest.param(
        estimator,
        check,
        id=f"{backend}-{type(estimator).__name__}-{check.func.__name__}-{number}",
        marks=pytest.mark.slow if is_slow(backend, check) else (),
    )
    for backend in WITH_CATEGORIES
    for kind in KINDS
    for number, (estimator, check) in enumerate(
        estimator_checks_generator(kind(**parameters(backend=backend, **SMALL)))
    )
    # a sparse matrix is read as a sparse array is, whoever grows trees
    if backend == "lightgbm" or "sparse_matrix" not in check.func.__name__
]


@pytest.mark.parametrize(("estimator", "check"), CASES)
@pytest.mark.filterwarnings("ignore:transform returns no columns")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    keeps_convention(estimator, check)


@pytest.mark.slow
@pytest.mark.full_length
@pytest.mark.parametrize("backend", WITH_CATEGORIES)
@pytest.mark.parametrize("kind", [BoostBPRegressor, BoostBPClassifier])
def test_default_parameters_but_fewer_epochs_pass_the_learning_checks(kind, backend):
    checks = estimator_checks_generator(kind(backend=backend, n_jobs=2, epochs=3))
    # once each: memory that cannot be written and other kinds of numbers are checked above
    [(estimator, check)] = [one for one in checks if one[1].func.__name__ in LEARNING and not one[1].keywords]
    check(estimator)


def test_columns_of_a_lower_layer_have_no_names_whoever_asks_for_a_frame():
    X, y = load_diabetes(return_X_y=True)
    model = BoostBPRegressor((3, 2), **parameters(n_estimators=2, epochs=1, deep=True, random_state=0))
    with config_context(transform_output="pandas"):
        with pytest.raises(NotFittedError):
            model.transform(X, layer=0)
        model.fit(X, y)
        with pytest.raises(ValueError, match="layer=0 with set_output is not supported"):
            model.transform(X, layer=0)
        assert model.transform(X).shape == (len(X), 2)


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
@pytest.mark.parametrize("deep", ["auto", True])
def test_weights_that_are_shares_are_as_good_as_ones(backend, deep):
    X, y = load_diabetes(return_X_y=True)
    # six rounds: the slopes of fewer span so little that some directions of features are those of rounding
    settings = {"n_estimators": 6, "epochs": 1, "deep": deep, "backend": backend, "random_state": 0}
    plain = BoostBPRegressor((2,), **parameters(**settings)).fit(X, y)
    shares = BoostBPRegressor((2,), **parameters(**settings)).fit(X, y, sample_weight=np.full(len(y), 1 / len(y)))
    np.testing.assert_allclose(shares.predict(X), plain.predict(X), rtol=1e-6)
    layers = [fit_layer(X, y, {"n_estimators": 3}, backend=backend, sample_weight=w) for w in (None, 1e-3)]
    np.testing.assert_allclose(layers[0].predict(X), layers[1].predict(X), rtol=1e-6)


@pytest.mark.parametrize("module", ["boostbp", "boostbp.dask", "boostbp.spark"])
def test_views_in_notebooks_link_to_a_page_of_the_reference(module):
    listed = (Path(__file__).parents[2] / "docs" / "reference" / "index.md").read_text(encoding="utf-8").split()
    site = "https://boostbp.github.io/boostbp/reference/generated"
    for kind in vars(pytest.importorskip(module)).values():
        if inspect.isclass(kind) and issubclass(kind, BaseBoostBP) and kind.__module__.startswith(module):
            name = f"{module}.{kind.__name__}"
            assert f'href="{site}/{name}.html"' in kind()._repr_html_()
            assert name.removeprefix("boostbp.") in listed  # for which Sphinx makes the page
    assert type("Mine", (BoostBPRegressor,), {"__module__": "mine"})()._get_doc_link() == ""


def test_number_of_classes_is_that_of_their_labels():
    model = BoostBPClassifier(quality=1, n_estimators=2, random_state=0).fit(np.eye(40)[:, :2], np.arange(40) % 3)
    assert model.n_classes_ == len(model.classes_) == 3
