"""Losses against numeric derivatives, numeric minimisation and scikit-learn's metrics."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from helpers import derivative, kind_of_target, losses_of_outputs
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from sklearn import metrics
from user_losses import UserLoss

from boostbp.losses import (
    AbsoluteError,
    Huber,
    Logistic,
    Multilabel,
    Poisson,
    Quantile,
    Quantiles,
    Softmax,
    SquaredError,
    load_loss,
    traits_of,
)

RESIDUALS = [SquaredError(), AbsoluteError(), Huber(delta=0.7), Quantile(alpha=0.3), Quantiles(alpha=(0.1, 0.6))]
# A new loss is tested by what it says about itself, and so is a known one with other parameters.
ALL = [*RESIDUALS, *(loss for loss in losses_of_outputs() if loss.name not in {one.name for one in RESIDUALS})]
SIZES = [1e3, 1e6, 1e100]

every_loss = pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
every_residual = pytest.mark.parametrize("loss", RESIDUALS, ids=lambda loss: loss.name)


def floats(low: float, high: float, rows: int, outputs: int) -> st.SearchStrategy:
    return arrays(np.float64, (rows, outputs), elements=st.floats(low, high))


def columns_of(loss: object) -> int | None:
    """Columns of `h` and `y`; None: two or more."""
    traits = traits_of(loss)
    return traits.copies or (1 if traits.max_outputs == 1 else None)


@st.composite
def raw_and_target(draw: st.DrawFn, loss: object, size: float = 6.0) -> tuple[np.ndarray, np.ndarray]:
    """`h` within `size` and a target that the loss takes, both (rows, outputs)."""
    rows = draw(st.integers(1, 6))
    outputs = columns_of(loss) or draw(st.integers(2, 4))
    h, kind = draw(floats(-size, size, rows, outputs)), kind_of_target(loss)
    if kind == "classes" and outputs > 1 and not traits_of(loss).multilabel:
        return h, np.eye(outputs)[draw(arrays(np.int64, rows, elements=st.integers(0, outputs - 1)))]
    least, most = {"counts": (0, 50), "positive": (1, 50), "classes": (0, 1)}.get(kind, (None, None))
    if least is None:
        return h, draw(floats(-size, size, rows, outputs))
    return h, draw(arrays(np.int64, (rows, outputs), elements=st.integers(least, most))).astype(float)


def weights(rows: int) -> st.SearchStrategy:
    """Weights of which the first is positive, and others may be 0."""
    return arrays(np.float64, rows, elements=st.just(0.0) | st.floats(0.01, 10)).map(
        lambda weight: np.concatenate(([1.0], weight[1:]))
    )


def away_from_kinks(loss: object, h: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`h` moved so that no residual is within 1e-2 of a place where the gradient jumps or bends."""
    for kink in (0.0, -getattr(loss, "delta", 0.0), getattr(loss, "delta", 0.0)):
        h = np.where(np.abs(h - y - kink) < 1e-2, y + kink + 2e-2, h)
    return h


# ---------------------------------------------------------------------------- derivatives


@every_loss
@given(data=st.data())
def test_gradient_is_derivative_of_value(loss, data):
    h, y = data.draw(raw_and_target(loss))
    h = away_from_kinks(loss, h, y)
    numeric = derivative(lambda at: loss.value(at, y), h, 1e-5)
    np.testing.assert_allclose(loss.gradient(h, y), numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("loss", [SquaredError(), Poisson(max_delta_step=0.0), Logistic(), Multilabel(), Softmax()])
@given(data=st.data())
def test_hessian_is_diagonal_of_second_derivative(loss, data):
    h, y = data.draw(raw_and_target(loss))
    numeric = derivative(lambda at: loss.gradient(at, y), h, 1e-5)
    classes = h.shape[1]
    factor = classes / (classes - 1) if isinstance(loss, Softmax) else 1.0
    floor = 0.0 if loss.name == "squared_error" else 1e-6
    np.testing.assert_allclose(loss.hessian(h, y), np.maximum(factor * numeric, floor), rtol=1e-6, atol=1e-6)


def test_max_delta_step_enlarges_the_poisson_hessian():
    h, y = np.array([[-1.0], [2.0]]), np.array([[0.0], [3.0]])
    np.testing.assert_allclose(Poisson(max_delta_step=0.7).hessian(h, y), np.exp(h + 0.7), rtol=1e-14)


# ---------------------------------------------------------------------------- extremes


@every_loss
@pytest.mark.parametrize("size", SIZES)
@given(data=st.data())
def test_everything_is_finite_at_extreme_raw_outputs(loss, size, data):
    h, y = data.draw(raw_and_target(loss, size))
    assert np.isfinite(loss.value(h, y)).all()
    assert np.isfinite(loss.gradient(h, y)).all()
    assert np.isfinite(loss.link(h)).all()
    hessian = loss.hessian(h, y)
    assert np.isfinite(hessian).all()
    assert hessian.min() >= 1e-6


@pytest.mark.parametrize("size", SIZES)
def test_logistic_extremes_have_their_closed_form(size):
    h, y = np.array([[size], [size], [-size], [-size]]), np.array([[0.0], [1.0], [0.0], [1.0]])
    np.testing.assert_array_equal(Logistic().value(h, y), [size, 0, 0, size])
    np.testing.assert_array_equal(Logistic().gradient(h, y)[:, 0], [1, 0, 0, -1])


@pytest.mark.parametrize("size", SIZES)
def test_softmax_extremes_have_their_closed_form(size):
    h, y = np.array([[size, 0, -size], [size, 0, -size]]), np.array([[1.0, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(Softmax().value(h, y), [0, 2 * size])
    np.testing.assert_array_equal(Softmax().gradient(h, y), [[0, 0, 0], [1, 0, -1]])


@given(st.data())
def test_links_are_those_of_scipy(data):
    h, _ = data.draw(raw_and_target(Softmax()))
    np.testing.assert_allclose(Softmax().link(h), softmax(h, axis=1), rtol=1e-12, atol=1e-300)
    likely = Logistic().gradient(h, np.zeros_like(h))  # of class 0: the probability of class 1
    np.testing.assert_allclose(likely, expit(h), rtol=1e-14)


@pytest.mark.parametrize("h", [20.0, 40.0, 300.0])
def test_logistic_does_not_cancel_where_it_is_sure(h):
    raw, y = np.array([[h]]), np.array([[1.0]])
    np.testing.assert_allclose(Logistic().gradient(raw, y), -np.exp(-raw), rtol=1e-8)
    np.testing.assert_allclose(Logistic().value(raw, y), np.exp(-h), rtol=1e-8)


# ---------------------------------------------------------------------------- values


@given(data=st.data(), shift=st.floats(-1e3, 1e3))
def test_softmax_ignores_a_shift_of_all_outputs(data, shift):
    h, y = data.draw(raw_and_target(Softmax()))
    for member in ("value", "gradient", "hessian"):
        plain, shifted = getattr(Softmax(), member)(h, y), getattr(Softmax(), member)(h + shift, y)
        np.testing.assert_allclose(shifted, plain, rtol=1e-9, atol=1e-12)


@given(data=st.data())
def test_logistic_is_the_softmax_of_zero_and_h(data):
    h, y = data.draw(raw_and_target(Logistic()))
    both, one_hot = np.hstack((np.zeros_like(h), h)), np.hstack((1 - y, y))
    np.testing.assert_allclose(Logistic().value(h, y), Softmax().value(both, one_hot), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(Logistic().gradient(h, y), Softmax().gradient(both, one_hot)[:, 1:], atol=1e-15)
    np.testing.assert_allclose(Logistic().link(h), Softmax().link(both)[:, 1:], rtol=1e-12)


@pytest.mark.parametrize(
    ("loss", "metric"),
    [
        (SquaredError(), lambda y, h: metrics.mean_squared_error(y, h, multioutput="raw_values").sum() / 2),
        (AbsoluteError(), lambda y, h: metrics.mean_absolute_error(y, h, multioutput="raw_values").sum()),
        (Quantile(alpha=0.8), lambda y, h: metrics.mean_pinball_loss(y, h, alpha=0.8, multioutput="raw_values").sum()),
    ],
    ids=["squared", "absolute", "quantile"],
)
def test_mean_value_agrees_with_sklearn(loss, metric):
    rng = np.random.default_rng(0)
    h, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    np.testing.assert_allclose(loss.value(h, y).mean(), metric(y, h), rtol=1e-12)


def test_mean_value_of_class_losses_agrees_with_sklearn():
    rng = np.random.default_rng(0)
    h, label = rng.normal(size=(50, 3)), rng.integers(3, size=50)
    expected = metrics.log_loss(label, Softmax().link(h), labels=[0, 1, 2])
    np.testing.assert_allclose(Softmax().value(h, np.eye(3)[label]).mean(), expected, rtol=1e-12)
    one, two = h[:, :1], (label > 0).astype(float)
    expected = metrics.log_loss(two, Logistic().link(one)[:, 0], labels=[0, 1])
    np.testing.assert_allclose(Logistic().value(one, two[:, None]).mean(), expected, rtol=1e-12)


# ---------------------------------------------------------------------------- baseline


def weighted(loss: object, constant: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    return float(weight @ loss.value(np.broadcast_to(constant, y.shape), y))


def rare(loss: object, y: np.ndarray) -> float:
    """Loss of rows that are always 0, or never of a class, where a millionth is predicted."""
    if traits_of(loss).link_name != "log":
        return 1e-6 * y.shape[1]
    return max(0.0, loss.value(np.full((1, y.shape[1]), np.log(1e-6)), np.zeros((1, y.shape[1]))).item())


@every_loss
@given(data=st.data())
def test_baseline_minimises_weighted_value(loss, data):
    _, y = data.draw(raw_and_target(loss))
    weight = data.draw(weights(len(y)))
    baseline = loss.baseline(y, weight)
    at_baseline = weighted(loss, baseline, y, weight)
    for output in range(y.shape[1]):
        unit = np.eye(y.shape[1])[output]
        for low, high in [(-20, 20), (-1e-3, 1e-3)]:
            found = minimize_scalar(
                lambda t, unit=unit: weighted(loss, baseline + t * unit, y, weight),
                bounds=(low, high),
                method="bounded",
                options={"xatol": 1e-10},
            )
            # The minimum of a class or amount that never occurs is minus infinity: log(1e-6) costs a little.
            absent = 0.0 if loss.scale_free or np.ptp(y[weight > 0], axis=0).all() else weight.sum() * rare(loss, y)
            slack = absent + 1e-9 * max(1.0, abs(at_baseline))
            assert at_baseline <= found.fun + slack, f"output {output}: {at_baseline} at baseline, {found.fun} found"


@pytest.mark.parametrize("loss", [SquaredError(), Huber(delta=0.7), Poisson(), Logistic()], ids=lambda loss: loss.name)
def test_baseline_is_the_constant_that_minimisation_finds(loss):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=(40, 1)) if isinstance(loss, Logistic) else rng.poisson(3.0, size=(40, 1))
    y, weight = y.astype(float), rng.uniform(size=40)
    found = minimize_scalar(lambda c: weighted(loss, np.array([c]), y, weight), bracket=(-1, 1), tol=1e-12)
    np.testing.assert_allclose(loss.baseline(y, weight), [found.x], atol=1e-6)


@every_loss
@given(data=st.data())
def test_baseline_does_not_see_rows_of_weight_zero(loss, data):
    _, y = data.draw(raw_and_target(loss))
    weight = np.arange(1.0, len(y) + 1)
    other = np.roll(y, 1, axis=1) if y.shape[1] > 1 else np.abs(1 - y)
    both, weights_of_both = np.vstack((y, other)), np.concatenate((weight, np.zeros(len(y))))
    expected = loss.baseline(y, weight)
    np.testing.assert_allclose(loss.baseline(both, weights_of_both), expected, rtol=1e-9, atol=1e-9)


@every_loss
@pytest.mark.parametrize("size", [1e-300, 4e307])
def test_baseline_depends_on_ratios_of_weights_only(loss, size):
    y = np.eye(3)[[0, 0, 1, 2, 2]][:, : columns_of(loss)]
    if kind_of_target(loss) == "positive":
        y += 1
    weight = np.array([1.0, 2.0, 4.0, 1.0, 1.0])
    np.testing.assert_allclose(loss.baseline(y, size * weight), loss.baseline(y, weight), rtol=1e-9, atol=1e-12)


@every_residual
@given(data=st.data(), shift=st.floats(-100, 100), scale=st.floats(0.01, 100))
def test_scale_free_baseline_moves_with_the_target(loss, data, shift, scale):
    assert loss.scale_free
    _, y = data.draw(raw_and_target(loss))
    weight = data.draw(weights(len(y)))
    scaled = replace(loss, delta=loss.delta * scale) if isinstance(loss, Huber) else loss
    moved = scaled.baseline(scale * y + shift, weight)
    expected = scale * loss.baseline(y, weight) + shift
    if isinstance(loss, Huber):  # its minimum may be flat: then another constant is as good
        value, best = (
            weighted(scaled, moved, scale * y + shift, weight),
            weighted(loss, loss.baseline(y, weight), y, weight),
        )
        np.testing.assert_allclose(value, scale**2 * best, rtol=1e-7, atol=1e-7)
    else:
        np.testing.assert_allclose(moved, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        (Poisson(), np.zeros((5, 2))),
        (Logistic(), np.zeros((5, 1))),
        (Logistic(), np.ones((5, 1))),
        (Softmax(), np.eye(3)[[1, 1, 1, 1, 1]]),
        *((loss, np.full((5, 2), 1e300)) for loss in RESIDUALS),
        *((loss, np.full((1, columns_of(loss) or 1), -3.0)) for loss in RESIDUALS),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_baseline_is_finite_and_near_the_target_for_degenerate_targets(loss, y):
    loss.check(y)
    baseline = loss.baseline(y, np.ones(len(y)))
    assert baseline.shape == (y.shape[1],)
    np.testing.assert_allclose(loss.link(np.tile(baseline, (len(y), 1))), y, rtol=1e-12, atol=3e-6)


def test_baseline_refuses_weights_that_are_all_zero():
    with pytest.raises(ValueError, match="sample_weight"):
        SquaredError().baseline(np.ones((3, 1)), np.zeros(3))


# ---------------------------------------------------------------------------- check


@every_loss
@given(data=st.data())
def test_check_takes_what_the_loss_can_take(loss, data):
    _, y = data.draw(raw_and_target(loss))
    loss.check(y)


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (SquaredError(), [[1.0], [np.nan]], r"y=nan in row 1, output 0: .*finite"),
        (Huber(), [[1.0, np.inf]], r"y=inf in row 0, output 1: .*finite"),
        (Poisson(), [[1.0], [-2.0]], r"y=-2 in row 1, output 0: .*counts >= 0.*squared_error"),
        (Poisson(), [[np.nan]], r"y=nan in row 0"),
        (Poisson(), [[1e30]], r"y=1e\+30 in row 0, output 0: .*Divide"),
        (Logistic(), [[0.0], [1.0], [-1.0]], r"y=-1 in row 2, output 0: .*Encode"),
        (Logistic(), [[np.nan]], r"y=nan in row 0"),
        (Softmax(), [[0.5, 0.5]], r"y=0.5 in row 0, output 0: .*one-hot"),
        (Softmax(), [[0.0, 1.0], [1.0, 1.0]], r"2 classes in row 1"),
        (Softmax(), [[0.0, 1.0], [0.0, 0.0]], r"0 classes in row 1"),
        (Softmax(), [[1.0]], r"1 column.*logistic"),
    ],
)
def test_check_names_the_wrong_value_and_the_cure(loss, y, message):
    with pytest.raises(ValueError, match=message):
        loss.check(np.array(y))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Huber(delta=0.0), "delta=0.0"),
        (lambda: Huber(delta=np.nan), "delta=nan"),
        (lambda: Quantile(alpha=1.0), "alpha=1.0"),
        (lambda: Quantile(alpha=-0.1), "alpha=-0.1"),
        (lambda: Quantiles(alpha=(0.5, 0.1)), r"alpha=\(0.5, 0.1\) must be ascending levels"),
        (lambda: Quantiles(alpha=(0.5, 0.5)), r"alpha=\(0.5, 0.5\)"),
        (lambda: Quantiles(alpha=(0.0, 0.5)), r"alpha=\(0.0, 0.5\)"),
        (lambda: Quantiles(alpha=()), r"alpha=\(\)"),
        (lambda: Poisson(max_delta_step=-1.0), "max_delta_step=-1.0"),
    ],
)
def test_parameters_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ---------------------------------------------------------------------------- load_loss


@pytest.mark.parametrize(
    ("names", "n_outputs", "expected"),
    [
        ("squared_error l2 mse mean_squared_error regression reg:squarederror", 2, SquaredError()),
        ("absolute_error l1 mae mean_absolute_error regression_l1 reg:absoluteerror", 2, AbsoluteError()),
        ("huber", 1, Huber()),
        ("quantile reg:quantileerror", 1, Quantile()),
        ("poisson count:poisson", 1, Poisson()),
        ("log_loss logistic binary binary:logistic", 1, Logistic()),
        ("log_loss softmax multiclass multi:softprob multi:softmax", 3, Softmax()),
    ],
)
def test_names_of_the_libraries_load(names, n_outputs, expected):
    for name in names.split():
        assert load_loss(name, n_outputs=n_outputs) == expected


@given(data=st.data())
def test_several_labels_are_a_sum_over_logistic_losses(data):
    h, y = data.draw(raw_and_target(Multilabel()))
    columns = [Logistic().derivatives(h[:, [k]], y[:, [k]]) for k in range(h.shape[1])]
    value, gradient, hessian = Multilabel().derivatives(h, y)
    np.testing.assert_allclose(value, np.sum([part[0] for part in columns], axis=0), rtol=1e-12)
    np.testing.assert_array_equal(gradient, np.hstack([part[1] for part in columns]))
    np.testing.assert_array_equal(hessian, np.hstack([part[2] for part in columns]))


@every_loss
def test_losses_are_values(loss):
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert hash(loss) == hash(replace(loss))


@pytest.mark.parametrize(
    ("name", "n_outputs", "message"),
    [
        ("square", 1, "loss='square' is unknown: use one of squared_error, .*poisson, .*log_loss"),
        ("binary", 3, "takes 1 output, y has 3.*log_loss"),
        ("multiclass", 1, "2 outputs or more, y has 1.*log_loss"),
    ],
)
def test_wrong_names_are_refused_with_the_cure(name, n_outputs, message):
    with pytest.raises(ValueError, match=message):
        load_loss(name, n_outputs=n_outputs)


def test_an_own_loss_is_taken_as_it_is():
    own = UserLoss()
    assert load_loss(own, n_outputs=2) is own


def test_an_incomplete_own_loss_is_refused_with_what_it_lacks():
    class Half:
        name = "half"

        def value(self, h, y):
            return h

        def gradient(self, h, y):
            return h

    with pytest.raises(TypeError, match="lacks scale_free, hessian, link, baseline, check"):
        load_loss(Half(), n_outputs=1)


def test_a_class_in_place_of_an_object_is_refused():
    with pytest.raises(TypeError, match=r"Huber\(\)"):
        load_loss(Huber, n_outputs=1)
