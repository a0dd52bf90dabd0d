"""LightGBM's own linear leaves, read exactly; threads; names and weights."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import lightgbm
import numpy as np
import pytest
from leaf_oracles import adversarial, table

from boostbp import BoostBPRegressor
from boostbp.backends import load_backend
from boostbp.backends.base import LinearLeaves, TreeParams
from boostbp.backends.lightgbm import LightGBMGrower
from boostbp.trees.sparse import Table


def value(leaves: LinearLeaves, X: np.ndarray) -> np.ndarray:
    """What the linear leaves predict, written plainly."""
    out = np.empty(len(X))
    for row, leaf in enumerate(leaves.tree.leaf_of(X)):
        terms = slice(leaves.start[leaf], leaves.start[leaf + 1])
        x = X[row, leaves.features[terms]]
        out[row] = leaves.missing[leaf] if np.isnan(x).any() else leaves.const[leaf] + leaves.coeff[terms] @ x
    return out


def smooth(rows: int = 800, categories: tuple[int, ...] = (5,)) -> tuple[Table, np.ndarray]:
    rng = np.random.default_rng(0)
    data = table(rng, rows, numeric=4, categories=categories)
    Z = np.nan_to_num(data.X[:, :4] / np.nanstd(data.X[:, :4], axis=0))
    return data, np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2] + (np.nan_to_num(data.X[:, -1]) == 2)


def boosted(
    data: Table, y: np.ndarray, growth: TreeParams, *, rounds: int = 12, penalty: float = 0.1
) -> tuple[list[LinearLeaves], Any]:
    """Linear trees, and the booster that they were read from."""
    made = []

    class Recorded(lightgbm.Booster):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made.append(self)

    grower = load_backend("lightgbm").bind(data, growth)
    with mock.patch.object(lightgbm, "Booster", Recorded):
        leaves = grower.boost(lambda fit: (fit - y, np.ones_like(y)), rounds, 0.3, penalty)
    return leaves, [booster for booster in made if booster.params.get("linear_tree")][-1]


def test_linear_leaves_predict_what_lightgbm_predicts() -> None:
    data, y = smooth()
    leaves, booster = boosted(data, y, TreeParams(max_depth=4, min_samples_leaf=10))
    assert len(leaves) == 12
    rows = adversarial(leaves[3].tree, data, np.random.default_rng(0))
    rows = rows[(np.abs(np.nan_to_num(rows)) < 1e30).all(axis=1)]  # products of larger numbers have no common scale
    assert np.isnan(rows).any(axis=1).sum() > 100
    theirs = booster.predict(rows, raw_score=True, num_threads=1)
    ours = sum(value(tree, rows) for tree in leaves)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * np.abs(y).max())


def test_every_linear_tree_has_slopes_from_the_first() -> None:
    data, y = smooth()
    leaves, booster = boosted(data, y, TreeParams(max_depth=3))
    assert all(np.any(tree.coeff != 0.0) for tree in leaves)
    assert booster.current_iteration() == len(leaves) + 1, "one tree of value 0 went first"


def test_one_round_is_a_ridge_regression_in_each_leaf() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1)).astype(np.float32).astype(float)  # LightGBM fits linear leaves in float32
    y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=400)
    [tree], _ = boosted(Table(X), y, TreeParams(max_depth=1), rounds=1, penalty=0.7)
    leaf = tree.tree.leaf_of(X)
    for number in range(2):
        x = X[leaf == number, 0]
        A = np.column_stack([x, np.ones_like(x)])
        slope, const = 0.3 * np.linalg.solve(A.T @ A + np.diag([0.7, 0.0]), A.T @ y[leaf == number])
        np.testing.assert_allclose([tree.coeff[number], tree.const[number]], [slope, const], rtol=1e-5)


def test_the_gradient_sees_the_running_prediction() -> None:
    data, y = smooth(400, ())
    seen = []

    def gradient(fit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append(fit)
        return fit - y, np.ones_like(y)

    leaves = load_backend("lightgbm").bind(data, TreeParams(max_depth=3)).boost(gradient, 5, 0.3, 0.1)
    for count, fit in enumerate(seen):  # LightGBM keeps its own in float32 input
        np.testing.assert_allclose(fit, sum((value(t, data.X) for t in leaves[:count]), np.zeros(400)), atol=1e-5)


def test_linear_trees_beside_each_other_in_threads_are_those_in_turn() -> None:
    data, y = smooth()
    grower = load_backend("lightgbm").bind(data, TreeParams(max_depth=4, min_samples_leaf=10))

    def run(k: int) -> list[bytes]:
        goal = y * (k + 1)
        trees = grower.fork(slice(k, k + 1), k).boost(lambda fit: (fit - goal, np.ones_like(y)), 8, 0.3, 0.1)
        return [part.tobytes() for t in trees for part in (t.tree.threshold, t.const, t.coeff, t.features, t.missing)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, range(6)))
    assert found == [run(k) for k in range(6)]


def test_linear_trees_do_not_disturb_the_structures() -> None:
    data, y = smooth()
    grower = load_backend("lightgbm").bind(data, TreeParams(max_depth=4))
    grad = -y[:, None]
    [before] = grower.grow(grad, np.ones_like(grad))
    grower.boost(lambda fit: (fit - y, np.ones_like(y)), 2, 0.3, 0.1)
    [after] = grower.grow(grad, np.ones_like(grad))
    assert before.threshold.tobytes() == after.threshold.tobytes()


@pytest.mark.parametrize(
    "growth", [TreeParams(max_depth=0), TreeParams(max_leaves=1), TreeParams(min_samples_leaf=300)]
)
def test_linear_trees_without_a_split_are_left_out(growth: TreeParams) -> None:
    data, y = smooth(400)
    assert load_backend("lightgbm").bind(data, growth).boost(lambda fit: (fit - y, np.ones_like(y)), 3, 0.3, 0.1) == []


def test_linear_leaves_refuse_numbers_beyond_float32() -> None:
    X = np.linspace(-1.0, 1.0, 100)[:, None] * [1.0, 1e39]
    grower = load_backend("lightgbm").bind(Table(X), TreeParams())
    with pytest.raises(ValueError, match=r"column 1 holds 1e\+39, beyond the range of float32.*scale the column"):
        grower.boost(lambda fit: (fit - X[:, 0], np.ones(100)), 2, 0.3, 0.1)


THREADS = """
import lightgbm, numpy as np
from boostbp.backends import load_backend
from boostbp.backends.base import TreeParams
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Trees
rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 6)); y = np.sin(X).sum(1)
other = lightgbm.train({"verbosity": -1, "num_threads": 4}, lightgbm.Dataset(X, y), 3)
def gradient(fit):
    other.predict(X, num_threads=4)
    return fit - y, np.ones_like(y)
print(len(load_backend("lightgbm").bind(Table(X), TreeParams(n_threads=1)).boost(gradient, 30, 0.3, 0.1)))
"""


@pytest.mark.slow
def test_a_prediction_by_another_model_between_rounds_does_no_harm() -> None:
    found = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout.strip()) == (0, "30"), found.stderr


BESIDE = """
import threading
import numpy as np
from boostbp.backends import load_backend
from boostbp.backends.base import TreeParams
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Trees

rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 5))
y = X[:, 0] * X[:, 1]
done = threading.Event()

def linear():
    grower = load_backend("lightgbm").bind(Table(X), TreeParams(n_threads=1))
    for seed in range(5):
        grower.fork(slice(0, 1), seed).boost(lambda fit: (fit - y, np.ones_like(y)), 30, 0.1, 1.0)
    done.set()

def many():
    while not done.is_set():
        grower = load_backend("lightgbm").bind(Table(X), TreeParams(n_threads=4))
        for _ in range(10):
            grower.grow(-y[:, None], np.ones((len(y), 1)))

both = [threading.Thread(target=linear), threading.Thread(target=many)]
for thread in both:
    thread.start()
for thread in both:
    thread.join()
print("alive")
"""


@pytest.mark.slow
def test_linear_trees_beside_growers_of_more_threads_do_not_crash() -> None:
    done = subprocess.run([sys.executable, "-c", BESIDE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def test_several_columns_in_one_tree_are_refused() -> None:
    data, _ = smooth(100)
    with pytest.raises(ValueError, match=r"multi_output=True .* one column, not 2"):
        load_backend("lightgbm").bind(data, TreeParams(multi_output=True)).grow(np.ones((100, 2)), np.ones((100, 2)))


def test_a_native_backend_cannot_write_to_the_weights_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    boost = LightGBMGrower.boost

    def writing(self: LightGBMGrower, gradient: Any, *args: Any) -> Any:
        def halved(score: np.ndarray) -> Any:
            grad, hess = gradient(score)
            hess *= 0.5
            return grad, hess

        return boost(self, halved, *args)

    monkeypatch.setattr(LightGBMGrower, "boost", writing)
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(300, 3)), rng.uniform(0.5, 2.0, 300)
    model = BoostBPRegressor((), n_estimators=5, output={"leaves": "native"})
    with pytest.raises(ValueError, match="read-only"):
        model.fit(X, X[:, 0] * X[:, 1], sample_weight=weight)
