"""XGBoost's UBJSON, read as its JSON says; vector leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from leaf_oracles import nodes_of_leaves, table, target

from boostbp.backends import _xgboost_ubj, load_backend
from boostbp.backends.base import TreeParams
from boostbp.backends.dialects import Numbering
from boostbp.trees.sparse import Table

xgboost = pytest.importorskip("xgboost")


def grown(data: Table, columns: int, growth: TreeParams) -> tuple[Any, Any]:
    """A grower after one round, and its booster."""
    grad = np.hstack([target(np.random.default_rng(seed), data) for seed in range(columns)])
    grower = load_backend("xgboost").bind(data, growth)
    grower.grow(grad, np.ones_like(grad))
    [run] = grower.running.values()
    return grower, run.booster


@pytest.mark.parametrize(("categories", "shared"), [((), False), ((6, 40), False), ((), True)])
def test_the_binary_model_says_what_the_json_model_says(categories: tuple[int, ...], shared: bool) -> None:
    data = table(np.random.default_rng(0), 500, numeric=3, categories=categories)
    _, booster = grown(data, 3, TreeParams(max_depth=4, multi_output=shared))
    trees = _xgboost_ubj.trees_in_ubj(booster.save_raw("ubj"))
    theirs = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    assert len(theirs) == len(trees) == (1 if shared else 3)
    for ours, tree in zip(trees, theirs, strict=True):
        node = np.flatnonzero(np.array(tree["left_children"]) >= 0)
        np.testing.assert_array_equal(ours.feature, np.array(tree["split_indices"])[node])
        # trees with vector leaves have no gains before XGBoost 3
        gain = (
            np.array(tree["loss_changes"], np.float32)[node] if "loss_changes" in tree else np.full(len(node), np.nan)
        )
        np.testing.assert_array_equal(ours.gain.astype(np.float32), gain)
        sets = []
        for start, count in zip(ours.cat_start, ours.cat_words, strict=True):
            bits = np.unpackbits(ours.categories[start : start + count].view(np.uint8), bitorder="little")
            sets.append(np.flatnonzero(bits).tolist())
        segments = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
        expected = {at: tree["categories"][first : first + size] for at, first, size in segments}
        assert sets == [expected.get(at, []) for at in node.tolist()]
        assert any(sets) == bool(categories)


def with_number(raw: bytes, name: bytes, place: int, number: int) -> bytes:
    """The model with another number in an array."""
    at = raw.index(name + b"[$l#L") + len(name) + 13 + 4 * place
    return raw[:at] + number.to_bytes(4, "big", signed=True) + raw[at + 4 :]


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b"left_children[", b"left_childrex["),
        lambda raw: raw.replace(b"split_conditions[$d", b"split_conditions[$Z"),
        lambda raw: raw.replace(b"right_children[$l#L" + bytes(7), b"right_children[$l#L" + bytes(6) + b"\1"),
        lambda raw: raw.replace(b"categories_nodes[$l#L" + bytes(7), b"categories_nodes[$l#L\xff" + bytes(6)),
        lambda raw: with_number(raw, b"left_children", 0, 0),
        lambda raw: with_number(raw, b"left_children", 1, -1),
        lambda raw: with_number(raw, b"left_children", 1, 2),
        lambda raw: with_number(raw, b"categories_nodes", 1, 0),
    ],
    ids=[
        "no children",
        "another type",
        "a count beyond the end",
        "a negative count",
        "a cycle",
        "a leaf too many",
        "a child of two",
        "two sets of a node",
    ],
)
def test_a_model_that_is_not_as_expected_is_refused(change: Callable[[bytes], bytes]) -> None:
    data = table(np.random.default_rng(0), 500, numeric=3, categories=(6,))
    _, booster = grown(data, 1, TreeParams(max_depth=4))
    raw = bytes(booster.save_raw("ubj"))
    assert change(raw) != raw
    with pytest.raises(ValueError, match="XGBoost's model is not as expected"):
        _xgboost_ubj.trees_in_ubj(change(raw))


def test_vector_leaves_are_numbered_as_xgboost_assigns_them() -> None:
    data = table(np.random.default_rng(0), 600)
    _, booster = grown(data, 3, TreeParams(max_depth=4, multi_output=True))
    [tree], [node] = _xgboost_ubj.trees_in_ubj(booster.save_raw("ubj")), nodes_of_leaves(booster)
    theirs = booster.predict(xgboost.DMatrix(data.X, nthread=1), pred_leaf=True).ravel()
    assert tree.n_leaves > 8
    assert np.array_equal(node[tree.leaf_of(data.X)], theirs)


def test_vector_leavesof_few_rows_are_dissolved() -> None:
    data = table(np.random.default_rng(0), 600)
    grad = np.hstack([target(np.random.default_rng(seed), data) for seed in range(3)])
    grower = load_backend("xgboost").bind(data, TreeParams(max_depth=5, min_samples_leaf=40, multi_output=True))
    [tree] = grower.grow(grad, np.ones_like(grad))
    [run] = grower.running.values()
    [theirs] = _xgboost_ubj.trees_in_ubj(run.booster.save_raw("ubj"))
    assert np.bincount(theirs.leaf_of(data.X)).min() < 40, "XGBoost has come to count rows: drop without_small_leaves"
    assert np.bincount(tree.leaf_of(data.X), minlength=tree.n_leaves).min() >= 40


def test_rows_are_counted_in_units_of_the_mean_hessian() -> None:
    data = table(np.random.default_rng(0), 600)
    grad = target(np.random.default_rng(0), data)
    hess = np.random.default_rng(1).uniform(0.5, 1.5, grad.shape) * 1e-3
    grower = load_backend("xgboost").bind(
        data, TreeParams(max_depth=5, min_samples_leaf=30, params={"reg_lambda": 0.0})
    )
    [tree] = grower.grow(grad * 1e-3, hess)
    weight = np.bincount(tree.leaf_of(data.X), hess[:, 0], minlength=tree.n_leaves)
    assert tree.n_leaves > 4
    assert weight.min() >= 30 * hess.mean() * (1 - 1e-4)


def test_a_numbering_is_in_the_order_of_the_nodes() -> None:
    numbering = Numbering.of(np.array([1, 3, -1, -1, 5, -1, -1]))
    assert numbering.splits.tolist() == [0, 1, 4]
    assert numbering.leaves.tolist() == [2, 3, 5, 6]
    assert numbering.number.tolist() == [0, 1, ~0, ~1, 2, ~2, ~3]


@pytest.mark.parametrize(("categories", "shared"), [((), False), ((6, 40), False), ((), True)])
@pytest.mark.parametrize("whole", [0, 1 << 16, 1 << 30])
def test_rounds_are_the_last_trees_of_the_model_whether_it_is_sliced_or_not(
    monkeypatch: pytest.MonkeyPatch, categories: tuple[int, ...], shared: bool, whole: int
) -> None:
    monkeypatch.setattr("boostbp.backends.xgboost._WHOLE", whole)
    data = table(np.random.default_rng(0), 500, numeric=3, categories=categories)
    y = np.hstack([target(np.random.default_rng(seed), data) for seed in range(3)])
    grower = load_backend("xgboost").bind(data, TreeParams(max_depth=6, multi_output=shared))
    rounds = [grower.grow(y * number, np.ones_like(y)) for number in range(1, 30)]
    [run] = grower.running.values()
    assert (run.n_bytes > 1 << 16) == (whole > 0)
    for number, ours in enumerate(rounds):
        theirs = _xgboost_ubj.trees_in_ubj(run.booster[number : number + 1].save_raw("ubj"))
        if shared:  # small leaves of ours are dissolved
            ours = _xgboost_ubj.trees_in_ubj(run.booster[: number + 1].save_raw("ubj"), 1)
        for one, other in zip(ours, theirs, strict=True):
            for name in ("feature", "threshold", "left", "right", "missing_left", "gain", "cat_words", "categories"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
