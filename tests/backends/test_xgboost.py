"""XGBoost's trees: vector leaves, rows by their weight, and rounds of a model that is sliced or not."""

from __future__ import annotations

import numpy as np
import pytest
from leaf_oracles import table, target

from boostbp.backends import _xgboost_ubj, load_backend
from boostbp.backends.base import TreeParams

pytest.importorskip("xgboost")


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
