"""Tree layers in torch models: gradients, steps, states, and the one rule for batches."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers import BACKENDS, BASES, assert_close, make_targets, make_X, plain_forest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'boostbp[torch]'")

from boostbp import fit_layer  # noqa: E402
from boostbp.interop.bridge.gathered import Moved  # noqa: E402
from boostbp.interop.bridge.passes import as_tensor  # noqa: E402
from boostbp.interop.torch_bridge import GBDTModule, GBDTStep  # noqa: E402
from boostbp.learning.losses import SquaredError  # noqa: E402
from boostbp.learning.steps import Normalised, Plain  # noqa: E402

SMALL = {"n_estimators": 4, "max_depth": 3, "min_samples_leaf": 8, "random_state": 0}
TYPES = [torch.float32, torch.float64]


def rows(n=200, dtype=torch.float64, seed=0):
    return torch.tensor(make_X(n, seed=seed), dtype=dtype)


def module(outputs=3, **changes):
    return GBDTModule(None, outputs, **(SMALL | changes))


@cache
def _fitted(basis, clip):
    """A layer that has learned a bent function, so that its Jacobian is not that of its start."""
    made = module(basis=BASES[basis], clip=clip).train()
    x = rows()
    target = torch.tensor(make_targets(x.numpy()))
    for _ in range(3):
        ((made(x) - target) ** 2).sum(1).mean().backward()
        made.step()
    return made.eval()


def fitted(basis="quadratic", clip=True):
    return copy.deepcopy(_fitted(basis, clip))


def state_bytes(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    return file


# ---------------------------------------------------------------------------- forward and backward


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_forward_is_that_of_the_layer_in_the_type_of_the_input(dtype):
    made, x = fitted(), rows(50, dtype, seed=9)
    expected = made.layer.predict(x.double().numpy())
    out = made(x)
    assert out.dtype == dtype
    assert not out.requires_grad
    np.testing.assert_array_equal(out.numpy(), expected.astype(out.numpy().dtype))
    np.testing.assert_array_equal(made(x.clone().requires_grad_()).detach().numpy(), out.numpy())


@pytest.mark.parametrize("basis", list(BASES))
@pytest.mark.parametrize("clip", [True, False], ids=["clip", "free"])
def test_gradcheck_agrees_on_rows_that_keep_their_leaves(basis, clip):
    made, x = fitted(basis, clip), rows(120, seed=9)
    eps = 1e-5
    around = [x.numpy()]
    for feature in range(x.shape[1]):
        step = np.zeros(x.shape[1])
        step[feature] = eps
        around += [x.numpy() + step, x.numpy() - step]
    states = [plain_forest(made.layer.forest, points)[1] for points in around]
    kept = np.array([len(set(sides)) == 1 for sides in zip(*states, strict=True)])
    assert kept.sum() > 30
    x = x[torch.from_numpy(kept)].requires_grad_()
    assert torch.autograd.gradcheck(made, x, eps=eps, atol=1e-6, rtol=1e-5)
    [slopes] = torch.autograd.grad(made(x).sum(), x)
    assert slopes.abs().max() > 0.1


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_gradient_of_the_input_is_the_vjp(dtype):
    made, x = fitted(), rows(50, dtype, seed=9).requires_grad_()
    g = torch.randn(50, 3, dtype=dtype, generator=torch.Generator().manual_seed(0))
    made(x).backward(g)
    _, trace = made.layer.forward(x.detach().double().numpy())
    expected = trace.vjp(g.double().numpy())
    assert x.grad.dtype == dtype
    np.testing.assert_array_equal(x.grad.numpy(), expected.astype(x.grad.numpy().dtype))


def test_gradients_pass_through_layers_before_between_and_after():
    """Against finite differences in the weights of a neural layer that stands between two tree layers."""
    torch.manual_seed(0)
    linear = torch.nn.Linear(3, 3).double()
    model = torch.nn.Sequential(
        module(3), linear, module(2, clip=False, basis="linear"), torch.nn.Linear(2, 1).double()
    )
    x = rows()
    model(x)  # makes the first trees
    model.eval()
    g = torch.randn(200, 1, dtype=torch.float64)
    (g * model(x)).sum().backward()
    analytic, eps = linear.weight.grad[0, 1].item(), 1e-7
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            linear.weight[0, 1] += sign * eps
            values.append((g * model(x)).sum().item())
            linear.weight[0, 1] -= sign * eps
    numeric = (values[0] - values[1]) / (2 * eps)
    assert abs(analytic) > 1e-3
    assert abs(analytic - numeric) <= 1e-5 * abs(analytic), f"analytic {analytic}, numeric {numeric}"


def test_changing_a_tensor_in_place_does_not_change_the_backward_pass():
    made, x = fitted(), rows(30)
    expected = made.layer.forward(x.numpy())[1].vjp(np.ones((30, 3)))
    y = x.clone().requires_grad_()
    held = y * 1.0
    out = made(held)
    with torch.no_grad():
        held.mul_(1e3)
    out.sum().backward()
    np.testing.assert_array_equal(y.grad.numpy(), expected)


def test_second_derivatives_are_refused():
    """Also where the trees come last, so that the gradient that comes to them is a constant."""
    made, x = fitted(), rows(20).requires_grad_()
    for output in (made(x) ** 2, made(x)):
        [slope] = torch.autograd.grad(output.sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="second derivative through a tree layer"):
            slope.square().sum().backward()
    below = torch.nn.Linear(4, 4).double()  # a gradient penalty on what comes to the trees
    h = below(rows(20))
    [slope] = torch.autograd.grad(made(h).sum(), h, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivative"):
        (slope.norm(dim=1) - 1).square().mean().backward()


def test_a_slope_with_a_graph_is_that_without():
    made, x = fitted(), rows(20).requires_grad_()
    [slope] = torch.autograd.grad(made(x).sum(), x)
    [again] = torch.autograd.grad(made(x).sum(), x, create_graph=True)
    assert again.requires_grad
    np.testing.assert_array_equal(again.detach().numpy(), slope.numpy())


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # by torch.func itself
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_forward_mode_and_function_transforms_are_refused(mode):
    made, x = fitted().train(mode == "train"), rows(30)
    with torch.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match="jvp"):
        made(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)))
    with pytest.raises(RuntimeError, match=r"torch\.func.* Use torch\.autograd"):
        torch.func.vmap(made)(x[:, None])
    with pytest.raises(RuntimeError, match=r"torch\.func.* Use torch\.autograd"):
        torch.func.grad(lambda x: made(x).sum())(x)


def test_results_go_to_the_device_and_type_of_the_input():
    elsewhere = torch.empty(0, dtype=torch.float32, device="meta")  # a device that every machine has
    sent = as_tensor(np.ones((3, 2)), elsewhere)
    assert (sent.device.type, sent.dtype, sent.shape) == ("meta", torch.float32, (3, 2))


def test_the_default_device_changes_nothing():
    X = rows()

    def trained():
        made, x = module(), X.clone().requires_grad_()
        made(x).square().sum(1).mean().backward()
        GBDTStep(made, n_rows=200).step()
        loaded = module()
        loaded.load_state_dict(made.state_dict())
        return made.eval()(x), x.grad, loaded.eval()(x)

    expected = trained()
    with torch.device("meta"):  # what forgets to name the CPU makes tensors without numbers there
        for found, wanted in zip(trained(), expected, strict=True):
            np.testing.assert_array_equal(found.detach().numpy(), wanted.detach().numpy())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_another_device_gives_the_numbers_of_the_cpu():
    made, x = fitted(), rows(30, torch.float32)
    here, there = x.clone().requires_grad_(), x.cuda().requires_grad_()
    out = made(there)
    assert out.device == there.device
    out.sum().backward()
    made(here).sum().backward()
    np.testing.assert_array_equal(out.detach().cpu().numpy(), made(here).detach().numpy())
    np.testing.assert_array_equal(there.grad.cpu().numpy(), here.grad.numpy())


# ---------------------------------------------------------------------------- steps


def per_row_gradient(made, x, target):
    return 2 * (made.layer.predict(x.numpy()) - target.numpy())


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("rule", [Plain(0.3, 0.5), Normalised(0.4, 0.8)], ids=["plain", "normalised"])
def test_step_is_a_fit_to_the_moved_outputs(rule, reduction):
    made, x = module(step=rule, reduction=reduction), rows()
    target, m = torch.tensor(make_targets(x.numpy())), np.zeros((len(x), 3))
    for _ in range(2):
        losses = ((made(x) - target) ** 2).sum(1)
        getattr(losses, reduction)().backward()
        h = made.layer.predict(x.numpy())
        moved, m = rule.move(h, m, per_row_gradient(made, x, target), np.ones(len(x)))
        made.step()
        expected = fit_layer(x.numpy(), moved, base="ridge", learning_rate=1 - 0.05**0.25, **SMALL)
        assert_close(made.layer.predict(x.numpy()), expected.predict(x.numpy()), 1e-9)


def test_mini_batches_make_the_step_of_the_full_batch():
    x = rows()
    target = torch.tensor(make_targets(x.numpy()))
    one, many = module(), module()
    one(x)
    many.load_state_dict(one.state_dict())
    for _ in range(2):
        ((one(x) - target) ** 2).mean().backward()
        one.step()
        for part in (slice(0, 70), slice(70, 200)):
            ((many(x[part]) - target[part]) ** 2).mean().backward()
        many.step()
    assert_close(many.eval()(x).numpy(), one.eval()(x).numpy(), 1e-9)


def test_announced_rows_may_be_shuffled():
    x = rows()
    target = torch.tensor(make_targets(x.numpy()))
    straight, shuffled = module(), module()
    straight(x)
    shuffled.load_state_dict(straight.state_dict())
    steps, order = GBDTStep(shuffled), np.random.default_rng(0)
    for _ in range(3):
        ((straight(x) - target) ** 2).mean().backward()
        straight.step()
        for part in np.array_split(order.permutation(200), 3):
            steps.rows(torch.from_numpy(part))
            ((shuffled(x[part]) - target[part]) ** 2).mean().backward()
        steps.step()
    steps.rows(None)
    assert_close(shuffled.eval()(x).numpy(), straight.eval()(x).numpy(), 1e-9)


def test_gradients_of_one_call_are_summed():
    x = rows()
    once, twice = module(step="plain"), module(step="plain")
    once(x)
    twice.load_state_dict(once.state_dict())
    out = twice(x)
    (out**2).mean().backward(retain_graph=True)
    (3 * out).mean().backward()
    twice.step()
    out = once(x)
    (out**2 + 3 * out).mean().backward()
    once.step()
    assert_close(twice.eval()(x).numpy(), once.eval()(x).numpy(), 1e-12)


def test_bins_are_kept_while_the_input_stays():
    made, x = module(), rows()
    made(x).sum().backward()
    made.step()
    kept = made._refits.bound
    made(x).sum().backward()
    made.step()
    assert made._refits.bound is kept
    made.settings = replace(made.settings, n_estimators=6)
    made(x).sum().backward()
    made.step()
    assert made.layer.forest.n_trees == 1 + 3 * 6
    kept = made._refits.bound
    made.expected_rows = 200  # of which others may come
    made(x + 1.0).sum().backward()
    made.step()
    assert made._refits.bound is not kept


def two_layers():
    torch.manual_seed(0)
    first, second = module(3, step_size=0.3), module(2, step_size=0.3)
    return torch.nn.Sequential(first, second, torch.nn.Linear(2, 1).double()), first, second


@pytest.mark.parametrize("upward", [True, False], ids=["upward", "downward"])
def test_second_layer_is_fitted_on_the_new_or_the_old_output_of_the_first(upward):
    model, first, second = two_layers()
    x = rows()
    model(x).square().mean().backward()
    old = first.layer.predict(x.numpy())
    GBDTStep(model).step((lambda: model(x)) if upward else None)
    new = first.layer.predict(x.numpy())
    assert np.abs(new - old).max() > 0.01
    np.testing.assert_array_equal(second._refits.bound.table.X, new if upward else old)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("base", ["ridge", None])
def test_trees_of_one_row_start_again_from_all(backend, base):
    made, x = module(backend=backend, base=base), rows(400)
    with torch.no_grad():
        assert made(x[:1]).shape == (1, 3)  # as to see whether the shapes of a model fit
    assert np.ptp(made(x).detach().numpy(), axis=0).max() < 1e-9
    made(x).square().sum().backward()
    made.zero_grad()
    (made(x) - torch.tensor(make_targets(x.numpy()))).square().mean().backward()
    made.step()
    assert (made(x).detach().std(0) > 0.1).all()
    assert not made._momentum.m.any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_stacked_trees_of_one_row_learn(backend):
    torch.manual_seed(0)
    x = rows(400)
    y = torch.tensor(make_targets(x.numpy(), 1))
    model = torch.nn.Sequential(*(module(n, backend=backend, base=None, random_state=n) for n in (5, 1)))
    model(x[:1])
    steps, losses = GBDTStep(model), []
    for _ in range(20):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        losses.append(loss.item())
        steps.step(lambda: model(x))
    assert min(losses) < 0.7 * y.var()


def test_constant_outputs_without_a_gradient_stay():
    made, x = module(base=None), rows(400)
    made.fit_moved(Moved(x.numpy(), np.zeros((400, 3)), np.ones(400), first=0))
    (made(x) * torch.tensor([1.0, 1.0, 0.0])).sum().backward()
    made.step()
    spread = made(x).detach().std(0)
    assert (spread[:2] > 0.1).all()
    assert spread[2] == 0


def test_steps_that_are_told_the_loss_get_shorter(monkeypatch):
    made, x = module(step=Normalised(0.4, 0.0, decay=0.5)), rows()
    steps, lengths, fit = GBDTStep(made), [], made.fit_moved

    def fit_moved(moved):
        h = made.layer.predict(x.numpy())
        lengths.append((np.sqrt(np.square(moved.target - h).mean(0)) / h.std(0)).mean())
        return fit(moved)

    monkeypatch.setattr(made, "fit_moved", fit_moved)
    for _ in range(34):
        made(x).square().sum().backward()
        steps.step(loss=torch.tensor(1.0, requires_grad=True))
    assert_close(np.array(lengths), [0.4] * 16 + [0.2] * 16 + [0.1] * 2, 1e-9)  # the first loss is a low, no other is
    made(x).square().sum().backward()
    with pytest.raises(ValueError, match=r"loss=nan.*finite"):
        steps.step(loss=np.nan)
    assert len(steps.losses) == 34


def test_steps_lower_a_loss():
    model, _, _ = two_layers()
    x = rows()
    y = torch.tensor(make_targets(x.numpy(), 1))
    steps, adam = GBDTStep(model), torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(12):
        adam.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        adam.step()
        steps.step(lambda: model(x))
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_trees_between_neural_layers_learn_in_a_loop_of_ones_own():
    """Two tree layers among three neural ones, and a loss that no estimator of the package has."""
    torch.manual_seed(0)
    below, between, above = torch.nn.Linear(4, 4), torch.nn.Linear(3, 4), torch.nn.Linear(3, 1)
    trees = [module(3, step_size=0.2), module(3, step_size=0.2)]
    model = torch.nn.Sequential(below, torch.nn.Tanh(), trees[0], between, trees[1], above).double()
    x = rows(300)
    y = torch.tensor(make_targets(x.numpy(), 1))
    steps, adam = GBDTStep(model, n_rows=300), torch.optim.Adam(model.parameters(), lr=0.03)
    start = [layer.weight.detach().clone() for layer in (below, between, above)]
    losses = []
    for _ in range(15):
        adam.zero_grad()
        loss = torch.nn.functional.smooth_l1_loss(model(x), y) + 0.01 * above.weight.abs().sum()
        loss.backward()
        steps.step(lambda: model(x))
        adam.step()
        losses.append(loss.item())
    assert losses[-1] < 0.25 * losses[0]  # with trees that stand it comes to 0.3
    for layer, before in zip((below, between, above), start, strict=True):
        assert (layer.weight - before).abs().max() > 0.01  # the gradient came down through the trees
    assert all(made.n_rows == 300 for made in trees)


def test_one_layer_at_two_places_sees_the_rows_of_both():
    made, x = module(4), rows()
    made(made(x)).sum().backward()
    GBDTStep(made, n_rows=400).step()
    assert made.n_rows == 400


@pytest.mark.parametrize(
    ("loss", "outputs"),
    [("log_loss", 3), ("log_loss", 1), ("squared_error", 1)],
    ids=["softmax", "logistic", "squared"],
)
def test_boost_fits_the_loss_itself(loss, outputs):
    x = rows(300)
    score = make_targets(x.numpy(), 1)[:, 0]
    classes = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3])) if outputs == 3 else (score > np.median(score))
    y = torch.tensor(score if loss == "squared_error" else classes.astype(int))
    made = module(outputs, n_estimators=20, learning_rate=0.3)
    made.boost(loss, y, x=x, sample_weight=np.full(300, 2.0))
    raw = made.eval()(x)
    if loss == "squared_error":
        assert ((raw[:, 0] - y) ** 2).mean() < 0.3 * y.var()
    else:
        hit = raw.argmax(1) == y if outputs == 3 else (raw[:, 0] > 0) == (y == 1)
        assert hit.float().mean() > 0.9


def test_boost_takes_the_gathered_rows():
    x = rows()
    y = make_targets(x.numpy(), 1)
    gathered, given = module(1), module(1)
    (gathered(x) ** 2).mean().backward()
    gathered.boost("squared_error", y)
    given(x)
    given.boost("squared_error", y, x=x)
    np.testing.assert_array_equal(gathered.eval()(x).numpy(), given.eval()(x).numpy())


def test_weights_belong_to_the_fit():
    x = rows()
    weight = np.random.default_rng(0).uniform(0.1, 3.0, 200)
    made = module(2, step=Plain(0.2, 0.0))
    (made(x) ** 2).sum(1).mean().backward()
    h = made.layer.predict(x.numpy())
    made.step(sample_weight=weight)
    expected = fit_layer(
        x.numpy(), h - 0.2 * 2 * h, sample_weight=weight, base="ridge", learning_rate=1 - 0.05**0.25, **SMALL
    )
    assert_close(made.layer.predict(x.numpy()), expected.predict(x.numpy()), 1e-9)


# ---------------------------------------------------------------------------- modes, states, copies


def test_nothing_is_gathered_but_by_a_backward_pass_in_train_mode():
    made, x = fitted(), rows()
    made(x.clone().requires_grad_()).sum().backward()
    assert not made._gathered
    made.train()
    with torch.no_grad():
        made(x)
    made(x)
    assert not made._gathered
    made(x).sum().backward()
    assert made._gathered
    GBDTStep(made).zero_grad()
    assert not made._gathered


@pytest.mark.parametrize("start", ["projection", "noise"])
def test_first_trees_are_fitted_to_the_start(start):
    made, x = module(5, start=start), rows()
    out = made(x)
    assert out.shape == (200, 5)
    assert made.in_features == 4
    A, h = np.column_stack([np.ones(200), x.numpy()]), out.detach().numpy()
    fit = A @ np.linalg.lstsq(A, h, rcond=None)[0]
    share = np.square(fit - fit.mean(0)).sum() / np.square(h - h.mean(0)).sum()
    # a projection is linear in the input, and the base is a ridge regression; noise is not
    assert (share > 0.999) == (start == "projection")


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


def test_threads_change_nothing():
    x = rows()
    one, two = module(), module(n_jobs=2)
    for made in (one, two):
        (made(x) ** 2).mean().backward()
        made.step()
    np.testing.assert_array_equal(two.eval()(x).numpy(), one.eval()(x).numpy())


def test_repr_says_what_there_is():
    assert "in_features=None, out_features=3, backend='lightgbm', n_estimators=4, max_depth=3, no trees yet" in repr(
        module()
    )
    assert "in_features=4" in repr(fitted())
    assert "13 trees" in repr(fitted())  # the base, and four for each output


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"out_features": 0}, "out_features=0"),
        ({"in_features": 1.5}, "in_features=1.5"),
        ({"start": "zero"}, "start='zero'"),
        ({"reduction": "none"}, "reduction='none'"),
        ({"step": "leap"}, "step='leap'"),
        ({"step_size": -1.0}, "step_size=-1.0"),
        ({"basis": "cubic"}, "basis='cubic'"),
        ({"step_size": "big"}, "step_size='big'"),
        ({"momentum": None}, "momentum=None"),
        ({"momentum": 1.0}, "momentum=1.0"),
        ({"step": 3}, "step=3"),
        ({"step": Normalised}, "step=<class"),
        ({"categorical": 3}, "categorical=3"),
        ({"categorical": ("a",)}, "categorical=.'a'"),
        ({"categorical": (1.0,)}, "categorical=.1.0"),
    ],
)
def test_bad_parameters_are_refused_by_name(arguments, says):
    with pytest.raises((TypeError, ValueError), match=says):
        GBDTModule(**({"in_features": 4, "out_features": 2} | arguments))


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (torch.zeros(5, 3), "3 features"),
        (torch.zeros(5), "shape"),
        (torch.zeros(5, 4, dtype=torch.int64), "floating"),
        (torch.full((5, 4), torch.inf), "infinite"),
    ],
)
def test_bad_inputs_are_refused(x, says):
    with pytest.raises(ValueError, match=says):
        fitted()(x)


def test_arrays_are_refused_before_any_fit():
    made = module()
    with pytest.raises(TypeError, match=r"x is a ndarray.*torch\.as_tensor"):
        made(np.zeros((5, 4)))
    assert made.layer is None


def test_the_first_trees_need_rows():
    with pytest.raises(ValueError, match=r"shape \(0, 4\)"):
        module()(rows()[:0])


def test_categories_in_no_column_are_refused_once_the_columns_are_known():
    made = module(categorical=(9,))
    with pytest.raises(ValueError, match="9 is no column, which are 0 to 3"):
        made(rows())
    with pytest.raises(ValueError, match="9 is no column, which are 0 to 3"):
        made.boost("squared_error", np.zeros((200, 3)), x=rows())


def test_fewer_rows_than_at_the_last_fit_are_refused():
    made, x = module(), rows()
    made(x[:50]).sum().backward()  # the first trees may come from a mini-batch
    made(x[50:]).sum().backward()
    made.step()
    made(x[:64]).sum().backward()
    with pytest.raises(ValueError, match=r"64 rows .* fitted to 200"):
        made.step()
    made.forget()
    made(x[:64]).sum().backward()
    made.step()
    assert made.n_rows == 64


def backward(made, *parts):
    for part in parts:
        made(part).sum().backward()


def test_steps_after_each_batch_are_refused():
    """The commonest wrong loop: batches of one size."""
    x = rows()
    made = module()
    backward(made, x[:100])
    made.step()
    backward(made, x[100:])
    with pytest.raises(ValueError, match="not those of the last fit"):
        made.step()
    made = module()
    steps = GBDTStep(made, n_rows=200)
    backward(made, x[:100])
    with pytest.raises(ValueError, match=r"100 rows .* n_rows=200"):
        steps.step()
    backward(made, x[100:])
    steps.step()
    backward(made, x + 1.0)  # as many, and others: that was allowed
    steps.step()
    made = module()
    steps = GBDTStep(made)
    for part in (range(100), range(100, 200)):
        steps.rows(part)
        backward(made, x[list(part)])
        if part.start == 0:
            steps.step()
    with pytest.raises(ValueError, match="100 of the 100 rows"):
        steps.step()


@pytest.mark.parametrize("how", ["step", "layer", "boost"])
def test_steps_above_modules_that_learn_ask_for_the_number_of_rows(how):
    made, x, y = module(), rows(), make_targets(make_X(200))
    model = torch.nn.Sequential(torch.nn.Linear(4, 4).double(), made)
    steps = GBDTStep(model)
    step = {"step": steps.step, "layer": made.step, "boost": lambda: made.boost("squared_error", y)}[how]
    backward(model, x)
    with pytest.raises(ValueError, match=r"mini-batch.* GBDTStep\(model, n_rows=...\)"):
        step()
    GBDTStep(model, n_rows=200)
    GBDTStep(model)  # leaves that number as it is
    step()
    backward(model, x[:64])
    with pytest.raises(ValueError, match="64 rows"):
        made.step()
    made.forget().zero_grad()
    made.expected_rows = None
    steps.rows(range(200))
    backward(model, x)
    step()
    assert made.n_rows == 200


def test_rows_in_another_order_are_refused_unless_announced():
    made, x = module(), rows()
    backward(made, x)
    made.step()
    backward(made, x.flip(0))
    with pytest.raises(ValueError, match="in another order"):
        made.step()


def test_gradients_of_other_passes_are_refused():
    made, x = module(), rows()
    backward(made, x, x)
    with pytest.raises(ValueError, match=r"1 of the forward calls .* the same rows"):
        made.step()
    made.zero_grad()
    backward(made, x)
    made.step()
    torch.nn.Sequential(made).zero_grad()  # does not reach the trees
    backward(made, x[:50], x)
    with pytest.raises(ValueError, match=r"250 rows .* fitted to 200.*GBDTStep.zero_grad\(\)"):
        made.step()


def test_boost_keeps_to_the_rows_of_the_last_fit():
    made, x, y = module(1), rows(), make_targets(make_X(200), 1)
    made.boost("squared_error", y, x=x)
    with pytest.raises(ValueError, match=r"40 rows .* fitted to 200"):
        made.boost("squared_error", y[:40], x=x[:40])
    made.forget().boost("squared_error", y[:40], x=x[:40])
    assert made.n_rows == 40


def test_what_only_asks_for_a_gradient_does_not_train():
    made, x = module(), rows()
    below = torch.nn.Linear(4, 4).double()
    loss = made(below(x)).sum()
    torch.autograd.grad(loss, below.weight, retain_graph=True)
    assert not made._gathered
    loss.backward()
    np.testing.assert_array_equal(made._gathered.join().g, np.full((200, 3), 200.0))


def test_a_fit_that_fails_leaves_all_as_it_was(monkeypatch):
    x, y = rows(), make_targets(make_X(200), 3)
    made = module(momentum=0.8)
    backward(made, x)
    made.step()
    before = copy.deepcopy(made).eval()(x)
    m = made._momentum.m.copy()

    def fails(*given, **how):
        raise KeyboardInterrupt

    for fit in (lambda: made.boost("squared_error", y + 100.0, x=x), made.step):
        backward(made, x)
        with monkeypatch.context() as patched:
            patched.setattr("boostbp.learning.layers.fit", fails)
            with pytest.raises(KeyboardInterrupt):
                fit()
        np.testing.assert_array_equal(copy.deepcopy(made).eval()(x), before)
        np.testing.assert_array_equal(made._momentum.m, m)
        made.zero_grad()


def test_a_step_that_fails_in_one_layer_leaves_all_layers_as_they_were():
    model, first, second = two_layers()
    x, steps = rows(), None
    steps = GBDTStep(model)
    for _ in range(2):
        model(x).square().mean().backward()
        steps.step()
    before = copy.deepcopy(model).eval()(x).detach()
    model(x).square().mean().backward()
    with pytest.raises(ValueError, match="100 rows to a tree layer"):
        steps.step(lambda: model(x[:100]))
    np.testing.assert_array_equal(copy.deepcopy(model).eval()(x).detach(), before)
    twin = copy.deepcopy(first)
    steps.step(lambda: model(x))  # the gradients are there still
    assert not twin._gathered
    assert np.abs(first.layer.predict(x.numpy()) - twin.layer.predict(x.numpy())).max() > 0.01
    assert not second._gathered


def test_seeds_are_those_of_torch_unless_given():
    def outputs(seed, **given):
        torch.manual_seed(seed)
        x = rows()
        return [GBDTModule(4, 3, **(SMALL | {"random_state": None} | given))(x).detach().numpy() for _ in range(2)]

    one, twin = outputs(1)
    assert np.abs(one - twin).max() > 0.01  # branches of a model differ
    np.testing.assert_array_equal(outputs(1), [one, twin])
    assert np.abs(outputs(2)[0] - one).max() > 0.01
    np.testing.assert_array_equal(*outputs(1, random_state=5))


def test_numbers_that_modules_below_lost_are_refused():
    x = rows(400)
    with_missing = torch.where(torch.arange(400)[:, None] % 3 == 0, torch.nan, x)
    scale = torch.ones(1, dtype=torch.float64, requires_grad=True)
    made = module(backend="lightgbm")
    backward(made, x * scale)
    GBDTStep(made, n_rows=400).step()
    with pytest.raises(ValueError, match=r"NaN in all rows of column 0.*below this tree layer"):
        made(x * scale * torch.nan)
    assert made(x * torch.nan).isfinite().all()  # data may be missing
    missing = module()
    backward(missing, torch.cat([x * scale, with_missing], 1))  # features beside a hidden variable
    GBDTStep(missing, n_rows=400).step()
    assert missing(torch.cat([x * scale, with_missing], 1)[:1]).isfinite().all()
    with pytest.raises(ValueError, match="column 0"):
        missing(torch.cat([x * scale * torch.nan, with_missing], 1))


def test_announced_rows_keep_their_momentum_when_others_are_left_out():
    made, x = module(step=Plain(0.1, 0.8)), rows()
    steps, m = GBDTStep(made), np.zeros((200, 3))
    for left_out in (range(10), range(5, 15), range(190, 200)):
        taken = np.setdiff1d(np.arange(200), left_out)
        taken = np.random.default_rng(0).permutation(taken)
        steps.rows(taken)
        (made(x[taken]) ** 2).sum(1).mean().backward()
        g = 2 * made.layer.predict(x.numpy())
        before, m = m, np.zeros((200, 3))
        m[taken] = 0.8 * before[taken] + 0.2 * g[taken]
        steps.step()
        assert_close(made._momentum.m, m[np.sort(taken)], 1e-9)


def test_calls_that_no_step_can_take_do_not_look_at_announcements():
    made, x = module(), rows()
    steps = GBDTStep(made)
    steps.rows(range(200))
    backward(made, x)
    with torch.no_grad():
        assert made(x[:10]).shape == (10, 3)
    assert made.eval()(x[:10]).shape == (10, 3)


def test_rows_of_weight_zero_are_no_rows():
    x, target = rows(300), make_targets(make_X(300), 1)
    weight = (np.arange(300) % 3 > 0).astype(float)
    some, fewer = module(1), module(1)
    some.boost("squared_error", target, x=x, sample_weight=weight)
    fewer.boost("squared_error", target[weight > 0], x=x[weight > 0])
    np.testing.assert_array_equal(some.eval()(x).numpy(), fewer.eval()(x).numpy())
    some, fewer = module(), module()
    some.begin(x, sample_weight=weight)
    fewer.begin(x[weight > 0])
    np.testing.assert_array_equal(some.eval()(x).numpy(), fewer.eval()(x).numpy())


def test_forward_must_bring_the_rows_of_the_step():
    model, _, _ = two_layers()
    x = rows()
    steps, order = GBDTStep(model), np.random.default_rng(0).permutation(200)
    model(x).square().mean().backward()
    with pytest.raises(ValueError, match=r"other rows .* another order"):
        steps.step(lambda: model(x[order]))
    steps.zero_grad()
    model, first, second = two_layers()
    steps = GBDTStep(model)
    steps.rows(order)
    model(x[order]).square().mean().backward()
    steps.step(lambda: model(x))  # rows by ascending number
    np.testing.assert_array_equal(second._refits.bound.table.X, first.layer.predict(x.numpy()))
    model(x[order]).square().mean().backward()  # and the announcement stands

    def announced():
        steps.rows(order[:50])
        model(x[order[:50]])
        steps.rows(order[50:])
        model(x[order[50:]])

    steps.step(announced)
    np.testing.assert_array_equal(second._refits.bound.table.X, first.layer.predict(x.numpy()))


def test_trees_start_from_categories_alone():
    x = torch.tensor(np.random.default_rng(0).integers(0, 4, (300, 3)).astype(float))
    made = module(5, categorical=(0, 1, 2))
    out = made(x).detach().numpy()
    assert (out.std(0) > 0.3).all()


def test_a_step_without_gradients_is_refused():
    made, x = module(), rows()
    made(x)
    with pytest.raises(RuntimeError, match="no gradient"):
        made.step()
    with pytest.raises(RuntimeError, match="no gradient"):
        GBDTStep(made).step()
    with pytest.raises(ValueError, match="no GBDTModule"):
        GBDTStep(torch.nn.Linear(2, 2))


def test_gradients_through_trees_of_the_past_are_refused():
    made, x = module(), rows()
    late = made(x).sum()
    made(x).sum().backward()
    made.step()
    with pytest.raises(RuntimeError, match="between forward and backward"):
        late.backward()


def test_gradients_that_are_not_finite_are_refused():
    made = module()
    (made(rows()) * torch.inf).sum().backward()
    with pytest.raises(ValueError, match="not finite"):
        made.step()


def test_wrong_announcements_are_refused():
    made, x = module(), rows()
    steps = GBDTStep(made)
    with pytest.raises(ValueError, match="whole numbers"):
        steps.rows([0.5])
    steps.rows(range(10))
    with pytest.raises(ValueError, match="10 row numbers"):
        made(x)
    steps.rows(range(200))
    made(x).sum().backward()
    made(x).sum().backward()
    with pytest.raises(ValueError, match="row 0 came twice"):
        steps.step()
    steps.zero_grad()
    made(x).sum().backward()
    steps.rows(None)
    made(x).sum().backward()
    with pytest.raises(ValueError, match="1 of 2 forward calls"):
        steps.step()


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


def test_targets_of_boost_are_checked():
    x = rows()
    for y, says in ((np.zeros(150), "150 rows"), (0.5, "0 rows"), (np.full(200, np.nan), "finite")):
        with pytest.raises(ValueError, match=says):
            module(1).boost("squared_error", y, x=x)
    with pytest.raises(ValueError, match="class numbers"):
        module(3).boost("log_loss", np.full(200, 7), x=x)


@pytest.mark.parametrize(
    ("member", "returned", "says"),
    [
        ("gradient", lambda h, y: (h - y)[:, 0], r"gradient has shape \(200,\), not \(200, 1\), .*gradient\[:, None\]"),
        ("hessian", lambda h, y: -np.ones_like(h), r"hessian is \[-1\.\] in row 0"),
        ("baseline", lambda y, weight: 0.0, r"baseline has shape \(\), not \(1,\)"),
    ],
)
def test_losses_of_boost_are_checked(member, returned, says):
    own = type("Own", (SquaredError,), {member: lambda self, *given: returned(*given)})()
    x, made = rows(), module(1)
    with pytest.raises(ValueError, match=f"^loss='squared_error': its {says}"):
        made.boost(own, make_targets(x.numpy(), 1), x=x)
    assert made.layer is None
    np.testing.assert_array_equal(made.baseline, [0.0])


def test_import_boostbp_does_not_import_torch():
    code = "import sys, boostbp, boostbp.interop.mixtures; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "False"
