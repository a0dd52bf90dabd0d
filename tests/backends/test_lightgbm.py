"""LightGBM's own linear leaves, read exactly; threads; the zero band."""

from __future__ import annotations

import locale
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from unittest import mock

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leaf_oracles import adversarial, table

from boostbp import BoostBPRegressor
from boostbp.backends import _lightgbm_calls, load_backend
from boostbp.backends.base import LinearLeaves, TreeParams
from boostbp.backends.lightgbm import LightGBMGrower
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Trees


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


def custom_booster(columns: int, leaves: int) -> tuple[lightgbm.Booster, np.ndarray, np.ndarray]:
    data, y = smooth()
    size = {"num_leaves": leaves, "min_data_in_leaf": 1, "feature_fraction": 0.5}
    params = {"objective": "none", "verbosity": -1, "num_threads": 1} | size
    several = {"num_class": columns} if columns > 1 else {}
    dataset = lightgbm.Dataset(data.X, categorical_feature=list(data.categorical), params=params).construct()
    grad = np.tile(-y.astype(np.float32), (columns, 1)) * np.arange(1, columns + 1, dtype=np.float32)[:, None]
    return lightgbm.Booster(params | several, dataset), grad, np.ones_like(grad)


def same_arrays(some: Trees, others: Trees) -> None:
    for name in ("feature", "threshold", "left", "right", "missing_left", "cat_start", "cat_words", "categories"):
        np.testing.assert_array_equal(getattr(some, name), getattr(others, name), err_msg=name)
    np.testing.assert_array_equal(some.gain, others.gain)
    np.testing.assert_array_equal(some.tree_split, others.tree_split)


@pytest.mark.parametrize(("columns", "leaves"), [(1, 4), (3, 8), (2, 500)])
def test_rounds_by_the_c_functions_are_those_of_the_python_interface(columns: int, leaves: int) -> None:
    booster, grad, hess = custom_booster(columns, leaves)
    other, *_ = custom_booster(columns, leaves)
    booster.reset_parameter({"objective": "none"})
    for number in range(3):
        scaled = grad / np.float32(1 + number)
        assert booster.current_iteration() == other.current_iteration() == number
        _lightgbm_calls.update(lightgbm, booster, scaled, hess)
        flat = (scaled[0], hess[0]) if columns == 1 else (scaled.T, hess.T)
        other.update(fobj=lambda *_, flat=flat: flat)
        read = _lightgbm_calls.trees_of(lightgbm, booster, number, columns)
        whole = other.model_to_string(start_iteration=number, num_iteration=1)
        assert len(read) == whole.count("\nTree=") == columns
        same_arrays(read, _lightgbm_calls.trees_in_text(whole))


def test_arrays_that_the_library_would_read_beyond_are_refused() -> None:
    booster, grad, hess = custom_booster(2, 4)
    for wrong in (hess[:1], hess[:, ::2], np.asfortranarray(hess)):
        with pytest.raises(ValueError, match="do not lie side by side"):
            _lightgbm_calls.update(lightgbm, booster, grad, wrong)


def text_of_tree(thresholds: list[float], gains: list[float]) -> str:
    """A tree that goes on to the right, as LightGBM writes it."""
    n = len(thresholds)
    lines = {
        "num_leaves": [n + 1], "num_cat": [0], "split_feature": range(n), "split_gain": [f"{g:g}" for g in gains],
        "threshold": [f"{t:.17g}" for t in thresholds], "decision_type": [2] * n,
        "left_child": [~leaf for leaf in range(n)], "right_child": [*range(1, n), ~n], "leaf_value": [0] * (n + 1),
    }  # fmt: skip
    return "\nTree=0\n" + "".join(f"{name}={' '.join(map(str, values))}\n" for name, values in lines.items()) + "\n"


numbers = st.floats(allow_nan=False).filter(lambda x: abs(x) > 1e-34)


@given(st.lists(st.lists(numbers, min_size=1, max_size=100), min_size=1, max_size=4))
def test_numbers_are_read_as_python_reads_them(thresholds: list[list[float]]) -> None:
    text = "tree\nversion=v4\n" + "".join(text_of_tree(of_tree, of_tree[::-1]) for of_tree in thresholds)
    trees = _lightgbm_calls.trees_in_text(text + "end of trees\n\nparameters:\n[num_leaves: 31]\n")
    assert trees.tree_split.tolist() == [0, *np.cumsum([len(of_tree) for of_tree in thresholds])]
    assert trees.threshold.tolist() == [number for of_tree in thresholds for number in of_tree]
    assert trees.gain.tolist() == [float(f"{gain:g}") for of_tree in thresholds for gain in of_tree[::-1]]
    assert (trees.missing_left == (trees.threshold >= 0.0)).all()


def test_numbers_have_a_point_in_every_locale() -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "German"):
        with suppress(locale.Error):
            locale.setlocale(locale.LC_NUMERIC, name)
    try:
        if locale.localeconv()["decimal_point"] == ".":
            pytest.skip("no locale with a decimal comma is installed")
        assert _lightgbm_calls.trees_in_text(text_of_tree([0.5, 2.25], [1.0, 1.0])).threshold.tolist() == [0.5, 2.25]
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


@given(st.data())
def test_a_damaged_text_is_refused_or_read_within_its_bounds(data: st.DataObject) -> None:
    booster, grad, hess = custom_booster(1, 12)
    _lightgbm_calls.update(lightgbm, booster, grad, hess)
    text = booster.model_to_string()
    first = data.draw(st.integers(text.index("num_leaves"), text.index("end of trees")))
    last = data.draw(st.integers(first, min(first + 40, len(text))))
    damaged = text[:first] + data.draw(st.text("0159-. =\nab", max_size=12)) + text[last:]
    with suppress(ValueError):
        trees = _lightgbm_calls.trees_in_text(damaged)
        assert (trees.cat_start + trees.cat_words <= len(trees.categories)).all()


@pytest.mark.parametrize("line", ["split_gain", "threshold", "left_child", "cat_boundaries", "cat_threshold"])
def test_a_text_that_lacks_a_line_or_a_number_is_refused(line: str) -> None:
    booster, grad, hess = custom_booster(1, 12)
    _lightgbm_calls.update(lightgbm, booster, grad, hess)
    text = booster.model_to_string()
    assert "num_cat=0" not in text
    for shorter in (re.sub(rf"\n{line}=.*", "", text), re.sub(rf"(\n{line}=.*) .*", r"\1", text)):
        assert shorter != text
        with pytest.raises(ValueError, match="LightGBM's text of trees is not as expected"):
            _lightgbm_calls.trees_in_text(shorter)


@pytest.mark.parametrize(
    "name", ["a\nnum_leaves=1", "price\nnum_leaves=3", "a\nnum_leaves=", "a\nnum_leaves=2\nnum_cat=0\n"]
)
def test_names_of_features_with_lines_like_those_of_trees_are_no_trees(name: str) -> None:
    rng = np.random.default_rng(0)
    X, params = rng.normal(size=(300, 2)), {"verbosity": -1, "num_threads": 1, "num_leaves": 4}
    texts = []
    for names in ([name, "z"], ["a", "z"]):
        data = lightgbm.Dataset(X, X[:, 0] + X[:, 1] ** 2, feature_name=names, params=params)
        booster = lightgbm.Booster(params, data)
        booster.update()
        texts.append(booster.model_to_string())
    same_arrays(*map(_lightgbm_calls.trees_in_text, texts))


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
