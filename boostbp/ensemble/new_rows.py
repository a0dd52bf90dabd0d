"""Refit of a model: the trees stay, and the leaves of its output layer are fitted again, to new rows or to all rows.

Each run of the output layer, a single layer or the output layer of a network, is boosted round by round on the
structures that it has, from the same start as in the fit. Hidden layers stay: they say in which terms the target is
described, and the output layer how it depends on them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import TreeParams
from boostbp.inputs.rows import Rows
from boostbp.losses import Loss, traits_of
from boostbp.losses.checked_loss import CheckedLoss, try_loss
from boostbp.network import layers
from boostbp.network.history import Refit
from boostbp.network.layers import BoundInput, Layer, LayerSettings, LossObjective
from boostbp.network.layers.boosting import LEAST_STEP_SHARE
from boostbp.network.layers.cheaper_growth import FixedStructure
from boostbp.network.layers.layer import rounds_of
from boostbp.network.network import Network, table_above
from boostbp.network.steps import best_constant
from boostbp.runtime.arrays import Floats
from boostbp.trees.basis import Polynomial
from boostbp.trees.compact import separated
from boostbp.trees.forest import RUN_SETTINGS, Forest
from boostbp.trees.ridge import Prior
from boostbp.trees.sparse import Table
from boostbp.trees.tree import offsets


def refitted(
    network: Network, rows: Rows, loss: Loss, decay_rate: float, signs: tuple[int, ...], n_threads: int
) -> tuple[Network, Refit]:
    """Return the network with the leaves of its output layer fitted to the rows, and the record of this.

    With a `decay_rate` of 0, boosting begins anew: baseline, base, and units and ranges of the leaves are those of the
    rows. Above 0, baseline and base stay, and the weights of each leaf are ``decay_rate * old + (1 - decay_rate) *
    new``, in its old units and range; the step is shortened if it would raise the loss of the rows. `signs` are the
    monotone constraints of the features, () for none. Raises ValueError if no leaf can be fitted again.
    """
    output, below = network.layers[-1].forest, network.layers[:-1]
    rates = [run.learning_rate for run in output.runs]
    if not any(rates) or (traits_of(loss).copies and not all(rates)):
        raise ValueError(
            "refit is not supported by this model, as leaves of its output layer cannot be fitted again: those of the "
            "library (leaves='native'), above means of levels, of quantiles around a mean (not with deep=True), of "
            "learning_rate=0, or from a file of version 9. Call fit."
        )
    rows = replace(rows, table=table_above(below, rows.table, skip=network.skip, n_jobs=n_threads))
    baseline = network.baseline if decay_rate else best_constant(loss, rows)
    start = fit = np.broadcast_to(baseline + rows.offset, (len(rows), len(baseline)))
    checked = try_loss(loss, start, rows.y).prepared(rows.y, rows.weight)

    def mean_loss(forest: Forest, baseline: Floats) -> float:
        raw = forest.predict(rows.X, n_threads) + baseline + rows.offset
        with np.errstate(all="ignore"):
            return float(rows.weight @ checked.value(raw, rows.y) / rows.weight.sum())

    before = mean_loss(output, network.baseline)
    if decay_rate == 1:
        return network, Refit(len(rows), decay_rate, before, before)
    ends, stage, new = offsets([run.n_trees for run in output.runs]), 0, []
    old = [separated(output.take(slice(a, b)), run) for (a, b), run in zip(pairwise(ends), output.runs, strict=True)]
    for part, run in zip(old, output.runs, strict=True):
        if run.stage > stage:
            start, stage = fit, run.stage
        new.append(part)
        if run.learning_rate:
            new[-1] = _refitted_run(part, replace(rows, offset=start), checked, decay_rate, signs, n_threads)
        fit = fit + new[-1].predict(rows.X, n_threads)
    forest, leaves = Forest.concat(new), Forest.concat(old).leaves
    step, share = forest.leaves.weight - leaves.weight if decay_rate else 0.0, 1.0
    while decay_rate and share and not mean_loss(forest, baseline) <= before:  # a shorter step is a larger decay rate
        share = share / 2 if share > LEAST_STEP_SHARE else 0.0
        forest = replace(forest, leaves=leaves._replace(weight=leaves.weight + share * step))
    n_base = forest.runs[0].n_base if len(new) == 1 else 0
    result = replace(network, layers=(*below, Layer(replace(forest, n_base=n_base))), baseline=baseline)
    result = result.rounded() if any(run.short for run in output.runs) else result
    return result, Refit(len(rows), decay_rate, before, mean_loss(result.layers[-1].forest, baseline))


def _refitted_run(
    part: Forest, rows: Rows, loss: CheckedLoss, decay_rate: float, signs: tuple[int, ...], n_threads: int
) -> Forest:
    """Return a run with new leaves; the offset of the rows is what it is boosted from."""
    [run], forest = part.runs, part.times(1.0 / part.runs[0].weight)
    base, trees = forest.take(slice(run.n_base)), forest.take(slice(run.n_base, None))
    # A base reads the inputs of its run, which are a part of those of the sum, and no column of categories.
    read = base.leaves.column // max(forest.basis.columns_per_feature, 1)
    table = Table(rows.X, tuple(np.setdiff1d(np.arange(forest.n_features), read).tolist()))
    known: dict[str, Any] = {name: getattr(run, name) for name in RUN_SETTINGS}
    known["growth"] = TreeParams(max_leaves=int(np.diff(trees.tree_split).max(initial=0)) + 1, monotone=signs)
    known["basis"] = forest.basis if forest.basis.has_functions and run.degree else Polynomial(run.degree)
    settings = LayerSettings(rounds_of(trees), clip=forest.clip, **known)
    start = rows.offset
    if decay_rate:
        start = start + base.predict(rows.X, n_threads)
        settings = replace(settings, base=None, prior=Prior(trees.leaves, decay_rate, forest.clip))
    bound = BoundInput(FixedStructure.of(trees, shared=False), table, settings, rows.weight)
    objective = LossObjective(loss, np.asfortranarray(rows.y), rows.weight, np.asfortranarray(start))
    fitted = layers.fit(bound, objective, n_threads=n_threads)
    new, n_new = fitted.layer.forest, fitted.layer.forest.n_base
    boosted = new.take(slice(n_new, None))
    if not signs:
        boosted = _with_unreached(boosted, trees, fitted.trace.leaf[n_new:])
    base = base if decay_rate else new.take(slice(n_new))
    whole = Forest.concat([base, boosted]).times(run.weight)
    return replace(whole, runs=(replace(run, n_trees=whole.n_trees, n_base=base.n_trees),))


def _with_unreached(new: Forest, old: Forest, leaf: NDArray[np.integer]) -> Forest:
    """Return new trees with the old regressions in leaves that no row reaches; `leaf` has those of rows."""
    leaves, sizes = new.leaves, np.diff(new.leaves.tree_leaf)
    counts = [np.bincount(of_tree, minlength=n) for of_tree, n in zip(leaf, sizes, strict=True)]
    unreached = np.concatenate([np.zeros(0, int), *counts]) == 0
    weight = np.where(unreached.repeat(np.diff(leaves.weight_start)), old.leaves.weight, leaves.weight)
    scaling = np.where(unreached.repeat(np.diff(leaves.start))[:, None], old.leaves.scaling, leaves.scaling)
    return replace(new, leaves=leaves._replace(weight=weight, scaling=scaling))
