"""Refit: output layers of a chosen model grown again, by as many rounds, on all rows; those that chose it included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Table
from boostbp.ensemble import output_layers
from boostbp.ensemble.options import Option
from boostbp.ensemble.pool import Pool
from boostbp.network.monitor import EvalSet
from boostbp.network.network import Network, output_table
from boostbp.trees.sparse import vstack

__all__ = ["Refit", "joined"]

Floats = NDArray[np.float64]


def joined(table: Table, y: Floats, weight: Floats, held: EvalSet, target: Floats) -> tuple[Table, Floats, Floats]:
    """Training rows and held-out rows that count together; `target` is that of the latter, as the loss takes it."""
    counts = held.weight > 0
    every = Table(vstack(table.X, held.X[counts]), table.categorical)
    return every, np.concatenate([y, target[counts]]), np.concatenate([weight, held.weight[counts]])


@dataclass(frozen=True, slots=True)
class Refit:
    """All rows, and how output layers are grown on them.

    Attributes
    ----------
    pool : Pool
    table : Table
        The rows of the pool, and those it held out.
    y : (rows, outputs), weight : (rows,) float64
    over : callable
        ``over() -> bool``: whether time is up.
    """

    pool: Pool
    table: Table
    y: Floats
    weight: Floats
    over: Callable[[], bool] = bool

    @classmethod
    def of(cls, pool: Pool, target: Floats, over: Callable[[], bool] = bool) -> Refit:
        """All rows of a pool; `target` is that of the held-out ones, as the loss takes it."""
        return cls(pool, *joined(pool.table, pool.y, pool.weight, pool.held, target), over)

    def __call__(self, option: Option) -> Network:
        """The network of an option with its output layer grown on all rows; as it is if that cannot be, or not now."""
        network, head, pool = option.network, option.head, self.pool
        if head is None:
            return network
        table = output_table(network, self.table, n_jobs=pool.settings.n_threads)
        try:
            layer = output_layers.again(pool.rows(table, self.y, self.weight), head, over=self.over)
        except FloatingPointError:
            return network
        return network if layer is None else replace(network, layers=(*network.layers[:-1], layer))
