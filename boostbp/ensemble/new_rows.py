"""Refit of a model: the trees stay, and the leaves of its output layer are fitted again, to new rows or to all rows.

Each run of the output layer, a single layer or the output layer of a network, is boosted round by round on the
structures that it has, from the same start as in the fit. Hidden layers stay: they say in which terms the target is
described, and the output layer how it depends on them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from boostbp.backends.base import TreeParams
from boostbp.inputs.rows import Rows
from boostbp.losses import Loss, traits_of
from boostbp.losses.checked_loss import CheckedLoss, try_loss
from boostbp.network import layers
from boostbp.network.history import Refit
from boostbp.network.layers import BoundInput, Layer, LayerSettings, LossObjective
from boostbp.network.layers.layer import Fit, rounds_of
from boostbp.network.network import Network, table_above
from boostbp.network.steps import best_constant
from boostbp.network.trainer import kept_structures
from boostbp.runtime.arrays import Floats
from boostbp.trees.basis import Polynomial
from boostbp.trees.compact import separated
from boostbp.trees.forest import Forest
from boostbp.trees.leaves import take_leaves
from boostbp.trees.ridge import Prior
from boostbp.trees.sparse import Sparse, Table
from boostbp.trees.tree import offsets

LEAST_SHARE = 1e-6  # of a step from the old leaves to the new ones, which is halved while it raises the loss. Arbitrary


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
    _check_runs(output, loss)
    rows = replace(rows, table=table_above(below, rows.table, skip=network.skip, n_jobs=n_threads))
    baseline = network.baseline if decay_rate else best_constant(loss, rows)
    start = fit = np.broadcast_to(baseline + rows.offset, rows.y.shape)
    checked = try_loss(loss, start, rows.y)

    def mean_loss(forest: Forest, baseline: Floats) -> float:
        raw = forest.predict(rows.X, n_threads) + baseline + rows.offset
        with np.errstate(all="ignore"):
            return float(rows.weight @ checked.value(raw, rows.y) / rows.weight.sum())

    before = mean_loss(output, network.baseline)
    if decay_rate == 1:
        return network, Refit(len(rows), decay_rate, before, before)
    old, new, stage = [], [], 0
    for run, (first, last) in zip(output.runs, pairwise(offsets([run.n_trees for run in output.runs])), strict=True):
        if run.stage > stage:
            start, stage = fit, run.stage
        old.append(separated(replace(output.take(slice(first, last)), runs=(run,))))
        new.append(old[-1])
        if run.learning_rate:
            new[-1] = _refitted_run(old[-1], replace(rows, offset=start), checked, decay_rate, signs, n_threads)
        fit = fit + new[-1].predict(rows.X, n_threads)
    forest, leaves = Forest.concat(new), Forest.concat(old).leaves
    if decay_rate:  # a shorter step is a larger decay rate
        step, share, weight = forest.leaves.weight - leaves.weight, 1.0, leaves.weight
        while share and not mean_loss(forest, baseline) <= before:
            share = share / 2 if share > LEAST_SHARE else 0.0
            forest = replace(forest, leaves=leaves._replace(weight=weight + share * step))
    if len(output.runs) == 1:
        forest = replace(forest, n_base=forest.runs[0].n_base)
    result = replace(network, layers=(*below, Layer(forest)), baseline=baseline)
    result = result.rounded() if any(run.short for run in output.runs) else result
    return result, Refit(len(rows), decay_rate, before, mean_loss(result.layers[-1].forest, baseline))


def _check_runs(output: Forest, loss: Loss) -> None:
    """Refuse an output layer whose leaves cannot be fitted again."""
    if not any(run.learning_rate for run in output.runs):
        raise ValueError(
            "refit is not supported by this model: no leaves of its output layer can be fitted again. They are those "
            "of the library (leaves='native'), are not boosted (learning_rate=0, means of levels), or come from a file "
            "of version 9. Call fit."
        )
    if traits_of(loss).copies and not all(run.learning_rate for run in output.runs):
        raise ValueError(
            "refit is not supported by this model: some of its layers learn the mean, and the distances of the "
            "quantiles from it are those of rows that they had not seen. Call fit, or fit with deep=True."
        )


def _refitted_run(
    part: Forest, rows: Rows, loss: CheckedLoss, decay_rate: float, signs: tuple[int, ...], n_threads: int
) -> Forest:
    """Return a run with new leaves; the offset of the rows is what it is boosted from."""
    [run], per_feature = part.runs, max(part.basis.columns_per_feature, 1)
    # The base of a run reads the inputs of the run, which are a part of those of the sum.
    used = np.union1d(part.trees.feature, part.leaves.column // per_feature)
    used = used if len(used) else np.arange(1)
    place = np.searchsorted(used, np.arange(part.n_features))
    forest = replace(part.placed(place, len(used), 0, part.n_outputs, 1.0 / run.weight), n_base=run.n_base)
    X = Sparse.of(rows.X.entries[:, used]) if isinstance(rows.X, Sparse) else np.ascontiguousarray(rows.X[:, used])
    table = Table(X, tuple(int(place[j]) for j in rows.table.categorical if j in used))
    start, prior = rows.offset, None
    trees = replace(forest.take(slice(run.n_base, None)), n_base=0)
    if decay_rate:
        start = start + forest.take(slice(run.n_base)).predict(X, n_threads)
        prior = Prior(trees.leaves, decay_rate, forest.clip)
    growth = TreeParams(
        max_depth=-1,
        max_leaves=int(np.diff(forest.tree_split).max(initial=1)) + 1,
        monotone=tuple(signs[j] for j in used) if signs else (),
    )
    backend, growth = kept_structures(Layer(trees if prior else forest), growth)
    settings = LayerSettings(
        n_estimators=rounds_of(forest),
        learning_rate=run.learning_rate,
        growth=growth,
        basis=forest.basis if forest.basis.has_functions and run.degree else Polynomial(run.degree),
        ridge=run.ridge,
        clip=forest.clip,
        base=None if prior or not run.n_base else "additive" if run.additive else "ridge",
        base_lambda=run.base_lambda,
        min_base_lambda=run.min_base_lambda,
        prior=prior,
    )
    objective = LossObjective(loss, np.asfortranarray(rows.y), rows.weight, np.asfortranarray(start))
    fitted = layers.fit(BoundInput(backend, table, settings, rows.weight), objective, n_threads=n_threads)
    new = fitted.layer.forest
    if prior:
        new = Forest.concat([forest.take(slice(run.n_base)), new])
    elif not signs:
        new = _with_unreached(fitted, trees)
    runs = (replace(run, weight=1.0, n_trees=new.n_trees, n_base=run.n_base if prior else new.n_base),)
    return replace(new, runs=runs).placed(used, part.n_features, 0, part.n_outputs, run.weight)


def _with_unreached(fitted: Fit, old: Forest) -> Forest:
    """Return the forest of a fit with the old regressions in the leaves that no row reaches; `old` has no base."""
    forest, leaf = fitted.layer.forest, fitted.trace.leaf
    base, trees = slice(forest.n_base), slice(forest.n_base, None)
    leaves = take_leaves(forest.leaves, trees)
    sizes = np.diff(leaves.tree_leaf)
    counts = [np.bincount(of_tree, minlength=n) for of_tree, n in zip(leaf[trees], sizes, strict=True)]
    unreached = np.concatenate([np.zeros(0, int), *counts]) == 0
    weight = np.where(unreached.repeat(np.diff(leaves.weight_start)), old.leaves.weight, leaves.weight)
    scaling = np.where(unreached.repeat(np.diff(leaves.start))[:, None], old.leaves.scaling, leaves.scaling)
    kept = replace(forest.take(trees), leaves=leaves._replace(weight=weight, scaling=scaling))
    return Forest.concat([forest.take(base), kept]).as_run_of(forest)
