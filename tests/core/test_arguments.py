"""Arguments of the core: whatever array or number a caller passes, a loop computes the same."""

import tracemalloc

import numpy as np
import pytest

from boostbp import core
from boostbp.trees.tree import Tree, offsets
from tests.core.test_binding import read_only, unaligned

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 4))
TREE = Tree.of([1, 3], [0.1, -0.4], [1, ~0], [~2, ~1], [True, False])
EXPECTED = np.array([2 if x[1] > 0.1 else 0 if x[3] <= -0.4 else 1 for x in X])


def routed(nodes, X, dtype=np.uint8):
    leaf = np.empty((1, len(X)), dtype)
    core.route(nodes, offsets([2]), X, 0, len(X), leaf)
    return leaf[0]


KINDS = {
    "plain": np.ascontiguousarray,
    "read-only": read_only,
    "by columns": np.asfortranarray,
    "every other row of more": lambda array: np.repeat(array, 2, axis=0)[::2],
    "unaligned": unaligned,
    "other bytes": lambda array: array.astype(array.dtype.newbyteorder()),
    "repeated": lambda array: np.broadcast_to(array[None], (2, *array.shape))[0],
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_any_layout(kind):
    np.testing.assert_array_equal(routed(TREE.nodes, KINDS[kind](X)), EXPECTED)
    np.testing.assert_array_equal(routed(type(TREE.nodes)(*map(read_only, TREE.nodes)), X), EXPECTED)


def test_a_single_precision_input_is_widened():
    np.testing.assert_array_equal(routed(TREE.nodes, X.astype(np.float32)), EXPECTED)


def test_a_read_only_input_is_not_copied():
    large = np.zeros((1 << 20, 4))
    large.flags.writeable = False
    leaf = np.empty((1, len(large)), np.uint8)
    tracemalloc.start()
    try:
        core.route(TREE.nodes, offsets([2]), large, 0, 300, leaf)
        assert tracemalloc.get_traced_memory()[1] < large.nbytes // 2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64])
def test_leaf_numbers_of_any_type_are_written_and_read(dtype):
    n_splits = min(70_000, np.iinfo(dtype).max)
    split = np.arange(n_splits)
    chain = Tree.of(
        np.zeros(n_splits), split, ~split, np.append(split[1:], ~n_splits), np.zeros(n_splits, bool)
    )  # row x reaches leaf ceil(x)
    rows = np.array([0.0, 1.0, 254.5, n_splits - 1.0, np.inf])
    expected = np.append(np.ceil(rows[:-1]), n_splits)
    leaf = np.zeros((1, len(rows)), dtype)
    core.route(chain.nodes, offsets([n_splits]), rows[:, None], 0, len(rows), leaf)
    np.testing.assert_array_equal(leaf[0], expected)
    order = np.empty(len(rows), np.uint16)
    start = np.empty(n_splits + 2, np.int64)
    core.group_rows(leaf[0], order, start)
    np.testing.assert_array_equal(np.diff(start).nonzero()[0], np.unique(expected))
    np.testing.assert_array_equal(leaf[0, order], np.sort(expected))


def test_numbers_of_any_type():
    ranges = np.array([[0.0, 2.0, 3.0, 3.0]])
    expected, out = np.empty((1, 4)), np.empty((1, 4))
    core.scalings(ranges, 0.0, expected)
    for flat_scale in (0, False, np.float32(0.0), np.int64(0)):
        core.scalings(ranges, flat_scale, out)
        np.testing.assert_array_equal(out, expected)
    for numbers in ((0, 300), (np.int32(0), np.uint8(200)), (False, np.int64(300))):
        leaf = np.empty((1, len(X)), np.uint8)
        core.route(TREE.nodes, offsets([2]), X, *numbers, leaf)
        np.testing.assert_array_equal(leaf[0, : numbers[1]], EXPECTED[: numbers[1]])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"X": X.astype(complex)}, TypeError, "X has the type complex128 where float64 is needed"),
        ({"X": X[0]}, ValueError, "X has 1 axes instead of 2"),
        ({"X": X[1:]}, ValueError, "Axis 1 of leaf has length 300 where rows=299"),
        ({"leaf": read_only(np.empty((1, 300), np.uint8))}, TypeError, "leaf has the type uint8 .* writable"),
        ({"tree_split": offsets([])}, ValueError, "Axis 0 of leaf has length 1 where trees=0"),
        ({"nodes": TREE.nodes._replace(left=TREE.nodes.left[:1])}, ValueError, "Axis 0 of left .* where splits=2"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(change, error, words):
    arguments = {"nodes": TREE.nodes, "tree_split": offsets([2]), "X": X, "begin": 0, "end": 300}
    with pytest.raises(error, match=words):
        core.route(*(arguments | {"leaf": np.empty((1, 300), np.uint8)} | change).values())
