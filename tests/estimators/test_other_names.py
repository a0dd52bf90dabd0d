"""What users of scikit-learn and LightGBM look for by name: leaves, staged predictions, numbers of training."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
from flat_parameters import parameters
from helpers import ONE_AT_ONCE, WITH_CATEGORIES
from sklearn.datasets import load_iris, make_friedman1
from sklearn.utils import get_tags

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.losses import Logistic

X, y = make_friedman1(300, n_features=5, random_state=0)
MODELS = {
    "network": {"hidden_layer_sizes": (3,), "deep": True, "epochs": 4},
    "skip": {"hidden_layer_sizes": (3, 2), "deep": True, "epochs": 2, "skip": True},
    "single": {"hidden_layer_sizes": ()},
    "average": {"hidden_layer_sizes": (3,), "n_estimators": 12, "epochs": 2},
}
PLAIN = {"basis": "constant", "base": "zero", "extra_trees": False, "max_bins": 255, "early_stopping": False}
every_model = pytest.mark.parametrize("kind", MODELS)
every_backend = pytest.mark.parametrize("backend", ONE_AT_ONCE)


def regressor(kind, **changes):
    return BoostBPRegressor(**parameters(**{"n_estimators": 20, "random_state": 0} | MODELS[kind] | changes))


@every_backend
@pytest.mark.parametrize("kind", ["network", "skip", "single"])
def test_stages_are_the_models_of_so_many_rounds(backend, kind):
    how = {"early_stopping": False, "learning_rate": 0.1, "epochs": 0}
    model = regressor(kind, backend=backend, **how).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == 20
    for n_rounds in (1, 7, 20):
        shorter = regressor(kind, backend=backend, **how).set_params(n_estimators=n_rounds).fit(X, y)
        np.testing.assert_allclose(stages[n_rounds - 1], shorter.predict(X), rtol=1e-9)


@every_model
def test_the_last_stage_is_the_prediction(kind):
    model = regressor(kind).fit(X, y)
    *_, last = model.staged_predict(X, offset=y)
    np.testing.assert_allclose(last, model.predict(X, offset=y), rtol=1e-9)
    for labels in (load_iris().target, load_iris().target == 1):
        A = load_iris().data
        classifier = BoostBPClassifier(**parameters(**{"n_estimators": 5, "random_state": 0} | MODELS[kind])).fit(
            A, labels
        )
        *_, probability = classifier.staged_predict_proba(A)
        *_, label = classifier.staged_predict(A)
        np.testing.assert_allclose(probability, classifier.predict_proba(A), rtol=1e-9)
        np.testing.assert_array_equal(label, classifier.predict(A))


def test_a_model_without_rounds_has_one_stage():
    model = BoostBPRegressor(hidden_layer_sizes=(), n_estimators=1, output={"n_estimators": 0}).fit(X, y)
    [stage] = model.staged_predict(X)
    np.testing.assert_allclose(stage, model.predict(X))


@every_model
def test_leaves_have_the_numbers_of_the_report(kind):
    model = regressor(kind).fit(X, y)
    report = model.leaf_report(X[:7])
    for layer in range(-1, len(model.network_.layers)):
        leaves = model.apply(X[:7], layer)
        number = layer % len(model.network_.layers)
        for record in report:
            if record["layer"] == number and record["tree"] >= 0:
                assert leaves[record["row"], record["tree"]] == record["leaf"]
        assert leaves.dtype == np.int32
        assert leaves.shape == (7, model.network_.layers[number].forest.n_trees)
    with pytest.raises(ValueError, match="layer=9 does not exist"):
        model.apply(X, 9)


def test_leaves_are_those_of_lightgbm():
    how = {"n_estimators": 20, "learning_rate": 0.1, "max_depth": 3, "reg_lambda": 0.0, "random_state": 0}
    model = BoostBPRegressor(**parameters(hidden_layer_sizes=(), **how, **PLAIN)).fit(X, y)
    native = {"learning_rate": 0.1, "max_depth": 3, "num_leaves": 8, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(native, lightgbm.Dataset(X, y - y.mean()), 20)
    theirs, ours = booster.predict(X, pred_leaf=True), model.apply(X)
    assert ours.shape == theirs.shape
    for k in range(20):
        pairs = np.unique(np.column_stack([ours[:, k], theirs[:, k]]), axis=0)
        assert len(pairs) == len(np.unique(ours[:, k])) == len(np.unique(theirs[:, k]))


@every_backend
def test_leaves_of_rows_without_values_and_of_loaded_models(backend, tmp_path):
    A = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, np.nan, X) if backend in WITH_CATEGORIES else X
    model = regressor("network", backend=backend).fit(A, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.apply(A), model.apply(A))
    assert again.best_score_ == model.best_score_
    assert again.evals_result_ == model.evals_result_


def test_numbers_of_training_are_those_of_the_history():
    sets = {"eval_set": [(X[:50], y[:50]), (X[50:90], y[50:90])], "eval_names": ["a", "b"]}
    model = regressor("network").fit(X[90:], y[90:], **sets)
    result, history = model.evals_result_, model.history_
    assert list(result) == ["a", "b"]
    assert all(len(metrics["rmse"]) == len(history.iterations) for metrics in result.values())
    assert model.best_iteration_ == history.iterations[np.argmin(result["a"]["rmse"])]
    for name, rows in (("a", slice(50)), ("b", slice(50, 90))):  # of the model, which is more than its leading piece
        residual = model.predict(X[rows]) - y[rows]
        assert model.best_score_[name]["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert model.best_score_["a"]["rmse"] < min(result["a"]["rmse"])  # the set that chose the model


def test_numbers_of_training_without_a_network_or_evaluation():
    single = regressor("single", n_estimators=60).fit(X, y)
    assert single.best_iteration_ == len(list(single.staged_predict(X[:1])))
    assert list(single.best_score_) == ["held_out"]
    nothing = regressor("network", early_stopping=False).fit(X, y)
    assert (nothing.best_iteration_, nothing.best_score_, nothing.evals_result_) == (4, {}, {})
    average = regressor("average").fit(X, y)
    assert average.best_score_ == {"held_out": {"rmse": average.history_.scores["held_out"]}}


class OwnLogistic(Logistic):
    """A loss of classes that does not say what its link is."""

    link_name = None


@pytest.mark.parametrize("labels", [np.arange(300) % 2, np.arange(300) % 3], ids=["two", "three"])
def test_logarithms_of_probabilities_do_not_round(labels):
    A = np.column_stack([labels, X[:, 0]])
    model = BoostBPClassifier((), n_estimators=60, random_state=0).fit(A, labels)
    np.testing.assert_allclose(model.predict_log_proba(A), np.log(model.predict_proba(A)), rtol=1e-9)
    if len(model.classes_) == 2:
        far = np.full(300, 800.0)
        np.testing.assert_allclose(
            model.predict_log_proba(A, offset=far)[:, 0], -model.decision_function(A, offset=far)
        )
        own = BoostBPClassifier((), loss=OwnLogistic(), n_estimators=5, random_state=0).fit(A, labels)
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(
                own.predict_log_proba(A, offset=far), np.log(own.predict_proba(A, offset=far))
            )
    else:
        far = 800.0 * np.eye(3)[labels]
        raw = model.decision_function(A, offset=far)
        np.testing.assert_allclose(
            model.predict_log_proba(A, offset=far), raw - raw.max(axis=1, keepdims=True), atol=1e-12
        )


def test_tags_say_that_columns_may_be_categories():
    assert get_tags(BoostBPRegressor()).input_tags.categorical
    assert get_tags(BoostBPClassifier()).input_tags.categorical
    assert not get_tags(BoostBPAutoencoder()).input_tags.categorical
