"""Leaf report: its values sum to the prediction, its coefficients give its values, its ways lead to the leaf."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from boostbp.model.regressions import Names, leaf_records
from boostbp.network.layers import Layer
from boostbp.network.network import Network
from boostbp.trees.basis import Polynomial
from boostbp.trees.leaves import leaves_of_tree
from boostbp.trees.tree import Tree
from tests.model.models import CASES, fitted, raw_output
from tests.support.helpers import forest_of, long_chain

ROWS = 12


@pytest.mark.parametrize(("kind", "backend"), CASES)
def test_values_sum_to_hidden_units_and_outputs(kind, backend):
    model, X = fitted(kind, backend)
    report = pd.DataFrame(model.leaf_report(X[:ROWS]))
    sums = report.groupby(["layer", "row", "output"], sort=False)["value"].sum()
    hidden = model.hidden_representation(X[:ROWS])
    for layer, h in enumerate([*hidden, raw_output(model, X[:ROWS])]):
        names = model.hidden_names(layer) if layer < len(hidden) else model.output_names()
        expected = [h[row, k] for row in range(ROWS) for k in range(len(names))]
        found = [sums[layer, row, name] for row in range(ROWS) for name in names]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("kind", "backend"), CASES)
def test_coefficients_times_inputs_are_the_value(kind, backend):
    model, X = fitted(kind, backend)
    report = model.leaf_report(X[:ROWS])
    for record in report:
        value, sizes = record["constant"], [abs(record["constant"])]
        for term, weight in record["coefficients"].items():
            name, power = (term[:-2], 2) if term.endswith("^2") else (term, 1)
            value += weight * record["inputs"][name] ** power
            sizes.append(abs(weight * record["inputs"][name] ** power))
        assert value == pytest.approx(record["value"], abs=1e-9 * max(sizes))


@pytest.mark.parametrize(("kind", "backend"), CASES)
def test_every_condition_on_the_way_holds(kind, backend):
    model, X = fitted(kind, backend)
    X = X[:ROWS]
    hidden = model.hidden_representation(X)
    features = pd.DataFrame(X).set_axis(model.layer_names(0), axis=1)
    looked_at = 0
    for record in model.leaf_report(X):
        row, layer = record["row"], record["layer"]
        values = dict(features.iloc[row])
        if layer > 0:
            values |= dict(zip(model.hidden_names(layer - 1), hidden[layer - 1][row], strict=True))
        for condition in record["path"]:
            assert holds(condition, values), (condition, values)
            looked_at += 1
    assert looked_at > 20


def holds(condition, values):
    """Read a condition and look."""
    for word, is_so in ((" missing", True), (" known", False)):  # all that a tree of an additive base may ask
        if condition.endswith(word) and condition.removesuffix(word) in values:
            return pd.isna(values[condition.removesuffix(word)]) == is_so
    text, _, missing = condition.partition(" or missing")
    assert missing == ""
    match = re.fullmatch(r"(?:(\S+) < )?(.+?)(?: <= (\S+)| > (\S+)| in \{(.*)\})?", text)
    lower, name, upper, above, among = match.groups()
    value = values[name]
    if pd.isna(value):
        return condition.endswith(" or missing")
    if among is not None:
        return str(value) in among.split(", ")
    close = 1e-5 * (abs(value) + 1.0)  # numbers are written with six digits
    return all(value > float(bound) - close for bound in (lower, above) if bound is not None) and (
        upper is None or value <= float(upper) + close
    )


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_records_say_what_was_missing_and_clipped(backend):
    model, frame = fitted("regressor", backend)
    changed = frame[:2].copy()
    changed["weight"] = [np.nan, 1e6]
    report = model.leaf_report(changed)
    first = [r for r in report if r["layer"] == 0 and r["coefficients"].get("weight", 0.0) != 0.0]
    assert {r["row"] for r in first} == {0, 1}
    highest = frame["weight"].max()
    for record in first:
        assert record["missing"] == (["weight"] if record["row"] == 0 else [])
        assert ("weight" in record["clipped"]) == (record["row"] == 1)
        assert record["inputs"]["weight"] <= highest * (1 + 1e-12)


def test_categories_are_named_and_hidden_units_too():
    model, frame = fitted("skip", "lightgbm")
    report = model.leaf_report(frame[:ROWS])
    ways = {0: set(), 1: set(), 2: set()}
    for record in report:
        ways[record["layer"]] |= set(record["path"])
    assert any(re.fullmatch(r"colour in \{((red|green|blue)(, )?)+\}( or missing)?", way) for way in ways[0])
    assert any("h1_" in way for way in ways[2])
    assert report[0].keys() == report[-1].keys()


def test_way_through_a_chain_of_many_splits():
    """One step up for each split on the way, not a search among all splits."""
    count = 300_000
    network, names = Network((Layer(long_chain(count)),), np.zeros(1)), Names(("a",), ("y",), (), False, {})
    X = np.array([[0.5], [7.5], [count + 1.0]])
    records = leaf_records(network, X, names, scale=np.ones(1), offset=np.zeros(1))
    paths = [record["path"] for record in records if record["tree"] == 0]
    assert paths == [["a <= 1"], ["7 < a <= 8"], ["a > 300000 or missing"]]


@pytest.mark.parametrize(
    ("start", "words", "ways"),
    [
        (0, 1, ["a in {red, blue}", "a in {green}"]),
        (0, 0, ["a in {}", "a in {red, green, blue}"]),  # only a file has a set without words
        (-1, 0, ["a in {red, green}", "a in {blue}"]),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_way_through_any_kind_of_split(start, words, ways, named):
    """Whatever kind of split a file has on a feature with or without categories, the report speaks of it truly."""
    tree = Tree.of([0], [1.0], [~0], [~1], [False], cat_start=[start], cat_words=[words], categories=[0b101])
    leaves = leaves_of_tree([0, 1, 2], [0, 0], np.ones((2, 4)), np.ones(4))
    forest = forest_of([(tree, leaves)], 1, 1, Polynomial(1))
    colours = {0: ("red", "green", "blue")} if named else {}
    network, names = Network((Layer(forest),), np.zeros(1)), Names(("a",), ("y",), (), False, colours)
    X = np.array([[0.0], [1.0], [2.0]])
    records = leaf_records(network, X, names, scale=np.ones(1), offset=np.zeros(1))
    for row, record in enumerate(r for r in records if r["tree"] == 0):
        left = bool(start < 0 and row < 2) or bool(words and row != 1)
        way = record["path"][0].removesuffix(" or missing")
        if named:
            assert way == ways[not left]
        elif start < 0:
            assert way == ("a <= 1" if left else "a > 1")
        else:
            assert (f"{row}" in re.findall(r"\d+", way)) == (words > 0)
