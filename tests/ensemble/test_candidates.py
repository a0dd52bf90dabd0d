"""Candidates of the default model: which there are at each quality, with and without networks."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from helpers import BACKENDS
from sklearn.datasets import make_friedman1
from sklearn.metrics import root_mean_squared_error

from boostbp import BoostBPRegressor
from boostbp.ensemble.candidate import CandidateKind
from boostbp.ensemble.candidates import CANDIDATES
from boostbp.network.trainer import Trainer

X, Y = make_friedman1(300, n_features=5, random_state=0)
HELD_OUT = make_friedman1(150, n_features=5, random_state=1)
FAST = {"hidden": {"n_estimators": 5}, "epochs": 2, "random_state": 0}


@pytest.fixture(autouse=True)
def few_pieces(tune):
    """Single layers of 75 rounds at most."""
    tune(MAX_PIECES=3)


@pytest.fixture
def no_network(press):
    """Back-propagation is not called."""
    press(Trainer, "step", 1, AssertionError("a network is trained"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.usefixtures("everything", "no_network")
def test_it_is_a_sum_of_all_single_layers_and_no_network_is_trained(backend):
    model = BoostBPRegressor((3,), **parameters(backend=backend, deep=False, **FAST)).fit(X, Y, eval_set=[HELD_OUT])
    choice = model.history_.choice
    tried = [one for one in CANDIDATES if one.kind is CandidateKind.SINGLE_LAYER]
    assert {one.name for one in choice.candidates} <= {one.name for one in tried}
    assert len(choice.candidates) == 8
    assert sum(one.weight for one in choice.candidates) == pytest.approx(1.0)
    assert not choice.has_hidden
    assert len(model.network_.layers) == 1
    mse = np.mean(np.square(model.predict(HELD_OUT[0]) - HELD_OUT[1])) / model.model_.targets.scale[0] ** 2 / 2
    assert mse <= np.mean([one.loss for one in choice.candidates])
    assert model.history_.scores == pytest.approx(
        {"valid_0": root_mean_squared_error(HELD_OUT[1], model.predict(HELD_OUT[0]))}
    )
