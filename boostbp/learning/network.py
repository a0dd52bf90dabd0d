"""Network: a tuple of fitted layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boostbp.learning.layer import Layer, Trace

__all__ = ["Network"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Network:
    """Layers T_0 .. T_{L-1} and the constant that their output starts from.

    Attributes
    ----------
    layers : tuple of Layer
    baseline : (outputs,) float64
        Added to the output of the last layer.
    """

    layers: tuple[Layer, ...]
    baseline: Floats

    def forward(self, X: Floats, *, n_jobs: int = 1) -> tuple[list[Floats], list[Trace]]:
        """All hidden variables ``[h_0, .. h_L]``, each (rows, units), and a trace for each layer."""
        h, traces = [X], []
        for layer in self.layers:
            out, trace = layer.forward(h[-1], n_jobs=n_jobs)
            h.append(out)
            traces.append(trace)
        h[-1] = h[-1] + self.baseline
        return h, traces

    def predict(self, X: Floats, *, n_jobs: int = 1) -> Floats:
        """Raw output h_L, (rows, outputs), without traces."""
        return self.representation(X, -1, n_jobs=n_jobs)

    def representation(self, X: Floats, layer: int, *, n_jobs: int = 1) -> Floats:
        """Hidden variable h_layer, (rows, units); negative numbers count from the output."""
        depth = len(self.layers)
        if not -depth - 1 <= layer <= depth:
            raise ValueError(f"layer={layer} does not exist: a network of {depth} layers has h_0 to h_{depth}.")
        layer %= depth + 1
        h = X
        for fitted in self.layers[:layer]:
            h = fitted.predict(h, n_jobs=n_jobs)
        return h + self.baseline if layer == depth else h

    def jacobian(self, X: Floats, *, n_jobs: int = 1) -> Floats:
        """Jacobian of the raw output in the input, (rows, outputs, features), by the chain rule."""
        _, traces = self.forward(X, n_jobs=n_jobs)
        return chain(traces)


def chain(traces: Sequence[Trace]) -> Floats:
    """Product of the Jacobians of successive layers, (rows, outputs, features)."""
    total = traces[-1].jacobian()
    for trace in reversed(traces[:-1]):
        total = np.stack([trace.vjp(total[:, k]) for k in range(total.shape[1])], axis=1)
    return total
