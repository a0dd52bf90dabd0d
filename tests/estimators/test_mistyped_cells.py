"""Models where some cells are mistyped: a factor of ten, or 0 for a number that is missing."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS

from boostbp import BoostBPRegressor


def stones(rows, seed, mistyped):
    """Six facts about stones, of which three lengths say nearly the same and are sometimes mistyped; prices; which."""
    rng = np.random.default_rng(seed)
    weight = np.exp(rng.normal(-0.4, 0.55, rows)).clip(0.2, 4)
    length = 6.5 * weight ** (1 / 3) * (1 + 0.01 * rng.normal(size=rows))
    width = length * (1 + 0.004 * rng.normal(size=rows))
    depth = 0.617 * length * (1 + 0.012 * rng.normal(size=rows))
    colour, share = rng.integers(0, 7, rows), 200 * depth / (length + width)
    price = 8.4 + 1.7 * np.log(weight) - 0.07 * colour + 0.15 * np.sin(3 * weight) - 0.002 * (share - 61.7) ** 2
    price += 0.09 * rng.normal(size=rows)
    X = np.column_stack([weight, colour, share, length, width, depth])
    wrong = rng.choice(rows, mistyped, replace=False)
    X[wrong, rng.integers(3, 6, mistyped)] *= np.where(rng.random(mistyped) < 0.5, 10.0, 0.0)
    return X, price, wrong


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("base", "rows", "mistyped"), [("ridge", 1000, 0), ("ridge", 1000, 1), ("ridge", 1000, 5), ("additive", 2000, 0)]
)
def test_one_wrong_cell_does_not_outweigh_the_right_ones(backend, base, rows, mistyped):
    X, y, _ = stones(rows, 0, mistyped)
    model = BoostBPRegressor((), **parameters(base=base, backend=backend, n_estimators=100, random_state=0)).fit(X, y)
    X, y, wrong = stones(1000, 1, 200)
    error = model.predict(X) - y
    # A length at the end of its range is four deviations off, and its share in what the three say alike is a third.
    assert np.sqrt(np.mean(error[wrong] ** 2)) < 4 / 3 * y.std()
    assert np.sqrt(np.mean(np.delete(error, wrong) ** 2)) < 0.11  # of which .09 is noise
