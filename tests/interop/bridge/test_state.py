"""States, copies and pickles of tree layers in torch models."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from helpers import BACKENDS, BASES, make_targets, make_X
from tree_modules import backward, fitted, module, rows, torch

from boostbp import archive
from boostbp.interop.torch_bridge import GBDTStep
from boostbp.trees import packed


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


def changed(state, **content):
    """The state with other facts."""
    held = archive.from_bytes(state.numpy().tobytes(), "a state", kind="tree layer", version=1)
    kind, version = content.pop("kind", "tree layer"), content.pop("version", 1)
    arrays = held.arrays | content.pop("arrays", {})
    data = archive.to_bytes(kind=kind, version=version, content=held.content | content, arrays=arrays)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "model"}, "not a tree layer of boostbp"),
        ({"version": 99}, "version 99"),
        ({"in_features": 7}, "other sizes"),
        ({"own": 2}, "another basis"),
        ({"arrays": {"complete": np.ones(3, bool)}}, "other sizes"),
        ({"arrays": {"left": np.zeros(3, np.int32)}}, "not a forest"),
    ],
)
def test_foreign_states_are_refused(change, says):
    with pytest.raises(ValueError, match=says):
        module(3).set_extra_state(changed(fitted().get_extra_state(), **change))


def test_damaged_states_are_refused():
    state = fitted().get_extra_state()
    state[len(state) // 2] ^= 1
    with pytest.raises(ValueError, match="'the state of a GBDTModule' is corrupted"):
        module(3).set_extra_state(state)
    for other in (torch.zeros(3), {"format": "other"}, None):
        with pytest.raises(ValueError, match="not the state of a GBDTModule"):
            module(3).set_extra_state(other)


def test_states_may_be_cloned_and_moved_as_other_tensors():
    made, x = fitted(), rows(50, seed=9)
    again = module(3)
    again.load_state_dict({name: tensor.clone().to("cpu") for name, tensor in made.state_dict().items()})
    np.testing.assert_array_equal(again.eval()(x).numpy(), made(x).numpy())


def test_states_of_version_0_1_are_read():
    made, x = fitted(), rows(50, seed=9)
    facts, arrays = packed.pack(made.layer.forest)
    tensors = {k: torch.tensor(v.view(np.int32) if v.dtype == np.uint32 else v) for k, v in arrays.items()}
    state = {"format": "boostbp.GBDTModule", "version": 1, "in_features": 4, "out_features": 3, "categorical": []}
    state |= {"n_rows": 200, "baseline": torch.zeros(3, dtype=torch.float64), "facts": facts, "own": 0}
    again = module(3)
    again.set_extra_state(state | {"arrays": tensors})
    np.testing.assert_array_equal(again.eval()(x).numpy(), made(x).numpy())
    assert again.n_rows == 200


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "in order"])
def test_training_goes_on_from_states(announced):
    x = rows()
    y = torch.tensor(make_targets(x.numpy(), 1))

    def begun():
        torch.manual_seed(0)
        made = module(3, extra_trees=True, step_size=0.3)
        model = torch.nn.Sequential(made, torch.nn.Linear(3, 1).double(), module(1))
        return model, GBDTStep(model, n_rows=200), torch.optim.Adam(model.parameters(), lr=0.05)

    def train(model, steps, adam):
        for _ in range(3):
            adam.zero_grad()
            steps.rows(range(200) if announced else None)
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            adam.step()
            steps.step(loss=loss)

    whole = begun()
    train(*whole)
    file = io.BytesIO()
    torch.save([part.state_dict() for part in whole], file)
    train(*whole)
    file.seek(0)
    again = begun()
    for part, state in zip(again, torch.load(file, weights_only=True), strict=True):
        part.load_state_dict(state)
    train(*again)
    np.testing.assert_array_equal(again[0].eval()(x).detach().numpy(), whole[0].eval()(x).detach().numpy())
    assert again[1].losses == whole[1].losses
    assert len(again[1].losses) == 6


def test_training_states_of_others_are_refused():
    made, x = module(), rows()
    backward(made, x)
    steps = GBDTStep(made)
    steps.step()
    state = steps.state_dict()
    other = GBDTStep(torch.nn.Sequential(module(), module()))
    with pytest.raises(ValueError, match="of 1 tree layers, and the model has 2"):
        other.load_state_dict(state)
    fresh = GBDTStep(module())
    with pytest.raises(ValueError, match=r"fitted to 200 rows, and these were to 0.*model first"):
        fresh.load_state_dict(state)
    with pytest.raises(ValueError, match="not the state of a GBDTStep"):
        fresh.load_state_dict(made.state_dict())
    with pytest.raises(ValueError, match="version 2"):
        steps.load_state_dict(state | {"version": 2})
    [told] = state["layers"]
    before = made._momentum
    with pytest.raises(ValueError, match="damaged"):
        steps.load_state_dict(state | {"layers": [told | {"momentum": torch.zeros(200, 7)}]})
    assert made._momentum is before


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
