"""Importances: counted, flowing down the layers, and the same after a round trip through a file."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

import boostbp
from boostbp import BoostBPRegressor
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.model.summary import split_importances
from boostbp.network.layers import Layer
from boostbp.network.network import Network
from boostbp.trees.basis import Polynomial
from boostbp.trees.tree import Tree
from tests.model.models import CASES, LIBRARIES, fitted, table
from tests.support.helpers import forest_of, serving, unfitted

KINDS = ("attribution", "jacobian", "split", "gain")


def stump(feature, gain, output):
    """A tree with one split."""
    tree = Tree.of([feature], [0.0], [~0], [~1], [False], gain=[gain])
    return tree, serving(unfitted([0, 0, 0], []), output)


def layer(n_features, n_outputs, members):
    return Layer(forest_of(members, n_features, n_outputs, Polynomial(1)))


BELOW = layer(3, 2, [stump(0, 5.0, 0), stump(1, 1.0, 1), stump(2, 4.0, 1), stump(2, 5.0, 1)])
ABOVE = [stump(0, 3.0, 0), stump(1, 2.0, 0), stump(1, 4.0, 0)]


def test_importance_flows_from_the_output_through_the_units_to_the_features():
    network = Network((BELOW, layer(2, 1, ABOVE)), np.zeros(1))
    np.testing.assert_allclose(split_importances(network, "gain", 1), [3 / 9, 6 / 9])
    np.testing.assert_allclose(split_importances(network, "gain"), [3 / 9, 6 / 9 * 0.1, 6 / 9 * 0.9])
    np.testing.assert_allclose(split_importances(network, "split"), [1 / 3, 2 / 3 / 3, 2 / 3 * 2 / 3])
    np.testing.assert_allclose(split_importances(network, "split", 0), [1 / 4, 1 / 4, 2 / 4])


def test_gains_of_an_average_count_by_the_squares_of_its_weights():
    one, other = (Network((layer(2, 1, [stump(feature, 8.0, 0)]),), np.zeros(1)) for feature in (0, 1))
    average = weighted_sum([one, other], [0.25, 0.75])
    np.testing.assert_allclose(split_importances(average, "gain"), [0.1, 0.9])
    np.testing.assert_allclose(split_importances(average, "split"), [0.5, 0.5])


def test_features_that_an_upper_layer_sees_count_directly():
    above = layer(5, 1, [*ABOVE, stump(2, 9.0, 0)])  # units 0 and 1, then features
    network = Network((BELOW, above), np.zeros(1), skip=True)
    np.testing.assert_allclose(split_importances(network, "gain"), [3 / 18 + 9 / 18, 6 / 18 * 0.1, 6 / 18 * 0.9])


def test_a_backend_without_gains_says_so():
    forest = replace(BELOW.forest, trees=replace(BELOW.forest.trees, gain=np.full(4, np.nan)))
    network = Network((Layer(forest), layer(2, 1, ABOVE)), np.zeros(1))
    with pytest.raises(ValueError, match=r"states no gain of its splits\. Use kind='split'"):
        split_importances(network, "gain")
    assert split_importances(network, "split").sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("kind", "backend"), CASES)
def test_all_kinds_are_shares(kind, backend):
    model, X = fitted(kind, backend)
    for what in KINDS:
        share = model.importance(what)
        assert share.shape == (X.shape[1],)
        assert (share >= 0).all()
        steps_only = what == "jacobian" and not model.jacobian(X).any()  # constant leaves have no derivative
        assert share.sum() == pytest.approx(0.0 if steps_only else 1.0)
    for number in range(len(model.network_.layers)):
        assert len(model.importance("split", layer=number)) == len(model.layer_names(number))
    np.testing.assert_array_equal(model.feature_importances_, model.importance("attribution"))


@pytest.mark.parametrize("backend", LIBRARIES)
def test_splits_are_counted(backend):
    model, frame = fitted("regressor", backend)
    feature = model.network_.layers[0].forest.nodes.feature
    counts = [(feature == j).sum() for j in range(frame.shape[1])]
    np.testing.assert_allclose(model.importance("split", layer=0), np.array(counts) / len(feature))


@pytest.mark.parametrize("backend", LIBRARIES)
def test_means_over_given_rows(backend):
    model, frame = fitted("two outputs", backend)
    rows = frame[:90]
    slopes = np.abs(model.jacobian(rows) / model.model_.targets.scale[:, None]).sum(axis=(0, 1))
    std = np.array([0.0, 0.0, *rows[["weight", "noise"]].std(ddof=0)])
    std[0] = rows["size"].std(ddof=0)
    expected = slopes * std / (slopes * std).sum()
    np.testing.assert_allclose(model.importance("jacobian", X=rows), expected)
    values = np.abs(model.attributions(rows).values / model.model_.targets.scale[:, None]).sum(axis=(0, 1))
    np.testing.assert_allclose(model.importance("attribution", X=rows), values / values.sum())


@pytest.mark.parametrize("backend", LIBRARIES)
def test_what_the_target_depends_on_comes_first(backend):
    X, y = make_friedman1(400, 8, random_state=0)
    model = BoostBPRegressor(
        (4,), backend=backend, n_estimators=25, hidden={"n_estimators": 6}, epochs=1, random_state=0
    ).fit(X, y)
    share = model.feature_importances_
    assert share[:5].min() > 2 * share[5:].max()
    over_all = model.importance("attribution", X=X[:200])
    np.testing.assert_allclose(share, over_all, atol=0.03)  # some rows and few steps say the same


@pytest.mark.parametrize("kind", ["regressor", "skip", "classifier", "autoencoder"])
def test_a_file_and_a_pickle_keep_them(kind, tmp_path):
    model, X = fitted(kind, "lightgbm")
    boostbp.save(model, tmp_path / "model")
    for again in (boostbp.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        for what in KINDS:
            np.testing.assert_array_equal(again.importance(what), model.importance(what))
        np.testing.assert_array_equal(again.attributions(X[:9]).values, model.attributions(X[:9]).values)
        assert again.leaf_report(X[:2]) == model.leaf_report(X[:2])
        assert str(again.health()) == str(model.health())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "weight"}, "kind='weight' is not known: use one of 'split', 'gain', 'jacobian', 'attribution'"),
        ({"kind": "jacobian", "layer": 0}, "layer=0 with kind='jacobian' is not supported"),
        ({"kind": "gain", "layer": 3}, "layer=3 does not exist: there are 3, 0 to 2"),
    ],
)
def test_errors_name_the_cure(arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted("regressor", "lightgbm")[0].importance(**arguments)


def test_a_model_of_nothing_has_no_importances():
    frame, y = table()
    model = BoostBPRegressor((2,), epochs=0, random_state=0).fit(frame[["noise"]] * 0.0, y)
    np.testing.assert_array_equal(model.feature_importances_, [0.0])
