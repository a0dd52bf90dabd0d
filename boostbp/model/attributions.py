"""Attributions: the contribution of each feature to the output of each row, through all layers.

**Integrated gradients** (Sundararajan, Taly and Yan 2017) sum the gradient along the straight line from a baseline to
the row. On that line, a network of trees also jumps at splits, which the gradient misses. Here the line is divided into
steps, and the change of each step is divided among the features exactly, layer by layer:

- In a layer, a tree in which the row stays in its leaf changes by its leaf regression. This is a sum of functions of
  single input columns, and each column gets the change of its function. A change between leaves, the *jump*, goes to
  the column of the split that separates them.
- Through the layers, changes of leaf regressions follow the chain rule, with the slope of the step. A jump at a hidden
  unit is divided among the features that moved the unit in its direction, in proportion to their contributions.
- Categories, and values that are missing in only one of row and baseline, switch halfway.

- Outputs that are sorted in each row, as several quantiles are, move in a straight line within a step. Each place gets
  the changes of the outputs that hold it, in proportion to the time for which they do.

So the attributions of a row sum to ``f(row) - f(baseline)`` up to rounding, for any number of steps. More steps follow
the line more closely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import require

ROOM = 1 << 22  # limit on the numbers of an array: 32 MB. Arbitrary
MIN_MOVE = 1e-9  # a unit that moves by a smaller share of its size has no slope, which rounding errors would dominate


@dataclass(frozen=True, slots=True)
class Attributions:
    """The contribution of each feature to the output of each row.

    Attributes
    ----------
    values : (rows, outputs, features) float64
    base_values : (rows, outputs) float64
        Output of the baseline.
    outputs : (rows, outputs) float64
        Output of the rows.
    feature_names, output_names : tuple of str
    """

    values: Floats
    base_values: Floats
    outputs: Floats
    feature_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()

    def in_units(
        self, scale: Floats, offset: Floats, feature_names: Sequence[str], output_names: Sequence[str]
    ) -> Attributions:
        """Return the attributions of ``output * scale + offset``, with names."""
        base, outputs = self.base_values * scale + offset, self.outputs * scale + offset
        return Attributions(self.values * scale[:, None], base, outputs, tuple(feature_names), tuple(output_names))

    def __repr__(self) -> str:
        rows, outputs, features = self.values.shape
        return f"Attributions({rows} rows, {outputs} outputs, {features} features, error={self.error:.1e})"

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each row and output; extra ``frames``.

        Returns
        -------
        pandas.DataFrame, (rows * outputs, features + 1)
            By row and name of the output: a column for each feature, and ``base value``. They sum to the output.
        """
        pandas = require("pandas", extra="frames", what="attributions(...).to_frame()")
        table = np.concatenate([self.values, self.base_values[..., None]], axis=2)
        index = pandas.MultiIndex.from_product([range(len(table)), self.output_names], names=["row", "output"])
        columns = [*self.feature_names, "base value"]
        return pandas.DataFrame(table.reshape(-1, table.shape[2]), index=index, columns=columns)

    @property
    def error(self) -> float:
        """The largest distance between an output and its base value plus attributions."""
        return float(np.abs(self.base_values + self.values.sum(axis=2) - self.outputs).max(initial=0.0))


def attribute(
    network: Network,
    X: Floats,
    baseline: Floats,
    *,
    categorical: Sequence[int] = (),
    method: str = "integrated_gradients",
    steps: int = 32,
    sort: bool = False,
    n_threads: int = 1,
) -> Attributions:
    """Attribute the raw output of each row, (rows, features), to the features; with `sort`, the sorted outputs.

    The `baseline` is (rows or 1, features), and `categorical` columns hold codes. The method ``"gradient_x_input"`` is
    the Jacobian times ``X - baseline``. It is fast, but uses only the slope at the row.
    """
    baseline = np.ascontiguousarray(np.broadcast_to(baseline, X.shape))
    switching = np.isnan(X) != np.isnan(baseline)
    switching[:, list(categorical)] = True
    # Size of the largest array for a row: changes of a layer's outputs by its columns, or by features.
    widest = max(layer.forest.n_outputs * max(layer.forest.n_features, X.shape[1]) for layer in network.layers)
    size = max(1, ROOM // widest)
    values = []
    for first in range(0, len(X), size):
        rows = slice(first, first + size)
        if method == "gradient_x_input":
            move = np.where(switching[rows] | np.isnan(X[rows]), 0.0, X[rows] - baseline[rows])
            # Slopes are per `unit`, as those per 1 may overflow for features with tiny values.
            unit = np.abs(move).max(axis=0)
            unit = np.where(unit > 0.0, unit, 1.0)
            values.append(network.jacobian(X[rows], unit=unit, sort=sort, n_jobs=n_threads) * (move / unit)[:, None])
        else:
            values.append(_along(network, X[rows], baseline[rows], switching[rows], steps, sort, n_threads))
    base, outputs = [network.predict(rows_of, n_jobs=n_threads) for rows_of in (baseline, X)]
    if sort:
        base, outputs = np.sort(base, axis=1), np.sort(outputs, axis=1)
    return Attributions(np.concatenate(values), base, outputs)


def _along(
    network: Network, X: Floats, baseline: Floats, switching: NDArray[np.bool_], steps: int, sort: bool, n_threads: int
) -> Floats:
    """Return the sum of the changes of all steps from the baseline to the rows, (rows, outputs, features)."""
    total = np.zeros((len(X), len(network.baseline), X.shape[1]))
    h, before = network.forward(baseline, n_jobs=n_threads)
    for step in range(1, steps + 1):
        t = step / steps
        still = switching | (baseline == X)  # avoids rounding errors in features that do not move
        point = np.where(still, X if t > 0.5 else baseline, (1.0 - t) * baseline + t * X)  # `still` switches halfway
        h_next, traces = network.forward(point, n_jobs=n_threads)
        shares: Floats | None = None
        for a, b in zip(before, traces, strict=True):
            # The layer's change from a to b by its own columns, (rows, outputs, columns): within leaf regressions, and
            # between leaves.
            smooth, jump = b.forest.changes(a.X, b.X, a.leaf, b.leaf, n_threads)
            shares = smooth + jump if shares is None else _through(a.X, b.X, smooth, jump, shares)
        assert shares is not None
        total += _by_place(h[-1], h_next[-1], shares) if sort else shares
        h, before = h_next, traces
    return total


def _by_place(a: Floats, b: Floats, shares: Floats) -> Floats:
    """Return the changes of the sorted outputs by features, from those of the outputs, (rows, outputs, features).

    The outputs, (rows, outputs), move from `a` to `b` in a straight line, on which some of them cross.
    """
    left, right = np.triu_indices(a.shape[1], 1)
    before, after = (h[:, left] - h[:, right] for h in (a, b))
    # (rows, pairs) ascending: the time between 0 and 1 at which two outputs cross; 1 if they do not
    times = np.sort(np.divide(before, before - after, out=np.ones_like(before), where=before * after < 0), axis=1)
    times = times[:, : (times < 1).any(axis=0).sum()]
    total = np.zeros_like(shares)
    for start, end in pairwise([np.zeros(len(a)), *times.T, np.ones(len(a))]):
        order = (a + ((start + end) / 2)[:, None] * (b - a)).argsort(axis=1)
        total += (end - start)[:, None, None] * np.take_along_axis(shares, order[..., None], axis=1)
    return total


def _through(A: Floats, B: Floats, smooth: Floats, jump: Floats, shares: Floats) -> Floats:
    """Return the changes of a layer's output by features, (rows, outputs, features), from those by its input columns.

    `A` and `B` are its input before and after, (rows, columns): hidden units, then the features if the layer reads
    them. `smooth` and `jump` are (rows, outputs, columns), and `shares` the changes of the hidden units by
    features, (rows, units, features).
    """
    units = shares.shape[1]
    move = B[:, :units] - A[:, :units]
    moving = np.abs(move) > MIN_MOVE * np.maximum(np.abs(A[:, :units]), np.abs(B[:, :units]))
    # Chain rule for units that move: change of the output per change of the unit, times its changes by features.
    slope = np.where(moving[:, None], smooth[..., :units], 0.0) / np.where(moving, move, 1.0)[:, None]
    # Jumps, and changes through units that hardly moved, have no slope, and are divided by `_pushes`.
    rest = jump[..., :units] + np.where(moving[:, None], 0.0, smooth[..., :units])
    direct = (smooth + jump)[..., units:] if A.shape[1] > units else 0.0
    return slope @ shares + rest @ _pushes(shares, move) + direct


def _pushes(shares: Floats, move: Floats) -> Floats:
    """Return the share of each feature in the move of each unit, (rows, units, features): at least 0, sum 1."""
    push = np.maximum(shares * np.sign(move)[..., None], 0.0)
    total = push.sum(axis=2, keepdims=True)
    return np.divide(push, total, out=np.zeros_like(push), where=total > 0)
