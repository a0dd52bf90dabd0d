"""A normal distribution of many rows, given the cells that are not taken out, against its covariance."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.inputs.contradictions import Conditional

ROWS, COLUMNS = 7, 6


def given(covariance, u, j, cells):
    """Mean and standard deviation of a column, given some cells of a row."""
    slope = np.linalg.solve(covariance[np.ix_(cells, cells)], covariance[cells, j])
    return slope @ u[cells], np.sqrt(covariance[j, j] - slope @ covariance[cells, j])


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_scores_and_means_are_those_of_the_covariance(missing):
    rng = np.random.default_rng(missing)
    A = rng.standard_normal((COLUMNS, COLUMNS))
    covariance, U = A @ A.T + 0.1 * np.eye(COLUMNS), rng.standard_normal((ROWS, COLUMNS))
    out = np.array([rng.permutation(COLUMNS)[: missing + 2] for _ in range(ROWS)])
    there = np.ones(U.shape, dtype=bool)
    np.put_along_axis(there, out[:, :missing], False, axis=1)
    left = Conditional.of(np.linalg.inv(covariance), np.where(there, U, 0.0), there)
    for step in range(3):
        for i in range(ROWS):
            cells = np.setdiff1d(np.arange(COLUMNS), out[i, : missing + step])
            for j in range(COLUMNS):
                mean, std = given(covariance, U[i], j, np.setdiff1d(cells, [j]))
                expected = (U[i, j] - mean) / std if j in cells else 0.0
                np.testing.assert_allclose(left.scores()[i, j], expected, rtol=1e-8, atol=1e-8)
        if step:
            said = list(left.said(step))
            assert len(said) == step
            for column, mean in said:
                for i in range(ROWS):
                    cells = np.setdiff1d(np.arange(COLUMNS), out[i, : missing + step])
                    expected, _ = given(covariance, U[i], column[i], cells)
                    np.testing.assert_allclose(mean[i], expected, rtol=1e-8, atol=1e-8)
        if step < 2:
            left = left.without(out[:, missing + step])
    chosen = np.arange(ROWS) % 2 == 0
    np.testing.assert_array_equal(left.take(chosen).scores(), left.scores()[chosen])
