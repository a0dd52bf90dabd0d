"""A user's loss that is not as promised is refused by name, before compiled code reads what it returns."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import kind_of_target, losses_of_outputs
from scipy.stats import norm
from user_losses import UserLoss

from boostbp import BoostBPClassifier, BoostBPRegressor, losses
from boostbp.losses.checked_loss import CheckedLoss, try_loss
from boostbp.model.model import units_of
from boostbp.network.layers import LossObjective

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
Y = np.stack([X[:, 0] * X[:, 1], X[:, 2], X[:, 0]], axis=1)
FAST = {"n_estimators": 2, "epochs": 1, "min_samples_leaf": 5, "deep": True, "early_stopping": False, "random_state": 0}
IN_ROWS = r", not \(60, 1\), which is \(rows, outputs\): "


def all_of(loss):
    return lambda h, y: (loss.value(h, y), loss.gradient(h, y), loss.hessian(h, y))


def with_derivatives(**members):
    loss = UserLoss(**members)
    return UserLoss(derivatives=all_of(loss))


def fit(loss, n_outputs=1, **changes):
    y = Y[:, 0] if n_outputs == 1 else Y[:, :n_outputs]
    return BoostBPRegressor((2,), **parameters(loss=loss, eval_metric="rmse", **(FAST | changes))).fit(X, y)


WRONG = {
    "constant hessian": (
        UserLoss(hessian=lambda h, y: 1.0),
        rf"hessian has shape \(\){IN_ROWS}.* np.full\(h.shape, hessian",
    ),
    "rows across": (
        UserLoss(gradient=lambda h, y: (h - y).T),
        rf"gradient has shape \(1, 60\){IN_ROWS}return gradient.T",
    ),
    "outer difference": (
        UserLoss(gradient=lambda h, y: h.ravel() - y),
        rf"gradient has shape \(60, 60\){IN_ROWS}return one number for each row and output",
    ),
    "list": (
        UserLoss(gradient=lambda h, y: (h - y).tolist()),
        r"gradient has type list, not an array of shape \(60, 1\), which is \(rows, outputs\): return one number",
    ),
    "nothing": (UserLoss(value=lambda h, y: None), r"value has type NoneType, not an array of shape \(60,\)"),
    "text": (UserLoss(link=lambda h: "h"), r"link has type str, not an array of shape \(60, 1\)"),
    "baseline in rows": (
        UserLoss(baseline=lambda y, weight: np.zeros(y.shape)),
        r"baseline has shape \(60, 1\), not \(1,\)",
    ),
    "endless baseline": (
        UserLoss(baseline=lambda y, weight: np.full(1, np.inf)),
        r"baseline is \[inf\]: let it be finite, or let check\(\) refuse y",
    ),
    "endless link": (
        UserLoss(link=lambda h: h / 0.0),
        r"link is \[-?(inf|nan)\] in row 0, where y is .*: let it be finite",
    ),
    "no curvature": (
        UserLoss(hessian=lambda h, y: np.where(np.arange(len(h)) == 4, 0.0, 1.0)[:, None]),
        r"hessian is \[0\.\] in row 4, where y is .*: let it be above 0 there, such as by np.maximum\(hessian, 1e-6\)",
    ),
    "flat gradient at once": (
        with_derivatives(gradient=lambda h, y: (h - y)[:, 0]),
        rf"gradient of derivatives\(\) has shape \(60,\){IN_ROWS}return gradient\[:, None\]",
    ),
    "negative hessian at once": (
        with_derivatives(hessian=lambda h, y: np.full(h.shape, -1.0)),
        r"hessian of derivatives\(\) is \[-1\.\] in row 0",
    ),
    "nothing at once": (UserLoss(derivatives=lambda h, y: None), r"derivatives\(\) returns has type NoneType, not 3"),
}


@pytest.mark.filterwarnings("ignore:divide by zero|invalid value:RuntimeWarning")
@pytest.mark.parametrize(("loss", "message"), WRONG.values(), ids=WRONG)
def test_a_loss_that_is_not_as_promised_is_refused_with_the_cure(loss, message):
    with pytest.raises(ValueError, match=f"^loss='own': .*{message}"):
        fit(loss)


def test_shapes_are_those_of_several_outputs():
    assert fit(UserLoss(), 3).predict(X).shape == (60, 3)
    for what in ("gradient", "hessian"):
        with pytest.raises(
            ValueError, match=rf"its {what} has shape \(60,\), not \(60, 3\), .* for each row and output"
        ):
            fit(UserLoss(**{what: lambda h, y: np.ones(len(h))}), 3)


def test_a_loss_of_classes_is_refused_as_well():
    class Flat(losses.Logistic):
        def link(self, h):
            return super().link(h)[:, 0]

    with pytest.raises(ValueError, match=r"^loss='logistic': its link has shape .* return link\[:, None\]"):
        BoostBPClassifier((2,), **parameters(loss=Flat(), **FAST)).fit(X, Y[:, 0] > 0)


@pytest.mark.parametrize("what", ["value", "gradient", "hessian"])
@pytest.mark.parametrize("at_once", [False, True])
def test_a_loss_whose_shape_changes_ends_a_fit_and_not_the_process(what, at_once):
    calls = []

    def changing(h, y):
        calls.append(h)
        found = getattr(UserLoss, what)(None, h, y) + (0.1 * np.tanh(h) ** 2 if what == "hessian" else 0.0)
        return found if len(calls) < 25 else found[:-1]

    loss = UserLoss(hessian=lambda h, y: 1.0 + 0.1 * np.tanh(h) ** 2)  # it varies: all three are asked for in training
    vars(loss)[what] = changing
    if at_once:
        loss.derivatives = all_of(loss)
    with pytest.raises(ValueError, match=rf"^loss='own': its {what}.* has shape \(\d+,"):
        fit(loss, n_estimators=20)
    assert len(calls) == 25


def test_objectives_check_every_call():
    y = Y[:, :1]
    loss = UserLoss()
    goal = LossObjective.of(loss, y, np.ones(60), np.zeros(1))
    loss.gradient = lambda h, y: (h - y)[:, 0]
    with pytest.raises(ValueError, match=r"its gradient has shape \(60,\)"):
        goal.gradient(np.zeros((60, 1)), slice(0, 1))
    with pytest.raises(ValueError, match=r"its gradient has shape \(60,\)"):
        goal.derivatives(np.zeros((60, 1)))


@pytest.mark.parametrize("what", ["value", "gradient"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_loss_that_writes_into_what_it_is_given_is_refused(what, which):
    def careless(*arrays):
        arrays[which][:] = 0.0
        return getattr(UserLoss, what)(None, *arrays)

    with pytest.raises(ValueError, match=r"^loss='own' writes into h or y, .* work on a copy"):
        fit(UserLoss(**{what: careless}))


def test_what_has_the_shape_may_be_no_float64():
    single = UserLoss(gradient=lambda h, y: (h - y).astype(np.float32), hessian=lambda h, y: np.ones(h.shape, int))
    np.testing.assert_allclose(fit(single).predict(X), fit(UserLoss()).predict(X), rtol=1e-3, atol=1e-3)
    matrices = UserLoss(gradient=lambda h, y: (h - y).view(np.matrix))
    np.testing.assert_array_equal(fit(matrices).predict(X), fit(UserLoss()).predict(X))


def test_a_gradient_of_the_wrong_sign_is_refused_in_single_precision_too():
    def value(h, y):
        return UserLoss().value(h, y).astype(np.float32)

    with pytest.raises(ValueError, match="so each step raises the loss"):
        try_loss(UserLoss(value=value, gradient=lambda h, y: (y - h).astype(np.float32)), np.zeros(1), 20.0 * Y[:, :1])


@pytest.mark.parametrize("loss", losses_of_outputs(), ids=lambda loss: loss.name)
@pytest.mark.parametrize("n_rows", [1, 2, 60])
def test_built_in_losses_are_as_promised(loss, n_rows):
    traits = losses.traits_of(loss)
    y, weight = np.abs(Y[:n_rows, : traits.max_outputs]).repeat(traits.copies or 1, axis=1), np.ones(n_rows)
    if kind_of_target(loss) == "classes":
        y = (y == y.max(axis=1)[:, None]).astype(float) if y.shape[1] > 1 else (y > 0.3).astype(float)
    for start in (CheckedLoss(loss).baseline(y, weight), np.zeros(y.shape[1])):
        try_loss(loss, start, y)


@pytest.mark.parametrize("loss", ["squared_error", "quantile", losses.Poisson(), losses.Huber(delta=2.0)], ids=str)
def test_a_classifier_refuses_losses_of_numbers(loss):
    with pytest.raises(ValueError, match=r"^loss=.* is for regression: use loss='log_loss', or BoostBPRegressor"):
        BoostBPClassifier((2,), **parameters(loss=loss, **FAST)).fit(X, Y[:, 0] > 0)


@pytest.mark.parametrize(("loss", "labels"), [(losses.Logistic(), 3), (losses.Softmax(), 2)], ids=["ovr", "softmax"])
def test_a_loss_of_classes_is_refused_for_another_number_of_classes(loss, labels):
    y = np.digitize(X[:, 0], [-0.5, 0.5]) if labels == 3 else X[:, 0] > 0
    with pytest.raises(ValueError, match=rf"does not support {labels} classes: use loss='log_loss'"):
        BoostBPClassifier((2,), **parameters(loss=loss, **FAST)).fit(X, y)


class Tweedie(UserLoss):
    """Minus the log-likelihood of Tweedie's distribution with power 1.5, of the logarithm of the mean."""

    name = "tweedie"

    def value(self, h, y):
        return (2.0 * np.exp(0.5 * h) + 2.0 * y * np.exp(-0.5 * h)).sum(axis=1)

    def gradient(self, h, y):
        return np.exp(0.5 * h) - y * np.exp(-0.5 * h)

    def hessian(self, h, y):
        return 0.5 * np.exp(0.5 * h) + 0.5 * y * np.exp(-0.5 * h)

    def link(self, h):
        return np.exp(h)

    def baseline(self, y, weight):
        return np.log(np.average(y, axis=0, weights=weight))


@pytest.mark.parametrize("metric", ["accuracy", "logloss", "auc", "error@0.3", "multi_error"])
@pytest.mark.parametrize(
    "loss", [Tweedie(), UserLoss(), "poisson", "squared_error"], ids=["tweedie", "own", "poisson", "l2"]
)
@pytest.mark.parametrize("columns", [1, 2])
def test_a_regressor_refuses_metrics_of_classes_whatever_its_loss(metric, loss, columns):
    model = BoostBPRegressor((2,), **parameters(loss=loss, eval_metric=metric, **FAST))
    counts = np.random.default_rng(1).poisson(2.0, (60, columns))
    with pytest.raises(ValueError, match=f"^eval_metric='{metric}' is for classes, and loss=.* for numbers"):
        model.fit(X, counts[:, 0] if columns == 1 else counts, eval_set=[(X, counts[:, 0] if columns == 1 else counts)])
    with pytest.raises(ValueError, match=f"^eval_metric='{metric}' is for classes"):  # nor is it passed over
        model.fit(X, counts[:, 0] if columns == 1 else counts)


def test_a_users_loss_with_a_link_is_scored_by_the_metric_that_it_names():
    class Named(Tweedie):
        task = "regression"
        default_metric = "tweedie"

    y = np.random.default_rng(1).poisson(2.0, 60)
    model = BoostBPRegressor((2,), **parameters(loss=Named(), **FAST)).fit(X, y, eval_set=[(X, y)])
    assert model.history_.metric == "tweedie"


@pytest.mark.parametrize("loss", ["log_loss", "binary", losses.Logistic()], ids=str)
def test_a_regressor_refuses_losses_of_classes(loss):
    with pytest.raises(ValueError, match=r"^loss=.* is for classification: use BoostBPClassifier"):
        BoostBPRegressor((2,), **parameters(loss=loss, **FAST)).fit(X, (Y[:, 0] > 0).astype(float))


def test_users_losses_are_refused_by_the_estimator_that_they_are_not_for():
    of_numbers, of_classes = Tweedie(task="regression"), Probit(task="classification")
    labels = (X[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match=r"^loss=.* is for regression"):
        BoostBPClassifier((2,), **parameters(loss=of_numbers, **FAST)).fit(X, labels)
    with pytest.raises(ValueError, match=r"^loss=.* is for classification"):
        BoostBPRegressor((2,), **parameters(loss=of_classes, **FAST)).fit(X, labels)
    with pytest.raises(
        ValueError, match=r"has task='counts': let it be one of classification, ranking, regression, survival"
    ):
        fit(UserLoss(task="counts"))


def test_a_target_is_scaled_by_quartiles_for_a_loss_that_says_it_is_robust():
    y = np.append(np.arange(99.0), 1e6)[:, None]
    fair = UserLoss(scale_free=True)
    assert units_of(y, np.ones(100), fair)[1] > 1e4
    fair.robust = True
    for found, expected in zip(units_of(y, np.ones(100), fair), units_of(y, np.ones(100), losses.Huber()), strict=True):
        np.testing.assert_array_equal(found, expected)


class Probit(UserLoss):
    """Minus the log-likelihood of two classes whose probability is the normal distribution of the raw output."""

    name = "probit"

    def value(self, h, y):
        return -norm.logcdf(np.where(y > 0, h, -h)).sum(axis=1)

    def gradient(self, h, y):
        side = np.where(y > 0, 1.0, -1.0)
        return -side * np.exp(norm.logpdf(h) - norm.logcdf(side * h))

    def link(self, h):
        return norm.cdf(h)

    def baseline(self, y, weight):
        return norm.ppf(np.average(y, axis=0, weights=weight))


def test_a_classifier_gives_probabilities_by_the_link_of_a_users_loss():
    labels = X[:, 0] + 0.3 * X[:, 1] > 0.2
    model = BoostBPClassifier((2,), **parameters(loss=Probit(), **FAST)).fit(X, labels, eval_set=[(X, labels)])
    assert model.history_.metric == "logloss"
    proba, raw = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(proba, np.column_stack([1 - norm.cdf(raw), norm.cdf(raw)]))
    np.testing.assert_array_equal(model.predict(X), proba[:, 1] > 0.5)
    assert (model.predict(X) == labels).mean() > 0.9


def test_the_predicted_class_is_the_most_probable_by_the_link_of_a_users_loss():
    class Reversed(UserLoss):
        name = "reversed"
        inner = losses.Softmax()

        def value(self, h, y):
            return self.inner.value(-h, y)

        def gradient(self, h, y):
            return -self.inner.gradient(-h, y)

        def link(self, h):
            return self.inner.link(-h)

        def baseline(self, y, weight):
            return -self.inner.baseline(y, weight)

    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    model = BoostBPClassifier((2,), **parameters(loss=Reversed(), eval_metric="logloss", **FAST)).fit(X, labels)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    assert (model.predict(X) == labels).mean() > 1.3 * np.bincount(labels).max() / len(labels)


@pytest.mark.parametrize("kind", [losses.Logistic, losses.Softmax])
@pytest.mark.parametrize("name", ["gradient", "hessian"])
def test_a_derivative_that_a_class_overrides_counts(kind, name):
    class Own(kind):
        pass

    setattr(Own, name, lambda self, h, y: 2.0 * getattr(kind, name)(self, h, y))
    h, y = rng.normal(size=(20, 2)), np.eye(2)[rng.integers(0, 2, 20)]
    place = ("value", "gradient", "hessian").index(name)
    expected = CheckedLoss(kind()).derivatives(h, y)[place]
    np.testing.assert_array_equal(CheckedLoss(Own()).derivatives(h, y)[place], 2.0 * expected)
