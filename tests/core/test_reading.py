"""LightGBM's text: its numbers are read as Python reads them, and a damaged one within its bounds."""

from __future__ import annotations

import locale
import re
from contextlib import suppress

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostbp.backends import _lightgbm_calls
from boostbp.trees.tree import Trees
from tests.backends.test_lightgbm import smooth


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
