"""Layer: a forest fitted to the targets of a hidden variable, with a forward and a backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Grower, Growth, LinearLeaves, NativeGrower, Table
from boostbp.learning.objective import Objective, SquaredTo
from boostbp.trees import kernels, threads
from boostbp.trees.basis import Basis, Elementwise, Quadratic
from boostbp.trees.forest import Forest, Member
from boostbp.trees.linear import RidgeBase
from boostbp.trees.ridge import LeafModel, LeafRanges, LeafRows, Paths, Ridge, fit_leaves
from boostbp.trees.tree import Tree

__all__ = ["BoundInput", "Fit", "Layer", "LayerSettings", "Objective", "SquaredTo", "Trace", "fit"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """How a layer is fitted.

    Attributes
    ----------
    n_estimators : int
        Rounds (N_i of the paper): trees per output, or trees in all with ``growth.shared``.
    learning_rate : float
        Shrinkage of each tree (beta).
    growth : Growth
    basis : Basis
        phi.
    ridge : Ridge
    clip : bool
        Clip a leaf's inputs to its training range at evaluation; the Jacobian is 0 where clipped.
    base : {"ridge", None}
        Start from one ridge regression on all numeric inputs.
    base_lambda : float or None
        Its penalty; None chooses by generalised cross-validation.
    leaves : {"refit", "native"}
        Leaf regressions by us on phi, or the library's own linear leaves.
    """

    n_estimators: int = 100
    learning_rate: float = 0.1
    growth: Growth = field(default_factory=Growth)
    basis: Basis = field(default_factory=Quadratic)
    ridge: Ridge = field(default_factory=Ridge)
    clip: bool = True
    base: Literal["ridge"] | None = None
    base_lambda: float | None = None
    leaves: Literal["refit", "native"] = "refit"


@dataclass(frozen=True, slots=True)
class Trace:
    """What a forward pass leaves behind, so that the backward pass routes nothing again.

    Attributes
    ----------
    forest : Forest
    X : (rows, features) float64
        The layer's input.
    leaf : (trees, rows), smallest integer type
        The leaf of each row under each tree.
    n_threads : int
    """

    forest: Forest
    X: Floats
    leaf: NDArray[Any]
    n_threads: int = 1

    def vjp(self, G: Floats) -> Floats:
        """``J' G``: dL/dh of the input, (rows, features), from dL/dh of the output, (rows, outputs)."""
        if np.shape(G) != (len(self.X), self.forest.n_outputs):
            expected = len(self.X), self.forest.n_outputs
            raise ValueError(f"G has shape {np.shape(G)}: give (rows, outputs), {expected}.")
        return self.forest.vjp(self.X, self.leaf, G, self.n_threads)

    def jacobian(self) -> Floats:
        """Jacobian of each row, (rows, outputs, features)."""
        return self.forest.jacobian(self.X, self.leaf, self.n_threads)


@dataclass(frozen=True, slots=True)
class Layer:
    """A fitted layer: h_{i+1} = T_i(h_i)."""

    forest: Forest

    def forward(self, H: Floats, *, n_jobs: int = 1) -> tuple[Floats, Trace]:
        """Output, (rows, outputs), and the trace for the backward pass."""
        H = _input(self.forest, H)
        leaf = self.forest.route(H, n_jobs)
        return self.forest.evaluate(H, leaf, n_jobs), Trace(self.forest, H, leaf, n_jobs)

    def predict(self, H: Floats, *, n_jobs: int = 1) -> Floats:
        """Output, (rows, outputs), without a trace."""
        return self.forest.predict(_input(self.forest, H), n_jobs)

    def jacobian(self, H: Floats, *, n_jobs: int = 1) -> Floats:
        """Jacobian of each row, (rows, outputs, features)."""
        return self.forward(H, n_jobs=n_jobs)[1].jacobian()


class Fit(NamedTuple):
    """A fitted layer with its output and trace on the training rows."""

    layer: Layer
    output: Floats
    trace: Trace


class BoundInput:
    """A layer's input, binned and decomposed once for any number of fits.

    Parameters
    ----------
    backend : Backend
    table : Table
        The input, (rows, features).
    settings : LayerSettings
    weight : (rows,) float64
        Row weights.
    """

    def __init__(self, backend: Backend, table: Table, settings: LayerSettings, weight: Floats) -> None:
        self.table = table
        self.weight = weight
        self.settings = settings
        self.Z = settings.basis.expand(table.X)
        if isinstance(settings.basis, Elementwise):
            settings.basis.check(table.X, self.Z, [j for j in range(table.X.shape[1]) if j not in table.categorical])
        self.vector_leaf = bool(getattr(backend, "vector_leaf", False))
        self.grower: Grower = backend.bind(table, settings.growth)
        self._base: RidgeBase | None = None

    @property
    def base(self) -> RidgeBase:
        """The ridge regression on all numeric columns, made on first use."""
        if self._base is None:
            per_feature = self.settings.basis.columns_per_feature
            columns = np.arange(self.Z.shape[1], dtype=np.int32)
            numeric = ~np.isin(columns // per_feature, self.table.categorical)
            self._base = RidgeBase.bind(self.Z, columns[numeric], self.weight)
        return self._base


class _Grown(NamedTuple):
    member: Member
    leaf: NDArray[np.int32]


def fit(bound: BoundInput, objective: Objective, *, n_threads: int = 1, seed: int = 0) -> Fit:
    """Fit a layer from scratch.

    Parameters
    ----------
    bound : BoundInput
    objective : Objective
    n_threads : int
        Outputs are spread over this many threads. The result does not depend on it.
    seed : int
        Seed of whatever the library draws.
    """
    settings = bound.settings
    if settings.leaves == "native":
        _check_native(settings, objective)
    running = np.zeros((objective.n_outputs, len(bound.Z))).T
    grown: list[_Grown] = []
    if settings.base == "ridge":
        grown.append(_fit_base(bound, objective, running))
    run = _Run(bound, objective, running, seed)
    everything = slice(0, objective.n_outputs)
    if settings.growth.shared:
        grown += run.shared()
    elif settings.leaves == "native":
        grown += _flat(threads.spread(run.native, range(objective.n_outputs), n_threads))
    elif objective.separable:
        alone = [slice(k, k + 1) for k in range(objective.n_outputs)]
        grown += _flat(threads.spread(run.refit, alone, n_threads))
    else:
        grown += run.refit(everything, n_threads)
    forest = Forest.pack(
        [g.member for g in grown],
        n_features=bound.table.X.shape[1],
        n_outputs=objective.n_outputs,
        basis=settings.basis,
        clip=settings.clip,
    )
    leaf = np.empty((len(grown), len(bound.Z)), forest.leaf_dtype)
    for row, g in zip(leaf, grown, strict=True):
        row[:] = g.leaf
    trace = Trace(forest, bound.table.X, leaf, n_threads)
    return Fit(Layer(forest), np.ascontiguousarray(running), trace)


def _fit_base(bound: BoundInput, objective: Objective, running: Floats) -> _Grown:
    grad, hess = objective.gradient(running, slice(0, objective.n_outputs))
    with np.errstate(divide="ignore", invalid="ignore"):
        target = np.where(hess > 0, -grad / hess, 0.0)
    model = bound.base.fit(target, bound.settings.base_lambda)
    leaf = np.zeros(len(bound.Z), np.int32)
    out = np.zeros(running.shape)
    model.add_to(out, leaf, bound.Z)
    running += out
    return _Grown(Member(Tree.stump(), model, 0), leaf)


@dataclass(frozen=True, slots=True)
class _Run:
    """The rounds of one fit; each method adds its trees' values to `running`, (rows, outputs)."""

    bound: BoundInput
    objective: Objective
    running: Floats
    seed: int

    def refit(self, outputs: slice, n_threads: int = 1) -> list[_Grown]:
        """All rounds of some outputs, one tree per output and round."""
        numbers = range(outputs.start, outputs.stop)
        growers = [self.bound.grower.fork(self.seed + k) for k in numbers]
        grown: list[_Grown] = []
        for _ in range(self.bound.settings.n_estimators):
            grad, hess = self.objective.gradient(self.running[:, outputs], outputs)

            def one(i: int, grad: Floats = grad, hess: Floats = hess) -> _Grown:
                g, h = (np.ascontiguousarray(part[:, i : i + 1]) for part in (grad, hess))
                [tree] = growers[i].grow(g, h)
                return self._leaves_of(tree, g, h, slice(numbers[i], numbers[i] + 1))

            grown += threads.spread(one, range(len(numbers)), n_threads)
        return grown

    def shared(self) -> list[_Grown]:
        """All rounds with one tree for all outputs."""
        everything = slice(0, self.objective.n_outputs)
        grower = self.bound.grower.fork(self.seed)
        rng = np.random.default_rng(self.seed)
        grown: list[_Grown] = []
        for _ in range(self.bound.settings.n_estimators):
            grad, hess = (np.ascontiguousarray(a) for a in self.objective.gradient(self.running, everything))
            if self.bound.vector_leaf:
                [tree] = grower.grow(grad, hess)
            else:  # structure from one random projection of the gradients
                sketch = grad @ rng.standard_normal((grad.shape[1], 1)) / np.sqrt(grad.shape[1])
                [tree] = grower.grow(sketch, hess.mean(axis=1, keepdims=True))
            grown.append(self._leaves_of(tree, grad, hess, everything))
        return grown

    def native(self, output: int) -> list[_Grown]:
        """All rounds of one output with the library's own linear leaves."""
        settings, table = self.bound.settings, self.bound.table
        grower = self.bound.grower.fork(self.seed + output)
        if not isinstance(grower, NativeGrower):
            raise ValueError(
                "leaves='native' is not supported: this backend has no linear leaves of its own. Use leaves='refit'."
            )
        outputs = slice(output, output + 1)
        start = self.running[:, outputs].copy()

        def gradient(score: Floats) -> tuple[Floats, Floats]:
            grad, hess = self.objective.gradient(start + score.reshape(-1, 1), outputs)
            return grad.ravel(), hess.ravel()

        grown = []
        native = grower.boost(gradient, settings.n_estimators, settings.learning_rate, settings.ridge.reg_lambda)
        for leaves in native:
            leaf = leaves.tree.leaf_of(table.X)
            model = _from_native(leaves, leaf, table.X, self.bound.weight)
            model.add_to(self.running[:, outputs], leaf, table.X)
            grown.append(_Grown(Member(leaves.tree, model, output), leaf))
        return grown

    def _leaves_of(self, tree: Tree, grad: Floats, hess: Floats, outputs: slice) -> _Grown:
        settings, Z = self.bound.settings, self.bound.Z
        leaf = tree.leaf_of(self.bound.table.X)
        paths = Paths.of(tree, settings.basis)
        weight = np.ascontiguousarray(hess[:, 0]) if hess.shape[1] == 1 else hess.mean(axis=1)
        model = fit_leaves(leaf, paths, Z, grad, weight, settings.ridge, settings.learning_rate)
        if hess.shape[1] == 1:
            model.add_to(self.running[:, outputs], leaf, Z)
        else:
            out = np.zeros(grad.shape)
            model.add_to(out, leaf, Z)
            self.running[:, outputs] += out
        return _Grown(Member(tree, model, outputs.start), leaf)


def _from_native(leaves: LinearLeaves, leaf: NDArray[np.int32], X: Floats, weight: Floats) -> LeafModel:
    """The library's linear leaves in our frame: same function, training ranges added."""
    n_leaves = leaves.tree.n_leaves
    paths = Paths(leaves.start, leaves.features, 1)
    blocks = [LeafRanges.of(rows, paths, X, weight) for rows in LeafRows.blocks(leaf, n_leaves)]
    frame = sum(blocks[1:], start=blocks[0]).frame(flat_scale=1.0)
    w = np.insert(leaves.coeff, leaves.start[:-1], leaves.const)
    kernels.move_to_frame(paths.start, 1, 1, frame, w)
    return LeafModel(paths, frame, w, 1, leaves.missing)


def _check_native(settings: LayerSettings, objective: Objective) -> None:
    why = ""
    if settings.growth.shared:
        why = "with one tree for all outputs: the library fits linear leaves for one output"
    elif isinstance(settings.basis, Elementwise):
        why = f"with basis={settings.basis!r}: the library fits leaves on [1, x] only"
    elif not objective.separable:
        why = "with a loss whose outputs depend on each other"
    if why:
        raise ValueError(f"leaves='native' is not supported {why}. Use leaves='refit'.")


def _input(forest: Forest, H: Floats) -> Floats:
    H = np.ascontiguousarray(H, np.float64)
    if H.ndim != 2 or H.shape[1] != forest.n_features:
        raise ValueError(f"H has shape {H.shape}: this layer was fitted to (rows, {forest.n_features}).")
    return H


def _flat(parts: Sequence[Sequence[_Grown]]) -> list[_Grown]:
    return [grown for part in parts for grown in part]
