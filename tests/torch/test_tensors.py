"""Forward and backward passes of tree layers in torch models: types, devices, derivatives, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import BASES, plain_forest
from tree_modules import backward, fitted, module, rows, torch

from boostbp.torch import GBDTStep
from boostbp.torch.tensors import as_tensor

TYPES = [torch.float32, torch.float64]


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
        with pytest.raises(RuntimeError, match="second derivatives through a tree layer"):
            slope.square().sum().backward()
    below = torch.nn.Linear(4, 4).double()  # a gradient penalty on what comes to the trees
    h = below(rows(20))
    [slope] = torch.autograd.grad(made(h).sum(), h, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
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


@pytest.mark.filterwarnings("ignore:`torch.jit.trace:DeprecationWarning")  # by torch.jit itself
def test_tracing_is_refused():
    """A trace would give the output of its own rows for all others."""
    with pytest.raises(RuntimeError, match=r"torch\.jit\.trace .* cannot record trees"):
        torch.jit.trace(fitted(), rows(30))


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


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (torch.zeros(5, 3), "3 features"),
        (torch.zeros(5), "shape"),
        (torch.zeros(5, 4, dtype=torch.int64), "floating"),
        (torch.full((5, 4), torch.inf), "infinite"),
        (torch.zeros(5, 4).to_sparse(), r"torch\.sparse_coo.*to_dense"),
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


def test_numbers_that_modules_below_lost_are_refused():
    x = rows(400)
    with_missing = torch.where(torch.arange(400)[:, None] % 3 == 0, torch.nan, x)
    scale = torch.ones(1, dtype=torch.float64, requires_grad=True)
    made = module(backend="lightgbm")
    backward(made, x * scale)
    GBDTStep(made, n_rows=400).step()
    lost = r"NaN in all rows of column 0.*below this tree layer"
    with pytest.raises(ValueError, match=lost):
        made(x * scale * torch.nan)
    with torch.no_grad(), pytest.raises(ValueError, match=lost):
        made(x * scale * torch.nan)
    again = module().eval()
    again.load_state_dict(made.state_dict())
    with torch.no_grad(), pytest.raises(ValueError, match=lost):
        again(x * torch.nan)
    some = torch.where(torch.arange(400)[:, None] == 7, torch.nan, x)
    with pytest.raises(ValueError, match="NaN in 1 rows of column 0"):  # of training rows
        made(some * scale)
    assert again(some).isfinite().all()  # others may come from data that are missing
    assert fitted()(rows() * torch.nan).isfinite().all()
    missing = module()
    backward(missing, torch.cat([x * scale, with_missing], 1))  # features beside a hidden variable
    GBDTStep(missing, n_rows=400).step()
    assert missing(torch.cat([x * scale, with_missing], 1)[:1]).isfinite().all()
    with pytest.raises(ValueError, match="column 0"):
        missing(torch.cat([x * scale * torch.nan, with_missing], 1))
