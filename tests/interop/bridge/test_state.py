"""States, copies and pickles of tree layers in torch models."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from helpers import BACKENDS, BASES, make_targets, make_X
from tree_modules import backward, fitted, module, rows, torch


def state_bytes(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    return file


@pytest.mark.parametrize("backend", BACKENDS)
def test_state_dict_round_trip_predicts_identical_bits(backend):
    model = torch.nn.Sequential(module(3, backend=backend), torch.nn.Linear(3, 2).double(), module(2, backend=backend))
    x = rows()
    model(x)
    model[2].boost("squared_error", make_targets(x.numpy(), 2), x=model[1](model[0](x)))
    again = torch.nn.Sequential(module(3), torch.nn.Linear(3, 2).double(), module(2))
    again.load_state_dict(torch.load(state_bytes(model), weights_only=True))
    fresh = rows(80, seed=9)
    np.testing.assert_array_equal(again.eval()(fresh).detach().numpy(), model.eval()(fresh).detach().numpy())
    assert again[0].in_features == 4


def test_state_dict_carries_categories_missing_values_and_own_bases():
    x = torch.tensor(make_X(1000, missing=True, categorical=True))
    make = lambda: module(2, categorical=(4,), basis=BASES["own"], n_estimators=8, max_depth=4)  # noqa: E731
    made = make().boost("squared_error", make_targets(x.numpy(), 2), x=x)
    again = make()
    again.load_state_dict(torch.load(state_bytes(made), weights_only=True))
    assert (made.layer.forest.nodes.cat_start >= 0).any()
    np.testing.assert_array_equal(again.eval()(x).numpy(), made.eval()(x).numpy())


def test_state_of_an_unfitted_module_is_loaded_as_such():
    made = fitted()
    made.load_state_dict(module(3).state_dict())
    with pytest.raises(RuntimeError, match="no trees yet"):
        made(rows())


@pytest.mark.parametrize(
    "how", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))], ids=["deepcopy", "pickle"]
)
def test_copies_go_on_as_the_original(how):
    made, x = module(), rows()
    target = torch.tensor(make_targets(x.numpy()))

    def train(one):
        ((one(x) - target) ** 2).mean().backward()
        one.step()

    train(made)
    twin = how(made)
    np.testing.assert_array_equal(twin(x).detach().numpy(), made(x).detach().numpy())
    train(made)
    assert not torch.equal(twin(x), made(x))
    train(twin)
    np.testing.assert_array_equal(twin(x).detach().numpy(), made(x).detach().numpy())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "other"}, "not the state"),
        ({"version": 99}, "version 99"),
        ({"in_features": 7}, "other sizes"),
        ({"own": 2}, "another basis"),
    ],
)
def test_foreign_states_are_refused(change, says):
    state = fitted().get_extra_state() | change
    with pytest.raises(ValueError, match=says):
        module(3).set_extra_state(state)


def test_states_whose_indices_lead_outside_are_refused():
    state = fitted().get_extra_state()
    state["arrays"]["left"] = state["arrays"]["left"] + 1000
    with pytest.raises(ValueError, match="not a forest"):
        module(3).set_extra_state(state)


def test_states_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="out_features=3"):
        module(2).load_state_dict(fitted().state_dict())


def test_states_with_other_categories_are_refused():
    x = torch.tensor(make_X(300, categorical=True))
    made = module(2, categorical=(4,)).boost("squared_error", make_targets(x.numpy(), 2), x=x)
    with pytest.raises(ValueError, match=r"categorical=\(4,\).*categorical=\(\)"):
        module(2).load_state_dict(made.state_dict())


def test_states_know_how_many_rows_there_were():
    made, x = module(), rows()
    backward(made, x)
    made.step()
    again = module()
    again.load_state_dict(torch.load(state_bytes(made), weights_only=True))
    backward(again, x[:20])
    with pytest.raises(ValueError, match=r"20 rows .* fitted to 200"):
        again.step()
