"""Compiled prediction of a few rows: trees are walked in lockstep, and their leaves read from one table.

A walk waits for memory at each split, and for the processor where it guesses wrong which way a row goes. `LANES` trees
take a step each before one of them takes the next, and no jump in the code depends on the row. See `Flat`.
"""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.entry import BOOL, MATRIX, VECTOR, exact, read, written
from boostbp.trees.kernels.records import inner

LANES = 16
NODE = [("bound", "f8"), ("left", "i4"), ("column", "i4")]  # the right child is the next one
# columns of `trees`, `layers` and `sets`
ROOT, FIRST_OUTPUT, N_OUTPUTS, DEGREE = 0, 1, 2, 3
FIRST_TREE, N_TREES, FIRST_SET, END_SET, WIDTH, OUTPUTS, CLIP = 0, 1, 2, 3, 4, 5, 6
FEATURE, START, WORDS, MISSING_LEFT = 0, 1, 2, 3
# numbers of a path column: itself, its scaling, its weights; such indices need no check whether they count from the end
CENTER, INV_SCALE, LOWER, UPPER, WEIGHTS = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(5)
ONE = np.uint64(1)


@inner
def _compared(inputs, width, sets, first_set, end_set, categories, compared):
    """Write what splits compare with their bounds, so that only ``<=`` is asked: NaN goes right, -inf left.

    First -inf, by which a row stays in its leaf; then each column twice, for splits that send missing values left, and
    for the others; then for each set of categories whether the row goes left.
    """
    compared[0] = -np.inf
    for j in range(width):
        value = inputs[j]
        compared[1 + 2 * j] = value if value == value else -np.inf
        compared[2 + 2 * j] = value
    for number in range(first_set, end_set):
        value, left = inputs[sets[number, FEATURE]], False
        if value != value:
            left = sets[number, MISSING_LEFT] != 0
        elif value > -1.0 and value < 32.0 * sets[number, WORDS]:
            code = np.int64(value)
            word = categories[sets[number, START] + (code >> 5)]
            left = (word >> np.uint32(code & 31)) & np.uint32(1) == 1
        compared[1 + 2 * width + number - first_set] = -np.inf if left else np.nan


@inner
def _walk(nodes, trees, steps, first_tree, n_trees, compared, lane, at):
    """Write where the record of the leaf of each tree begins to `at`."""
    for first in range(0, n_trees, LANES):
        for i in range(LANES):
            lane[i] = trees[first_tree + first + i, ROOT]
        for _ in range(steps[(first_tree + first) // LANES]):
            for i in range(LANES):
                node = nodes[lane[i]]
                goes_right = not (compared[np.uint32(node.column)] <= node.bound)
                lane[i] = np.uint32(node.left) + np.uint32(goes_right)
        for i in range(LANES):
            at[first + i] = np.uint64(nodes[lane[i]].bound)


@inner
def _standardised(z, center, inverse, lower, upper, clip):
    """Return ``u`` of a value that is not missing.

    The scaling comes as numbers: to hand an array on counts its users, atomically.
    """
    u = (z - center) * inverse
    if clip:
        u = lower if u < lower else upper if u > upper else u
    return u if inverse != 0.0 else 0.0


@inner
def _add_leaves(trees, first_tree, n_trees, at, table, whole, inputs, clip, out):
    """Add the values of the leaves to `out`, (outputs,): the operations of `evaluate`, in their order."""
    current, total = np.int64(0), out[0]  # the sum of the output that trees serve now
    for number in range(n_trees):
        tree, place = first_tree + number, at[number]
        first, n_outputs = np.int64(trees[tree, FIRST_OUTPUT]), np.int64(trees[tree, N_OUTPUTS])
        degree = np.int64(trees[tree, DEGREE])
        k, constant = whole[place], place + ONE
        if n_outputs == 1:
            value = table[constant]
            place += np.uint64(2)
            for _ in range(k):
                z = inputs[np.uint32(whole[place])]
                if z == z:
                    u = _standardised(
                        z, table[place + CENTER], table[place + INV_SCALE], table[place + LOWER],
                        table[place + UPPER], clip,
                    )  # fmt: skip
                    if degree == 2:
                        value += u * (table[place + WEIGHTS] + u * table[place + WEIGHTS + ONE])
                    else:
                        value += u * table[place + WEIGHTS]
                place += WEIGHTS + np.uint64(degree)
            if first != current:
                out[current] = total
                current, total = first, out[first]
            total += value
            continue
        out[current] = total
        for output in range(n_outputs):
            out[first + output] += table[constant + np.uint64(output)]
        place += np.uint64(1 + n_outputs)
        for _ in range(k):
            z = inputs[np.uint32(whole[place])]
            if z == z:
                u = _standardised(
                    z, table[place + CENTER], table[place + INV_SCALE], table[place + LOWER], table[place + UPPER], clip
                )
                linear = place + WEIGHTS
                square = linear + np.uint64(n_outputs)
                for output in range(n_outputs):
                    out[first + output] += u * table[linear + np.uint64(output)]
                if degree == 2:
                    for output in range(n_outputs):
                        out[first + output] += u * u * table[square + np.uint64(output)]
            place += WEIGHTS + np.uint64(degree * n_outputs)
        total = out[current]
    out[current] = total


@exact(
    read(NODE, 1), read("i4", 2), read("i8", 2), read("i8", 1), VECTOR, read("i8", 1), read("i8", 2), read("u4", 1),
    VECTOR, BOOL, MATRIX, written("f8", 2),
)  # fmt: skip
def predict_flat(nodes, trees, layers, steps, table, whole, sets, categories, baseline, skip, X, out):
    """Write the outputs of a network's layers to `out`, (rows, outputs): those of `route` and `evaluate`, to the bit.

    Parameters
    ----------
    nodes, trees, layers, steps, table, sets, categories, baseline, skip : those of `Flat`
    whole : `table` as int64
    X : (rows, features) float64
    """
    width = outputs = most_trees = most_sets = np.int64(1)
    for layer in range(len(layers)):
        width, outputs = max(width, layers[layer, WIDTH]), max(outputs, layers[layer, OUTPUTS])
        most_trees = max(most_trees, layers[layer, N_TREES] + LANES)
        most_sets = max(most_sets, layers[layer, END_SET] - layers[layer, FIRST_SET])
    inputs, compared, h = np.empty(width), np.empty(1 + 2 * width + most_sets), np.empty(outputs)
    lane, at = np.empty(LANES, np.uint32), np.empty(most_trees, np.uint64)
    for row in range(len(X)):
        n_units = 0
        for layer in range(len(layers)):
            first_tree, n_trees, clip = layers[layer, FIRST_TREE], layers[layer, N_TREES], layers[layer, CLIP] != 0
            for j in range(n_units):
                inputs[j] = h[j]
            if layer == 0 or skip:
                for j in range(X.shape[1]):
                    inputs[n_units + j] = X[row, j]
            _compared(
                inputs, layers[layer, WIDTH], sets, layers[layer, FIRST_SET], layers[layer, END_SET], categories,
                compared,
            )  # fmt: skip
            _walk(nodes, trees, steps, first_tree, n_trees, compared, lane, at)
            n_units = layers[layer, OUTPUTS]
            for j in range(n_units):
                h[j] = 0.0
            _add_leaves(trees, first_tree, n_trees, at, table, whole, inputs, clip, h)
        for j in range(n_units):
            out[row, j] = h[j] + baseline[j]
