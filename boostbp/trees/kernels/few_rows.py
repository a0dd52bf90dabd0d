"""Compiled prediction of a few rows: trees are walked in lockstep, and their leaves read from one table.

A walk waits for memory at each split, and for the processor where it guesses wrong which way a row goes. `LANES` trees
take a step each before one of them takes the next, and no jump in the code depends on the row. What leaves need is
asked of memory when their tree has been walked, and read when all have. See `Flat`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from boostbp.trees.kernels.entry import BOOL, MATRIX, VECTOR, entry_point, read, written
from boostbp.trees.kernels.records import internal

LANES = 16
AT_ONCE = 32 * LANES  # trees that are walked before their leaves are read: these stay in a cache of half a megabyte
NODE = [("bound", "u4"), ("step", "i2"), ("column", "u2")]
OF_COLUMN = 5  # numbers of a path column before its weights
# columns of `trees`, `layers` and `sets`
ROOT, FIRST_OUTPUT, N_OUTPUTS, DEGREE = 0, 1, 2, 3
FIRST_TREE, N_TREES, FIRST_SET, END_SET, WIDTH, OUTPUTS, FIRST_BOUND = 0, 1, 2, 3, 4, 5, 6
FEATURE, START, WORDS, MISSING_LEFT = 0, 1, 2, 3
# numbers of a path column: itself, its scaling, its weights; such indices need no check whether they count from the end
CENTER, INV_SCALE, LOWER, UPPER, WEIGHTS = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(OF_COLUMN)
ONE, TWO = np.uint64(1), np.uint64(2)
LINE = 64  # bytes that come together from memory
TOGETHER = 4  # numbers of a vector
_READ, _KEEP, _DATA = 0, 3, 1  # what LLVM's ``llvm.prefetch`` is told


@internal
def _numbered(inputs, width, bounds, first_bound, sets, first_set, end_set, categories, number):
    """Write what splits compare with the number of their threshold: a row goes right where it is larger.

    Of each column how many thresholds are below its value, twice: for splits that send missing values left, and for the
    others; then for each set of categories 0 where the row goes left, and 1.
    """
    for j in range(width):
        value, first, n_bounds = inputs[j], first_bound[j], first_bound[j + 1] - first_bound[j]
        at, n = first, n_bounds
        while n > 0:
            half = n >> 1
            above = bounds[at + half] < value
            at = at + half + 1 if above else at
            n = n - half - 1 if above else half
        number[2 * j] = at - first
        number[1 + 2 * j] = at - first if value == value else n_bounds
    for i in range(first_set, end_set):
        value, left = inputs[sets[i, FEATURE]], False
        if value != value:
            left = sets[i, MISSING_LEFT] != 0
        elif value > -1.0 and value < 32.0 * sets[i, WORDS]:
            code = np.int64(value)
            word = categories[sets[i, START] + (code >> 5)]
            left = (word >> np.uint32(code & 31)) & np.uint32(1) == 1
        number[2 * width + i - first_set] = 0 if left else 1


@internal
def _walk(nodes, trees, steps, first_tree, n_trees, number, table, lane, place, n_columns):
    """Write where the record of the leaf of each tree begins, and how many path columns it has."""
    line = np.uint64(LINE // table.itemsize)
    for first in range(0, n_trees, LANES):
        for i in range(LANES):
            lane[i] = trees[first_tree + first + i, ROOT]
        for _ in range(steps[(first_tree + first) // LANES]):
            for i in range(LANES):
                node = nodes[lane[i]]
                lane[i] += np.uint32(node.step) + np.uint32(number[np.uint64(node.column)] > node.bound)
        for i in range(LANES):
            node = nodes[lane[i]]
            begin = np.uint32(~node.bound)
            place[first + i], n_columns[first + i] = begin, node.column
            prefetch(table, np.uint64(begin))
            prefetch(table, np.uint64(begin) + line)


@internal
def _column(table, place):
    """Return the number of a path column as an index that needs no check whether it counts from the end."""
    return np.uint32(np.int64(table[place]))


@internal
def _standardised(z, table, place):
    """Return ``u`` of a value that is not missing."""
    u = (z - np.float64(table[place + CENTER])) * np.float64(table[place + INV_SCALE])
    lower, upper = np.float64(table[place + LOWER]), np.float64(table[place + UPPER])
    u = u if u > lower else lower
    return u if u < upper else upper


@internal
def _add_of_one_output(trees, tree, end, first_tree, places, n_columns, table, inputs, out):
    """Add the leaves of one output from a tree on to the next that serves another; return the number of that one."""
    first = trees[tree, FIRST_OUTPUT]
    total = out[first]
    while tree < end and trees[tree, FIRST_OUTPUT] == first and trees[tree, N_OUTPUTS] == 1:
        place, k = np.uint64(places[tree - first_tree]), np.int64(n_columns[tree - first_tree])
        value = np.float64(table[place])
        place += ONE
        if trees[tree, DEGREE] == 2:
            for _ in range(k):
                z = inputs[_column(table, place)]
                if z == z:
                    u = _standardised(z, table, place)
                    value += u * (np.float64(table[place + WEIGHTS]) + u * np.float64(table[place + WEIGHTS + ONE]))
                place += WEIGHTS + TWO
        else:
            for _ in range(k):
                z = inputs[_column(table, place)]
                if z == z:
                    value += _standardised(z, table, place) * np.float64(table[place + WEIGHTS])
                place += WEIGHTS + ONE
        total += value
        tree += 1
    out[first] = total
    return tree


@internal
def _add_times(factor, table, place, total, n_outputs):
    """Add the weights of all outputs times a factor to their totals, and what follows to the room behind these."""
    for output in range(0, n_outputs, TOGETHER):
        add_times(total, np.uint64(output), table, place + np.uint64(output), factor)


@internal
def _add_of_several_outputs(trees, tree, end, first_tree, places, n_columns, table, inputs, total, out):
    """Add the leaves of some outputs from a tree on to the next that serves others; return the number of that one."""
    first, n_outputs = trees[tree, FIRST_OUTPUT], np.uint64(trees[tree, N_OUTPUTS])
    for output in range(n_outputs):
        total[output] = out[first + output]
    while tree < end and trees[tree, FIRST_OUTPUT] == first and trees[tree, N_OUTPUTS] == n_outputs:
        place = np.uint64(places[tree - first_tree])
        _add_times(1.0, table, place, total, n_outputs)
        place += n_outputs
        for _ in range(n_columns[tree - first_tree]):
            z = inputs[_column(table, place)]
            if z == z:
                u = _standardised(z, table, place)
                _add_times(u, table, place + WEIGHTS, total, n_outputs)
                if trees[tree, DEGREE] == 2:
                    _add_times(u * u, table, place + WEIGHTS + n_outputs, total, n_outputs)
            place += WEIGHTS + n_outputs * np.uint64(trees[tree, DEGREE])
        tree += 1
    for output in range(n_outputs):
        out[first + output] = total[output]
    return tree


@internal
def _predict(nodes, trees, layers, steps, bounds, first_bound, table, sets, categories, baseline, skip, X, out):
    """Write the outputs of a network's layers to `out`; see `predict_flat`."""
    width = outputs = most_trees = most_sets = np.int64(1)
    for layer in range(len(layers)):
        width, outputs = max(width, layers[layer, WIDTH]), max(outputs, layers[layer, OUTPUTS])
        most_trees = max(most_trees, layers[layer, N_TREES] + LANES)
        most_sets = max(most_sets, layers[layer, END_SET] - layers[layer, FIRST_SET])
    inputs, number, h = np.empty(width), np.empty(2 * width + most_sets, np.uint32), np.empty(outputs)
    lane, place = np.empty(LANES, np.uint32), np.empty(most_trees, np.uint32)
    n_columns, total = np.empty(most_trees, np.uint16), np.zeros(outputs + TOGETHER)
    for row in range(len(X)):
        n_units = 0
        for layer in range(len(layers)):
            first_tree, n_trees = layers[layer, FIRST_TREE], layers[layer, N_TREES]
            for j in range(n_units):
                inputs[j] = h[j]
            if layer == 0 or skip:
                for j in range(X.shape[1]):
                    inputs[n_units + j] = X[row, j]
            _numbered(
                inputs, layers[layer, WIDTH], bounds, first_bound[layers[layer, FIRST_BOUND] :], sets,
                layers[layer, FIRST_SET], layers[layer, END_SET], categories, number,
            )  # fmt: skip
            n_units = layers[layer, OUTPUTS]
            for j in range(n_units):
                h[j] = 0.0
            tree = last = first_tree + n_trees
            for first in range(first_tree, last, AT_ONCE):
                tree, end = first, min(first + AT_ONCE, last)
                _walk(nodes, trees, steps, first, end - first, number, table, lane, place, n_columns)
                while tree < end:
                    if trees[tree, N_OUTPUTS] == 1:
                        tree = _add_of_one_output(trees, tree, end, first, place, n_columns, table, inputs, h)
                    else:
                        tree = _add_of_several_outputs(
                            trees, tree, end, first, place, n_columns, table, inputs, total, h
                        )
        for j in range(n_units):
            out[row, j] = h[j] + baseline[j]


def _kinds(floats):
    return (
        read(NODE, 1), read("i4", 2), read("i8", 2), read("i8", 1), VECTOR, read("i8", 1), read(floats, 1),
        read("i8", 2), read("u4", 1), VECTOR, BOOL, MATRIX, written("f8", 2),
    )  # fmt: skip


@entry_point(*_kinds("f8"))
def predict_flat(nodes, trees, layers, steps, bounds, first_bound, table, sets, categories, baseline, skip, X, out):
    """Write the outputs of a network's layers to `out`, (rows, outputs): those of `route` and `evaluate`, to the bit.

    Parameters
    ----------
    nodes, trees, layers, steps, bounds, first_bound, table, sets, categories, baseline, skip : those of `Flat`
    X : (rows, features) float64
    """
    _predict(nodes, trees, layers, steps, bounds, first_bound, table, sets, categories, baseline, skip, X, out)


@entry_point(*_kinds("f4"))
def predict_short(nodes, trees, layers, steps, bounds, first_bound, table, sets, categories, baseline, skip, X, out):
    """Do the same with a table of float32."""
    _predict(nodes, trees, layers, steps, bounds, first_bound, table, sets, categories, baseline, skip, X, out)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any, of: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), of.as_pointer())


@intrinsic
def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """Ask for the line of memory that holds an entry, which may lie behind the end, of an array of one axis."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1], ir.IntType(8))
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(ask, [pointer, number(_READ), number(_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return types.void(array, place), generate


@intrinsic
def add_times(typing_context: Any, total: Any, at: Any, table: Any, place: Any, factor: Any) -> Any:
    """Add `TOGETHER` entries of `table`, float32 or float64, from `place` on, times a factor, to float64 totals.

    A product is rounded before it is added.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        totals, numbers = signature.args[0], signature.args[2]
        of_totals = ir.VectorType(context.get_data_type(totals.dtype), TOGETHER)
        of_numbers = ir.VectorType(context.get_data_type(numbers.dtype), TOGETHER)
        to = _pointer(context, builder, totals, args[0], args[1], of_totals)
        source = _pointer(context, builder, numbers, args[2], args[3], of_numbers)
        values = builder.load(source, align=numbers.dtype.bitwidth // 8)
        if of_numbers != of_totals:
            values = builder.fpext(values, of_totals)
        factors = ir.Constant(of_totals, ir.Undefined)
        for number in range(TOGETHER):
            factors = builder.insert_element(factors, args[4], ir.IntType(32)(number))
        total = builder.fadd(builder.load(to, align=8), builder.fmul(values, factors))
        builder.store(total, to, align=8)
        return context.get_dummy_value()

    return types.void(total, at, table, place, factor), generate
