"""A tree layer of a torch model: its parameters, its first trees, and what it says of itself."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import spec_and_rest
from helpers import BACKENDS, make_targets
from tree_modules import fitted, module, rows, torch

from boostbp.network.steps import Normalised
from boostbp.torch import GBDTModule, GBDTStep
from boostbp.torch.gathered import StepTarget


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
    model = torch.nn.Sequential(*(module(n, backend=backend, base="zero", random_state=n) for n in (5, 1)))
    model(x[:1])
    steps, losses = GBDTStep(model), []
    for _ in range(20):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        losses.append(loss.item())
        steps.step(lambda: model(x))
    assert min(losses) < 0.7 * y.var()


def test_constant_outputs_without_a_gradient_stay():
    made, x = module(base="zero"), rows(400)
    made.fit_moved(StepTarget(x.numpy(), np.zeros((400, 3)), np.ones(400), first=0))
    (made(x) * torch.tensor([1.0, 1.0, 0.0])).sum().backward()
    made.step()
    std = made(x).detach().std(0)
    assert (std[:2] > 0.1).all()
    assert std[2] == 0


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


def test_threads_change_nothing():
    x = rows()
    one, two = module(), module(n_jobs=2)
    for made in (one, two):
        (made(x) ** 2).mean().backward()
        made.step()
    np.testing.assert_array_equal(two.eval()(x).numpy(), one.eval()(x).numpy())


def test_repr_says_what_there_is():
    assert "in_features=None, out_features=3, backend='lightgbm', n_estimators=4, max_depth=3, no trees" in repr(
        module()
    )
    assert "in_features=4" in repr(fitted())
    assert "13 trees" in repr(fitted())  # the base, and four for each output


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
        ({"step": Normalised}, "step=Normalised is a class: .* Normalised()"),
        ({"categorical": 3}, "categorical=3"),
        ({"categorical": ("a",)}, "categorical=.'a'"),
        ({"categorical": (1.0,)}, "categorical=.1.0"),
    ],
)
def test_bad_parameters_are_refused_by_name(arguments, says):
    spec, rest = spec_and_rest({"in_features": 4, "out_features": 2} | arguments)
    with pytest.raises((TypeError, ValueError), match=says):
        GBDTModule(layer=spec, **rest)


def test_the_first_trees_need_rows():
    with pytest.raises(ValueError, match=r"shape \(0, 4\)"):
        module()(rows()[:0])


def test_categories_in_no_column_are_refused_once_the_columns_are_known():
    made = module(categorical=(9,))
    with pytest.raises(ValueError, match="9 is no column, which are 0 to 3"):
        made(rows())
    with pytest.raises(ValueError, match="9 is no column, which are 0 to 3"):
        made.boost("squared_error", np.zeros((200, 3)), x=rows())


def test_seeds_are_those_of_torch_unless_given():
    def outputs(seed, **given):
        torch.manual_seed(seed)
        x = rows()
        return [module(3, **({"random_state": None} | given))(x).detach().numpy() for _ in range(2)]

    one, twin = outputs(1)
    assert np.abs(one - twin).max() > 0.01  # branches of a model differ
    np.testing.assert_array_equal(outputs(1), [one, twin])
    assert np.abs(outputs(2)[0] - one).max() > 0.01
    np.testing.assert_array_equal(*outputs(1, random_state=5))


def test_trees_start_from_categories_alone():
    x = torch.tensor(np.random.default_rng(0).integers(0, 4, (300, 3)).astype(float))
    made = module(5, categorical=(0, 1, 2))
    out = made(x).detach().numpy()
    assert (out.std(0) > 0.3).all()
