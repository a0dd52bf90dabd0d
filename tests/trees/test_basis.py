"""A basis expands features, and pulls gradients back by the chain rule."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BASES, softlog, softlog_slope

from boostbp import fit_layer
from boostbp.trees import basis as bases
from boostbp.trees.basis import Elementwise, Linear, Quadratic

OWN = BASES["own"]


def test_names_give_the_bases():
    assert bases.load("linear") == Linear()
    assert bases.load("quadratic") == Quadratic()
    assert bases.load(OWN) is OWN


@pytest.mark.parametrize("basis", ["cubic", None, 3])
def test_unknown_basis_is_refused(basis):
    with pytest.raises(ValueError, match=r"basis=.* is not known: give 'constant', 'linear', 'quadratic'"):
        bases.load(basis)


@pytest.mark.parametrize(("functions", "derivatives"), [([], []), ([np.sin], []), ([np.sin], [np.cos, np.cos])])
def test_functions_without_their_derivatives_are_refused(functions, derivatives):
    with pytest.raises(ValueError, match="give one derivative for each function"):
        Elementwise(functions, derivatives)


@pytest.mark.parametrize("basis", [Linear(), Quadratic()])
def test_powers_are_left_to_the_kernels(basis):
    X, G = np.ones((3, 2)), np.ones((3, 2))
    assert basis.expand(X) is X
    assert basis.pull(X, G) is G
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
    np.testing.assert_allclose(OWN.pull(X, G), expected, rtol=1e-14)


def test_pull_serves_any_number_of_outputs():
    rng = np.random.default_rng(2)
    X, G = rng.standard_normal((7, 3)), rng.standard_normal((7, 5, 6))
    expected = np.stack([OWN.pull(X, np.ascontiguousarray(G[:, k])) for k in range(5)], axis=1)
    np.testing.assert_array_equal(OWN.pull(X, G), expected)


def test_no_gradient_in_a_column_is_no_gradient_in_the_feature_whatever_the_slope():
    roots = Elementwise([np.sqrt, np.log], [lambda x: 0.5 / np.sqrt(x), lambda x: 1.0 / x])
    X = np.array([[0.0, np.nan, -1.0]])
    assert roots.pull(X, np.zeros((1, 6))).tolist() == [[0.0, 0.0, 0.0]]
    assert roots.pull(X, np.zeros((1, 2, 6))).tolist() == [[[0.0, 0.0, 0.0]] * 2]


def doubled(x):
    x *= 2.0
    return x


def sine(x):
    return np.sin(x, out=x)


@pytest.mark.parametrize("careless", [doubled, sine])
def test_functions_that_work_in_place_are_refused_and_change_nothing(careless):
    X = np.random.default_rng(0).standard_normal((40, 2))
    before = X.copy()
    with pytest.raises(ValueError, match=rf"^basis function 1, {careless.__name__}, asks to write .* x\.copy\(\)"):
        Elementwise([np.cos, careless], [np.sin, np.cos]).expand(X)
    with pytest.raises(ValueError, match=rf"^derivative 1 of the basis, {careless.__name__}, asks to write"):
        Elementwise([np.cos, np.sin], [np.sin, careless]).pull(X, np.ones((40, 4)))
    with pytest.raises(ValueError, match=r"^basis function 0, "):
        fit_layer(X, X, basis=Elementwise([careless], [np.ones_like]))
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
    basis.pull(X, np.ones((4, 2)))
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
        logs.check(X, Z, [0, 1])
    logs.check(X, Z, [0])
