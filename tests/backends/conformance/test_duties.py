"""Every backend keeps its duties, and prints nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from leaf_oracles import ORACLES

from boostbp.backends import check_backend, load_backend
from boostbp.backends.base import TreeParams
from tests.backends.conformance.test_backend_trial import EVERY, gradient, numeric


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
