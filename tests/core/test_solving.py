"""Ridge regressions of leaves, and changes of units of their weights, are those of plain numbers."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from boostbp import core
from tests.core.test_binding import LAYOUTS, leaf_systems

layouts = st.sampled_from(sorted(LAYOUTS)).map(LAYOUTS.get)


def ridge_weights(gram, moment, penalty, penalize_constant, scale):
    """The weights of one leaf, (terms, outputs), from Python's floats, in the order of the loop."""
    p = len(gram)
    a = [[float(number) for number in row] for row in gram]
    for i in range(p):
        a[i][i] += penalty if i or penalize_constant else 0.0
    for j in range(p):
        pivot = a[j][j]
        for k in range(j):
            pivot -= a[j][k] * a[j][k]
        is_new = pivot > 1e-12 * a[j][j] and pivot > 0.0
        root = sqrt(pivot) if is_new else 0.0
        inverse = 1.0 / root if is_new else 0.0
        for i in range(j + 1, p):
            for k in range(j):
                a[i][j] -= a[i][k] * a[j][k]
            a[i][j] = a[i][j] * inverse if is_new else 0.0
        a[j] = a[j] if is_new else [0.0] * p
        a[j][j] = root
    weights = np.empty(moment.shape)
    for output, b in enumerate(moment.T):
        w = b.tolist()
        for i in range(p):
            for j in range(i):
                w[i] -= a[i][j] * w[j]
            w[i] = w[i] / a[i][i] if a[i][i] > 0.0 else 0.0
        for i in reversed(range(p)):
            for j in reversed(range(i + 1, p)):
                w[i] -= a[j][i] * w[j]
            w[i] = w[i] / a[i][i] if a[i][i] > 0.0 else 0.0
        weights[:, output] = w
    return weights * scale


@given(leaf_systems(), layouts, layouts, st.sampled_from([0.0, 1.0, 3]), st.booleans(), st.sampled_from([1, 0.1]))
def test_leaves_are_solved_as_by_plain_numbers(system, layout, other, penalty, penalize_constant, scale):
    start, degree, n_outputs, gram, moment, _ = system
    weight, g0, w0, expected = moment.copy(), 0, 0, []
    for p in 1 + degree * np.diff(start):
        of_leaf = gram[g0 : g0 + p * p].reshape(p, p), moment[w0 : w0 + p * n_outputs].reshape(p, n_outputs)
        expected.append(ridge_weights(*of_leaf, penalty, penalize_constant, scale).ravel())
        g0, w0 = g0 + p * p, w0 + p * n_outputs
    core.solve_leaves(
        layout(start), degree, n_outputs, other(gram), weight, penalty, np.bool_(penalize_constant), scale
    )
    np.testing.assert_array_equal(weight, np.concatenate([np.empty(0), *expected]))


@given(leaf_systems(), layouts, layouts)
def test_weights_change_units_as_by_plain_numbers(system, layout, other):
    start, degree, n_outputs, _, weight, scaling = system
    expected, constant = weight.copy(), 0
    for first, last in pairwise(start):
        center, inverse = scaling[first:last, 0, None], scaling[first:last, 1, None]
        with np.errstate(divide="ignore"):
            width = np.where(inverse > 0, 1 / inverse, 0)
        terms = expected[constant : constant + (1 + degree * (last - first)) * n_outputs].reshape(-1, n_outputs)
        linear, square = terms[1 : 1 + last - first], terms[1 + last - first :]
        for j in range(last - first):
            terms[0] += linear[j] * center[j]
            if degree == 2:
                terms[0] += square[j] * center[j] * center[j]
        if degree == 2:
            linear += 2 * square * center
            square *= width
            square *= width
        linear *= width
        constant += terms.size
    core.scale_weights(layout(start), degree, n_outputs, other(scaling), weight)
    np.testing.assert_array_equal(weight, expected)


@given(leaf_systems(), layouts, layouts)
def test_weights_are_those_of_a_new_scaling_as_by_plain_numbers(system, layout, other):
    start, degree, n_outputs, _, weight, scaling = system
    ratio, shift, expected, constants = scaling[:, 2].copy(), scaling[:, 3].copy(), weight.copy(), [0]
    for first, last in pairwise(start):
        terms = expected[constants[-1] : constants[-1] + (1 + degree * (last - first)) * n_outputs]
        terms = terms.reshape(-1, n_outputs)
        linear, square = terms[1 : 1 + last - first], terms[1 + last - first :]
        constant = np.zeros(n_outputs)
        for j, (r, s) in enumerate(zip(ratio[first:last], shift[first:last], strict=True)):
            curve = square[j].copy() if degree == 2 else 0.0
            constant += s * (linear[j] + s * curve)
            linear[j] = r * (linear[j] + 2.0 * s * curve)
            if degree == 2:
                square[j] = r * r * curve
        terms[0] += constant
        constants.append(constants[-1] + terms.size)
    leaves = core.Leaves(
        tree_leaf=np.array([0, len(start) - 1]), tree_output=np.array([[0, n_outputs]]), tree_degree=np.array([degree]),
        start=start, column=np.zeros(len(scaling), np.int32), scaling=scaling, weight_start=np.array(constants),
        weight=weight,
    )  # fmt: skip
    core.rescale(core.Leaves(*map(layout, leaves)), other(ratio), layout(shift), weight)
    np.testing.assert_array_equal(weight, expected)
