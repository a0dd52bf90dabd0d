"""Steps of tree layers in torch models: where outputs move, what is fitted again, and what a failure leaves."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import layer_of
from helpers import assert_close, make_targets, make_X
from tree_modules import SMALL, backward, module, rows, torch, two_layers

from boostbp.network.steps import Normalised, Plain
from boostbp.torch import GBDTStep


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
        expected = layer_of(x.numpy(), moved, learning_rate=1 - 0.05**0.25, **SMALL)
        assert_close(made.layer.predict(x.numpy()), expected.predict(x.numpy()), 1e-9)


def test_bins_are_kept_while_the_input_stays():
    made, x = module(), rows()
    made(x).sum().backward()
    made.step()
    kept = made._bound
    made(x).sum().backward()
    made.step()
    assert made._bound is kept
    made.settings = replace(made.settings, n_estimators=6)
    made(x).sum().backward()
    made.step()
    assert made.layer.forest.n_trees == 1 + 3 * 6
    kept = made._bound
    made.expected_rows = 200  # of which others may come
    made(x + 1.0).sum().backward()
    made.step()
    assert made._bound is not kept


@pytest.mark.parametrize("upward", [True, False], ids=["upward", "downward"])
def test_second_layer_is_fitted_on_the_new_or_the_old_output_of_the_first(upward):
    model, first, second = two_layers()
    x = rows()
    model(x).square().mean().backward()
    old = first.layer.predict(x.numpy())
    GBDTStep(model).step((lambda: model(x)) if upward else None)
    new = first.layer.predict(x.numpy())
    assert np.abs(new - old).max() > 0.01
    np.testing.assert_array_equal(second._bound.table.X, new if upward else old)


def test_steps_that_are_told_the_loss_get_shorter():
    made, x = module(step=Normalised(0.4, 0.0, decay=0.5)), rows()
    steps, lengths, fit = GBDTStep(made), [], made.fit_moved

    def fit_moved(moved):
        h = made.layer.predict(x.numpy())
        lengths.append((np.sqrt(np.square(moved.target - h).mean(0)) / h.std(0)).mean())
        return fit(moved)

    made.fit_moved = fit_moved
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


def test_weights_belong_to_the_fit():
    x = rows()
    weight = np.random.default_rng(0).uniform(0.1, 3.0, 200)
    made = module(2, step=Plain(0.2, 0.0))
    (made(x) ** 2).sum(1).mean().backward()
    h = made.layer.predict(x.numpy())
    made.step(sample_weight=weight)
    expected = layer_of(x.numpy(), h - 0.2 * 2 * h, learning_rate=1 - 0.05**0.25, sample_weight=weight, **SMALL)
    assert_close(made.layer.predict(x.numpy()), expected.predict(x.numpy()), 1e-9)


def test_a_fit_that_fails_leaves_all_as_it_was():
    x, y = rows(), make_targets(make_X(200), 3)
    made = module(momentum=0.8)
    backward(made, x)
    made.step()
    before = copy.deepcopy(made).eval()(x)
    m = made._momentum.m.copy()
    works = made.settings
    fails = replace(works, leaves="native", growth=replace(works.growth, multi_output=True))
    for fit in (lambda: made.boost("squared_error", y + 100.0, x=x), made.step):
        backward(made, x)
        made.settings = fails
        with pytest.raises(ValueError, match="leaves='native' is not supported with one tree for all outputs"):
            fit()
        made.settings = works
        np.testing.assert_array_equal(copy.deepcopy(made).eval()(x), before)
        np.testing.assert_array_equal(made._momentum.m, m)
        made.zero_grad()


def test_a_step_that_fails_draws_nothing():
    """Random thresholds come from a generator of each layer."""

    def trained(fails):
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(module(n, extra_trees=True, base="zero") for n in (3, 2)))
        x, steps = rows(), GBDTStep(model)
        model(x).square().mean().backward()
        if fails:
            with pytest.raises(ValueError, match="100 rows where the step has"):
                steps.step(lambda: model(x[:100]))
        steps.step(lambda: model(x))
        return model.eval()(x).numpy()

    np.testing.assert_array_equal(trained(True), trained(False))


def test_dropout_below_trees_is_told_from_other_rows():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Dropout(0.2), module(), module(2))
    x, steps = rows(), GBDTStep(model, n_rows=200)
    model(x).square().mean().backward()
    with pytest.raises(ValueError, match=r"as dropout does, call step\(\) without forward"):
        steps.step(lambda: model(x))
    steps.step()


def test_a_step_that_fails_in_one_layer_leaves_all_layers_as_they_were():
    model, first, second = two_layers()
    x, steps = rows(), None
    steps = GBDTStep(model)
    for _ in range(2):
        model(x).square().mean().backward()
        steps.step()
    before = copy.deepcopy(model).eval()(x).detach()
    model(x).square().mean().backward()
    with pytest.raises(ValueError, match="100 rows where the step has"):
        steps.step(lambda: model(x[:100]))
    np.testing.assert_array_equal(copy.deepcopy(model).eval()(x).detach(), before)
    twin = copy.deepcopy(first)
    steps.step(lambda: model(x))  # the gradients are there still
    assert not twin._gathered
    assert np.abs(first.layer.predict(x.numpy()) - twin.layer.predict(x.numpy())).max() > 0.01
    assert not second._gathered


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
    np.testing.assert_array_equal(second._bound.table.X, first.layer.predict(x.numpy()))
    model(x[order]).square().mean().backward()  # and the announcement stands

    def announced():
        steps.rows(order[:50])
        model(x[order[:50]])
        steps.rows(order[50:])
        model(x[order[50:]])

    steps.step(announced)
    np.testing.assert_array_equal(second._bound.table.X, first.layer.predict(x.numpy()))


def test_a_step_without_gradients_is_refused():
    made, x = module(), rows()
    made(x)
    with pytest.raises(RuntimeError, match="no gradient"):
        made.step()
    with pytest.raises(RuntimeError, match="no gradient"):
        GBDTStep(made).step()
    with pytest.raises(ValueError, match="no GBDTModule"):
        GBDTStep(torch.nn.Linear(2, 2))


def test_gradients_that_are_not_finite_are_refused():
    made = module()
    (made(rows()) * torch.inf).sum().backward()
    with pytest.raises(ValueError, match="not finite"):
        made.step()
