"""A packed forest comes back to the bit, and one that would lead a kernel astray is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boostbp.trees import packed
from tests.helpers import MATRIX, Case, fit_case, training_rows

STORABLE = [case for case in MATRIX if case.basis != "own"]
RICH = Case("lightgbm", missing=True, base=True, categorical=True)


@pytest.fixture(scope="module")
def rich():
    return packed.pack(fit_case(RICH).layer.forest)


def copied(arrays):
    return {name: array.copy() for name, array in arrays.items()}


@pytest.mark.parametrize("case", STORABLE, ids=str)
def test_forest_comes_back_to_the_bit(case):
    forest, X = fit_case(case).layer.forest, training_rows(case)[0]
    facts, arrays = packed.pack(forest)
    again = packed.unpack(json.loads(json.dumps(facts)), copied(arrays))
    assert again.predict(X).tobytes() == forest.predict(X).tobytes()
    leaf = forest.route(X)
    np.testing.assert_array_equal(again.route(X), leaf)
    assert again.jacobian(X, leaf).tobytes() == forest.jacobian(X, leaf).tobytes()
    np.testing.assert_array_equal(again.gain, forest.gain)


def test_forest_of_an_older_file_has_no_known_base(rich):
    facts, arrays = rich
    assert packed.unpack(facts, arrays).n_base == 1
    older = {name: fact for name, fact in facts.items() if name != "n_base"}
    assert packed.unpack(older, arrays).n_base == 0
    with pytest.raises(ValueError, match="This is not a forest: n_base is 1000"):
        packed.unpack(facts | {"n_base": 1000}, arrays)


def test_functions_of_the_users_own_are_refused():
    with pytest.raises(ValueError, match=r"^basis=Elementwise.* cannot be stored"):
        packed.pack(fit_case(Case("lightgbm", "own")).layer.forest)


def first_tree_with(arrays, n_splits):
    """First split of the first tree with at least so many splits."""
    return int(arrays["tree_split"][np.flatnonzero(np.diff(arrays["tree_split"]) >= n_splits)[0]])


def cut_off(arrays):
    """A split that is its own child: every part has one parent, but no walk from the root finds it."""
    first = first_tree_with(arrays, 2)
    last = int(arrays["tree_split"][np.searchsorted(arrays["tree_split"], first, "right")])
    children = np.stack([arrays["left"], arrays["right"]])[:, first:last]
    own = next(i for i in range(1, last - first) if (children[:, i] < 0).any())
    leaf = children[:, own].min()
    for name in ("left", "right"):
        part = arrays[name][first:last]
        part[:] = np.select([part == own, part == leaf], [leaf, own], part)


CHANGES = {
    "feature": lambda a: a["feature"].__setitem__(0, 5),
    "feature below": lambda a: a["feature"].__setitem__(0, -1),
    "child": lambda a: a["left"].__setitem__(0, 10_000),
    "leaf": lambda a: a["right"].__setitem__(0, -10_000),
    "loop": lambda a: a["left"].__setitem__(first_tree_with(a, 2), 0),
    "cut off": cut_off,
    "same leaf": lambda a: a["left"].__setitem__(0, a["right"][0]),
    "category set": lambda a: a["cat_start"].__setitem__(np.flatnonzero(a["cat_words"])[0], 10_000),
    "category words": lambda a: a["cat_words"].__setitem__(np.flatnonzero(a["cat_words"])[0], 2**31 - 1),
    "set without words": lambda a: (
        a["cat_start"].__setitem__(0, len(a["categories"])),
        a["cat_words"].__setitem__(0, 0),
    ),
    "numeric with words": lambda a: a["cat_words"].__setitem__(np.flatnonzero(a["cat_start"] < 0)[0], 1),
    "negative words": lambda a: a["cat_words"].__setitem__(0, -1),
    "tree_split": lambda a: a["tree_split"].__setitem__(1, -1),
    "tree_split falls": lambda a: a["tree_split"].__setitem__(2, a["tree_split"][-1] + 1),
    "tree_leaf": lambda a: a["tree_leaf"].__setitem__(1, 0),
    "output": lambda a: a["tree_output"].__setitem__((0, 0), 3),
    "outputs": lambda a: a["tree_output"].__setitem__((1, 1), 2**62),
    "no output": lambda a: a["tree_output"].__setitem__((1, 1), 0),
    "degree": lambda a: a["tree_degree"].__setitem__(1, 3),
    "start": lambda a: a["start"].__setitem__(-1, 10_000),
    "column": lambda a: a["column"].__setitem__(0, 5),
    "weight_start": lambda a: a["weight_start"].__setitem__(1, -1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_index_astray_is_refused(rich, change):
    facts, arrays = rich
    arrays = copied(arrays)
    packed.unpack(facts, arrays)
    change(arrays)
    with pytest.raises(ValueError, match="This is not a forest"):
        packed.unpack(facts, arrays)


@pytest.mark.parametrize("name", sorted(packed._DTYPES))
def test_array_of_another_length_or_type_is_refused(rich, name):
    facts, arrays = rich
    array = arrays[name]
    wrong = [array[:-1], np.concatenate([array, array[-1:]]), array[:, None], array.astype("f4"), np.empty((0, 7))]
    if name == "categories":
        wrong.pop(1)  # a word that no split looks at harms nobody
    for part in wrong:
        with pytest.raises(ValueError, match="This is not a forest"):
            packed.unpack(facts, {**arrays, name: part})
    with pytest.raises(ValueError, match="This is not a forest"):
        packed.unpack(facts, {key: value for key, value in arrays.items() if key != name})


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 4},
        {"n_outputs": 2},
        {"n_outputs": 2.0},
        {"n_outputs": 2**40},
        {"n_features": -1},
        {"basis": "own"},
        {"clip": 1},
        {"more": 1},
    ],
)
def test_wrong_facts_are_refused(rich, change):
    facts, arrays = rich
    with pytest.raises(ValueError, match="This is not a forest"):
        packed.unpack(facts | change, arrays)


@settings(max_examples=300)
@given(data=st.data())
def test_forest_with_a_wild_index_is_refused_or_stays_in_its_arrays(rich, data):
    """What passes the check is walked in Python, where a wrong index raises."""
    facts, arrays = rich
    arrays = copied(arrays)
    name = data.draw(st.sampled_from([n for n, array in arrays.items() if array.dtype.kind == "i" and array.size]))
    flat = arrays[name].reshape(-1)
    place = data.draw(st.integers(0, len(flat) - 1))
    limits = np.iinfo(flat.dtype)
    flat[place] = data.draw(st.integers(-30, 30) | st.sampled_from([limits.min, limits.max]))
    try:
        forest = packed.unpack(facts, arrays)
    except ValueError:
        return
    nodes, leaves = forest.nodes, forest.leaves
    for tree, (first, last) in enumerate(zip(forest.tree_split[:-1], forest.tree_split[1:], strict=True)):
        size, todo, reached = last - first, [0] if last > first else [-1], []
        while todo:
            node = todo.pop()
            reached.append(node)
            assert len(reached) <= 2 * size + 1, "a walk that does not end"
            if node < 0:
                leaf = leaves.tree_leaf[tree] + ~node
                assert 0 <= ~node <= size
                terms = 1 + leaves.tree_degree[tree] * (leaves.start[leaf + 1] - leaves.start[leaf])
                assert leaves.weight_start[leaf] + terms * leaves.tree_output[tree, 1] == leaves.weight_start[leaf + 1]
                continue
            assert 0 <= node < size
            assert 0 <= nodes.feature[first + node] < forest.n_features
            words = nodes.cat_words[first + node]
            begin = nodes.cat_start[first + node]
            assert words == 0 if begin < 0 else 0 <= begin <= len(nodes.categories) - max(words, 1)
            todo += [nodes.left[first + node], nodes.right[first + node]]
    assert leaves.weight_start[-1] == len(leaves.weight)
