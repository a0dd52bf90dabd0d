"""Losses whose value of a row depends on other rows, and on differences of raw outputs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from boostbp.losses.base import LinkName
from boostbp.losses.log_link import _Likelihood
from boostbp.runtime.arrays import Floats


class JointLoss(_Likelihood):
    """Members of such a loss. What `prepare` returns knows the rows, and has a formula of its own."""

    __slots__ = ()
    link_name: ClassVar[LinkName] = "identity"
    prepare: Callable[[Floats, Floats], JointLoss]

    def _formula(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        return self.prepare(y, np.ones(len(y)))._formula(h, y)

    def link(self, h: Floats) -> Floats:
        """Return the raw output itself."""
        return h

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return 0, as a constant does not change the loss."""
        return np.zeros(1)
