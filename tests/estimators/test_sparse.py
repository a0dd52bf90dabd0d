"""Sparse input: the model of the dense one, to the bit, without ever writing the dense one down."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from flat_parameters import parameters
from helpers import ONE_AT_ONCE

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, Elementwise, callbacks, load, save
from boostbp.ensemble import plan
from boostbp.ensemble.candidate import CandidateKind
from boostbp.trees import linear

SMALL = {"hidden_layer_sizes": (3,), "n_estimators": 6, "max_depth": 3, "epochs": 2, "random_state": 0}
ALONE = SMALL | {"deep": True}
BOOSTING = ("lightgbm", "xgboost")


def make(rows=500, columns=20, *, missing=False, seed=0):
    rng = np.random.default_rng(seed)
    S = sp.random_array(
        (rows, columns), density=0.15, rng=rng, format="csr", data_sampler=lambda size: rng.integers(-3, 9, size) / 2
    )
    Z = S.toarray()
    y = 2 * Z[:, 0] + Z[:, 1] * (Z[:, 2] > 0) + np.abs(Z[:, 3]) + 0.1 * rng.standard_normal(rows)
    if missing:
        S.data[::29] = np.nan
    return S, S.toarray(), y


def assert_same(held, dense, S, X, *methods):
    for name in methods:
        expected = getattr(dense, name)(X)
        np.testing.assert_array_equal(getattr(held, name)(S), expected)
        np.testing.assert_array_equal(getattr(held, name)(X), expected)
    np.testing.assert_array_equal(held.jacobian(S[:9]), dense.jacobian(X[:9]))
    assert held.history_.best_epoch == dense.history_.best_epoch
    np.testing.assert_array_equal(held.history_.loss, dense.history_.loss)


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
@pytest.mark.parametrize(("shared", "base"), [(False, "ridge"), (True, "additive"), (False, None)])
def test_a_regressor_is_that_of_the_dense_table(backend, shared, base):
    S, X, y = make(missing=backend in BOOSTING)
    settings = SMALL | {"backend": backend, "base": base, "deep": True}
    settings["multi_strategy"] = "multi_output_tree" if shared else "one_output_per_tree"
    held, dense = (BoostBPRegressor(**parameters(**settings)).fit(Z, y) for Z in (S, X))
    assert_same(held, dense, S, X, "predict", "transform")


@pytest.mark.parametrize("backend", BOOSTING)
@pytest.mark.parametrize("make_sparse", [sp.csr_matrix, pytest.param(sp.csc_array, marks=pytest.mark.slow)])
def test_a_classifier_is_that_of_the_dense_table(backend, make_sparse):
    S, X, y = make()
    S, label, weight = make_sparse(S), np.digitize(y, [0.0, 3.0]), np.arange(500) % 3
    held, dense = (
        BoostBPClassifier(**parameters(**SMALL, backend=backend, deep=True, n_jobs=2, structure_samples=0.6)).fit(
            Z, label, weight, eval_set=[(Z[:100], label[:100])]
        )
        for Z in (S, X)
    )
    assert_same(held, dense, S, X, "predict", "predict_proba", "transform")


@pytest.mark.parametrize("backend", BOOSTING)
def test_depth_is_weighed_as_on_the_dense_table(backend):
    S, X, y = make()
    with pytest.MonkeyPatch.context() as patch:  # a sparse table has no directions
        patch.setattr(plan, "CANDIDATES", [one for one in plan.CANDIDATES if one.kind is not CandidateKind.DIRECTIONS])
        held, dense = (BoostBPRegressor(**parameters(**SMALL, backend=backend)).fit(Z, y) for Z in (S, X))
    assert held.history_.choice == dense.history_.choice
    assert_same(held, dense, S, X, "predict")


@pytest.mark.parametrize("hidden", [(), (3, 2)])
def test_any_number_of_layers(hidden):
    S, X, y = make()
    held, dense = (
        BoostBPRegressor(**parameters(**SMALL | {"hidden_layer_sizes": hidden, "deep": True})).fit(Z, y) for Z in (S, X)
    )
    assert_same(held, dense, S, X, "predict")


@pytest.mark.parametrize("backend", BOOSTING)
def test_columns_may_be_categorical(backend):
    S, X, y = make()
    codes = np.arange(500) % 5 - 2.0
    X[:, 7], y = codes, y + (codes == -2) * 5
    S = sp.csr_array(X)
    held, dense = (
        BoostBPRegressor(**parameters(**ALONE, backend=backend, categorical_features=[7])).fit(Z, y) for Z in (S, X)
    )
    assert_same(held, dense, S, X, "predict", "transform")


def test_a_fit_goes_on_from_a_checkpoint(tmp_path):
    S, _, y = make()
    path = tmp_path / "training.boostbp"
    whole = BoostBPRegressor(**parameters(**ALONE | {"epochs": 4})).fit(S, y)
    BoostBPRegressor(**parameters(**ALONE | {"epochs": 2})).fit(S, y, checkpoint=path)
    resumed, told = BoostBPRegressor(**parameters(**ALONE | {"epochs": 4})), [callbacks.log_evaluation(9)]
    np.testing.assert_array_equal(resumed.fit(S, y, checkpoint=path, callbacks=told).predict(S), whole.predict(S))
    other = S.copy()
    other.data[0] += 1.0
    with pytest.raises(ValueError, match="X differs"):
        resumed.fit(other, y, checkpoint=path)


def test_a_file_predicts_the_same(tmp_path):
    S, _, y = make()
    model = BoostBPRegressor(**parameters(**ALONE)).fit(S, y)
    save(model, tmp_path / "model.boostbp")
    np.testing.assert_array_equal(load(tmp_path / "model.boostbp").predict(S), model.predict(S))


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_the_dense_table_is_never_written_down(backend, tune):
    tune(linear, MAX_DECOMPOSED=100)
    rows, columns = 8000, 1500
    rng = np.random.default_rng(0)
    S = sp.random_array((rows, columns), density=0.001, rng=rng, format="csr")
    y = np.asarray(S[:, :300].sum(axis=1)).ravel()
    settings = SMALL | {"backend": backend, "epochs": 1, "n_estimators": 2, "deep": True}
    few = S[:, :10], y
    BoostBPRegressor(**parameters(**settings)).fit(*few).predict(few[0])  # compiles
    tracemalloc.start()
    model = BoostBPRegressor(**parameters(**settings)).fit(S, y)
    model.predict(S)
    model.transform(S)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows * columns * 8 / 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"leaves": "native", "basis": "linear"}, "X is sparse, .* leaves='native'.* Use leaves='refit'"),
        ({"basis": Elementwise([np.cos], [lambda x: -np.sin(x)])}, "X is sparse, .* 0 at 0. Use 'linear'"),
        ({"skip": True}, "X is sparse, .* skip=True.* Use skip=False"),
    ],
)
def test_what_needs_dense_input_says_so(changes, message):
    S, X, y = make(100)
    with pytest.raises(ValueError, match=message):
        BoostBPRegressor(**parameters(**SMALL | {"deep": True} | changes)).fit(S, y)
    dense = BoostBPRegressor(**parameters(**SMALL | {"deep": True} | changes)).fit(X, y)
    np.testing.assert_array_equal(dense.predict(S), dense.predict(X))


def test_an_autoencoder_wants_dense_input():
    with pytest.raises(TypeError, match=r"reconstructs every entry. Use X.toarray\(\)"):
        BoostBPAutoencoder((2,)).fit(make(50)[0])
