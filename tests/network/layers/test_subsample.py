"""Trees of a sample of the rows: which rows count, and that leaves are fitted on all of them."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BACKENDS, make_targets, make_X

from boostbp import BoostBPRegressor, LayerSpec, backends, fit_layer

X = make_X(600)
Y = make_targets(X)
STUMPS = LayerSpec(n_estimators=4, max_depth=2, base="zero", basis="constant", reg_lambda=0.0, extra_trees=False)


class Watched:
    """A backend that keeps the hessians that it is given, call by call."""

    def __init__(self, name):
        self.inner, self.seen = backends.load_backend(name), []
        self.capabilities = self.inner.capabilities

    def bind(self, table, growth):
        return WatchedGrower(self.inner.bind(table, growth), self.seen)


class WatchedGrower:
    def __init__(self, inner, seen):
        self.inner, self.seen = inner, seen

    def fork(self, outputs, seed):
        return WatchedGrower(self.inner.fork(outputs, seed), self.seen)

    def grow(self, grad, hess):
        self.seen.append(np.array(hess))
        return self.inner.grow(grad, hess)


@pytest.mark.parametrize("multi_strategy", ["one_output_per_tree", "multi_output_tree"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_share_of_the_rows_counts_anew_each_round_the_same_for_all_outputs(backend, multi_strategy):
    watched = Watched(backend)
    spec = {"n_estimators": 30, "max_depth": 2, "subsample": 0.3, "multi_strategy": multi_strategy}
    fit_layer(X, Y, spec, backend=watched, n_jobs=1)
    counted = [hess > 0.5 for hess in watched.seen]
    assert all((rows == rows[:, :1]).all() for rows in counted)
    by_round = np.unique([rows[:, 0] for rows in counted], axis=0)
    assert len(by_round) == 30
    assert by_round.mean() == pytest.approx(0.3, abs=0.02)
    assert by_round.any(axis=0).all()  # no row is left out for ever
    assert all(0 < hess.min() < 1e-9 for hess in watched.seen)  # those that do not count can still be divided by


@pytest.mark.parametrize("backend", BACKENDS)
def test_leaves_are_the_means_of_all_their_rows(backend):
    spec = LayerSpec(n_estimators=1, learning_rate=1.0, subsample=0.2).or_else(STUMPS)
    layer = fit_layer(X, Y[:, 0], spec, backend=backend)
    prediction = layer.predict(X)[:, 0]
    assert len(np.unique(prediction)) == 4
    for value in np.unique(prediction):
        assert value == pytest.approx(Y[prediction == value, 0].mean(), rel=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_rows_are_no_sample_and_a_sample_follows_the_seed_and_no_thread(backend):
    def predict(**how):
        options = {name: how.pop(name) for name in ("random_state", "n_jobs") if name in how}
        return fit_layer(X, Y, LayerSpec(**how).or_else(STUMPS), backend=backend, **options).predict(X)

    np.testing.assert_array_equal(predict(subsample=1.0), predict())
    np.testing.assert_array_equal(predict(subsample=0.5, n_jobs=1), predict(subsample=0.5, n_jobs=3))
    assert np.abs(predict(subsample=0.5) - predict()).max() > 1e-3
    assert np.abs(predict(subsample=0.5) - predict(subsample=0.5, random_state=1)).max() > 1e-3


def test_a_sample_of_almost_no_rows_grows_no_tree_that_is_not_finite():
    for backend in BACKENDS:
        layer = fit_layer(X, Y, {"n_estimators": 5, "subsample": 1e-9}, backend=backend)
        assert np.isfinite(layer.predict(X)).all()


def test_what_says_the_same_twice_is_refused():
    for name, native in (("subsample", "bagging_fraction"), ("colsample_bytree", "feature_fraction")):
        model = BoostBPRegressor((), output={name: 0.5}, backend_params={native: 0.5})
        with pytest.raises(ValueError, match=rf"{name}=0.5 and backend_params\['{native}'\] mean the same"):
            model.fit(X, Y)
    with pytest.raises(ValueError, match=r"^subsample=0.5 is not supported with leaves="):
        BoostBPRegressor((), output={"leaves": "native", "subsample": 0.5}).fit(X, Y[:, 0])
