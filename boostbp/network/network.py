"""Network: fitted layers and the constant that their output starts from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from boostbp.core import INV_SCALE
from boostbp.network.layers import Layer, Trace
from boostbp.runtime.arrays import Floats, errstate_in_methods
from boostbp.trees.compact import rounded, share_structures
from boostbp.trees.flat import Flat
from boostbp.trees.forest import AT_MOST_ROWS
from boostbp.trees.sparse import Matrix, Sparse, Table

OUTPUT_BITS = 11  # of rounded output weights: in a thousand trees an output changes by 1e-4 standard deviations
HIDDEN_BITS = 18  # of rounded hidden layers: more, as small changes of units move rows across splits
ORDINARY_EXPONENT = 500  # up to scales of 2^500, slopes and their sums do not overflow float64


@errstate_in_methods
@dataclass(frozen=True, slots=True, repr=False)
class Network:
    """Fitted layers T_0 .. T_{L-1} and the constant that their output starts from.

    Attributes
    ----------
    layers : tuple of Layer
    baseline : (outputs,) float64
        Added to the output of the last layer.
    skip : bool
        Whether the layers above the first also read h_0, after the hidden units.
    """

    layers: tuple[Layer, ...]
    baseline: Floats
    skip: bool = False
    # The result of `Flat.loop`; None before the first prediction of a few rows, and False without a flat layout.
    _few_rows: Callable[[Floats, Floats], None] | Literal[False] | None = field(default=None, init=False, compare=False)

    def __repr__(self) -> str:
        forests = [layer.forest for layer in self.layers]
        units, trees = [forest.n_outputs for forest in forests], [forest.n_trees for forest in forests]
        n_features = forests[0].n_features if forests else 0
        return f"Network(features={n_features}, outputs of layers={units}, trees of layers={trees}, skip={self.skip})"

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Return the state of copies, without the flat layout."""
        return type(self), (self.layers, self.baseline, self.skip)

    def forward(self, X: Floats, *, n_jobs: int = 1) -> tuple[list[Floats], list[Trace]]:
        """Return all hidden variables ``[h_0, .. h_L]``, each (rows, units), and a trace for each layer."""
        h, traces = [X], []
        for layer in self.layers:
            out, trace = layer.forward(layer_input(h, skip=self.skip), n_jobs=n_jobs)
            h.append(out)
            traces.append(trace)
        h[-1] = h[-1] + self.baseline
        return h, traces

    def predict(self, X: Floats, *, n_jobs: int = 1) -> Floats:
        """Return the raw output h_L, (rows, outputs)."""
        return network_output(self, self.layers[0].forest.checked(X), n_jobs)

    def rounded(self) -> Network:
        """Return the network with output trees of equal structure merged and weights of few bits (`trees.compact`)."""
        *hidden, output = self.layers
        return replace(self, layers=(*hidden, Layer(rounded(share_structures(output.forest), OUTPUT_BITS))))

    def with_short_hidden(self) -> Network:
        """Return the network with rounded hidden layers; see `short_hidden`."""
        *hidden, output = self.layers
        return replace(self, layers=(*[short_hidden(layer) for layer in hidden], output))

    def _hidden_used(self) -> bool:
        """Return whether the output layer reads a hidden unit."""
        forest, units = self.layers[-1].forest, self.layers[-2].forest.n_outputs
        columns = units * forest.basis.columns_per_feature
        return bool((forest.nodes.feature < units).any() or (forest.leaves.column < columns).any())

    def representation(self, X: Floats, layer: int, *, n_jobs: int = 1) -> Floats:
        """Return the hidden variable h_layer, (rows, units), counted from the output if negative; or ValueError."""
        depth = len(self.layers)
        if not -depth - 1 <= layer <= depth:
            raise ValueError(f"layer={layer} does not exist: a network of {depth} layers has h_0 to h_{depth}.")
        layer %= depth + 1
        h = variables(self.layers[:layer], X, skip=self.skip, n_jobs=n_jobs)[-1]
        return h + self.baseline if layer == depth else h

    def output_input(self, X: Floats, *, n_jobs: int = 1) -> Floats:
        """Return the input of the output layer, (rows, its features)."""
        return above(self.layers[:-1], X, skip=self.skip, n_jobs=n_jobs)

    def jacobian(
        self, X: Floats, *, scale: Floats | float = 1.0, unit: Floats | None = None, sort: bool = False, n_jobs: int = 1
    ) -> Floats:
        """Return the Jacobian of the raw output times `scale` in X by the chain rule, (rows, outputs, features).

        With `sort` it is that of the sorted outputs of each row. Derivatives are those with respect to ``X / unit``;
        with unit None, with respect to X. A derivative that overflows is then infinite, but intermediate results do not
        overflow.
        """
        h, traces = self.forward(X, n_jobs=n_jobs)
        safe = self.safe_units() if unit is None else unit
        slopes = chain(traces, skip=self.skip, unit=safe)
        if sort:
            slopes = np.take_along_axis(slopes, h[-1].argsort(axis=1)[..., None], axis=1)
        scaled = slopes * np.reshape(scale, (-1, 1))
        if unit is not None:
            return scaled
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(scaled / safe)

    def safe_units(self) -> Floats:
        """Return units of the features in which slopes do not overflow float64, (features,).

        They are powers of two, and 1 for features of ordinary size. The slope in a column of size 1e-300 may overflow
        before it is multiplied by the scale of a small target, or added to slopes of other trees.
        """
        first = self.layers[0].forest
        largest = np.zeros(first.n_features)
        for layer in self.layers if self.skip else self.layers[:1]:
            leaves, per_feature = layer.forest.leaves, layer.forest.basis.columns_per_feature
            feature = leaves.column // max(per_feature, 1) - (layer.forest.n_features - first.n_features)
            np.maximum.at(largest, feature[feature >= 0], leaves.scaling[feature >= 0, INV_SCALE])
        # A division by a power of two is exact.
        exponent = np.frexp(largest)[1]
        return np.ldexp(1.0, np.where(np.abs(exponent) > ORDINARY_EXPONENT, -exponent, 0))


def network_output(network: Network, X: Matrix, n_threads: int = 1) -> Floats:
    """Return the raw output h_L, (rows, outputs), of an input that is already as `Forest.checked` returns it.

    A few rows are evaluated with the flat layout, which is built on first use. Methods of estimators, which handle
    floating-point errors themselves, call this directly.
    """
    layers, baseline = network.layers, network.baseline
    if len(X) <= AT_MOST_ROWS and network._few_rows is not False and not isinstance(X, Sparse):
        if network._few_rows is None:
            forests = [layer.forest for layer in layers]
            flat = None if any(forest.basis.has_functions for forest in forests) else Flat.of(forests)
            object.__setattr__(network, "_few_rows", flat is not None and flat.loop(baseline, skip=network.skip))
            return network_output(network, X, n_threads)
        out = np.empty((len(X), len(baseline)))
        network._few_rows(X, out)
        return out
    if network.skip and len(layers) > 1 and not network._hidden_used():
        unseen = np.zeros((len(X), layers[-2].forest.n_outputs))
        return layers[-1].forest.predict(layer_input([X, unseen], skip=True), n_threads) + baseline
    h: list[Any] = [X]
    for layer in layers:  # unlike `variables`, this keeps one hidden layer at a time
        h[1:] = [layer.forest.predict(layer_input(h, skip=network.skip), n_threads)]
    return h[-1] + baseline


def variables(layers: Sequence[Layer], X: Floats, *, skip: bool, n_jobs: int = 1) -> list[Floats]:
    """Return the variables ``[h_0, h_1, ..]`` of successive layers, each (rows, units)."""
    h = [X]
    for layer in layers:
        h.append(layer.forest.predict(layer_input(h, skip=skip), n_jobs))
    return h


def above(hidden: Sequence[Layer], X: Floats, *, skip: bool, n_jobs: int = 1) -> Floats:
    """Return the input of a layer above hidden layers, (rows, its features); without hidden layers, X."""
    return layer_input(variables(hidden, X, skip=skip, n_jobs=n_jobs), skip=skip)


def table_above(hidden: Sequence[Layer], table: Table, *, skip: bool, n_jobs: int = 1) -> Table:
    """Return the input table of a layer above hidden layers; categories come after the hidden units."""
    if not hidden:
        return table
    X = above(hidden, table.X, skip=skip, n_jobs=n_jobs)
    units = X.shape[1] - table.X.shape[1]
    return Table(X, tuple(units + j for j in table.categorical) if skip else ())


def short_hidden(layer: Layer) -> Layer:
    """Return a hidden layer with its numbers rounded to few bits.

    The rounding must come before a layer is fitted to its units, as later rounding would move rows across splits. On
    features of few distinct values, units of many rows differ only by 1e-10, an effect of other features that the
    penalty has not quite removed, and trees split between such rows.
    """
    return Layer(rounded(share_structures(layer.forest), HIDDEN_BITS))


def layer_input(h: Sequence[Matrix], *, skip: bool) -> Matrix:
    """Return the input of the next layer: the last hidden variable, with h_0 beside it if `skip`."""
    if not skip or len(h) == 1:
        return h[-1]
    return h[0].behind(h[-1]) if isinstance(h[0], Sparse) else np.hstack([h[-1], h[0]])


def chain(traces: Sequence[Trace], *, skip: bool = False, unit: Floats | None = None) -> Floats:
    """Return the product of the Jacobians of successive layers, (rows, outputs, features), in units of the features."""

    def units_of(trace: Trace) -> Floats | None:
        """Return the units of a layer's input, (its features,), which are 1 for hidden units."""
        if unit is None or not (skip or trace is traces[0]):
            return None
        return np.concatenate([np.ones(trace.forest.n_features - len(unit)), unit])

    # Equation 11 of the paper for the output layer, then one vector-Jacobian product for each output and layer.
    total = traces[-1].jacobian(units_of(traces[-1]))
    direct = np.zeros(())
    for trace in reversed(traces[:-1]):
        # With skip=True the layer above also reads h_0: that part of its Jacobian needs no layer below.
        if skip:
            units = trace.forest.n_outputs
            total, direct = total[..., :units], direct + total[..., units:]
        total = np.stack([trace.vjp(total[:, k], units_of(trace)) for k in range(total.shape[1])], axis=1)
    return total + direct
