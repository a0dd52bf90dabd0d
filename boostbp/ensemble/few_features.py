"""Few features: a fit leaves out features that gain nothing, where that clearly lowers the held-out loss.

Splits on noise cost rows and seconds: where two of thirty features count, a layer of them alone has .8 of the error.
Journal, "What moves quality 1".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boostbp.ensemble import constants
from boostbp.ensemble.driver import Driver
from boostbp.ensemble.output_layers import LayerTraining
from boostbp.ensemble.problem import Problem
from boostbp.inputs.rows import Rows
from boostbp.network.layers import Layer
from boostbp.network.network import Network
from boostbp.runtime.group import workers
from boostbp.trees.sparse import Table

Columns = NDArray[np.intp]


def on_few_features(driver: Driver) -> Driver | None:
    """Return a driver on the features that gain something in the trial of the first layer; None for all features.

    None, too, if no time is left for a second trial.
    """
    problem, whole = driver.problem, first_layer_of(driver)
    if whole is None or whole.levels is not None:
        return None
    columns = workers().agree(features_that_gain(whole, problem))
    if columns is None or driver.budget.over(whole.seconds):
        return None
    few = _on_columns(problem, columns)
    return Driver(few, driver.budget, driver.plan.on(few), columns=columns, seconds=driver.seconds)


def clearly_better(few: Driver, driver: Driver) -> bool:
    """Return whether the first layer has a clearly lower loss on few features."""
    part, whole = first_layer_of(few), first_layer_of(driver)
    assert whole is not None
    return part is not None and workers().agree(few.is_worse(whole, part, constants.FEW_FEATURES_T))


def first_layer_of(driver: Driver) -> LayerTraining | None:
    """Return the training of the first candidate; None if it failed."""
    return driver.layers.get(driver.plan.candidates[0].name)


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
