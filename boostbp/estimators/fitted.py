"""Fitted: what functions and methods read of a fitted estimator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from boostbp.inputs.schema import Schema, read_blocks, read_input
from boostbp.model.model import Model, Targets
from boostbp.network.layers.layer import rounds_of, stage_forests
from boostbp.network.network import Network
from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats, TableLike
from boostbp.trees.sparse import Matrix, Table

ColumnNames: TypeAlias = tuple[str, ...] | None  # names of the columns of a target
# the targets, the target as the loss reads it, (rows, columns), and the weights of the rows
Learnt: TypeAlias = tuple[Targets, Floats, Floats]


class FittedModel(Protocol):
    """The members of an estimator that methods outside of its class read."""

    model_: Model
    n_jobs: int | None

    def _read(self, X: TableLike, schema: Schema | None = None) -> Table: ...

    def _raw(self, X: TableLike, offset: ArrayLike | None = None) -> Floats: ...


def fitted_model(estimator: Any) -> Model:
    """Return the fitted model; before a fit raise NotFittedError, which is an AttributeError too."""
    model: Model | None = vars(estimator).get("model_")
    if model is None:
        check_is_fitted(estimator)
        raise AttributeError("model_")  # set_output and attributes of subclasses make an estimator look fitted
    return model


def model_of_trees(estimator: Any) -> Model:
    """Return the fitted model; raise AttributeError, as for an unknown method, if it contains a neural network."""
    model = fitted_model(estimator)
    if not isinstance(model.network, Network):
        raise AttributeError(
            f"{type(estimator).__name__} contains a neural network: use jacobian or hidden_representation."
        )
    return model


def read_rows(self: Any, X: TableLike, schema: Schema | None = None) -> Table:
    """Read a table with the columns of `schema`, by default those of the model."""
    return read_input(self, X, self.schema_ if schema is None else schema)


def read_in_blocks(estimator: Any, X: TableLike, n_threads: int) -> Iterable[Matrix]:
    """Return the rows of a table in blocks for some threads; all at once for a class that reads tables by itself."""
    if type(estimator)._read is not read_rows:
        return [estimator._read(X).X]
    return read_blocks(estimator, X, estimator.schema_, n_threads)


def networks_left_out(deep: object, hidden_layer_sizes: ArrayLike, network: Network) -> bool:
    """Return whether ``deep="auto"`` made a model without the hidden layers that were requested."""
    return deep == "auto" and np.size(hidden_layer_sizes) > 0 and len(network.layers) == 1


def staged_raw(estimator: FittedModel, X: TableLike, offset: ArrayLike | None) -> Iterator[Floats]:
    """Yield the raw output with the offset, (rows, outputs), after each round of the output layer."""
    model, n_threads = model_of_trees(estimator), threads.count(estimator.n_jobs)
    network = model.network
    forest, h = network.layers[-1].forest, network.output_input(estimator._read(X).X, n_jobs=n_threads)
    numbers = range(1, max(rounds_of(forest), 1) + 1)
    for raw in accumulate(part.predict(h, n_threads) for part in stage_forests(forest, numbers)):
        yield model.add_offset(raw + network.baseline, offset)
