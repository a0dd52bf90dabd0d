"""Metrics of one's own, and functions of scikit-learn: what they get, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flat_parameters import parameters
from sklearn import metrics

from boostbp import BoostBPRegressor, losses
from boostbp.metrics import load_metric
from tests.metrics.test_scores import Own


def test_an_own_function_gets_flat_columns_and_no_weights():
    seen = []

    def worst(y_true, y_pred):
        seen.append((y_true, y_pred))
        return np.abs(y_true - y_pred).max()

    metric = load_metric(worst, losses.SquaredError())
    assert metric(np.array([[1.0], [5.0]]), np.array([[2.0], [2.0]]), np.ones(2)) == 3.0
    assert (metric.name, metric.greater_is_better) == ("worst", False)
    assert [array.shape for array in seen[0]] == [(2,), (2,)]
    assert metric(np.zeros((3, 2)), np.ones((3, 2)), np.ones(3)) == 1.0
    assert [array.shape for array in seen[1]] == [(3, 2), (3, 2)]


def test_an_own_function_of_classes_gets_numbers_and_probabilities():
    def true_probability(y_true, y_pred, sample_weight=None):
        return np.average(y_pred[np.arange(len(y_true)), y_true], weights=sample_weight)

    p, weight = np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]), np.array([3.0, 1.0])
    metric = load_metric(("hit", true_probability, True), losses.Softmax())
    np.testing.assert_allclose(metric(p, np.eye(3)[[2, 1]], weight), (3 * 0.7 + 0.3) / 4)
    assert (metric.name, metric.greater_is_better) == ("hit", True)


@pytest.mark.parametrize(
    ("function", "of_labels", "greater_is_better"),
    [
        (metrics.balanced_accuracy_score, True, True),
        (metrics.matthews_corrcoef, True, True),
        (partial(metrics.f1_score, average="macro"), True, True),
        (metrics.zero_one_loss, True, False),
        (partial(metrics.log_loss, labels=[0, 1, 2]), False, False),
        (partial(metrics.roc_auc_score, multi_class="ovr"), False, True),
        (partial(metrics.top_k_accuracy_score, k=2), False, True),
    ],
)
def test_functions_of_sklearn_get_labels_or_probabilities_as_they_need(function, of_labels, greater_is_better):
    rng = np.random.default_rng(0)
    label, weight, p = rng.integers(3, size=60), rng.uniform(size=60), rng.dirichlet(np.ones(3), size=60)
    expected = function(label, p.argmax(1) if of_labels else p, sample_weight=weight)
    metric = load_metric(function, losses.Softmax())
    np.testing.assert_allclose(metric(p, np.eye(3)[label], weight), expected)
    assert metric.greater_is_better is greater_is_better


def test_functions_of_sklearn_work_on_two_classes_in_one_column():
    rng = np.random.default_rng(0)
    label, weight, p = rng.integers(2, size=60), rng.uniform(size=60), rng.uniform(size=60)
    y = label[:, None].astype(float)
    for function, argument in [(metrics.f1_score, p > 0.5), (metrics.average_precision_score, p)]:
        expected = function(label, argument, sample_weight=weight)
        np.testing.assert_allclose(load_metric(function, losses.Logistic())(p[:, None], y, weight), expected)


def test_an_own_function_of_classes_gets_their_numbers_whatever_the_loss_says():
    seen = []
    metric = load_metric(("mine", lambda y_true, y_pred: seen.append(y_true) or 0.0, True), Own(False), classes=True)
    metric(np.full((2, 3), 1 / 3), np.eye(3)[[2, 1]], np.ones(2))
    assert seen[0].tolist() == [2, 1]


def named(name):
    def function(y_true, y_pred):
        return 0.5

    function.__name__ = name
    return function


OF_MAXIMA = ("accuracy", "my_auc", "R2", "log_likelihood", "neg_mean_squared_error")
OF_MINIMA = ("brier_score", "crps_score", "neg_accuracy_score")


@pytest.mark.parametrize(("name", "says"), [(name, name in OF_MAXIMA) for name in OF_MAXIMA + OF_MINIMA])
def test_a_function_whose_name_says_the_opposite_of_its_direction_needs_a_tuple(name, says):
    function = named(name)
    with pytest.raises(ValueError, match=rf"^eval_metric={name} would be .*imised, .*\('{name}', {name}, {says}\)"):
        load_metric(function, losses.Logistic())
    assert load_metric((name, function, says), losses.Logistic()).greater_is_better is says


def test_a_function_is_maximised_by_its_name():
    for name in ("accuracy_score", "my_score", "f1_score", "neg_brier_score"):
        assert load_metric(named(name), losses.Logistic()).greater_is_better is True
    for name in ["profile", "worst", "pinball", "auc_loss", "precision_error", "negative_log_likelihood", "neg_r2"]:
        assert load_metric(named(name), losses.Logistic()).greater_is_better is False


def test_a_function_that_returns_a_tuple_is_refused_with_the_cure():
    metric = load_metric(lambda y_true, y_pred: ("name", 0.5, True), losses.SquaredError())
    with pytest.raises(TypeError, match=r"\(name, function, greater_is_better\)"):
        metric(np.ones((2, 1)), np.ones((2, 1)), np.ones(2))


@pytest.mark.parametrize("value", ["good", "0.5", None, 1j, [0.5, 0.5], [[1.0], 2.0]], ids=str)
def test_a_function_that_returns_no_number_is_refused_by_name(value):
    def mine(y_true, y_pred):
        return value

    with pytest.raises(TypeError, match=r"^eval_metric='mine' returned .*: return a single number"):
        load_metric(mine, losses.SquaredError())(np.ones((2, 1)), np.ones((2, 1)), np.ones(2))


@pytest.mark.parametrize("value", [1, True, np.float32(1.0), np.array(1.0), Fraction(1, 1)], ids=repr)
def test_a_function_may_return_any_single_number(value):
    metric = load_metric(lambda y_true, y_pred: value, losses.SquaredError())
    found = metric(np.ones((2, 1)), np.ones((2, 1)), np.ones(2))
    assert (type(found), found) == (float, 1.0)


def test_value_that_is_no_number_is_the_worst_and_is_said_once():
    def precision(y_true, y_pred):
        with np.errstate(invalid="ignore"):
            return (y_true * (y_pred > 0.5)).sum() / (y_pred > 0.5).sum()

    y, weight = np.array([[1.0], [0.0]]), np.ones(2)
    for greater_is_better, worst in ((True, -np.inf), (False, np.inf)):
        metric = load_metric(("precision", precision, greater_is_better), losses.Logistic())
        assert metric(np.array([[0.9], [0.1]]), y, weight) == 1.0
        with pytest.warns(UserWarning, match="eval_metric='precision' gave NaN.*return a number"):
            assert metric(np.array([[0.1], [0.1]]), y, weight) == worst


def test_a_fit_by_a_metric_that_gives_nan_says_so():
    def mine(y_true, y_pred):
        return np.nan

    X = np.random.default_rng(0).standard_normal((60, 2))
    model = BoostBPRegressor((2,), **parameters(eval_metric=mine, n_estimators=2, epochs=1, deep=True, random_state=0))
    with pytest.warns(UserWarning, match="eval_metric='mine' gave NaN, which counts as the worst"):
        model.fit(X, X[:, 0], eval_set=[(X, X[:, 0])])
    assert model.history_.metrics("valid_0") == [np.inf, np.inf]
