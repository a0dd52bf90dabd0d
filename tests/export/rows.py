"""Rows on which an exported model is compared with the model, and models of every kind."""

from __future__ import annotations

import numpy as np

from boostbp.inputs.sources import open_source


def as_exported(model, X):
    """The array that an exported model takes in the place of a table: numbers, and codes of what is text."""
    if not hasattr(X, "columns"):
        return np.ascontiguousarray(X, np.float64)
    A = model.schema_.read(open_source(X)).X.copy()
    for j, known in model.schema_.categories.items():
        if not any(isinstance(value, str) for value in known):
            values = np.array([*map(float, known), 1e6])
            present = ~np.isnan(A[:, j])
            A[present, j] = values[A[present, j].astype(int)]
    return A


def hard_rows(model, X, count=600, seed=0):
    """Rows of X as they are, stretched, and each with a cell on a threshold, or on one of its neighbours in float64."""
    rng = np.random.default_rng(seed)
    numeric = np.setdiff1d(np.arange(X.shape[1]), list(model.schema_.categories))
    stretched, exact = X[rng.integers(0, len(X), (2, count))]
    stretched[:, numeric] *= 1.3
    forest = model.network_.layers[0].forest
    splits = np.flatnonzero((forest.nodes.cat_start < 0) & np.isfinite(forest.nodes.threshold))
    if len(splits):
        split = rng.choice(splits, count)
        threshold = forest.nodes.threshold[split]
        ways = [threshold, np.nextafter(threshold, np.inf), np.nextafter(threshold, -np.inf)]
        exact[np.arange(count), forest.nodes.feature[split]] = np.choose(np.arange(count) % 3, ways)
    rows = np.concatenate([X, stretched, exact])
    rows[rng.random(rows.shape) < 0.02] = np.nan
    for j, known in model.schema_.categories.items():
        rows[rng.random(len(rows)) < 0.05, j] = 1.0 + max(
            (v for v in known if not isinstance(v, str)), default=len(known)
        )
    return rows
