"""Few features: a fit leaves out features that gain nothing, where that clearly lowers the held-out loss.

Splits on noise cost rows and seconds: where two of thirty features count, a layer of them alone has .8 of the error.
Journal, "Features that gain nothing".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boostbp.ensemble import constants
from boostbp.ensemble.candidate import CandidateKind
from boostbp.ensemble.output_layers import LayerTraining
from boostbp.ensemble.problem import Problem
from boostbp.ensemble.race import Race
from boostbp.inputs.rows import Rows
from boostbp.network.layers import Layer
from boostbp.network.network import Network
from boostbp.runtime.group import workers
from boostbp.trees.sparse import Sparse, Table

Columns = NDArray[np.intp]


def on_few_features(race: Race, race_on: Callable[[Problem], Race], *, stage: str) -> tuple[Race, Columns | None]:
    """Begin the first layer of a race; return the race to continue, and its features if it leaves out any.

    If permuting some features together does not raise the layer's held-out loss, a second trial sees the others alone.
    Its race replaces the first one if its loss is clearly lower. `race_on` returns the race for a problem.

    Raises KeyboardInterrupt from the trials.
    """
    problem, first = race.problem, race.candidates[0]
    growth = problem.settings.layers[-1].growth
    narrow = problem.rows.X.shape[1] < constants.FEW_FEATURES_OF
    names_columns = growth.params or growth.monotone  # native parameters may do so
    if narrow or names_columns or isinstance(problem.rows.X, Sparse) or first.kind is not CandidateKind.SINGLE_LAYER:
        return race, None
    whole = _trial(race, stage)
    if whole is None or whole.levels is not None:
        return race, None
    columns = workers().agree(features_that_gain(whole, problem))
    if columns is None or race.budget.over(whole.seconds):
        return race, None
    few = race_on(_on_columns(problem, columns))
    part = _trial(few, stage)
    if part is None or not workers().agree(few.is_worse(whole, part, constants.FEW_FEATURES_T)):
        return race, None
    return few, columns


def _trial(race: Race, stage: str) -> LayerTraining | None:
    """Return the first layer of a race after the pieces of a trial; None if it failed."""
    first = race.candidates[0]
    race.begin([first], constants.FIRST_LAYER_PIECES, stage=stage)
    return race.layers.get(first.name)


def features_that_gain(training: LayerTraining, problem: Problem) -> Columns | None:
    """Return the features with larger gains than noise; None if fewer than half of them seem to be noise.

    Those are the half of the features with the smallest gains of their splits, if these may be permuted over the
    held-out rows, all together, without a loss that is clearly higher.
    """
    network, X = training.result.model, np.asarray(problem.held_out.X)
    forest = network.layers[-1].forest
    gain = np.bincount(forest.trees.feature, forest.trees.gain, forest.n_features)
    half = np.argsort(gain, kind="stable")[: len(gain) // 2]
    rng, losses, rises = np.random.default_rng(problem.settings.seed), problem.row_losses(training.held_out), []
    with np.errstate(invalid="ignore"):  # infinite losses
        for _ in range(constants.PERMUTATIONS):
            permuted = X.copy()
            permuted[:, half] = X[np.ix_(rng.permutation(len(X)), half)]
            rises.append(problem.row_losses(network.predict(permuted, n_jobs=problem.settings.n_threads)) - losses)
        rise = problem.mean_of(np.mean(rises, axis=0))
        gains_nothing = rise.mean <= constants.PERMUTED_T * rise.error
    columns = np.flatnonzero(gain > constants.NOISE_GAIN * gain[half].max())
    return columns if gains_nothing and len(columns) else None


def _on_columns(problem: Problem, columns: Columns) -> Problem:
    """Return the problem with some of the features."""

    def of(rows: Rows) -> Rows:
        categorical = np.flatnonzero(np.isin(columns, rows.table.categorical))
        X = np.ascontiguousarray(np.asarray(rows.X)[:, columns])
        return replace(rows, table=Table(X, tuple(categorical.tolist())))

    sets = tuple(replace(part, rows=of(part.rows)) for part in problem.evaluation.sets)
    return replace(problem, rows=of(problem.rows), evaluation=replace(problem.evaluation, sets=sets))


def on_all_features(network: Network, columns: Columns, n_features: int) -> Network:
    """Return the network that reads these columns of an input of `n_features` features."""
    layers: list[Layer] = []
    units = 0  # that the layer reads before the features
    for layer in network.layers:
        if not layers or network.skip:
            read = np.concatenate([np.arange(units), units + columns])
            forest = layer.forest.placed(read, units + n_features, 0, layer.forest.n_outputs)
            layer = Layer(replace(forest, n_base=layer.forest.n_base))
        layers.append(layer)
        units = layer.forest.n_outputs
    return replace(network, layers=tuple(layers))
