"""Every backend keeps its duties, and prints nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from leaf_oracles import ORACLES, table, target

from boostbp.backends import available, capabilities_of, check_backend, load_backend
from boostbp.backends.base import TreeParams
from boostbp.backends.conformance import duties_of
from boostbp.trees.sparse import Table

EVERY = pytest.mark.parametrize("name", available())
PURE = pytest.mark.parametrize(
    "name", [name for name in available() if capabilities_of(load_backend(name)).deterministic]
)


def numeric(rows: int = 600, columns: int = 4, seed: int = 0) -> Table:
    return table(np.random.default_rng(seed), rows, numeric=columns)


def gradient(data: Table, columns: int, seed: int = 0) -> np.ndarray:
    return target(np.random.default_rng(seed), data, columns)


@pytest.mark.parametrize(("name", "duty"), [(name, duty) for name in available() for duty in duties_of(name)])
def test_duty_is_kept(name: str, duty: str) -> None:
    duties_of(name)[duty]()


@EVERY
def test_backend_is_checked_whole_and_against_its_own_routing(name: str) -> None:
    check_backend(name, leaf_of=ORACLES.get(name))


@EVERY
def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = numeric(100)
    grad = gradient(data, 1)
    grower = load_backend(name).bind(data, TreeParams())
    grower.grow(grad, np.ones_like(grad))
    with ThreadPoolExecutor(1) as pool:  # another thread than that of the first round, and a round without a split
        pool.submit(grower.grow, grad, np.ones_like(grad)).result()
        pool.submit(grower.grow, 0 * grad, np.ones_like(grad)).result()
    assert capfd.readouterr() == ("", "")
