"""Networks, losses and reasons to stop come back from plain values, or are refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers import few_rounds
from sklearn.datasets import load_diabetes, load_iris

import boostbp
from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.losses import LOSSES
from boostbp.network.history import Stop
from boostbp.network.stored import loss_from, loss_of
from boostbp.runtime import archive
from boostbp.storage import VERSION
from tests.support.flat_parameters import parameters

TINY = {"hidden_layer_sizes": (3,), "n_estimators": 3, "epochs": 1, "min_samples_leaf": 5, "random_state": 0}
X, Y = load_diabetes(return_X_y=True)
X, Y = X[:120], Y[:120]
FLOWERS, SPECIES = load_iris(return_X_y=True)


def regressor(y=Y, inputs=X, **changes):
    return BoostBPRegressor(**parameters(**(TINY | changes))).fit(inputs, y)


def classifier(labels, inputs=FLOWERS, **changes):
    return BoostBPClassifier(**parameters(**(TINY | changes))).fit(inputs, labels)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    with few_rounds():  # as in the tests
        model = classifier(np.array(["b", "a", "c"])[SPECIES], early_stopping=True, deep=True)
    boostbp.save(model, path)
    return path


def test_leaf_of_a_constant_basis_with_columns_is_refused(tmp_path):
    """Its kernels have no columns to read: what is behind the array is foreign memory."""
    boostbp.save(regressor(hidden_layer_sizes=(), basis="linear"), tmp_path / "model")
    content, arrays = archive.read(tmp_path / "model", archive.Archive, kind="model", version=VERSION)
    content["network"]["layers"][0]["basis"] = "constant"
    content["parameters"]["output"]["dict"]["basis"] = "constant"
    archive.write(tmp_path / "model", kind="model", version=VERSION, content=content, arrays=arrays)
    with pytest.raises(ValueError, match="a leaf reads a column that does not exist"):
        boostbp.load(tmp_path / "model")


def test_hidden_units_that_no_tree_serves_are_refused(stored, tmp_path):
    content, arrays = archive.read(stored, archive.Archive, kind="model", version=VERSION)
    below, above = content["network"]["layers"]
    below["n_outputs"] = above["n_features"] = 2**31 - 1
    archive.write(tmp_path / "model", kind="model", version=VERSION, content=content, arrays=arrays)
    with pytest.raises(ValueError, match="no tree serves some of the 2147483647 outputs"):
        boostbp.load(tmp_path / "model")


@pytest.mark.parametrize("stop", Stop)
def test_why_a_training_stopped_is_kept_by_name(stop):
    # The sentences are worded anew from version to version.
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(stop, protocol=protocol)
        assert stop.value.encode() not in data
        assert pickle.loads(data) is stop
    with pytest.raises(ValueError, match="'nothing' is not a valid Stop"):
        Stop("nothing")


every_loss = pytest.mark.parametrize("loss", [loss() for loss in LOSSES.values()], ids=lambda loss: loss.name)


@every_loss
def test_a_loss_comes_back_from_plain_values(loss):
    assert loss_from(loss_of(loss)) == loss
