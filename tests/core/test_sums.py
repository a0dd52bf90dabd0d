"""Sums over the rows of leaves have eight partial sums, added in one order: the bits of a plain sum in NumPy."""

import re
from pathlib import Path

import numpy as np
import pytest

from boostbp import core
from boostbp.core import LeafRows

HEADER = Path(core.__file__).with_name("boostbp.h").read_text("utf-8")
BLOCK, LANES = (int(re.findall(rf"enum {{ {name} = (\d+) }}", HEADER)[0]) for name in ("BLOCK", "LANES"))
SIZES = [0, 1, 7, 8, 9, 31, 256, 257, 700]


def in_lanes(products, total=0.0):
    """Add a sum over rows to `total`, block by block, each in lanes."""
    for first in range(0, len(products), BLOCK):
        block = products[first : first + BLOCK]
        lanes = np.zeros(LANES)
        for row, product in enumerate(block):
            lanes[row % LANES] += product
        halves = lanes[:4] + lanes[4:]
        quarters = halves[:2] + halves[2:]
        total += quarters[0] + quarters[1]
    return total


def leaves(rng, *, k, missing):
    """Return rows of leaves of several sizes: their arrays, and for each leaf its rows and columns."""
    start = np.cumsum([0, *SIZES])
    order = rng.permutation(start[-1]).astype(np.uint16)
    path_start = np.cumsum([0, *rng.permutation(np.resize(np.arange(k), len(SIZES)))])
    columns = [rng.standard_normal((path_start[i + 1] - path_start[i], n)) for i, n in enumerate(SIZES)]
    for column in columns:
        column[rng.random(column.shape) < missing] = np.nan
        column[rng.random(column.shape) < 0.1] = rng.choice([0.0, -0.0])
    grouped = np.concatenate([column.ravel() for column in columns])
    rows = [order[start[i] : start[i + 1]] for i in range(len(SIZES))]
    return start, order, path_start, grouped, rows, columns


def hessians(rng, n, kind):
    return {"none": np.empty(0), "ones": np.ones(n), "any": rng.random(n), "zeros": np.zeros(n)}[kind]


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["none", "ones", "any", "zeros"])
@pytest.mark.parametrize(("degree", "outputs"), [(1, 1), (2, 1), (2, 3)])
def test_sums_of_products(degree, outputs, kind, missing):
    rng = np.random.default_rng(0)
    start, order, path_start, grouped, rows, columns = leaves(rng, k=7, missing=missing)
    center, scale, fill = units = rng.standard_normal((3, path_start[-1]))
    grad, hess = rng.standard_normal((outputs, start[-1] + 2)), hessians(rng, start[-1] + 2, kind)
    n_terms = 1 + degree * np.diff(path_start)
    gram, moment = np.ones((n_terms**2).sum()), np.ones((n_terms * outputs).sum())
    core.leaf_sums(LeafRows(2, start, order, path_start, grouped), units, degree, grad, hess, gram, moment)
    g = m = 0
    for i, (of_leaf, column) in enumerate(zip(rows, columns, strict=True)):
        paths = slice(path_start[i], path_start[i + 1])
        known = (column - center[paths, None]) * scale[paths, None]
        u = np.where(np.isnan(column), fill[paths, None], known)
        terms = np.vstack([np.ones((1, len(of_leaf))), u, *([u * u] if degree == 2 else [])])
        h = hess[2 + of_leaf] if len(hess) else np.ones(len(of_leaf))
        for a in range(len(terms)):
            for b in range(a + 1):
                assert gram[g + a * len(terms) + b] == in_lanes(h * terms[a] * terms[b], 1.0)
            for output in range(outputs):
                product = -grad[output, 2 + of_leaf] * terms[a]
                assert moment[m + a * outputs + output] == in_lanes(product, 1.0)
        g, m = g + len(terms) ** 2, m + len(terms) * outputs


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["none", "ones", "any", "zeros"])
def test_ranges(kind, missing):
    rng = np.random.default_rng(1)
    start, order, path_start, grouped, rows, columns = leaves(rng, k=7, missing=missing)
    hess = hessians(rng, start[-1] + 2, kind)
    out = np.empty((path_start[-1], 4))
    core.leaf_ranges(LeafRows(2, start, order, path_start, grouped), hess, out)
    for i, (of_leaf, column) in enumerate(zip(rows, columns, strict=True)):
        h = hess[2 + of_leaf] if len(hess) else np.ones(len(of_leaf))
        for z, found in zip(column, out[path_start[i] : path_start[i + 1]], strict=True):
            known = ordered(z[~np.isnan(z)])
            expected = [known[0], known[-1]] if len(known) else [np.inf, -np.inf]
            np.testing.assert_array_equal(found[:2], expected)
            np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(expected))
            total = weight = 0.0
            for first in range(0, len(z), BLOCK):
                block, of_block = z[first : first + BLOCK], h[first : first + BLOCK]
                if np.isnan(block).any():  # row by row
                    for each in np.flatnonzero(~np.isnan(block)):
                        total += of_block[each] * block[each]
                        weight += of_block[each]
                else:
                    total = in_lanes(of_block * block, total)
                    weight = in_lanes(of_block, weight)
            np.testing.assert_array_equal(found[2:], [total, weight])


def ordered(z):
    """Return numbers in ascending order, -0.0 before 0.0."""
    return z[np.lexsort([~np.signbit(z), z])]


@pytest.mark.parametrize("column", [[np.inf, 1.0], [np.inf, -np.inf, 2.0], [1e308, 1e308, 1e308], [-0.0], [0.0, -0.0]])
def test_ranges_of_numbers_whose_sum_is_none(column):
    z, out = np.array(column), np.empty((1, 4))
    start, order = np.array([0, len(z)]), np.arange(len(z), dtype=np.uint16)
    core.leaf_ranges(LeafRows(0, start, order, np.array([0, 1]), z), np.empty(0), out)
    with np.errstate(all="ignore"):
        expected = [ordered(z)[0], ordered(z)[-1], z.sum(), len(z)]
    np.testing.assert_array_equal(out[0], expected)
    np.testing.assert_array_equal(np.signbit(out[0, :2]), np.signbit(expected[:2]))
