"""Rows for fits on clusters: numbers, gaps and categories."""

from __future__ import annotations

import numpy as np
import pandas as pd


def numbers(n_rows=800, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    y = 2 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, rng.integers(1, 4, n_rows).astype(float)


def frame(n_rows=800, seed=0):
    X, y, _ = numbers(n_rows, seed)
    rows = pd.DataFrame(X, columns=list("abcde"))
    place = np.random.default_rng(seed + 50).integers(0, 4, n_rows)
    rows["text"] = np.array(["Bonn", "Ulm", "Hof", "Kiel"], object)[place]
    rows["declared"] = pd.Categorical(np.where(rows["a"] > 0, "plus", np.where(rows["b"] > 1, "rare", "minus")))
    rows["y"] = y + np.array([0.0, 2.0, -1.0, 1.0])[place]
    return rows
