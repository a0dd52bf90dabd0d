"""Network: a tuple of fitted layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from boostbp.backends.base import Table
from boostbp.layers import Layer, Trace
from boostbp.layers.layer import layer_matrix
from boostbp.runtime.arrays import Floats, errstate_in_methods
from boostbp.trees.flat import Flat
from boostbp.trees.forest import FEW_ROWS
from boostbp.trees.kernels.records import INV_SCALE
from boostbp.trees.merging import joined
from boostbp.trees.rounding import rounded
from boostbp.trees.sparse import Sparse, hstack

OUTPUT_BITS = 11  # of rounded weights: of a thousand trees, they move an output by 1e-4 of its standard deviation
HIDDEN_BITS = 18  # by hidden units, rows fall to one side of a split or the other
ORDINARY_EXPONENT = 500  # up to scales of 2^500, slopes and sums of them are far from the ends of float64


@errstate_in_methods
@dataclass(frozen=True, slots=True, repr=False)
class Network:
    """Layers T_0 .. T_{L-1} and the constant that their output starts from.

    Attributes
    ----------
    layers : tuple of Layer
    baseline : (outputs,) float64
        Added to the output of the last layer.
    skip : bool
        Whether the layers above the first see h_0 beside the layer below them.
    """

    layers: tuple[Layer, ...]
    baseline: Floats
    skip: bool = False
    # what `Flat.loop` gives; None before the first few rows, and False if there is no flat layout
    _few_rows: Callable[[Floats, Floats], None] | Literal[False] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __repr__(self) -> str:
        forests = [layer.forest for layer in self.layers]
        units = [forest.n_outputs for forest in forests]
        trees = [forest.n_trees for forest in forests]
        n_features = forests[0].n_features if forests else 0
        return f"Network(features={n_features}, outputs of layers={units}, trees of layers={trees}, skip={self.skip})"

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """What copies hold: not the flat layout."""
        return type(self), (self.layers, self.baseline, self.skip)

    def forward(self, X: Floats, *, n_jobs: int = 1) -> tuple[list[Floats], list[Trace]]:
        """All hidden variables ``[h_0, .. h_L]``, each (rows, units), and a trace for each layer."""
        h, traces = [X], []
        for layer in self.layers:
            out, trace = layer.forward(layer_input(h, skip=self.skip), n_jobs=n_jobs)
            h.append(out)
            traces.append(trace)
        h[-1] = h[-1] + self.baseline
        return h, traces

    def predict(self, X: Floats, *, n_jobs: int = 1) -> Floats:
        """Raw output h_L, (rows, outputs), without traces."""
        few = self.of_few_rows(X)
        if few is not None:
            return few
        if self.skip and len(self.layers) > 1 and not self._hidden_used():
            unseen = np.zeros((len(X), self.layers[-2].forest.n_outputs))
            return self.layers[-1].predict(hstack(unseen, X), n_jobs=n_jobs) + self.baseline
        return variables(self.layers, X, skip=self.skip, n_jobs=n_jobs)[-1] + self.baseline

    def of_few_rows(self, X: Floats) -> Floats | None:
        """Return the raw output of a few rows by the flat layout, which is made for the first of them; None of others.

        The methods of estimators call it, as they care for floating-point errors themselves.
        """
        if len(X) > FEW_ROWS or isinstance(X, Sparse) or self._few_rows is False:
            return None
        if X.shape[1:] != (self.layers[0].forest.n_features,) or X.dtype != np.float64:
            return None
        if self._few_rows is None:
            forests = [layer.forest for layer in self.layers]
            flat = None if any(forest.basis.has_functions for forest in forests) else Flat.of(forests)
            loop = False if flat is None else flat.loop(self.baseline, skip=self.skip)
            object.__setattr__(self, "_few_rows", loop)
            return self.of_few_rows(X)
        out = np.empty((len(X), len(self.baseline)))
        self._few_rows(X, out)
        return out

    def rounded(self) -> Network:
        """The network with like output trees joined, in numbers of few bits; see `boostbp.trees.merging`, ``rounding``.

        Hidden layers stay as they are: see `short_hidden`.
        """
        *hidden, output = self.layers
        return replace(self, layers=(*hidden, Layer(rounded(joined(output.forest), OUTPUT_BITS))))

    def with_short_hidden(self) -> Network:
        """The network with hidden layers in numbers of few bits."""
        *hidden, output = self.layers
        return replace(self, layers=(*map(short_hidden, hidden), output))

    def _hidden_used(self) -> bool:
        """Whether the output layer reads a hidden unit at all."""
        forest, units = self.layers[-1].forest, self.layers[-2].forest.n_outputs
        columns = units * forest.basis.columns_per_feature
        return bool((forest.nodes.feature < units).any() or (forest.leaves.column < columns).any())

    def representation(self, X: Floats, layer: int, *, n_jobs: int = 1) -> Floats:
        """Hidden variable h_layer, (rows, units); negative numbers count from the output."""
        depth = len(self.layers)
        if not -depth - 1 <= layer <= depth:
            raise ValueError(f"layer={layer} does not exist: a network of {depth} layers has h_0 to h_{depth}.")
        layer %= depth + 1
        h = variables(self.layers[:layer], X, skip=self.skip, n_jobs=n_jobs)[-1]
        return h + self.baseline if layer == depth else h

    def hidden(self, X: Floats, *, n_jobs: int = 1) -> list[Floats]:
        """Hidden variables h_1 .. h_{L-1}, each (rows, units), without traces."""
        return variables(self.layers[:-1], X, skip=self.skip, n_jobs=n_jobs)[1:]

    def output_input(self, X: Floats, *, n_jobs: int = 1) -> Floats:
        """What the output layer sees, (rows, its features)."""
        return above(self.layers[:-1], X, skip=self.skip, n_jobs=n_jobs)

    def jacobian(
        self, X: Floats, *, scale: Floats | float = 1.0, unit: Floats | None = None, n_jobs: int = 1
    ) -> Floats:
        """Jacobian of the raw output in the input, (rows, outputs, features), by the chain rule.

        Parameters
        ----------
        scale : (outputs,) float64 or float
            What outputs are multiplied by.
        unit : (features,) float64 or None
            Derivatives in ``X / unit``; None: in X, infinite where float64 ends, but not on the way.
        """
        _, traces = self.forward(X, n_jobs=n_jobs)
        safe = self.safe_units() if unit is None else unit
        scaled = chain(traces, skip=self.skip, unit=safe) * np.reshape(scale, (-1, 1))
        if unit is not None:
            return scaled
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(scaled / safe)

    def safe_units(self) -> Floats:
        """Return powers of two, (features,), in which slopes are far from the ends of float64; 1 where they are anyway.

        In a column of size 1e-300 a slope may be beyond float64 before it is multiplied by the scale of a small target,
        or added to those of other trees.
        """
        first = self.layers[0].forest
        largest = np.zeros(first.n_features)
        for layer in self.layers if self.skip else self.layers[:1]:
            leaves, per_feature = layer.forest.leaves, layer.forest.basis.columns_per_feature
            feature = leaves.column // max(per_feature, 1) - (layer.forest.n_features - first.n_features)
            np.maximum.at(largest, feature[feature >= 0], leaves.scaling[feature >= 0, INV_SCALE])
        exponent = np.frexp(largest)[1]
        return np.ldexp(1.0, np.where(np.abs(exponent) > ORDINARY_EXPONENT, -exponent, 0))


def variables(layers: Sequence[Layer], X: Floats, *, skip: bool, n_jobs: int = 1) -> list[Floats]:
    """Variables ``[h_0, h_1, ..]`` of layers that stand on one another, each (rows, units)."""
    h = [X]
    for layer in layers:
        h.append(layer.forest.predict(layer_matrix(layer.forest, layer_input(h, skip=skip)), n_jobs))
    return h


def above(hidden: Sequence[Layer], X: Floats, *, skip: bool, n_jobs: int = 1) -> Floats:
    """What a layer above hidden layers sees, (rows, its features): the features themselves if there are none."""
    return layer_input(variables(hidden, X, skip=skip, n_jobs=n_jobs), skip=skip)


def table_above(hidden: Sequence[Layer], table: Table, *, skip: bool, n_jobs: int = 1) -> Table:
    """What a layer above hidden layers sees of a table; categories that it sees stand behind the hidden units."""
    X = above(hidden, table.X, skip=skip, n_jobs=n_jobs)
    units, sees_features = X.shape[1] - table.X.shape[1], skip or not hidden
    return Table(X, tuple(units + j for j in table.categorical) if sees_features else ())


def short_hidden(layer: Layer) -> Layer:
    """Return a hidden layer in numbers of few bits, before anything is fitted to its units.

    Rounded later, it would move rows across splits: of few distinct values in the features come units with many rows on
    one number but for 1e-10, which a penalty left of another feature, and trees split between them.
    """
    return Layer(rounded(joined(layer.forest), HIDDEN_BITS))


def layer_input(h: Sequence[Floats], *, skip: bool) -> Floats:
    """What the next layer sees of the hidden variables so far: the last one, beside it h_0 if `skip`."""
    return hstack(h[-1], h[0]) if skip and len(h) > 1 else h[-1]


def chain(traces: Sequence[Trace], *, skip: bool = False, unit: Floats | None = None) -> Floats:
    """Product of the Jacobians of successive layers, (rows, outputs, features), in units of the features."""

    def units_of(trace: Trace) -> Floats | None:
        """Return the units of what a layer sees, (its features,): 1 of hidden units."""
        if unit is None or not (skip or trace is traces[0]):
            return None
        return np.concatenate([np.ones(trace.forest.n_features - len(unit)), unit])

    total = traces[-1].jacobian(units_of(traces[-1]))
    direct = np.zeros(())
    for trace in reversed(traces[:-1]):
        if skip:
            units = trace.forest.n_outputs
            total, direct = total[..., :units], direct + total[..., units:]
        total = np.stack([trace.vjp(total[:, k], units_of(trace)) for k in range(total.shape[1])], axis=1)
    return total + direct
