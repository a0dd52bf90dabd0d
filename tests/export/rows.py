"""Rows on which an exported model is compared with the model, and models of every kind."""

from __future__ import annotations

import os
import shutil

import numpy as np

from boostbp.inputs.sources import open_source

COMPILER = next(
    (path for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name and (path := shutil.which(name))), None
)


def as_exported(model, X):
    """The array that an exported model takes in the place of a table: numbers, and codes of what is text."""
    return codes_of(model, X) if hasattr(X, "columns") else np.ascontiguousarray(X, np.float64)


def codes_of(model, X):
    """A table that a model reads, as an array of numbers."""
    A = model.schema_.read(open_source(X)).X.copy()
    for j, known in model.schema_.categories.items():
        if not any(isinstance(value, str) for value in known):
            values = np.array([*map(float, known), 1e6])
            present = ~np.isnan(A[:, j])
            A[present, j] = values[A[present, j].astype(int)]
    return np.ascontiguousarray(A)


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


def table(rows, seed=0):
    """Numbers, some missing; codes 0 .. 5, and categories that are other numbers; and a target that needs all."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rows, 6))
    A[:, 1] = rng.integers(0, 6, rows)
    A[:, 4] = rng.choice([-3.5, 0.1, 7.0, 1e6], rows)
    y = A[:, 0] * (A[:, 1] % 3) + np.abs(A[:, 2]) + 2.0 * (A[:, 4] > 1) * A[:, 3]
    A[rng.random(A.shape) < 0.05] = np.nan
    return A, y + 0.1 * rng.normal(size=rows)


def measures(rows, missing, seed=0):
    """Lengths and a volume, whose cells the rest of a row determines, a target, and rows with wrong cells."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(size=(rows, 1)))
    A = np.column_stack([size * np.exp(0.03 * rng.normal(size=(rows, 3))), size**3, rng.normal(size=(rows, 2))])
    y = np.log(A[:, 0]) + A[:, 4] ** 2
    A[rng.random(A.shape) < missing] = np.nan
    wrong = A[:400].copy()
    wrong[np.arange(0, 400, 2), rng.integers(0, 4, 200)] *= 10.0
    wrong[np.arange(0, 400, 4), rng.integers(0, 4, 100)] *= 0.01
    wrong[::7, 3] = 0.0
    return A, y, wrong
