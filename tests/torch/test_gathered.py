"""The one rule for batches: a step takes the rows that got a gradient, and those are all rows."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from helpers import assert_close, make_targets, make_X
from tree_modules import backward, fitted, module, rows, torch

from boostbp.network.steps import Plain
from boostbp.torch import GBDTStep


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


def test_one_layer_at_two_places_sees_the_rows_of_both():
    made, x = module(4), rows()
    made(made(x)).sum().backward()
    GBDTStep(made, n_rows=400).step()
    assert made.n_rows == 400


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


@pytest.mark.parametrize("how", [lambda made: made, copy.deepcopy], ids=["original", "copy"])
def test_the_same_rows_in_another_order_are_refused_whatever_the_number(how):
    """A loop over a shuffling loader, whose momentum would go to other rows in each epoch."""
    made, x = module(), rows()
    GBDTStep(made, n_rows=200)
    backward(made, x[:100], x[100:])
    made.step()
    made = how(made)
    order = np.random.default_rng(0).permutation(200)
    backward(made, x[order[:100]], x[order[100:]])
    with pytest.raises(ValueError, match=r"in another order.* GBDTStep\.rows"):
        made.step()
    made.zero_grad()
    backward(made, x + 0.01)  # other numbers, as by augmentation
    made.step()


def drawn(seed, n=200):
    return np.random.default_rng(seed).integers(0, n, n)


@pytest.mark.parametrize("first", [range(200), drawn(0)], ids=["all", "drawn"])
def test_rows_that_come_twice_while_others_never_do_are_refused_though_their_number_is_right(first):
    """A loader that draws with replacement."""
    made, x = module(), rows()
    GBDTStep(made, n_rows=200)
    backward(made, x[list(first)])
    made.step()
    batches = torch.tensor(drawn(1)).split(50)
    backward(made, *[x[batch] for batch in batches])
    with pytest.raises(ValueError, match=r"rows came more often than at the last fit.*draws with replacement"):
        made.step()


def test_rows_of_a_table_with_repeats_and_rows_that_change_may_come():
    x = torch.tensor(np.random.default_rng(0).integers(0, 2, (200, 4)), dtype=torch.float64)
    made = module()
    steps = GBDTStep(made, n_rows=200)
    for _ in range(2):  # 16 rows, each of them many times
        backward(made, x)
        made.step()
    x = rows()
    for seed in range(3):  # some of them, by noise
        some = torch.tensor(np.random.default_rng(seed).random((200, 1)) < 0.4)
        backward(made, torch.where(some, x + 0.01 * seed, x))
        made.step()
    steps.rows(drawn(0))
    backward(made, x[drawn(0)])
    with pytest.raises(ValueError, match="came twice since the last step"):
        made.step()


def test_copies_know_their_rows():
    made, x = module(), rows()
    backward(made, x)
    made.step()
    twin = copy.deepcopy(made)
    backward(twin, rows(seed=1))
    with pytest.raises(ValueError, match="not those of the last fit"):
        twin.step()


def test_another_number_of_rows_is_told_by_a_new_step():
    made, x = module(), rows()
    GBDTStep(made, n_rows=200)
    backward(made, x)
    made.step()
    backward(made, x[:100])
    with pytest.raises(ValueError, match=r"a new GBDTStep\(model, n_rows=...\)"):
        made.step()
    GBDTStep(made, n_rows=100).step()
    assert made.n_rows == 100


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


def test_what_only_asks_for_a_gradient_does_not_train():
    made, x = module(), rows()
    below = torch.nn.Linear(4, 4).double()
    loss = made(below(x)).sum()
    torch.autograd.grad(loss, below.weight, retain_graph=True)
    assert not made._gathered
    loss.backward()
    np.testing.assert_array_equal(made._gathered.join().g, np.full((200, 3), 200.0))


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


def test_gradients_through_trees_of_the_past_are_refused():
    made, x = module(), rows()
    late = made(x).sum()
    made(x).sum().backward()
    made.step()
    with pytest.raises(RuntimeError, match="between forward and backward"):
        late.backward()


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
