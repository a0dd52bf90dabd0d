"""A basis expands features, and pulls gradients back by the chain rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BASES, softlog, softlog_slope
from sklearn import clone

from boostbp import BoostBPRegressor, fit_layer, load, save
from boostbp.trees import basis as bases
from boostbp.trees.basis import Elementwise, Polynomial, check_finite

OWN = BASES["own"]


def test_names_give_the_bases():
    assert bases.load_basis("linear") == Polynomial(1)
    assert bases.load_basis("quadratic") == Polynomial(2)
    assert bases.load_basis(OWN) is OWN


@pytest.mark.parametrize("basis", ["cubic", None, 3, Polynomial])
def test_unknown_basis_is_refused(basis):
    with pytest.raises(ValueError, match=r"basis=.* is not known: give 'constant', 'linear', 'quadratic'"):
        bases.load_basis(basis)


@pytest.mark.parametrize("degree", [-1, 3, 1.5, "2"])
def test_powers_that_kernels_do_not_have_are_refused(degree):
    with pytest.raises(ValueError, match=f"degree={degree!r} is not 0, 1 or 2: use boostbp.Elementwise"):
        Polynomial(degree)


@pytest.mark.parametrize(("functions", "derivatives"), [([], []), ([np.sin], []), ([np.sin], [np.cos, np.cos])])
def test_functions_without_their_derivatives_are_refused(functions, derivatives):
    with pytest.raises(ValueError, match="give one derivative for each function"):
        Elementwise(functions, derivatives)


@pytest.mark.parametrize("basis", [Polynomial(1), Polynomial(2)])
def test_powers_are_left_to_the_kernels(basis):
    X, G = np.ones((3, 2)), np.ones((3, 2))
    assert basis.expand(X) is X
    assert basis.vjp(X, G) is G
    assert basis.columns_per_feature == 1


def test_columns_of_a_feature_stand_together():
    X = np.random.default_rng(0).standard_normal((7, 3))
    Z = OWN.expand(X)
    assert Z.shape == (7, 6)
    assert Z.flags.c_contiguous
    np.testing.assert_array_equal(Z[:, 2], np.sin(X[:, 1]))
    np.testing.assert_array_equal(Z[:, 3], softlog(X[:, 1]))


def test_pull_is_the_chain_rule():
    rng = np.random.default_rng(1)
    X, G = rng.standard_normal((7, 3)), rng.standard_normal((7, 6))
    expected = G[:, 0::2] * np.cos(X) + G[:, 1::2] * softlog_slope(X)
    np.testing.assert_allclose(OWN.vjp(X, G), expected, rtol=1e-14)


def test_pull_serves_any_number_of_outputs():
    rng = np.random.default_rng(2)
    X, G = rng.standard_normal((7, 3)), rng.standard_normal((7, 5, 6))
    expected = np.stack([OWN.vjp(X, np.ascontiguousarray(G[:, k])) for k in range(5)], axis=1)
    np.testing.assert_array_equal(OWN.vjp(X, G), expected)


def test_no_gradient_in_a_column_is_no_gradient_in_the_feature_whatever_the_slope():
    roots = Elementwise([np.sqrt, np.log], [lambda x: 0.5 / np.sqrt(x), lambda x: 1.0 / x])
    X = np.array([[0.0, np.nan, -1.0]])
    assert roots.vjp(X, np.zeros((1, 6))).tolist() == [[0.0, 0.0, 0.0]]
    assert roots.vjp(X, np.zeros((1, 2, 6))).tolist() == [[[0.0, 0.0, 0.0]] * 2]


def doubled(x):
    x *= 2.0
    return x


def sine(x):
    return np.sin(x, out=x)


@pytest.mark.parametrize("careless", [doubled, sine])
def test_functions_that_work_in_place_are_refused_and_change_nothing(careless):
    X = np.random.default_rng(0).standard_normal((40, 2))
    before = X.copy()
    with pytest.raises(
        ValueError, match=rf"^basis function 1, {careless.__name__}, writes into its input.* x\.copy\(\)"
    ):
        Elementwise([np.cos, careless], [np.sin, np.cos]).expand(X)
    with pytest.raises(ValueError, match=rf"^derivative 1 of the basis, {careless.__name__}, writes into"):
        Elementwise([np.cos, np.sin], [np.sin, careless]).vjp(X, np.ones((40, 4)))
    with pytest.raises(ValueError, match=r"^basis function 0, "):
        fit_layer(X, X, {"basis": Elementwise([careless], [np.ones_like])})
    np.testing.assert_array_equal(X, before)
    assert X.flags.writeable


def test_functions_see_the_input_itself():
    seen = []

    def watched(x):
        seen.append(x)
        return x

    X = np.ones((4, 2))
    basis = Elementwise([watched], [watched])
    Z = basis.expand(X)
    basis.vjp(X, np.ones((4, 2)))
    assert all(np.shares_memory(x, X) for x in seen)
    assert not np.shares_memory(Z, X)
    assert Z.flags.writeable


def test_other_errors_of_functions_are_left_alone():
    def picky(x):
        raise ValueError("too cold")

    with pytest.raises(ValueError, match=r"^too cold$"):
        Elementwise([picky], [picky]).expand(np.ones((2, 2)))


def test_check_names_function_value_and_feature():
    logs = Elementwise([np.ones_like, np.log], [np.zeros_like, lambda x: 1.0 / x])
    X = np.array([[1.0, np.nan], [2.0, 0.0]])
    Z = logs.expand(X)
    with pytest.raises(ValueError, match=r"basis function 1 gave -inf for the value 0.0 of feature 1"):
        check_finite(logs, X, Z, [0, 1])
    check_finite(logs, X, Z, [0])


# ---------------------------------------------------------------------------- a class of one's own


@dataclass(frozen=True)
class Reciprocals:
    """phi(x) = [1, x, 1 / (x^2 + c)], and the squares of both if `powers` is 2."""

    c: float = 1.0
    powers: int = 1
    columns_per_feature: ClassVar[int] = 2
    has_functions: ClassVar[bool] = True

    def expand(self, X):
        return np.stack([X, 1.0 / (X * X + self.c)], axis=2).reshape(len(X), -1)

    def vjp(self, X, G):
        slopes = np.stack([np.ones_like(X), -2.0 * X / (X * X + self.c) ** 2], axis=2)
        slopes = slopes.reshape(len(X), *(1,) * (G.ndim - 2), X.shape[1], 2)
        return (G.reshape(*G.shape[:-1], X.shape[1], 2) * slopes).sum(axis=-1)


def inputs():
    X = np.random.default_rng(3).uniform(-2.0, 2.0, (150, 3))
    return X, np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)


def test_a_class_of_ones_own_is_the_basis_of_its_functions():
    X, targets = inputs()
    same = Elementwise(
        [lambda x: x, lambda x: 1.0 / (x * x + 1.0)], [np.ones_like, lambda x: -2.0 * x / (x * x + 1.0) ** 2]
    )
    one, other = (
        fit_layer(X, targets, {"basis": basis, "n_estimators": 4, "base": "ridge"}) for basis in (Reciprocals(), same)
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_array_equal(one.jacobian(X), other.jacobian(X))


@pytest.mark.parametrize("powers", [1, 2])
def test_kernels_take_powers_of_its_columns(powers):
    X, targets = inputs()
    layer = fit_layer(
        X,
        targets,
        {"basis": Reciprocals(powers=powers), "n_estimators": 4, "max_depth": 3, "clip": False, "base": "zero"},
    )
    path = np.diff(layer.forest.leaves.start)
    assert (np.diff(layer.forest.leaves.weight_start) == 1 + powers * path).all()
    _, trace = layer.forward(X)
    for j in range(3):
        move = 1e-6 * np.eye(3)[j]
        slope = (layer.predict(X + move) - layer.predict(X - move)).sum(axis=1) / 2e-6
        np.testing.assert_allclose(trace.vjp(np.ones_like(targets))[:, j], slope, atol=1e-4)


@pytest.mark.parametrize("basis", [Reciprocals(2.0), Elementwise([np.sin], [np.cos])])
def test_a_basis_with_a_name_is_stored_and_one_without_is_not(basis, tmp_path, monkeypatch):
    X, targets = inputs()
    model = BoostBPRegressor((2,), **parameters(basis=basis, deep=True, n_estimators=2, epochs=1, random_state=0)).fit(
        X, targets
    )
    with pytest.raises(ValueError, match=r"^basis=(Elementwise|Reciprocals).* cannot be stored"):
        save(model, tmp_path / "model")
    with monkeypatch.context() as known:
        known.setitem(bases.BASES, "mine", basis)
        save(model, tmp_path / "model")
        found = load(tmp_path / "model")
        assert found.hidden["basis"] == found.output["basis"] == basis
        np.testing.assert_array_equal(found.predict(X), model.predict(X))
        by_name = clone(model).set_params(hidden__basis="mine", output__basis="mine").fit(X, targets)
        np.testing.assert_array_equal(by_name.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="'mine'"):
        load(tmp_path / "model")
