"""The one list of losses: what is in it, and what each loss says about itself."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields, is_dataclass
from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from helpers import kind_of_target, losses_of_outputs
from user_losses import UserLoss

from boostbp import losses, metrics
from boostbp.losses import LOSSES, Traits, traits_of
from boostbp.losses.checked_loss import try_loss
from boostbp.model.model import units_of
from boostbp.network.stored import loss_of

every_loss = pytest.mark.parametrize("loss", [loss() for loss in LOSSES.values()], ids=lambda loss: loss.name)
every_loss_of_outputs = pytest.mark.parametrize("loss", losses_of_outputs(), ids=lambda loss: loss.name)


def in_files() -> set[type]:
    """Classes in the files of the folder that are losses."""
    found = set()
    for info in pkgutil.iter_modules(losses.__path__, f"{losses.__name__}."):
        module = importlib.import_module(info.name)
        found |= {value for value in vars(module).values() if isinstance(value, type) and hasattr(value, "baseline")}
    return {loss for loss in found - {losses.Loss} if isinstance(getattr(loss, "name", None), str)}


def test_every_loss_of_the_folder_is_known_by_its_name_and_public():
    assert set(LOSSES.values()) == in_files()
    assert {name: loss.name for name, loss in LOSSES.items()} == {name: name for name in LOSSES}
    assert {loss.__name__ for loss in LOSSES.values()} <= set(losses.__all__)


def test_losses_that_share_a_name_take_other_numbers_of_outputs():
    for one, other in combinations(LOSSES.values(), 2):
        if {one.name, *traits_of(one).aliases} & {other.name, *traits_of(other).aliases}:
            assert not any(traits_of(one).takes(n) and traits_of(other).takes(n) for n in range(1, 9))


@every_loss
def test_a_loss_loads_by_all_its_names(loss):
    n_outputs = traits_of(loss).min_outputs
    for name in (loss.name, *traits_of(loss).aliases):
        assert losses.load_loss(name, n_outputs=n_outputs) == loss
    assert losses.load_loss(loss, n_outputs=n_outputs) is loss


@every_loss_of_outputs
def test_a_loss_says_what_it_is_for_and_undoes_its_link(loss):
    traits = traits_of(loss)
    assert traits.task == ("classification" if kind_of_target(loss) == "classes" else "regression")
    h = np.array([[-1.0, 0.5], [2.0, 0.0]])[:, : traits.max_outputs]
    undone = {
        "identity": lambda p: p,
        "sorted": lambda p: p,
        "log": np.log,
        "logit": lambda p: np.log(p) - np.log1p(-p),
        "softmax": lambda p: np.log(p) - np.log(p).mean(axis=1, keepdims=True) + h.mean(axis=1, keepdims=True),
    }[traits.link_name](loss.link(h))
    np.testing.assert_allclose(undone, h, rtol=1e-12, atol=1e-12)
    if hasattr(loss, "inverse_link"):
        np.testing.assert_allclose(loss.inverse_link(loss.link(h)), h, rtol=1e-12, atol=1e-12)


@every_loss_of_outputs
def test_what_a_loss_says_of_its_values_is_true(loss):
    traits = traits_of(loss)
    rng = np.random.default_rng(0)
    y = rng.integers(1, 5, (20, 3)).astype(float)
    if traits.task == "classification":
        y = np.eye(3)[rng.integers(3, size=20)]
    y = y[:, : traits.max_outputs]
    h = 0.5 * rng.standard_normal(y.shape)
    both = loss.value(h, y)
    tried = try_loss(loss, np.zeros(traits.copies or y.shape[1]), y.repeat(traits.copies or 1, axis=1))
    if tried.separable:
        apart = sum(loss.value(h[:, [k]], y[:, [k]]) for k in range(y.shape[1]))
        np.testing.assert_allclose(both, apart, rtol=1e-12)
    if traits.homogeneous:
        np.testing.assert_allclose(loss.value(7 * h, 7 * y), 7 * both, rtol=1e-12)
    if traits.least_squares:
        np.testing.assert_allclose(both, np.square(h - y).sum(axis=1) / 2, rtol=1e-12)
    assert tried.curved == (np.ptp(loss.hessian(h, y)) > 0)
    assert not traits.soft_labels or np.isfinite(loss.value(h, np.full_like(y, 1 / max(2, y.shape[1])))).all()


@every_loss
def test_units_of_the_target_are_those_that_the_loss_bears(loss):
    y = np.abs(np.random.default_rng(1).standard_normal((200, 1))) + 0.1
    far = np.vstack([y, [[1e9]]])
    shift, unit = units_of(far, np.ones(201), loss)
    if not loss.scale_free:
        assert (shift.item(), unit.item()) == (0.0, 1.0)
    else:
        assert (unit.item() < 10.0) == traits_of(loss).robust


@every_loss
def test_a_loss_has_a_metric_of_its_own(loss):
    metric = metrics.default_metric(loss)
    assert metric.name == (traits_of(loss).default_metric or loss.name)
    assert metric.greater_is_better == (traits_of(loss).task == "ranking")
    if traits_of(loss).default_metric is None:
        h, y = np.array([[0.3], [-0.2]]), np.array([[1.5], [2.0]])
        expected = loss.value(h, y).mean()
        assert metric(loss.link(h), y, np.ones(2)) == pytest.approx(expected, rel=1e-12)


def test_an_object_that_says_nothing_has_the_traits_of_any_loss():
    assert traits_of(object()) == Traits()


class Fourth(UserLoss):
    """``(h - y)^4 / 4``."""

    name, scale_free, aliases = "fourth_power", True, ("l4",)

    def value(self, h, y):
        return ((h - y) ** 4 / 4).sum(axis=1)

    def gradient(self, h, y):
        return (h - y) ** 3

    def hessian(self, h, y):
        return np.maximum(3 * (h - y) ** 2, 1e-6)


def test_a_loss_that_is_added_to_the_list_is_known_by_its_names():
    with pytest.raises(ValueError, match="loss='l4' is unknown"):
        losses.load_loss("l4", n_outputs=1)
    y = np.array([[1.0], [3.0]])
    with mock.patch.dict(LOSSES, {Fourth.name: Fourth}):
        for name in ("l4", "fourth_power"):
            assert isinstance(losses.load_loss(name, n_outputs=2), Fourth)
        assert metrics.load_metric("fourth_power", losses.SquaredError())(y + 2, y, np.ones(2)) == pytest.approx(4.0)
        with pytest.raises(TypeError, match="dataclass"):
            loss_of(Fourth())


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1.0, "x", {}, [[1.0], [2.0, 3.0]]], ids=repr)
@pytest.mark.parametrize("name", losses.LOSSES)
def test_a_wrong_parameter_is_refused_by_its_name(name: str, wrong: object) -> None:
    kind = losses.LOSSES[name]
    for field in fields(kind) if is_dataclass(kind) else ():
        with pytest.raises(ValueError, match=f"^{field.name}="):
            kind(**{field.name: wrong})
