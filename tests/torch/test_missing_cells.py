"""NaN is a missing value of data, and an error of what learns."""

from __future__ import annotations

import pytest
from tree_modules import backward, module, rows, torch

from boostbp.torch import GBDTStep

LEARNT = r"x is NaN in 1 rows of column 0, which comes from a module that learns: its weights would become NaN"


def with_a_missing_cell(n=200):
    x = rows(n)
    x[7, 1] = torch.nan
    return x


def learning():
    torch.manual_seed(0)
    return torch.nn.Linear(4, 4).double()


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_missing_cell_below_a_module_that_learns_is_refused(mode):
    made = module()
    made(rows())
    model = torch.nn.Sequential(learning(), getattr(made, mode)())
    with pytest.raises(ValueError, match=LEARNT):
        model(with_a_missing_cell())
    assert model[0].weight.grad is None


def test_it_is_refused_before_the_first_trees_and_where_they_are_given_rows():
    made, x = module(), with_a_missing_cell()
    for call in (made, made.begin, lambda x: made.boost("squared_error", torch.zeros(200, 3), x=x)):
        with pytest.raises(ValueError, match=LEARNT):
            call(learning()(x))
    assert made.layer is None


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_weights_that_became_nan_are_refused(optimizer):
    below, made = learning(), module()
    backward(torch.nn.Sequential(below, made), rows())
    with torch.no_grad():
        below.weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match="NaN in all rows of column 0, which comes from a module that learns"):
        made(below(rows()))


def test_missing_cells_of_data_stay_data():
    x = with_a_missing_cell()
    made = module()
    GBDTStep(made, n_rows=200)
    backward(made, x)
    made.step()
    leaf = x.clone().requires_grad_()  # whose slopes are looked at
    for given in (leaf, leaf * 1.0, leaf[:, :4].to(torch.float32)):
        made(given).sum().backward()
    assert leaf.grad[~torch.isnan(x)].isfinite().all()


def test_data_beside_what_learns_may_be_missing_and_nothing_learns_from_them():
    x, below, made = with_a_missing_cell(), learning(), module()
    filled = torch.nan_to_num(x)
    steps, adam = GBDTStep(made, n_rows=200), torch.optim.Adam(below.parameters(), 1e-2)
    for _ in range(3):
        adam.zero_grad()
        (made(torch.cat([below(filled), x], 1)) ** 2).mean().backward()
        adam.step()
        steps.step()
    assert below.weight.isfinite().all()
    with pytest.raises(ValueError, match="NaN in 1 rows of column 0, which"):
        made(torch.cat([below(x), x], 1))
    with pytest.raises(ValueError, match="NaN in 1 rows of column 4, which"):
        made(torch.cat([x, below(x)], 1))


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_gradients_with_nan_are_refused_before_they_reach_what_is_below(mode):
    below, made = learning(), module()
    made(rows())
    getattr(made, mode)()
    out = made(below(rows()))
    with pytest.raises(ValueError, match="dL/doutput has values that are not finite"):
        (out * torch.tensor([1.0, torch.nan, 1.0])).sum().backward()
    assert below.weight.grad is None
