"""Layer: a forest fitted to the targets of a hidden variable, with a forward and a backward pass, and its rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.network.layers.boosting import Boosting, groups_of
from boostbp.network.layers.bound import BoundInput, Objective, run_without_group
from boostbp.network.layers.fitting import RunningFit, keeps_trace
from boostbp.runtime import interrupts, threads
from boostbp.runtime.arrays import Floats, errstate_in_methods
from boostbp.runtime.group import workers
from boostbp.trees.forest import Forest
from boostbp.trees.sparse import Matrix


@errstate_in_methods
@dataclass(frozen=True, slots=True)
class Trace:
    """Record of a forward pass for the backward pass."""

    forest: Forest
    X: Matrix  # the layer's input, (rows, features)
    # The leaf of each row under each tree, (trees, rows); None beyond `MOST_TRACE` bytes: then rows are routed again.
    kept: NDArray[np.integer] | None
    n_threads: int = 1

    @property
    def leaf(self) -> NDArray[np.integer]:
        """The leaf of each row under each tree, (trees, rows)."""
        return self.forest.route(self.X, self.n_threads) if self.kept is None else self.kept

    def vjp(self, G: Floats, unit: Floats | None = None) -> Floats:
        """Return ``J' G``: dL/dh of the input, (rows, features), from dL/dh of the output, (rows, outputs).

        With a `unit` of each feature, (features,), derivatives are those in ``X / unit``.
        """
        if np.shape(G) != (expected := (len(self.X), self.forest.n_outputs)):
            raise ValueError(f"G has shape {np.shape(G)}: give (rows, outputs), {expected}.")
        return self.forest.vjp(self.X, self.kept, G, self.n_threads, unit)

    def jacobian(self, unit: Floats | None = None) -> Floats:
        """Return the Jacobian of each row, (rows, outputs, features), in ``X / unit``."""
        return self.forest.jacobian(self.X, self.leaf, self.n_threads, unit)


@errstate_in_methods
@dataclass(frozen=True, slots=True)
class Layer:
    """A fitted layer: h_{i+1} = T_i(h_i)."""

    forest: Forest

    def forward(self, H: Matrix, *, n_jobs: int = 1) -> tuple[Floats, Trace]:
        """Return the output, (rows, outputs), and the trace for the backward pass."""
        H, forest = self.forest.checked(H), self.forest
        if not keeps_trace(forest.n_trees, len(H), forest.trees.leaf_dtype):
            return forest.predict(H, n_jobs), Trace(forest, H, None, n_jobs)
        # With kept leaf numbers, the prediction need not route the rows again.
        leaf = forest.route(H, n_jobs)
        return forest.evaluate(H, leaf, n_jobs), Trace(forest, H, leaf, n_jobs)

    def predict(self, H: Matrix, *, n_jobs: int = 1) -> Floats:
        """Return the output, (rows, outputs), without a trace."""
        return self.forest.predict(H, n_jobs)

    def jacobian(self, H: Matrix, *, n_jobs: int = 1) -> Floats:
        """Return the Jacobian of each row, (rows, outputs, features)."""
        return self.forward(H, n_jobs=n_jobs)[1].jacobian()


class Fit(NamedTuple):
    """A fitted layer with its output and trace on the training rows."""

    layer: Layer
    output: Floats
    trace: Trace

    def take(self, rows: NDArray[np.int64], X: Matrix) -> Fit:
        """Return the same layer with its output and trace on some of the rows, whose input is `X`."""
        kept = None if self.trace.kept is None else np.ascontiguousarray(self.trace.kept[:, rows])
        return Fit(self.layer, self.output[rows], replace(self.trace, X=X, kept=kept))


def fit(
    bound: BoundInput,
    objective: Objective,
    *,
    n_threads: int = 1,
    seed: int = 0,
    over: Callable[[], bool] | None = None,
) -> Fit:
    """Fit a layer from scratch; `seed` is for the random draws of the library.

    Outputs are shared among the threads, and rows among the remaining ones. The result does not depend on `n_threads`.
    If ``over()``, the layer ends after its first round or a later one, unless groups of its outputs are boosted apart.
    """
    # If all workers together have few rows, each fits the layer to all of them, and keeps the results of its own rows.
    if bound.local_rows is not None and not workers().is_single:
        gathered = objective.gathered()
        with interrupts.deferred():
            whole = run_without_group(lambda: fit(bound, gathered, n_threads=n_threads, seed=seed))
        return whole.take(bound.local_rows, bound.X)
    settings = bound.settings
    if settings.leaves == "native":
        _check_native(bound, objective)
    with interrupts.deferred():
        running = RunningFit(bound, objective, n_threads, seed)
        if settings.base is not None:
            running.fit_base()
        if settings.leaves == "native":
            running.native_leaves()
        else:
            groups = groups_of(running)
            if len(groups) == 1:
                running.parts += Boosting(running, groups[0], over).boost()
            else:
                running.parts += _boosted_apart(running, groups)
        forest = running.forest
        kept = running.leaf[: forest.n_trees] if running.keeps_leaf else None
        return Fit(Layer(forest), np.ascontiguousarray(running.values.T), Trace(forest, bound.table.X, kept, n_threads))


def _boosted_apart(running: RunningFit, groups: Sequence[Sequence[slice]]) -> list[Forest]:
    """Boost all rounds of outputs that do not wait for each other, and put their trees in the order of rounds."""
    n_threads = min(running.threads_of_outputs, len(groups))
    boosted = threads.parallel_map(lambda outputs: Boosting(running, outputs).boost(), groups, n_threads)
    parts = [part for of_outputs in boosted for part in of_outputs]
    if not parts:
        return []
    forest = Forest.concat(parts)
    order = np.argsort(round_of(forest), kind="stable")
    # Slices of neighbours, as the words of category sets must come in the order of trees, too.
    neighbours = np.split(order, np.flatnonzero(np.diff(order) != 1) + 1)
    return [forest.take(slice(some[0], some[-1] + 1)) for some in neighbours]


def _check_native(bound: BoundInput, objective: Objective) -> None:
    """Refuse a layer whose leaves the library cannot fit itself."""
    settings = bound.settings
    refused = {
        "by this backend, whose capabilities do not include 'native_leaves'": not bound.capabilities.native_leaves,
        "with one tree for all outputs: the library fits linear leaves for one output": settings.growth.multi_output,
        f"with basis={settings.basis!r}: the library fits leaves on [1, x] only": settings.basis.has_functions,
        "with a loss whose outputs depend on each other": not objective.separable,
    }
    for why, is_refused in refused.items():
        if is_refused:
            raise ValueError(f"leaves='native' is not supported {why}. Use leaves='refit'.")


# Shares of the rounds after which a layer is scored: dense at first, where predictions change most.
STAGE_SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def stages(n_rounds: int) -> list[int]:
    """Return the numbers of rounds to score, ascending; the last one is `n_rounds`."""
    return sorted({int(np.ceil(share * n_rounds)) for share in STAGE_SHARES})


def round_of(forest: Forest) -> NDArray[np.int64]:
    """Return the round in which each tree was grown, from 0, (trees,); -1 for the base, which comes first."""
    # A tree is of the round after the latest one of the outputs that it serves.
    rounds, latest = [-1] * forest.n_base, [-1] * forest.n_outputs
    for first, served in forest.leaves.tree_output[forest.n_base :].tolist():
        rounds.append(max(latest[first : first + served]) + 1)
        latest[first : first + served] = rounds[-1:] * served
    return np.array(rounds, np.int64)


def rounds_of(forest: Forest) -> int:
    """Return the number of rounds, without the base."""
    return 1 + int(round_of(forest).max(initial=-1))


def first_rounds(forest: Forest, n_rounds: int) -> Forest:
    """Return the forest of the base and the first rounds."""
    return forest.take(np.flatnonzero(round_of(forest) < n_rounds)).as_run_of(forest)


def stage_forests(forest: Forest, numbers: Sequence[int]) -> list[Forest]:
    """Return the forests between ascending numbers of rounds: their running sum is the output after each number."""
    rounds = round_of(forest)
    # Round -1 is the base, which the first forest includes.
    return [forest.take(np.flatnonzero((rounds >= first) & (rounds < end))) for first, end in pairwise([-1, *numbers])]
