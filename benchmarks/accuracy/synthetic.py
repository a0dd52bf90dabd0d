"""Synthetic targets: random networks, sums, interactions, compositions of inputs uniform in [0, 1]; many classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["additive", "composition", "interactions", "letters", "random_network"]

Floats = NDArray[np.float64]
ROWS = 6000


def random_network(seed: int, *, glorot: bool) -> tuple[Floats, Floats]:
    """Dense(32, 16), ReLU, Dense(16, 1), initialised as Glorot says (no bias) or as torch does."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(ROWS, 32))

    def dense(inputs: int, outputs: int) -> tuple[Floats, Floats]:
        bound = np.sqrt(6 / (inputs + outputs)) if glorot else 1 / np.sqrt(inputs)
        W, b = rng.uniform(-bound, bound, (inputs, outputs)), rng.uniform(-bound, bound, outputs)
        return W, b * (not glorot)

    (W, b), (v, c) = dense(32, 16), dense(16, 1)
    return X, (np.maximum(X @ W + b, 0) @ v + c)[:, 0]


def additive(seed: int) -> tuple[Floats, Floats]:
    """Sum of smooth functions of one input each, with noise of a tenth of its standard deviation."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(ROWS, 10))
    return X, _noisy(_sines(X, rng, 1)[:, 0], rng)


def interactions(seed: int) -> tuple[Floats, Floats]:
    """Products of pairs of centred inputs and nothing else, with noise of a tenth of its standard deviation."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(ROWS, 10))
    pairs = rng.permutation(10).reshape(5, 2)
    return X, _noisy(((X[:, pairs[:, 0]] - 0.5) * (X[:, pairs[:, 1]] - 0.5)).sum(axis=1), rng)


def composition(seed: int) -> tuple[Floats, Floats]:
    """Sum of plus or minus relu of sums of sines: additive functions of additive functions."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(ROWS, 10))
    inner = _sines(X, rng, 6)
    inner = (inner - inner.mean(axis=0)) / inner.std(axis=0)
    return X, np.maximum(inner, 0) @ rng.choice([-1.0, 1.0], 6)


def letters(seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Classes as of printed letters: 26, each a mixture of three Gaussians in 16 columns of whole numbers 0 .. 15.

    Of 5,000 rows, so that each fold has 4,000 to learn from.
    """
    rng = np.random.default_rng(seed)
    rows, classes, kinds, columns = 5000, 26, 3, 16
    label, kind = rng.permutation(rows) % classes, rng.integers(kinds, size=rows)
    centre = rng.normal(scale=1.6, size=(classes, 1, columns)) + rng.normal(scale=1.0, size=(classes, kinds, columns))
    mixing = np.eye(columns) + rng.normal(scale=0.35, size=(classes, kinds, columns, columns))
    noise = np.einsum("rc,rcd->rd", rng.normal(size=(rows, columns)), mixing[label, kind])
    return np.clip(np.round(7.5 + 1.5 * (centre[label, kind] + noise)), 0, 15), label


def _sines(X: Floats, rng: np.random.Generator, outputs: int) -> Floats:
    """Sums of a sine of each input, (rows, outputs)."""
    shape = (X.shape[1], outputs)
    size, speed, phase = rng.normal(size=shape), rng.uniform(2, 8, shape), rng.uniform(0, 2 * np.pi, shape)
    return (size * np.sin(speed * X[:, :, None] + phase)).sum(axis=1)


def _noisy(y: Floats, rng: np.random.Generator) -> Floats:
    return y + 0.1 * y.std() * rng.normal(size=len(y))
