"""States, copies and pickles of tree layers in torch models."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from helpers import BACKENDS, BASES, make_targets, make_X
from tree_modules import backward, fitted, module, rows, torch

from boostbp import Elementwise
from boostbp.runtime import archive
from boostbp.torch import GBDTStep


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
    with pytest.raises(RuntimeError, match="no trees"):
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
    held = archive.from_bytes(state.numpy().tobytes(), "a state", archive.Archive, kind="tree layer", version=5)
    kind, version = content.pop("kind", "tree layer"), content.pop("version", 5)
    arrays = held.arrays | content.pop("arrays", {})
    data = archive.to_bytes(kind=kind, version=version, content=held.content | content, arrays=arrays)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "model"}, "not a tree layer of boostbp"),
        ({"version": 99}, "version 99"),
        ({"in_features": 7}, r"complete is bool, \(4,\), not bool, \(7,\)"),
        ({"own": 2}, "it says"),
        ({"arrays": {"complete": np.ones(3, bool)}}, r"complete is bool, \(3,\), not bool, \(4,\)"),
        ({"arrays": {"left": np.zeros(3, np.int32)}}, "not a forest"),
    ],
)
def test_foreign_states_are_refused(change, says):
    with pytest.raises(ValueError, match=says):
        module(3).set_extra_state(changed(fitted().get_extra_state(), **change))


@pytest.mark.parametrize("n_features", [119, 120])
def test_own_functions_of_other_features_are_refused(n_features):
    """Columns are functions times features, exactly: 119 of 40 functions are no two features and a bit."""
    functions = [np.tanh] * 40, [lambda x: 1 - np.tanh(x) ** 2] * 40
    make = lambda: module(2, basis=Elementwise(*functions), n_estimators=2)  # noqa: E731
    made, x = make(), rows()
    made(x[:, :3])
    state = made.get_extra_state()
    facts = archive.from_bytes(state.numpy().tobytes(), "", archive.Archive, kind="tree layer", version=5).content[
        "facts"
    ]
    with pytest.raises(ValueError, match="is not consistent"):
        make().set_extra_state(changed(state, facts=facts | {"n_features": n_features}))
    narrow = {"in_features": 2, "arrays": {"complete": np.ones(2, bool)}, "facts": facts | {"n_features": 2}}
    with pytest.raises(ValueError, match=r"a split has a feature|a leaf reads a column that does not exist"):
        make().set_extra_state(changed(state, **narrow))


@pytest.mark.parametrize(
    "change",
    [
        {"facts": []}, {"facts": {}}, {"facts": 3}, {"categorical": None}, {"categorical": 3}, {"in_features": "4"},
        {"n_rows": "all"}, {"n_rows": -1}, {"above": None}, {"more": 1}, {"in_features": None},
    ],
    ids=str,
)  # fmt: skip
def test_malformed_states_are_value_errors(change):
    with pytest.raises(ValueError, match=r"the state"):
        module(3).set_extra_state(changed(fitted().get_extra_state(), **change))


@pytest.mark.parametrize(
    "change",
    [
        {"losses": None}, {"losses": ["low"]}, {"layers": None}, {"layers": [3]}, {"layers": [{}]},
        {"layers": [{"random": "{}"}]}, {"layers": [{"row_hashes": "x"}]},
        {"layers": [{"momentum": torch.zeros(200, 3)}]},
        {"layers": [{"rows": torch.zeros(200, dtype=torch.int64)}]}, {"layers": [{"expected_rows": "all"}]},
        {"layers": [{"momentum": torch.full((200, 3), torch.nan, dtype=torch.float64)}]},
    ],
    ids=str,
)  # fmt: skip
def test_malformed_training_states_are_value_errors(change):
    made, x = module(), rows()
    backward(made, x)
    steps = GBDTStep(made)
    steps.step()
    state = steps.state_dict()
    if isinstance(change.get("layers"), list) and change["layers"][0]:
        change = {"layers": [state["layers"][0] | one if isinstance(one, dict) else one for one in change["layers"]]}
    with pytest.raises(ValueError, match="damaged"):
        steps.load_state_dict(state | change)


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
    with pytest.raises(ValueError, match=r"is of 200 rows, these trees of 0.*model first"):
        fresh.load_state_dict(state)
    with pytest.raises(ValueError, match="not the state of a GBDTStep"):
        fresh.load_state_dict(made.state_dict())
    with pytest.raises(ValueError, match="version 5, not 4"):
        steps.load_state_dict(state | {"version": 5})
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
