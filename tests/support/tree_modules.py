"""Small tree layers of torch models that tests share; what imports them is skipped where there is no torch."""

from __future__ import annotations

import copy
from functools import cache

import pytest
from flat_parameters import spec_and_rest
from helpers import BASES, make_targets, make_X

torch = pytest.importorskip("torch", reason="needs torch: pip install 'boostbp[torch]'")

from boostbp.torch import GBDTModule  # noqa: E402

__all__ = ["SMALL", "backward", "fitted", "module", "rows", "torch", "two_layers"]

SMALL = {"n_estimators": 4, "max_depth": 3, "min_samples_leaf": 8, "extra_trees": False, "random_state": 0}


def rows(n=200, dtype=torch.float64, seed=0):
    return torch.tensor(make_X(n, seed=seed), dtype=dtype)


def module(outputs=3, **changes):
    spec, rest = spec_and_rest(SMALL | changes)
    return GBDTModule(None, outputs, spec, **rest)


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


def two_layers():
    torch.manual_seed(0)
    first, second = module(3, step_size=0.3), module(2, step_size=0.3)
    return torch.nn.Sequential(first, second, torch.nn.Linear(2, 1).double()), first, second


def backward(made, *parts):
    for part in parts:
        made(part).sum().backward()
