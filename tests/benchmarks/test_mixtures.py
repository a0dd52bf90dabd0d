"""GBDT-NN and NN-GBDT as estimators."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from flat_parameters import parameters
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from benchmarks.mixtures import GBDTNNClassifier, GBDTNNRegressor, NNGBDTClassifier, NNGBDTRegressor
from benchmarks.rivals.contenders import rival, train
from boostbp import save
from boostbp.comparison.contenders import Split
from boostbp.losses import SquaredError

torch = pytest.importorskip("torch", reason="needs torch: pip install 'boostbp[torch]'")

CLASSIFIERS, REGRESSORS = [GBDTNNClassifier, NNGBDTClassifier], [GBDTNNRegressor, NNGBDTRegressor]
SMALL = {"epochs": 4, "max_depth": 3, "n_estimators": 5, "random_state": 0}
both = pytest.mark.parametrize("kind", REGRESSORS)
# Features beside the hidden units are the longer way; `.ci/run` goes the other one, too.
skips = pytest.mark.parametrize("skip", [True, pytest.param(False, marks=pytest.mark.slow)])


def smooth(rows=300, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 4))
    return X, np.sin(3 * X[:, 0]) + np.maximum(X[:, 1] - X[:, 2], 0) + noise * rng.standard_normal(rows)


def test_absent_torch_is_named_with_its_cure(without):
    without("torch")
    with pytest.raises(ImportError, match=r"GBDTNNRegressor needs the torch package: pip install 'boostbp\[torch\]'"):
        GBDTNNRegressor().fit(*smooth())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [NNGBDTClassifier, GBDTNNClassifier])
def test_classifiers_learn_digits(kind):
    X, y = load_digits(return_X_y=True)
    names = np.array(list("abcdefghij"))
    X, X_test, y, y_test = train_test_split(X, names[y], train_size=900, random_state=0, stratify=y)
    model = kind((16,), **parameters(**(SMALL | {"epochs": 8}))).fit(X, y)
    assert model.score(X_test, y_test) > 0.9  # chance is 0.1
    proba = model.predict_proba(X_test)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X_test))
    assert model.transform(X_test).shape == (len(X_test), 16)
    assert len(model.get_feature_names_out()) == 16


@pytest.mark.slow
@both
def test_regressors_learn_diabetes(kind):
    X, y = load_diabetes(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = kind((8,), epochs=6, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > 0.2  # the mean has 0


@both
def test_training_lowers_the_loss_far_below_that_of_the_first_trees(kind):
    X, y = smooth()
    model = kind((8,), **parameters(early_stopping=False, **(SMALL | {"epochs": 12}))).fit(X, y)
    loss = model.history_.loss
    assert len(loss) == 13
    assert loss[-1] < 0.5 * loss[0]
    assert model.score(*smooth(seed=1)) > 0.7


@both
def test_two_classes_and_several_layers(kind):
    X, y = smooth()
    classifier = CLASSIFIERS[REGRESSORS.index(kind)]
    model = classifier((6, 5), class_weight="balanced", **(SMALL | {"epochs": 8})).fit(X, y > np.quantile(y, 0.7))
    assert model.decision_function(X).shape == (300,)
    assert model.score(X, y > np.quantile(y, 0.7)) > 0.85
    assert [model.transform(X, layer).shape[1] for layer in (0, 1)] == [6, 5]


@both
def test_seed_decides_everything_and_leaves_torch_alone(kind):
    X, y = smooth()
    torch.manual_seed(5)
    before = torch.get_rng_state(), torch.get_num_threads()
    once, again = (kind((4,), **parameters(n_jobs=1, **SMALL)).fit(X, y).predict(X) for _ in range(2))
    other = kind((4,), **parameters(n_jobs=1, **(SMALL | {"random_state": 1}))).fit(X, y).predict(X)
    np.testing.assert_array_equal(once, again)
    assert np.abs(other - once).max() > 1e-3
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.get_num_threads() == before[1]


@both
def test_copies_predict_identical_bits(kind):
    X, y = smooth()
    model = kind((4,), **parameters(**SMALL)).fit(X, y)
    pickled = [pickle.dumps(model, protocol=protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for again in (copy.deepcopy(model), *map(pickle.loads, pickled)):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.summary() == model.summary()


@both
def test_model_files_refuse_networks_and_say_what_keeps_them(kind, tmp_path):
    model = kind((4,), **parameters(**SMALL)).fit(*smooth())
    with pytest.raises(TypeError, match=rf"{kind.__name__} cannot be stored: .* use pickle or joblib"):
        save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@both
def test_clone_keeps_all_parameters(kind):
    model = kind((4,), activation="tanh", network_steps=3, batch_size=None, optimizer=torch.optim.SGD, max_depth=2)
    assert clone(model).get_params() == model.get_params()
    assert {"loss", "optimizer", "epochs", "backprop__step_size"} <= set(model.get_params())


@both
def test_best_epoch_of_the_evaluation_set_is_restored(kind):
    X, y = smooth()
    X_valid, y_valid = smooth(seed=2)
    model = kind((4,), **parameters(n_iter_no_change=3, **(SMALL | {"epochs": 15}))).fit(
        X, y, eval_set=[(X_valid, y_valid)]
    )
    scores = model.history_.metrics("valid_0")
    assert np.argmin(scores) == model.history_.best_epoch
    rmse = np.sqrt(np.mean((model.predict(X_valid) - y_valid) ** 2))
    np.testing.assert_allclose(rmse, min(scores), rtol=1e-6)


@both
def test_rows_of_weight_zero_do_not_exist(kind):
    X, y = smooth()
    weight = (np.arange(300) % 3 > 0).astype(float)
    settings = SMALL | {"early_stopping": False, "n_jobs": 1}
    spoilt = np.where(weight > 0, y, 1e6)
    with_them = kind((4,), **parameters(**settings)).fit(X, spoilt, sample_weight=weight)
    without = kind((4,), **parameters(**settings)).fit(X[weight > 0], y[weight > 0])
    # the last bits of the target's mean are summed in another order
    np.testing.assert_allclose(with_them.predict(X), without.predict(X), rtol=0, atol=1e-6)


@both
@skips
def test_categories_and_missing_values_are_read(kind, skip):
    pd = pytest.importorskip("pandas")
    X, y = smooth(600)
    color = np.array(["red", "green", "blue"])[np.random.default_rng(0).integers(3, size=600)]
    y = y + 2.0 * (color == "red")
    X[::7, 1] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd")).assign(color=pd.Categorical(color))
    model = kind(
        (8,), **parameters(skip=skip, backend_params={"min_data_per_group": 10}, **(SMALL | {"epochs": 12}))
    ).fit(frame, y)
    red = frame.assign(color=pd.Categorical(["red"] * 600, categories=frame.color.cat.categories))
    blue = frame.assign(color=pd.Categorical(["blue"] * 600, categories=frame.color.cat.categories))
    gap = model.predict(red).mean() - model.predict(blue).mean()
    assert 1.5 < gap < 2.5, gap
    unknown = frame.assign(color=pd.Categorical([None] * 600, categories=frame.color.cat.categories))
    assert np.isfinite(model.predict(unknown)).all()


@both
@skips
def test_jacobian_is_that_of_finite_differences(kind, skip):
    X, y = smooth()
    model = kind((4, 3), **parameters(skip=skip, activation="tanh", clip=False, **SMALL)).fit(X, y)
    J = model.jacobian(X)
    assert J.shape == (300, 1, 4)
    # float32 inside a network: the median over rows leaves out those that change leaves
    eps = 1e-3
    for feature in range(4):
        step = np.zeros(4)
        step[feature] = eps
        numeric = (model.predict(X + step) - model.predict(X - step)) / (2 * eps)
        error = np.median(np.abs(numeric - J[:, 0, feature]))
        assert error < 0.01 * max(np.abs(J[:, 0]).max(), 0.1), (feature, error)


@pytest.mark.parametrize("output_target", ["loss", "moved"])
def test_trees_above_a_network_see_its_units_and_with_skip_the_features_after_them(output_target):
    X, y = smooth()
    model = NNGBDTRegressor((3,), **parameters(skip=True, output_target=output_target, **SMALL)).fit(X, y)
    trees = model.network_.trees
    raw = trees.layer.predict(np.hstack([model.transform(X), X])) + trees.baseline
    np.testing.assert_allclose(model.network_.predict(X), raw, rtol=1e-12)
    assert model.network_.predict(X).std() > 0.0


def test_a_network_above_trees_sees_with_skip_the_features_too():
    X, y = smooth()
    model = GBDTNNRegressor((3, 2), **parameters(skip=True, early_stopping=False, **SMALL)).fit(X, y)
    assert [layer.linear.in_features for layer in model.network_.layers[1:]] == [7, 6]
    assert model.history_.loss[-1] < model.history_.loss[0]


@skips
def test_output_layer_may_be_fitted_to_its_moved_target(skip):
    X, y = smooth()
    model = NNGBDTRegressor(
        (8,), **parameters(skip=skip, output_target="moved", early_stopping=False, **(SMALL | {"epochs": 12}))
    ).fit(X, y)
    assert model.history_.loss[-1] < 0.5 * model.history_.loss[0]


@pytest.mark.parametrize("optimizer", ["adam", "sgd", lambda parameters: torch.optim.Adagrad(parameters, lr=0.1)])
@both
def test_optimizers_by_name_and_by_callable(kind, optimizer):
    X, y = smooth()
    model = kind(
        (8,), **parameters(optimizer=optimizer, network_learning_rate=0.02, early_stopping=False, **SMALL)
    ).fit(X, y)
    assert model.history_.loss[-1] < model.history_.loss[0]


@pytest.mark.parametrize(
    ("optimizer", "says"),
    [(lambda parameters: None, "optimizer returned None"), (torch.optim.LBFGS, "LBFGS, whose step.. needs 'closure'")],
    ids=["none", "closure"],
)
def test_what_is_no_optimizer_is_refused_by_name(optimizer, says):
    with pytest.raises(TypeError, match=says):
        GBDTNNRegressor((4,), **parameters(optimizer=optimizer, **SMALL)).fit(*smooth())


def test_a_network_that_explodes_at_once_names_its_learning_rate():
    X, y = smooth()
    with pytest.raises(FloatingPointError, match=r"network_learning_rate than 1e\+30"):
        GBDTNNRegressor((4,), **parameters(optimizer="sgd", network_learning_rate=1e30, **SMALL)).fit(X, 1e5 * y)


@both
def test_categories_alone_are_learnt(kind):
    X = np.random.default_rng(0).integers(0, 4, (400, 3)).astype(float)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * (X[:, 2] > 1)
    model = kind(
        (8,), **parameters(categorical_features=[0, 1, 2], **(SMALL | {"epochs": 12, "early_stopping": False}))
    ).fit(X, y)
    assert model.score(X, y) > 0.8


def test_first_trees_learn_from_the_weights():
    X, y = smooth()
    weight = np.where(np.arange(300) < 100, 2.0, 1.0)
    how = {**SMALL, "epochs": 0, "early_stopping": False}
    weighted = GBDTNNRegressor((4,), **parameters(**how)).fit(X, y, sample_weight=weight)
    twice = GBDTNNRegressor((4,), **parameters(**how)).fit(np.vstack([X, X[:100]]), np.r_[y, y[:100]])
    np.testing.assert_allclose(weighted.transform(X), twice.transform(X), rtol=1e-5, atol=1e-5)


@both
def test_gradients_are_there_whatever_torch_is_told_around(kind):
    X, y = smooth(100)
    model = kind((4,), **parameters(**SMALL)).fit(X, y)
    expected = model.network_.jacobian(X)
    assert np.abs(expected).max() > 0.1
    with torch.no_grad():
        np.testing.assert_array_equal(model.network_.jacobian(X), expected)
    with torch.inference_mode():
        again = kind((4,), **parameters(**SMALL)).fit(X, y)
        np.testing.assert_array_equal(again.network_.jacobian(X), expected)


@both
def test_any_loss_of_the_package_trains_the_network(kind):
    X, y = smooth()
    counts = np.random.default_rng(0).poisson(np.exp(y)).astype(float)
    model = kind((8,), **parameters(loss="poisson", early_stopping=False, **SMALL)).fit(X, counts)
    assert (model.predict(X) > 0).all()
    assert np.corrcoef(model.predict(X), np.exp(y))[0, 1] > 0.7


def test_callbacks_see_epochs_and_may_stop():
    seen = []

    def stop(progress):
        seen.append(progress.epoch.epoch)
        return progress.epoch.epoch == 1

    X, y = smooth()
    GBDTNNRegressor((4,), **parameters(**SMALL)).fit(X, y, callbacks=[stop])
    assert seen == [0, 1]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("activation", "sine"),
        ("optimizer", "newton"),
        ("network_learning_rate", 0.0),
        ("network_learning_rate", "fast"),
        ("network_learning_rate", True),
        ("network_steps", 0),
        ("network_steps", True),
        ("batch_size", 1.5),
        ("start", "zeros"),
        ("structure_epochs", 3),
    ],
)
def test_bad_parameters_are_refused_by_name(parameter, value):
    with pytest.raises(ValueError, match=f"{parameter}={value!r}"):
        GBDTNNRegressor(**parameters(**{parameter: value})).fit(*smooth())


@pytest.mark.slow
def test_mixtures_are_trained_as_rivals_of_the_deep_models():
    X, y = smooth(200, noise=0.3)  # which ends boosting soon
    split, scores = Split(X[:150], y[:150], X[150:], y[150:]), []
    for name in ("gbdt-nn", "nn-gbdt"):
        for backend in ("lightgbm", "sklearn"):
            quick = {"epochs": 8, "hidden_layer_sizes": (4,), "n_estimators": 10, "backend": backend}
            fitted = train(rival(name, **quick), split, task="regression", n_jobs=1, seed=0)
            assert fitted.length == fitted.model.history_.best_epoch
            scores.append(fitted.model.score(X[150:], y[150:]))
    assert min(scores) > 0.5
    assert len(set(scores)) == 4  # each by trees of its own
    with pytest.raises(ValueError, match="rival 'nn' is not known"):
        rival("nn")


@both
def test_a_loss_of_other_shapes_is_refused_by_name(kind):
    class FlatSquaredError(SquaredError):
        name = "flat"

        def gradient(self, h, y):
            return (h - y).ravel()

    X, y = smooth(100)
    with pytest.raises(
        ValueError, match=r"loss='flat': its gradient has shape \(\d+,\), .* return gradient\[:, None\]"
    ):
        kind((4,), **parameters(loss=FlatSquaredError(), **SMALL)).fit(X, y)
