"""Layer: a forest fitted to the targets of a hidden variable, with a forward and a backward pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats, usual_in_methods
from boostbp.layers.bound import BoundInput, apart
from boostbp.layers.fitting import Rounds, keeps_trace
from boostbp.layers.objective import Objective
from boostbp.trees import interrupts
from boostbp.trees.forest import Forest
from boostbp.trees.sparse import Matrix, Sparse


@usual_in_methods
@dataclass(frozen=True, slots=True)
class Trace:
    """What a forward pass leaves behind, so that the backward pass routes nothing again unless rows are very many.

    Attributes
    ----------
    forest : Forest
    X : (rows, features) float64, or Sparse
        The layer's input.
    kept : (trees, rows), smallest integer type, or None
        The leaf of each row under each tree; None of more than `MOST_TRACE` bytes, which are routed again.
    n_threads : int
    """

    forest: Forest
    X: Matrix
    kept: NDArray[Any] | None
    n_threads: int = 1

    @property
    def leaf(self) -> NDArray[Any]:
        """The leaf of each row under each tree, (trees, rows)."""
        return self.forest.route(self.X, self.n_threads) if self.kept is None else self.kept

    def vjp(self, G: Floats, unit: Floats | None = None) -> Floats:
        """``J' G``: dL/dh of the input, (rows, features), from dL/dh of the output, (rows, outputs).

        With a `unit` of each feature, (features,), derivatives are those in ``X / unit``.
        """
        if np.shape(G) != (len(self.X), self.forest.n_outputs):
            expected = len(self.X), self.forest.n_outputs
            raise ValueError(f"G has shape {np.shape(G)}: give (rows, outputs), {expected}.")
        return self.forest.vjp(self.X, self.kept, G, self.n_threads, unit)

    def jacobian(self, unit: Floats | None = None) -> Floats:
        """Jacobian of each row, (rows, outputs, features), in ``X / unit``."""
        return self.forest.jacobian(self.X, self.leaf, self.n_threads, unit)


@usual_in_methods
@dataclass(frozen=True, slots=True)
class Layer:
    """A fitted layer: h_{i+1} = T_i(h_i)."""

    forest: Forest

    def trace(self, H: Matrix, *, n_jobs: int = 1) -> Trace:
        """The trace for the backward pass."""
        H, forest = layer_matrix(self.forest, H), self.forest
        keeps = keeps_trace(forest.n_trees, len(H), forest.trees.leaf_dtype)
        return Trace(forest, H, forest.route(H, n_jobs) if keeps else None, n_jobs)

    def forward(self, H: Matrix, *, n_jobs: int = 1) -> tuple[Floats, Trace]:
        """Output, (rows, outputs), and the trace for the backward pass."""
        trace = self.trace(H, n_jobs=n_jobs)
        if trace.kept is None:
            return self.forest.predict(trace.X, n_jobs), trace
        return self.forest.evaluate(trace.X, trace.kept, n_jobs), trace

    def predict(self, H: Matrix, *, n_jobs: int = 1) -> Floats:
        """Output, (rows, outputs), without a trace."""
        return self.forest.predict(layer_matrix(self.forest, H), n_jobs)

    def jacobian(self, H: Matrix, *, n_jobs: int = 1) -> Floats:
        """Jacobian of each row, (rows, outputs, features)."""
        return self.forward(H, n_jobs=n_jobs)[1].jacobian()


class Fit(NamedTuple):
    """A fitted layer with its output and trace on the training rows."""

    layer: Layer
    output: Floats
    trace: Trace


@interrupts.deferred()
def fit(bound: BoundInput, objective: Objective, *, n_threads: int = 1, seed: int = 0) -> Fit:
    """Fit a layer from scratch.

    Parameters
    ----------
    bound : BoundInput
    objective : Objective
    n_threads : int
        Outputs are shared among this many threads, and rows over those left. The result does not depend on it.
    seed : int
        Seed of whatever the library draws.
    """
    if bound.own is None:
        return _fit(bound, objective, n_threads, seed)
    gathered = objective.gathered()
    layer, output, trace = apart(lambda: _fit(bound, gathered, n_threads, seed))
    kept = None if trace.kept is None else np.ascontiguousarray(trace.kept[:, bound.own])
    return Fit(layer, output[bound.own], replace(trace, X=bound.X, kept=kept))


def _fit(bound: BoundInput, objective: Objective, n_threads: int, seed: int) -> Fit:
    settings = bound.settings
    if settings.leaves == "native":
        _check_native(bound, objective)
    run = Rounds.of(bound, objective, n_threads, seed)
    if settings.base is not None:
        run.fit_base()
    if settings.growth.multi_output:
        run.multi_output_trees()
    elif settings.leaves == "native":
        run.native_leaves()
    else:
        run.one_tree_per_output()
    forest = run.forest
    trace = Trace(forest, bound.table.X, run.leaf[: forest.n_trees] if run.keeps_leaf else None, n_threads)
    return Fit(Layer(forest), np.ascontiguousarray(run.running.T), trace)


def _check_native(bound: BoundInput, objective: Objective) -> None:
    settings, why = bound.settings, ""
    if not bound.capabilities.native_leaves:
        why = "by this backend, whose capabilities do not say 'native_leaves'"
    elif settings.growth.multi_output:
        why = "with one tree for all outputs: the library fits linear leaves for one output"
    elif settings.basis.has_functions:
        why = f"with basis={settings.basis!r}: the library fits leaves on [1, x] only"
    elif not objective.separable:
        why = "with a loss whose outputs depend on each other"
    if why:
        raise ValueError(f"leaves='native' is not supported {why}. Use leaves='refit'.")


def layer_matrix(forest: Forest, H: Matrix) -> Matrix:
    """Return the input of a layer as float64; ValueError if its shape is another than in training."""
    H = H if isinstance(H, Sparse) else np.ascontiguousarray(H, np.float64)
    if len(H.shape) != 2 or H.shape[1] != forest.n_features:
        raise ValueError(f"H has shape {H.shape}: this layer was fitted to (rows, {forest.n_features}).")
    return H
