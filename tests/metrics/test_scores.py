"""Metrics against scikit-learn, and against what LightGBM and XGBoost report on the same predictions."""

from __future__ import annotations

import pickle
from functools import partial

import lightgbm
import numpy as np
import pytest
from sklearn import metrics

from boostbp import losses
from boostbp.metrics import Metric, default_metric, load_metric

ROWS = 300


def features(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(ROWS, 4)).astype(np.float32).astype(float)


def targets(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`X`, `y` (rows,) and weights; all exact in single precision, in which XGBoost keeps them."""
    rng = np.random.default_rng(7)
    X = features(rng)
    signal = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=ROWS)
    y = {
        "regression": 5.0 + signal.clip(-3.9, None),  # above 1: there the libraries agree on mape
        "counts": rng.poisson(np.exp(0.5 * signal)).astype(float),
        "amounts": 1000.0 * np.exp(0.5 * signal),  # far from the libraries' least predictions
        "binary": (signal > 0.3).astype(float),
        "classes": np.digitize(signal, [-0.7, 0.8]).astype(float),
    }[kind]
    return X, y.astype(np.float32).astype(float), rng.integers(1, 5, size=ROWS).astype(float)


def columns(y: np.ndarray, kind: str) -> np.ndarray:
    return np.eye(3)[y.astype(int)] if kind == "classes" else y[:, None]


def wide(prediction: np.ndarray) -> np.ndarray:
    return np.asarray(prediction, float).reshape(ROWS, -1)


LOSS_OF = {
    "regression": losses.SquaredError(),
    "counts": losses.Poisson(),
    "amounts": losses.SquaredError(),
    "binary": losses.Logistic(),
    "classes": losses.Softmax(),
}

# ---------------------------------------------------------------------------- the libraries


def by_lightgbm(kind: str, **params) -> tuple[np.ndarray, dict[str, float]]:
    """Predictions of a model of ten rounds, and the metrics that LightGBM reports of them, of weighted rows."""
    X, y, weight = targets(kind)
    params = {"verbose": -1, "num_threads": 1, "num_leaves": 7, "num_iterations": 10} | params
    params |= {"num_class": 3} if kind == "classes" else {}
    train, reported = lightgbm.Dataset(X, y), {}
    valid = lightgbm.Dataset(X, y, weight=weight, reference=train)
    record = lightgbm.record_evaluation(reported)
    booster = lightgbm.train(params, train, valid_sets=[valid], callbacks=[record])
    return wide(booster.predict(X)), {name: values[-1] for name, values in reported["valid_0"].items()}


@pytest.mark.parametrize(
    ("kind", "objective", "name", "loss"),
    [
        ("regression", "l2", "l2", None),
        ("regression", "l2", "rmse", None),
        ("regression", "l2", "mape", None),
        ("regression", "l1", "l1", None),
        ("regression", "quantile", "quantile", losses.Quantile(alpha=0.8)),
        ("regression", "huber", "huber", losses.Huber(delta=0.8)),
        ("regression", "fair", "fair", None),
        ("counts", "poisson", "poisson", None),
        ("counts", "tweedie", "tweedie", None),
        ("amounts", "gamma", "gamma", None),
        ("binary", "binary", "binary_logloss", None),
        ("binary", "binary", "binary_error", None),
        ("binary", "binary", "auc", None),
        ("binary", "binary", "average_precision", None),
        ("binary", "binary", "cross_entropy", None),
        ("binary", "binary", "kullback_leibler", None),
        ("classes", "multiclass", "multi_logloss", None),
        ("classes", "multiclassova", "multi_logloss", None),
        ("classes", "multiclass", "multi_error", None),
        ("classes", "multiclass", "auc_mu", None),
    ],
)
def test_value_is_what_lightgbm_reports(kind, objective, name, loss):
    prediction, reported = by_lightgbm(kind, objective=objective, metric=name, alpha=0.8)
    _, y, weight = targets(kind)
    ours = load_metric(name, loss or LOSS_OF[kind])(prediction, columns(y, kind), weight)
    np.testing.assert_allclose(ours, reported[name], rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "objective", "name", "loss"),
    [
        ("regression", "reg:squarederror", "rmse", None),
        ("regression", "reg:squarederror", "mae", None),
        ("regression", "reg:squarederror", "mape", None),
        ("regression", "reg:quantileerror", "quantile", losses.Quantile(alpha=0.8)),
        ("counts", "count:poisson", "poisson-nloglik", None),
        ("counts", "count:poisson", "rmsle", None),
        ("counts", "reg:tweedie", "tweedie-nloglik@1.3", None),
        ("regression", "reg:pseudohubererror", "mphe", None),
        ("amounts", "reg:gamma", "gamma-nloglik", None),
        ("amounts", "reg:gamma", "gamma-deviance", None),
        ("binary", "binary:logistic", "logloss", None),
        ("binary", "binary:logistic", "error", None),
        ("binary", "binary:logistic", "auc", None),
        ("binary", "binary:logistic", "aucpr", None),
        ("binary", "binary:logistic", "error@0.3", None),
        ("classes", "multi:softprob", "mlogloss", None),
        ("classes", "multi:softprob", "merror", None),
        ("classes", "multi:softprob", "auc", None),
        ("classes", "multi:softprob", "aucpr", None),
    ],
)
def test_value_is_what_xgboost_reports(kind, objective, name, loss):
    xgboost = pytest.importorskip("xgboost")
    X, y, weight = targets(kind)
    params = {"objective": objective, "eval_metric": name, "nthread": 1, "max_depth": 3}
    if kind == "classes":
        params["num_class"] = 3
    if objective == "reg:quantileerror":
        params["quantile_alpha"] = 0.8
    valid = xgboost.DMatrix(X, y, weight=weight)
    reported: dict = {}
    booster = xgboost.train(
        params, xgboost.DMatrix(X, y), 10, evals=[(valid, "valid")], evals_result=reported, verbose_eval=False
    )
    ours = load_metric(name, loss or LOSS_OF[kind])(wide(booster.predict(valid)), columns(y, kind), weight)
    np.testing.assert_allclose(ours, reported["valid"][name][-1], rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "alias", "rival"),
    [
        ("regression", "l2_root", "rmse"),
        ("regression", "regression", "l2"),
        ("regression", "regression_l2", "l2"),
        ("regression", "regression_l1", "l1"),
        ("regression", "mean_absolute_percentage_error", "mape"),
        ("binary", "binary", "binary_logloss"),
        ("binary", "xentropy", "cross_entropy"),
        ("binary", "kldiv", "kullback_leibler"),
        *(
            ("classes", alias, "multi_logloss")
            for alias in ["multiclass", "softmax", "multiclassova", "multiclass_ova", "ova", "ovr"]
        ),
    ],
)
def test_aliases_are_lightgbms(kind, alias, rival):
    objective = {"classes": "multiclass", "binary": "binary"}.get(kind, "l2")
    _, reported = by_lightgbm(kind, objective=objective, metric=alias, num_iterations=1)
    assert list(reported) == [rival]
    assert load_metric(alias, LOSS_OF[kind]).function == load_metric(rival, LOSS_OF[kind]).function


def test_gamma_deviance_is_the_mean_of_what_lightgbm_sums():
    prediction, reported = by_lightgbm("amounts", objective="gamma", metric="gamma_deviance")
    _, y, weight = targets("amounts")
    ours = load_metric("gamma_deviance", losses.SquaredError())(prediction, wide(y), weight)
    np.testing.assert_allclose(ours * weight.sum(), reported["gamma_deviance"], rtol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_error_of_the_top_classes_is_lightgbms(k):
    prediction, reported = by_lightgbm("classes", objective="multiclass", metric="multi_error", multi_error_top_k=k)
    _, y, weight = targets("classes")
    ours = load_metric(f"multi_error@{k}", losses.Softmax())(prediction, columns(y, "classes"), weight)
    np.testing.assert_allclose([ours], [*reported.values()], rtol=1e-6)


# ---------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize(
    ("names", "function", "greater_is_better"),
    [
        ("rmse root_mean_squared_error", metrics.root_mean_squared_error, False),
        ("mse l2 mean_squared_error", metrics.mean_squared_error, False),
        ("mae l1 mean_absolute_error", metrics.mean_absolute_error, False),
        ("mape", metrics.mean_absolute_percentage_error, False),
        ("r2", metrics.r2_score, True),
        ("quantile", partial(metrics.mean_pinball_loss, alpha=0.3), False),
    ],
)
def test_regression_metrics_agree_with_sklearn_on_several_outputs(names, function, greater_is_better):
    rng = np.random.default_rng(0)
    prediction, y, weight = rng.normal(size=(50, 3)), rng.normal(size=(50, 3)), rng.uniform(size=50)
    for name in names.split():
        metric = load_metric(name, losses.Quantile(alpha=0.3))
        np.testing.assert_allclose(metric(prediction, y, weight), function(y, prediction, sample_weight=weight))
        assert metric.greater_is_better is greater_is_better
        assert metric.name == name


@pytest.mark.parametrize(
    ("names", "of_labels", "function", "greater_is_better"),
    [
        ("logloss log_loss binary_logloss multi_logloss mlogloss", False, metrics.log_loss, False),
        ("error binary_error multi_error merror", True, metrics.zero_one_loss, False),
        ("accuracy", True, metrics.accuracy_score, True),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_metrics_agree_with_sklearn(names, of_labels, function, greater_is_better, n_classes):
    rng = np.random.default_rng(0)
    label, weight = rng.integers(n_classes, size=50), rng.uniform(size=50)
    p = rng.dirichlet(np.ones(n_classes), size=50)
    prediction, y = (p[:, 1:], label[:, None].astype(float)) if n_classes == 2 else (p, np.eye(3)[label])
    expected = function(label, p.argmax(1) if of_labels else p, sample_weight=weight)
    loss = losses.load_loss("log_loss", n_outputs=y.shape[1])
    for name in names.split():
        metric = load_metric(name, loss)
        np.testing.assert_allclose(metric(prediction, y, weight), expected, rtol=1e-12)
        assert metric.greater_is_better is greater_is_better


@pytest.mark.parametrize("name", ["auc", "roc_auc"])
def test_auc_agrees_with_sklearn(name):
    rng = np.random.default_rng(0)
    label, weight, p = rng.integers(3, size=60), rng.uniform(size=60), rng.dirichlet(np.ones(3), size=60)
    several = load_metric(name, losses.Softmax())
    expected = metrics.roc_auc_score(np.eye(3)[label], p, average="weighted", sample_weight=weight)
    np.testing.assert_allclose(several(p, np.eye(3)[label], weight), expected)
    unweighted = metrics.roc_auc_score(label, p, multi_class="ovr", average="weighted")
    np.testing.assert_allclose(several(p, np.eye(3)[label], np.ones(60)), unweighted)
    two = (label == 0).astype(float)
    expected = metrics.roc_auc_score(two, p[:, 0], sample_weight=weight)
    np.testing.assert_allclose(load_metric(name, losses.Logistic())(p[:, :1], two[:, None], weight), expected)
    assert several.greater_is_better


def test_auc_leaves_out_a_class_that_no_counted_row_has():
    rng = np.random.default_rng(0)
    label, p = rng.integers(2, size=40), rng.dirichlet(np.ones(3), size=40)
    y, weight = np.eye(3)[label], np.ones(40)
    y[0], weight[0] = [0, 0, 1], 0.0
    expected = metrics.roc_auc_score(y[1:, :2], p[1:, :2], average="weighted")
    np.testing.assert_allclose(load_metric("auc", losses.Softmax())(p, y, weight), expected)


def test_logloss_of_a_sure_mistake_is_finite_and_sklearns():
    y, p = np.array([[0.0], [1.0]]), np.array([[1.0], [1.0]])
    expected = metrics.log_loss([0, 1], [[0, 1], [0, 1]])
    np.testing.assert_allclose(load_metric("logloss", losses.Logistic())(p, y, np.ones(2)), expected, rtol=1e-12)


def test_poisson_is_half_the_deviance_but_for_a_constant():
    rng = np.random.default_rng(0)
    y, weight = 1.0 + rng.poisson(3, size=(30, 1)), rng.uniform(size=30)
    poisson = load_metric("poisson", losses.Poisson())
    one, other = rng.uniform(0.5, 4, size=(2, 30, 1))
    difference = poisson(one, y, weight) - poisson(other, y, weight)
    deviance = partial(metrics.mean_poisson_deviance, sample_weight=weight)
    np.testing.assert_allclose(2 * difference, deviance(y, one) - deviance(y, other), rtol=1e-10)


def test_gamma_and_tweedie_are_deviances_of_sklearn():
    rng = np.random.default_rng(0)
    weight, (y, one, other) = rng.uniform(size=30), rng.uniform(0.5, 4, size=(3, 30, 1))
    gamma = partial(metrics.mean_gamma_deviance, sample_weight=weight)
    np.testing.assert_allclose(
        load_metric("gamma-deviance", losses.Poisson())(one, y, weight), gamma(y, one), rtol=1e-10
    )
    tweedie = load_metric("tweedie-nloglik@1.7", losses.Poisson())
    deviance = partial(metrics.mean_tweedie_deviance, power=1.7, sample_weight=weight)
    difference = tweedie(one, y, weight) - tweedie(other, y, weight)
    np.testing.assert_allclose(2 * difference, deviance(y, one) - deviance(y, other), rtol=1e-10)


def test_auc_mu_and_top_error_of_two_classes_are_auc_and_error():
    rng = np.random.default_rng(0)
    y, p, weight = rng.integers(2, size=(50, 1)).astype(float), rng.uniform(size=(50, 1)), rng.uniform(size=50)
    for several, two in [("auc_mu", "auc"), ("multi_error@1", "error"), ("error@0.5", "error")]:
        ours, expected = (load_metric(name, losses.Logistic())(p, y, weight) for name in (several, two))
        np.testing.assert_allclose(ours, expected, rtol=1e-12)
    assert load_metric("multi_error@2", losses.Logistic())(p, y, weight) == 0.0


# ---------------------------------------------------------------------------- the loss's own


RESIDUALS = (losses.AbsoluteError(), losses.Huber(delta=0.4), losses.Quantile(alpha=0.2))
OF_LINKS = [(kind, LOSS_OF[kind]) for kind in ("counts", "binary", "classes")]


@pytest.mark.parametrize(("kind", "loss"), [*(("regression", loss) for loss in RESIDUALS), *OF_LINKS])
def test_default_metric_is_the_mean_of_the_loss(kind, loss):
    _, y, weight = targets(kind)
    y, metric = columns(y, kind), default_metric(loss)
    h = np.random.default_rng(0).normal(size=y.shape)
    expected = np.average(loss.value(h, y), weights=weight)
    np.testing.assert_allclose(metric(loss.link(h), y, weight), expected, rtol=1e-10)
    assert not metric.greater_is_better


def test_default_metric_of_squared_error_is_rmse():
    assert default_metric(losses.SquaredError()) == load_metric("rmse", losses.SquaredError())
    assert load_metric(None, losses.SquaredError()) == load_metric("rmse", losses.SquaredError())


class Own:
    name = "own"

    def __init__(self, scale_free: bool) -> None:
        self.scale_free = scale_free

    def value(self, h, y):
        return ((h - y) ** 4).sum(axis=1)


def test_default_metric_of_an_own_loss_is_its_mean_of_raw_outputs():
    prediction, y = np.array([[1.0, 2.0], [0.0, 0.0]]), np.zeros((2, 2))
    metric = default_metric(Own(scale_free=True))
    assert (metric.name, metric(prediction, y, np.array([1.0, 3.0]))) == ("own", 17 / 4 / 2)
    assert not metric.takes_raw
    of_raw = default_metric(Own(scale_free=False))  # a link that nothing undoes
    assert (of_raw.name, of_raw.takes_raw) == ("own", True)
    assert of_raw(prediction, y, np.array([1.0, 3.0])) == 17 / 4 / 2


def test_losses_name_their_metric_and_ones_own_may():
    class Tweedie(Own):
        default_metric = "tweedie-nloglik@1.4"

    metric = default_metric(Tweedie(scale_free=False))
    p, y, weight = np.array([[1.0], [2.0]]), np.array([[0.0], [3.0]]), np.ones(2)
    assert metric.name == "tweedie-nloglik@1.4"
    assert metric(p, y, weight) == load_metric("tweedie-nloglik@1.4", losses.Poisson())(p, y, weight)
    Tweedie.default_metric = "logloss"
    with pytest.raises(ValueError, match=r"eval_metric='logloss' is for classes, and loss=.* for numbers"):
        default_metric(Tweedie(scale_free=False))


def test_classes_are_scored_by_log_loss_where_an_own_loss_names_nothing():
    assert default_metric(Own(scale_free=True), classes=True) == load_metric("logloss", losses.Logistic())


# ---------------------------------------------------------------------------- one's own functions


def test_a_metric_loads_as_it_is():
    metric = Metric("mine", True, lambda prediction, y, weight: 0.5)
    assert load_metric(metric, losses.SquaredError()) is metric


@pytest.mark.parametrize("name", ["rmse", "huber", "auc", "logloss", "poisson-nloglik", "error@0.4"])
def test_metrics_survive_pickling(name):
    metric = load_metric(name, losses.Logistic())
    rng = np.random.default_rng(0)
    p, y = rng.uniform(size=(20, 1)), rng.integers(2, size=(20, 1)).astype(float)
    assert pickle.loads(pickle.dumps(metric))(p, y, np.ones(20)) == metric(p, y, np.ones(20))


# ---------------------------------------------------------------------------- what may go wrong


@pytest.mark.parametrize(("metric", "worst"), [("rmse", np.inf), ("r2", -np.inf)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predictions_that_are_not_finite_are_the_worst(metric, worst, bad):
    prediction = np.array([[1.0], [bad], [2.0]])
    assert load_metric(metric, losses.SquaredError())(prediction, np.ones((3, 1)), np.ones(3)) == worst


@pytest.mark.parametrize(("metric", "worst"), [("rmse", np.inf), ("mse", np.inf), ("r2", -np.inf)])
def test_squares_that_overflow_are_the_worst(metric, worst):
    prediction, y = np.array([[1e200], [2.0], [3.0]]), np.array([[1.0], [2.0], [3.0]])
    assert load_metric(metric, losses.SquaredError())(prediction, y, np.ones(3)) == worst


@pytest.mark.parametrize(
    ("metric", "loss", "error", "message"),
    [
        ("rmsee", losses.SquaredError(), ValueError, "eval_metric='rmsee' is unknown: did you mean 'rmse'?"),
        ("auc", losses.SquaredError(), ValueError, "eval_metric='auc' is for classes.*squared_error.*rmse"),
        ("logloss", losses.Poisson(), ValueError, "eval_metric='logloss' is for classes.*poisson"),
        ("logloss", Own(scale_free=False), ValueError, "eval_metric='logloss' is for classes.*own"),
        ("accuracy", Own(scale_free=False), ValueError, "eval_metric='accuracy' is for classes.*'rmse'"),
        (metrics.f1_score, losses.Poisson(), ValueError, "eval_metric=f1_score is for classes, and numbers are"),
        (partial(metrics.f1_score, average="macro"), losses.SquaredError(), ValueError, "f1_score is for classes"),
        (("f1", metrics.f1_score, True), losses.SquaredError(), ValueError, "f1_score is for classes"),
        (("mine", print, "lower"), losses.SquaredError(), TypeError, "whether greater is better: True or False"),
        ("error@0.3", losses.Poisson(), ValueError, "eval_metric='error@0.3' is for classes.*poisson"),
        ("error@0.3", losses.Softmax(), ValueError, "eval_metric='error@0.3' is for two classes.*multi_error@2"),
        ("error@half", losses.Logistic(), ValueError, "eval_metric='error@half' must be error@t, a threshold"),
        ("error@1.5", losses.Logistic(), ValueError, "must be error@t, a threshold from 0 to 1"),
        ("multi_error@1.5", losses.Softmax(), ValueError, "must be multi_error@k, a whole number"),
        ("tweedie-nloglik@2", losses.Poisson(), ValueError, "must be tweedie-nloglik@rho, 1 < rho < 2"),
        ("tweedie-nloglik", losses.Poisson(), ValueError, "is unknown.*huber.*, tweedie-nloglik@rho, or a function"),
        ("auc@3", losses.Logistic(), ValueError, "eval_metric='auc@3' is unknown"),
        (3, losses.SquaredError(), TypeError, "eval_metric=3 is not a metric"),
        (("a", "b"), losses.SquaredError(), TypeError, "is not a metric.*greater_is_better"),
        (metrics.get_scorer("r2"), losses.SquaredError(), TypeError, "scikit-learn scorer, its metric function"),
    ],
)
def test_what_is_no_metric_is_refused_with_the_cure(metric, loss, error, message):
    with pytest.raises(error, match=message):
        load_metric(metric, loss)


def test_a_threshold_is_refused_where_probabilities_have_several_columns():
    metric = load_metric("error@0.3", Own(scale_free=False), classes=True)
    with pytest.raises(ValueError, match=r"eval_metric='error@...' is for two classes"):
        metric(np.full((2, 3), 1 / 3), np.eye(3)[:2], np.ones(2))


@pytest.mark.parametrize(
    ("name", "loss", "y", "weight", "message"),
    [
        ("r2", losses.SquaredError(), [[1.0]], [1.0], "'r2' needs at least 2 rows"),
        ("auc", losses.Logistic(), [[1.0], [1.0]], [1.0, 1.0], "'auc' needs rows of two classes"),
        ("auc", losses.Logistic(), [[0.0], [0.0]], [1.0, 1.0], "'auc' needs rows of two classes"),
        ("auc", losses.Softmax(), [[0.0, 1.0], [0.0, 1.0]], [1.0, 1.0], "'auc' needs rows of two classes"),
        ("auc_mu", losses.Softmax(), [[0.0, 1.0], [0.0, 1.0]], [1.0, 1.0], "'auc_mu' needs rows of two classes"),
        ("aucpr", losses.Logistic(), [[0.0], [0.0]], [1.0, 1.0], "'aucpr' needs rows of two classes"),
        ("gamma", losses.SquaredError(), [[1.0], [0.0]], [1.0, 1.0], "gamma distribution needs y above 0"),
        ("gamma-deviance", losses.SquaredError(), [[1.0], [-1.0]], [1.0, 1.0], "gamma distribution needs y above 0"),
        ("mae", losses.SquaredError(), [[1.0], [2.0]], [0.0, 0.0], "'mae': the weights sum to 0"),
    ],
)
def test_rows_that_do_not_determine_a_metric_are_refused(name, loss, y, weight, message):
    y = np.array(y)
    with pytest.raises(ValueError, match=message):
        load_metric(name, loss)(np.full_like(y, 0.5), y, np.array(weight))


def test_rmsle_of_what_has_no_logarithm():
    metric, weight = load_metric("rmsle", losses.SquaredError()), np.array([1.0, 1.0, 0.0])
    y, prediction = np.array([[1.0], [2.0], [-5.0]]), np.array([[1.0], [2.0], [-9.0]])
    assert metric(prediction, y, weight) == 0.0
    assert metric(prediction - 4.0, y, weight) == np.inf
    with pytest.raises(ValueError, match="eval_metric='rmsle' needs y above -1"):
        metric(prediction, y - 4.0, weight)
