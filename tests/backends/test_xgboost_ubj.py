"""XGBoost's UBJSON, read as its JSON says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from leaf_oracles import nodes_of_leaves, table

from boostbp.backends import _xgboost_ubj
from boostbp.backends.base import TreeParams
from tests.core.test_reading_ubj import grown

xgboost = pytest.importorskip("xgboost")


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


def test_vector_leaves_are_numbered_as_xgboost_assigns_them() -> None:
    data = table(np.random.default_rng(0), 600)
    _, booster = grown(data, 3, TreeParams(max_depth=4, multi_output=True))
    [tree], [node] = _xgboost_ubj.trees_in_ubj(booster.save_raw("ubj")), nodes_of_leaves(booster)
    theirs = booster.predict(xgboost.DMatrix(data.X, nthread=1), pred_leaf=True).ravel()
    assert tree.n_leaves > 8
    assert np.array_equal(node[tree.leaf_of(data.X)], theirs)
