"""Refit: the leaves of a fitted model on other rows, against ridge regressions of numpy and LightGBM's own refit."""

from __future__ import annotations

import io
import pickle

import lightgbm
import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters
from helpers import BACKENDS, ONE_AT_ONCE
from scipy.sparse import csr_matrix

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, Elementwise
from boostbp.estimators.state import VERSION
from boostbp.runtime import archive

rng = np.random.default_rng(0)
X, X_NEW = rng.normal(size=(300, 4)), rng.normal(size=(120, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
Y_NEW = np.sin(2 * X_NEW[:, 0]) + 2 * X_NEW[:, 1] * X_NEW[:, 2] + 1
CLASSES, CLASSES_NEW = (np.digitize(part, [-0.6, 0.6]) for part in (Y, Y_NEW))
ONE_TREE = {"hidden_layer_sizes": (), "n_estimators": 1, "learning_rate": 1.0, "early_stopping": False, "base": "zero"}
ONE_TREE |= {"extra_trees": False, "random_state": 0}
KINDS = {
    "network": {"hidden_layer_sizes": (3,), "deep": True, "epochs": 3},
    "single": {"hidden_layer_sizes": (), "early_stopping": False},
    "layers": {"hidden_layer_sizes": (3,), "deep": False},
    "average": {"hidden_layer_sizes": (3,), "epochs": 2},
    "mean": {"hidden_layer_sizes": (3,), "epochs": 1, "quality": 5},
}


def model_of(kind="layers", estimator=BoostBPRegressor, **changes):
    return estimator(**parameters(**({"n_estimators": 12, "random_state": 0} | KINDS[kind] | changes)))


def loss_of(model, **rows):
    return model.refit(**rows, decay_rate=1).history_.refits[-1].after


def terms_of(x, scaling, degree):
    """Return phi of the rows of a leaf, (rows, terms), in its units and range."""
    center, inverse, low, high = scaling.T
    u = np.clip((x - center) * inverse, low, high)
    return np.hstack([np.ones((len(x), 1)), *(u**power for power in range(1, degree + 1))])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("basis", "degree"), [("constant", 0), ("linear", 1), ("quadratic", 2)])
@pytest.mark.parametrize("decay_rate", [0.0, 0.7])
def test_leaves_are_ridge_regressions_of_their_rows(backend, basis, degree, decay_rate):
    old = BoostBPRegressor(**parameters(backend=backend, basis=basis, reg_lambda=0.5, **ONE_TREE)).fit(X, Y)
    new = old.refit(X_NEW, Y_NEW, decay_rate=decay_rate)
    targets, leaf = old.model_.targets, old.apply(X_NEW)[:, 0]
    y = (Y_NEW - targets.shift) / targets.scale
    constant = old.network_.baseline if decay_rate else y.mean()
    before, after = (model.network_.layers[0].forest.leaves for model in (old, new))
    expected = np.empty(len(X_NEW))
    for number in np.unique(leaf):
        of_leaf = leaf == number
        path, at = (slice(*start[number : number + 2]) for start in (before.start, before.weight_start))
        scaling = (before if decay_rate else after).scaling[path]
        phi = terms_of(X_NEW[of_leaf][:, before.column[path]], scaling, degree)
        w = np.linalg.solve(phi.T @ phi + 0.5 * np.eye(phi.shape[1]), phi.T @ (y - constant)[of_leaf])
        w = decay_rate * before.weight[at] + (1 - decay_rate) * w
        np.testing.assert_allclose(after.weight[at], w, rtol=1e-8, atol=1e-10)
        expected[of_leaf] = phi @ w + constant
    np.testing.assert_allclose(new.predict(X_NEW), expected * targets.scale + targets.shift, rtol=1e-8)


def test_constant_leaves_are_those_of_lightgbms_refit():
    y, y_new = Y - Y.mean(), Y_NEW - Y.mean()
    grown = {"max_depth": 3, "num_leaves": 8, "learning_rate": 0.1, "lambda_l2": 0.0, "boost_from_average": False}
    booster = lightgbm.train(grown | {"verbose": -1}, lightgbm.Dataset(X, y), 20)
    plain = {"basis": "constant", "base": "zero", "reg_lambda": 0.0, "extra_trees": False, "max_depth": 3}
    model = model_of("single", **plain, n_estimators=20, learning_rate=0.1).fit(X, y)
    np.testing.assert_allclose(model.predict(X_NEW), booster.predict(X_NEW), rtol=1e-4, atol=1e-5)
    theirs = booster.refit(X_NEW, y_new, decay_rate=0.6)
    np.testing.assert_allclose(
        model.refit(X_NEW, y_new, decay_rate=0.6).predict(X), theirs.predict(X), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
@pytest.mark.parametrize("kind", ["network", "layers", "average", pytest.param("mean", marks=pytest.mark.slow)])
def test_a_refit_on_the_same_rows_is_the_fit_and_a_decay_rate_of_1_changes_no_bit(kind, backend):
    model = model_of(kind, backend=backend).fit(X, Y)
    again = model.refit(X, Y, decay_rate=0).history_.refits[-1]
    # Leaves are rounded to 11 bits, and hidden layers of a sum are those of the fit.
    assert again.after <= again.before * 1.001
    same = model.refit(X_NEW, Y_NEW, decay_rate=1)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same is not model


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
def test_leaves_follow_a_target_that_has_changed(backend):
    model = model_of(backend=backend, n_estimators=60).fit(X, Y)
    before = model.predict(X)
    losses = [loss_of(model.refit(X_NEW, Y_NEW, decay_rate=rate), X=X_NEW, y=Y_NEW) for rate in (0.0, 0.5, 0.9, 1.0)]
    assert losses == sorted(losses)
    assert losses[0] < 0.2 * losses[-1]
    np.testing.assert_array_equal(model.predict(X), before)  # the estimator stays


PROBLEMS = {
    "classes": (BoostBPClassifier, {"quality": 2}, CLASSES, CLASSES_NEW),
    "two classes": (BoostBPClassifier, {"class_weight": "balanced"}, CLASSES > 1, CLASSES_NEW > 1),
    "counts": (BoostBPRegressor, {"loss": "poisson"}, CLASSES, 50 * CLASSES_NEW),
    "outputs": (BoostBPRegressor, {}, np.column_stack([Y, X[:, 0]]), np.column_stack([Y_NEW, -X_NEW[:, 0]])),
    "absolute": (BoostBPRegressor, {"loss": "absolute_error"}, Y, Y_NEW),
    "monotone": (BoostBPRegressor, {"output": {"monotone_constraints": [1, 0, 0, 0]}}, Y, Y_NEW),
    "two quantiles": (BoostBPRegressor, {"loss": "quantile", "alpha": (0.1, 0.9), "deep": True}, Y, Y_NEW),
}


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("decay_rate", [0.0, 0.5, 0.9])
def test_losses_fall_and_threads_files_and_a_second_refit_change_no_bit(problem, decay_rate):
    kind, changes, y, y_new = PROBLEMS[problem]
    model = kind(hidden_layer_sizes=(3,), random_state=0, epochs=2, **changes).fit(X, y)
    new = model.refit(X_NEW, y_new, decay_rate=decay_rate)
    assert new.history_.refits[-1].after < new.history_.refits[-1].before
    file = io.BytesIO()
    boostbp.save(new, file)
    loaded = boostbp.load(io.BytesIO(file.getvalue()))
    parallel = model.set_params(n_jobs=3).refit(X_NEW, y_new, decay_rate=decay_rate)
    raw = "decision_function" if kind is BoostBPClassifier else "predict"
    for other in (loaded, parallel):
        np.testing.assert_array_equal(getattr(other, raw)(X), getattr(new, raw)(X))
    twice = [one.refit(X, y, decay_rate=decay_rate) for one in (new, loaded)]
    np.testing.assert_array_equal(getattr(twice[0], raw)(X), getattr(twice[1], raw)(X))


@pytest.mark.parametrize("decay_rate", [0.0, 0.6])
def test_a_model_is_as_monotone_as_before(decay_rate):
    model = model_of("layers", output={"monotone_constraints": [1, 0, -1, 0]}).fit(X, 2 * Y)
    new = model.refit(X_NEW, -Y_NEW, decay_rate=decay_rate)
    for feature, sign in ((0, 1), (2, -1)):
        grid = np.repeat(X[:30], 60, axis=0)
        grid[:, feature] = np.tile(np.linspace(-3, 3, 60), 30)
        steps = sign * np.diff(new.predict(grid).reshape(30, 60), axis=1)
        assert steps.min() >= -1e-9
    assert (new.predict(X) != model.predict(X)).any()


@pytest.mark.parametrize("decay_rate", [0.0, 0.6])
def test_a_leaf_that_no_row_reaches_stays(decay_rate):
    settings = parameters(max_depth=1, basis="linear", **ONE_TREE)
    model = BoostBPRegressor(**settings).fit(X[:, :1], np.where(X[:, 0] > 0, 1 + X[:, 0], -1.0))
    reached = X_NEW[:, 0] > 0.5
    new = model.refit(X_NEW[reached, :1], Y_NEW[reached], decay_rate=decay_rate)
    forests = [one.network_.layers[0].forest for one in (model, new)]
    left, right = ([forest.predict(x[None]) for forest in forests] for x in (np.array([-1.0]), np.array([1.0])))
    assert left[0] == left[1]
    assert right[0] != right[1]


@pytest.mark.parametrize("decay_rate", [0.0, 0.5])
def test_weights_count_rows_and_a_sparse_table_is_that_of_its_numbers(decay_rate):
    sparse = csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0)), csr_matrix(np.where(np.abs(X_NEW) > 0.7, X_NEW, 0.0))
    model = model_of().fit(sparse[0], Y)
    new = [model.refit(table, Y_NEW, decay_rate=decay_rate) for table in (sparse[1], sparse[1].toarray())]
    np.testing.assert_array_equal(new[0].predict(sparse[0]), new[1].predict(sparse[0]))
    twice = np.r_[0:120, 0:60]
    weight = np.r_[np.full(60, 2.0), np.ones(60)]
    by_weight = model.refit(sparse[1], Y_NEW, weight, decay_rate=decay_rate)
    by_rows = model.refit(sparse[1][twice], Y_NEW[twice], decay_rate=decay_rate)
    np.testing.assert_allclose(by_weight.predict(sparse[0]), by_rows.predict(sparse[0]), rtol=1e-2, atol=1e-2)


def test_offsets_unseen_categories_and_missing_values_are_read_as_by_predict():
    table = pd.DataFrame(X, columns=list("abcd")).assign(k=pd.Categorical(np.where(X[:, 3] > 0, "u", "v")))
    new = pd.DataFrame(X_NEW, columns=list("abcd")).assign(k=pd.Categorical(np.where(X_NEW[:, 3] > 1, "w", "v")))
    new.loc[::7, "a"] = np.nan
    model = model_of(loss="poisson").fit(table, CLASSES, offset=np.zeros(300))
    exposed = model.refit(new, 2 * CLASSES_NEW, decay_rate=0, offset=np.full(120, np.log(2.0)))
    plain = model.refit(new, CLASSES_NEW, decay_rate=0, offset=0)
    np.testing.assert_allclose(exposed.predict(new, offset=0), plain.predict(new, offset=0), rtol=0.05)
    with pytest.raises(ValueError, match="refit needs the offset of its rows"):
        model.refit(new, CLASSES_NEW)


def test_a_file_of_the_version_before_loads_and_its_refit_is_refused():
    file = io.BytesIO()
    boostbp.save(model_of("single").fit(X, Y), file)
    content, arrays = archive.from_bytes(file.getvalue(), "new", archive.Archive, kind="model", version=VERSION)
    del content["network"]["layers"][0]["runs"], content["history"]["refits"]
    old = archive.to_bytes(kind="model", version=9, content=content, arrays=arrays)
    loaded = boostbp.load(io.BytesIO(old))
    assert loaded.history_.refits == []
    with pytest.raises(ValueError, match=r"refit is not supported .* file of version 9"):
        loaded.refit(X_NEW, Y_NEW)


def test_damaged_runs_of_a_file_are_refused():
    file = io.BytesIO()
    boostbp.save(model_of("single").fit(X, Y), file)
    for changes in (
        {"n_trees": 5},
        {"n_base": -1},
        {"weight": 0.0},
        {"learning_rate": 9.0},
        {"base": "no"},
        {"stage": 7},
    ):
        content, arrays = archive.from_bytes(file.getvalue(), "new", archive.Archive, kind="model", version=VERSION)
        content["network"]["layers"][0]["runs"][0] |= changes
        wrong = archive.to_bytes(kind="model", version=VERSION, content=content, arrays=arrays)
        with pytest.raises(ValueError, match="run"):
            boostbp.load(io.BytesIO(wrong))


def test_a_sum_with_an_earlier_model_is_fitted_again_one_after_the_other():
    first = model_of("single").fit(X, Y)
    both = model_of("layers").fit(X, Y, init_model=first)
    assert both.network_.layers[-1].forest.runs[0].stage == 0
    assert {run.stage for run in both.network_.layers[-1].forest.runs} == {0, 1}
    again = both.refit(X, Y, decay_rate=0).history_.refits[-1]
    assert again.after <= again.before * 1.01
    halfway = both.refit(X_NEW, Y_NEW, decay_rate=0.5).history_.refits[-1]
    assert halfway.after < 0.5 * halfway.before


@pytest.mark.parametrize("decay_rate", [0.0, 0.5])
def test_functions_of_the_users_own_and_leaves_without_clipping(decay_rate):
    for changes in ({"basis": Elementwise([np.sin], [np.cos])}, {"clip": False}, {"standardize": False}):
        record = model_of("single", **changes).fit(X, Y).refit(X_NEW, Y_NEW, decay_rate=decay_rate).history_.refits[-1]
        assert record.after < 0.8 * record.before


@pytest.mark.parametrize("loss", ["rank_xendcg", "lambdarank", "rank:pairwise"])
def test_rankers_follow_other_queries(loss):
    grades, grades_new = (np.clip(np.round(part + 1), 0, 4) for part in (X[:, 0], X_NEW[:, 0] - X_NEW[:, 1]))
    model = BoostBPRanker(loss=loss, quality=1, random_state=0).fit(X, grades, qid=np.arange(300) // 10)
    sizes = {"group": np.full(12, 10)}
    for rate in (0.0, 0.5):
        new = model.refit(X_NEW, grades_new, **sizes, decay_rate=rate)
        assert new.score(X_NEW, grades_new, **sizes) > model.score(X_NEW, grades_new, **sizes) + 0.05
    with pytest.raises(ValueError, match="group and qid are missing"):
        model.refit(X_NEW, grades_new)


def test_labels_of_a_row_are_fitted_again_each():
    labels, new = (np.column_stack([part[:, 0] > 0, part[:, 1] > 0.5]).astype(int) for part in (X, -X_NEW))
    model = model_of("layers", BoostBPClassifier).fit(X, labels)
    for rate in (0.0, 0.5):
        record = model.refit(X_NEW, new, decay_rate=rate).history_.refits[-1]
        assert record.after < 0.5 * record.before


def test_reports_say_what_is_new_and_keep_what_is_old():
    model = model_of("network", calibration=0.2).fit(X, Y)
    new = model.refit(X_NEW, Y_NEW).refit(X_NEW, Y_NEW, decay_rate=0)
    first, second = new.history_.refits
    assert (first.rows, first.decay_rate, second.decay_rate) == (120, 0.9, 0)
    assert second.before == pytest.approx(first.after)
    assert model.history_.refits == []
    assert new.summary().startswith(model.summary())
    assert "fitted again to 120 rows with decay_rate=0.9" in new.summary()
    assert new.health().layers == model.health().layers  # hidden layers stay
    np.testing.assert_array_equal(new.transform(X), model.transform(X))
    with pytest.raises(ValueError, match="not calibrated"):
        new.predict_interval(X)
    new.calibrate(X, Y).predict_interval(X)
    np.testing.assert_allclose(new.feature_summary_.center, X_NEW.mean(0))
    found = new.attributions(X[:5])
    np.testing.assert_allclose(found.values.sum(-1).ravel() + found.base_values.ravel(), new.predict(X[:5]))


def test_exports_and_pickles_have_the_new_leaves():
    session = pytest.importorskip("onnxruntime").InferenceSession
    model = model_of("average").fit(X, Y)
    new = model.refit(X_NEW, Y_NEW, decay_rate=0.5)
    graph = session(boostbp.to_onnx(new).SerializeToString())
    [found] = graph.run(None, {graph.get_inputs()[0].name: X})
    np.testing.assert_allclose(found.ravel(), new.predict(X), rtol=1e-9)
    assert boostbp.to_c(new) != boostbp.to_c(model)
    copied = pickle.loads(pickle.dumps(new))
    np.testing.assert_array_equal(copied.refit(X, Y).predict(X), new.refit(X, Y).predict(X))


def test_what_cannot_be_fitted_again_is_refused_by_name():
    native = BoostBPRegressor(output={"leaves": "native"}, deep=False, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"refit is not supported .*leaves='native'"):
        native.refit(X_NEW, Y_NEW)
    model = model_of("single", BoostBPClassifier).fit(X, CLASSES)
    with pytest.raises(ValueError, match=r"classes unknown to the old model, \[3\]"):
        model.refit(X_NEW, CLASSES_NEW + 1)
    with pytest.raises(ValueError, match=r"decay_rate=1\.5 is not allowed"):
        model.refit(X_NEW, CLASSES_NEW, decay_rate=1.5)
    with pytest.raises(ValueError, match="y has 2 outputs, the model 1"):
        model_of("single").fit(X, Y).refit(X, np.column_stack([Y, Y]))
    assert not hasattr(BoostBPAutoencoder(), "refit")
