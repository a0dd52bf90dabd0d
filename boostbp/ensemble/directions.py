"""Directions in which a model varies most, by its gradient outer product, as hidden units.

``G`` is the mean of ``J' J`` over rows, where ``J`` is the Jacobian of the model. Its leading eigenvectors are the
directions of the features along which the output varies most (expected gradient outer product: Trivedi and others 2014;
as a way to learn features: Radhakrishnan and others 2024). A tree on the features splits along single features. A tree
that also reads these directions splits along sums of features. Sums and differences of two important features are
added, so that one split can tell which of two numbers is larger.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boostbp.ensemble import constants
from boostbp.ensemble.problem import Problem
from boostbp.network import layers
from boostbp.network.layers import BoundInput, Layer, SquaredObjective
from boostbp.network.network import Network, short_hidden
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.sparse import row_blocks
from boostbp.trees.standardised import Standardised


def directions_layer(problem: Problem, model: Network) -> Layer:
    """Return a hidden layer of linear units: the standardised numeric features along directions of the model."""
    table, weight = problem.rows.table, problem.rows.weight
    numeric = np.setdiff1d(np.arange(table.X.shape[1]), table.categorical)
    columns = Standardised.of(np.ascontiguousarray(table.X[:, numeric]), weight)
    G = gradient_outer_product(problem, model, numeric)
    directions = workers().agree(np.hstack([leading_directions(G), paired_directions(G)]))
    units = columns.project(directions)
    linear = replace(problem.settings.layers[0], n_estimators=0, base="ridge", base_lambda=None, min_base_lambda=0.0)
    bound = BoundInput(problem.growing_backend, table, linear, weight)
    fitted = layers.fit(bound, SquaredObjective(units, weight), n_threads=problem.settings.n_threads)
    return short_hidden(fitted.layer)


def gradient_outer_product(problem: Problem, model: Network, numeric: NDArray[np.intp]) -> Floats:
    """Return the matrix G for features in standard deviations, (numeric features, numeric features).

    Raises FloatingPointError if it overflows.
    """
    group = workers()
    rows = group.sampled_rows(len(problem.rows), constants.DIRECTIONS_ROWS)
    X, weight = group.select_rows(rows).allgather_rows(problem.rows.X[rows], problem.rows.weight[rows])
    known = X[:, numeric]
    # Scale first: squares near the limits of float64 overflow.
    size = np.nan_to_num(np.fmax.reduce(np.abs(known), axis=0, initial=0.0))
    known = known / np.where(size > 0, size, 1.0)
    observed = np.isfinite(known)
    count = np.maximum(observed.sum(0), 1)  # a column without observed values gets a standard deviation of 0
    centred = np.where(observed, known - np.where(observed, known, 0.0).sum(0) / count, 0.0)
    std = size * np.sqrt(np.square(centred).sum(0) / count)
    G = np.zeros((len(numeric), len(numeric)))
    for block in row_blocks(0, len(X), X.shape[1] * len(problem.baseline)):
        J = model.jacobian(X[block], n_jobs=problem.settings.n_threads)[:, :, numeric]
        with np.errstate(over="ignore", invalid="ignore"):
            J *= std
            G += np.einsum("rki,r,rkj->ij", J, weight[block], J, optimize=True)
    if not np.isfinite(G).all():
        steep = numeric[~np.isfinite(np.diag(G))]
        raise FloatingPointError(f"slopes along the columns {steep.tolist()} are beyond float64")
    return G


def leading_directions(G: Floats) -> Floats:
    """Return the leading eigenvectors of G, (numeric features, directions)."""
    _, vectors = np.linalg.eigh(G)
    leading = vectors[:, ::-1][:, : constants.DIRECTIONS]
    # eigh may return either sign: the largest coefficient of each direction becomes positive.
    signs = np.sign(leading[np.abs(leading).argmax(0), np.arange(leading.shape[1])])
    directions: Floats = leading * signs
    return directions


def paired_directions(G: Floats) -> Floats:
    """Return normalised sums and differences of the pairs of important features, (numeric features, pairs)."""
    important = np.argsort(-np.diag(G), kind="stable")[: constants.DIRECTIONS_PAIRED]
    a, b = np.triu_indices(len(important), 1)
    pair = np.arange(len(a))
    sums = np.zeros((len(G), len(a)))
    sums[important[a], pair] = sums[important[b], pair] = np.sqrt(0.5)
    differences = sums.copy()
    differences[important[b], pair] *= -1.0
    return np.hstack([sums, differences])
