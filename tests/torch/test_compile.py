"""torch.compile compiles what stands around trees."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tree_modules import rows

torch = pytest.importorskip("torch")

from boostbp.torch import GBDTModule, GBDTStep  # noqa: E402

# torch's, of its own doing, once in a process
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")

COMPILED_FIRST = """
import sys, torch
from boostbp.torch import GBDTModule
assert "torch._dynamo" not in sys.modules
torch.manual_seed(0)
x = torch.randn(200, 4)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), GBDTModule(4, 3, random_state=0))
out = torch.compile(model, backend="eager")(x)
assert torch.equal(out, model(x))
"""


def trained(compiled, *, upward=False):
    """A model after some steps, its losses, and its predictions."""
    torch.manual_seed(0)
    x = rows().float()
    y = torch.sin(x[:, :1])
    trees = GBDTModule(4, 6, {"n_estimators": 10}, random_state=0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), trees, torch.nn.Tanh(), torch.nn.Linear(6, 1))
    run = torch.compile(model, backend="aot_eager") if compiled else model
    steps, adam = GBDTStep(model, n_rows=200), torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(5):
        adam.zero_grad()
        loss = torch.nn.functional.mse_loss(run(x), y)
        loss.backward()
        adam.step()
        steps.step((lambda: run(x)) if upward else None, loss=loss)
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        return losses, run(x)


@pytest.mark.slow
@pytest.mark.parametrize("upward", [False, True])
def test_a_compiled_model_trains_as_it_is(upward):
    losses, expected = trained(compiled=False, upward=upward)
    compiled_losses, out = trained(compiled=True, upward=upward)
    assert losses[-1] < losses[0]
    assert compiled_losses == pytest.approx(losses, rel=1e-6)
    torch.testing.assert_close(out, expected)


def test_a_compiled_layer_and_its_gradient_are_its_own():
    x = rows().requires_grad_()
    layer = GBDTModule(4, 3, {"n_estimators": 5}, random_state=0)
    layer(x)
    layer.eval()
    compiled = torch.compile(layer, backend="eager")
    torch.testing.assert_close(compiled(x), layer(x))
    slopes = [torch.autograd.grad(run(x).square().sum(), x)[0] for run in (compiled, layer)]
    torch.testing.assert_close(*slopes)
    assert slopes[0].abs().max() > 0


@pytest.mark.slow
def test_it_may_be_compiled_before_anything_else():
    done = subprocess.run([sys.executable, "-c", COMPILED_FIRST], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
