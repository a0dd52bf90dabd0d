"""A packed forest comes back to the bit, and one that would lead a kernel astray is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boostbp.trees import packed
from boostbp.trees.basis import Elementwise, Polynomial
from tests.support.helpers import MATRIX, Case, fit_case, forest_of, long_chain, of_any_library, training_rows

STORABLE = [case for case in MATRIX if case.basis != "own"]
RICH = Case("lightgbm", missing=True, base=True, categorical=True)


@pytest.fixture(scope="module")
def rich():
    return packed.pack(fit_case(RICH).layer.forest)


def copied(arrays):
    return {name: array.copy() for name, array in arrays.items()}


def unpack(facts, arrays, **options):
    """As `packed.unpack`, which takes the arrays out of what it is given."""
    arrays = dict(arrays)
    forest = packed.unpack(facts, arrays, **options)
    assert not arrays
    return forest


@of_any_library(STORABLE)
def test_forest_comes_back_to_the_bit(case):
    forest, X = fit_case(case).layer.forest, training_rows(case)[0]
    facts, arrays = packed.pack(forest)
    again = unpack(json.loads(json.dumps(facts)), copied(arrays))
    assert again.predict(X).tobytes() == forest.predict(X).tobytes()
    leaf = forest.route(X)
    np.testing.assert_array_equal(again.route(X), leaf)
    assert again.jacobian(X, leaf).tobytes() == forest.jacobian(X, leaf).tobytes()
    np.testing.assert_array_equal(again.trees.gain, forest.trees.gain)
    for part, other in zip((*again.leaves, *again.nodes), (*forest.leaves, *forest.nodes), strict=True):
        assert part.dtype == other.dtype
        assert part.tobytes() == other.tobytes()


def test_number_of_trees_of_the_base_comes_back(rich):
    facts, arrays = rich
    assert unpack(facts, arrays).n_base == 1
    with pytest.raises(ValueError, match="This is not a forest: n_base is 1000"):
        unpack(facts | {"n_base": 1000}, arrays)


def test_output_without_a_tree_is_stored_with_a_leaf_of_zero():
    forest = replace(fit_case(RICH).layer.forest.take(np.array([1])), n_features=5, n_outputs=3)
    again = unpack(*packed.pack(forest))
    X = training_rows(RICH)[0]
    np.testing.assert_array_equal(again.predict(X), forest.predict(X))
    assert sorted(again.leaves.tree_output.tolist()) == [[0, 1], [1, 1], [2, 1]]
    nothing = forest_of([], 5, 2, Polynomial(0))
    assert unpack(*packed.pack(nothing)).predict(X).tolist() == np.zeros((len(X), 2)).tolist()


@pytest.mark.parametrize("n_outputs", [4, 2**31 - 1])
def test_outputs_that_no_tree_serves_are_refused(rich, n_outputs):
    """Or a few bytes would ask for any memory at `predict`."""
    facts, arrays = rich
    with pytest.raises(ValueError, match="This is not a forest: no tree serves"):
        unpack(facts | {"n_outputs": n_outputs}, arrays)


def test_chain_of_many_splits_is_checked_by_steps_that_double():
    count = 300_000
    facts, arrays = packed.pack(long_chain(count))
    rows = np.array([[0.5], [count - 0.5], [count + 1.0]])
    assert unpack(facts, arrays).route(rows).tolist() == [[0, 2, 1]]
    arrays["left"][-1] = 100  # a circle that no walk from the root reaches
    arrays["left"][99] = ~0
    with pytest.raises(ValueError, match="not below the root"):
        unpack(facts, arrays)


def test_functions_of_the_users_own_are_refused_or_asked_for():
    forest, X = fit_case(Case("lightgbm", "own")).layer.forest, training_rows(Case("lightgbm", "own"))[0]
    with pytest.raises(ValueError, match=r"^basis=Elementwise.* cannot be stored"):
        packed.pack(forest)
    facts, arrays = packed.pack(forest, functions=True)
    assert unpack(facts, arrays, functions=forest.basis).predict(X).tobytes() == forest.predict(X).tobytes()
    one_less = Elementwise(forest.basis.functions[1:], forest.basis.derivatives[1:])
    for other in (None, one_less):
        with pytest.raises(ValueError, match="not a forest: basis 'own functions'"):
            unpack(facts, arrays, functions=other)


@pytest.mark.parametrize("basis", ["constant", "linear", "own"])
def test_leaf_reads_no_more_columns_than_the_basis_makes(basis):
    """The bound is the number of expanded columns: none of a constant basis, a few of each feature of one's own."""
    forest = fit_case(Case("lightgbm", "own" if basis == "own" else "linear")).layer.forest
    facts, arrays = packed.pack(forest, functions=True)
    per_feature = {"constant": 0, "linear": 1}.get(basis, facts["functions"])
    facts["basis"] = facts["basis"] if basis == "own" else basis
    functions = forest.basis if basis == "own" else None
    if basis != "constant":
        unpack(facts, arrays, functions=functions)
    arrays["column"] = np.where(arrays["column"] == arrays["column"].max(), 5 * per_feature, arrays["column"]).astype(
        "i4"
    )
    with pytest.raises(ValueError, match="reads a column that does not exist"):
        unpack(facts, arrays, functions=functions)


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
    "threshold and set": lambda a: a["threshold"].__setitem__(np.flatnonzero(a["cat_words"])[0], 0.5),
    "threshold is missing": lambda a: a["threshold"].__setitem__(np.flatnonzero(a["cat_start"] < 0)[0], np.nan),
    "negative words": lambda a: a["cat_words"].__setitem__(0, -1),
    "tree_split": lambda a: a["tree_split"].__setitem__(1, -1),
    "tree_split falls": lambda a: a["tree_split"].__setitem__(2, a["tree_split"][-1] + 1),
    "output": lambda a: a["tree_output"].__setitem__((0, 0), 3),
    "outputs": lambda a: a["tree_output"].__setitem__((1, 1), 2**62),
    "no output": lambda a: a["tree_output"].__setitem__((1, 1), 0),
    "degree": lambda a: a["tree_degree"].__setitem__(1, 3),
    "start": lambda a: a["start"].__setitem__(-1, a["start"][-1] + 1),
    "start falls": lambda a: a["start"].__setitem__(1, a["start"][-1]),
    "start below": lambda a: a["start"].__setitem__(0, -1),
    "column": lambda a: a["column"].__setitem__(0, 5),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_index_astray_is_refused(rich, change):
    facts, arrays = rich
    arrays = copied(arrays)
    unpack(facts, arrays)
    change(arrays)
    with pytest.raises(ValueError, match="This is not a forest"):
        unpack(facts, arrays)


@pytest.mark.parametrize("name", sorted(packed._DTYPES))
def test_array_of_another_length_or_type_is_refused(rich, name):
    facts, arrays = rich
    array = arrays[name]
    wrong = [array[:-1], np.concatenate([array, array[-1:]]), array[:, None], array.astype("f4"), np.empty((0, 7))]
    if name == "categories":
        wrong.pop(1)  # a word that no split looks at harms nobody
    for part in wrong:
        if part.shape == array.shape and part.dtype == array.dtype:
            continue  # there is nothing less than an empty array
        with pytest.raises(ValueError, match=f"This is not a forest|^{name} is .*, not "):
            unpack(facts, {**arrays, name: part})
    with pytest.raises(ValueError, match=f"the array '{name}' is missing"):
        unpack(facts, {key: value for key, value in arrays.items() if key != name})


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 4},
        {"n_outputs": 2},
        {"n_outputs": 2.0},
        {"n_outputs": 2**40},
        {"n_features": -1},
        {"functions": True},
        {"clip": 1},
        {"more": 1},
    ],
)
def test_wrong_facts_are_refused(rich, change):
    facts, arrays = rich
    with pytest.raises(ValueError, match="This is not a forest"):
        unpack(facts | change, arrays)


@pytest.mark.parametrize("change", [{"basis": "own"}, {"basis": ["linear"]}, {"functions": 1}])
def test_other_basis_is_refused(rich, change):
    with pytest.raises(ValueError, match="This is not a forest: basis"):
        unpack(rich[0] | change, rich[1])


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
        forest = unpack(facts, arrays)
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
