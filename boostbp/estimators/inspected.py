"""Inspection of a fitted estimator: importances, attributions, leaves, hidden units, names, health.

These functions are methods of every estimator.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.inputs.blocks import blocks_of
from boostbp.inputs.schema import read_blocks
from boostbp.inputs.sources import is_blocks
from boostbp.model.attributions import Attributions, attribute
from boostbp.model.health import Health, health_of
from boostbp.model.model import Model
from boostbp.model.regressions import LeafRecords, Names, all_leaves, leaf_records
from boostbp.model.summary import importances_over, split_importances
from boostbp.network.choice import CONSTANT_LEAVES
from boostbp.network.network import above
from boostbp.runtime import checks, threads
from boostbp.runtime.arrays import Floats, TableLike
from boostbp.runtime.messages import require, warn
from boostbp.trees.sparse import Matrix, Table, dense

KINDS = ("split", "gain", "jacobian", "attribution")
METHODS = ("integrated_gradients", "gradient_x_input")


class FittedModel(Protocol):
    """The members of an estimator that these methods read."""

    model_: Model
    n_jobs: int | None

    def _read(self, X: TableLike) -> Table: ...

    def _raw(self, X: TableLike, offset: ArrayLike | None = None) -> Floats: ...


def read_in_blocks(self: FittedModel, X: TableLike, n_threads: int) -> Iterable[Matrix]:
    """Return the rows of a table in blocks for some threads; all at once for an auto-encoder, which checks them."""
    if self.model_.targets.is_input:
        return [self._read(X).X]
    return read_blocks(cast(Any, self), X, self.model_.schema, n_threads)


def jacobian(self: FittedModel, X: TableLike) -> Floats:
    """Return the derivative of the output with respect to the features, (rows, outputs, features).

    The output is `decision_function` of a classifier and `predict` of any other estimator, or the logarithm of
    `predict` with ``loss="poisson"``, ``"gamma"``, ``"tweedie"`` or ``"aft"``. Several quantiles are those of
    `predict`, in ascending order. With a custom loss it is the argument of its `link`. Units are those of the output
    over those of the feature. The derivative is 0 where a leaf clips its input, infinite on
    overflow, and 0 everywhere, with a warning, if all leaves are constants.
    """
    model = self.model_
    choice = model.history.choice
    if choice is not None and [part.name for part in choice.parts] == [CONSTANT_LEAVES]:
        warn(
            "jacobian is 0 everywhere, as all leaves of the model are constants: use quality=2 or more, or "
            "output={'basis': 'quadratic'}."
        )
    scale, sort = model.targets.scale, model.targets.link_name == "sorted"
    return model.network.jacobian(self._read(X).X, scale=scale, sort=sort, n_jobs=threads.count(self.n_jobs))


def importance(
    self: FittedModel, kind: str = "attribution", layer: int | None = None, X: TableLike | None = None
) -> Floats:
    """Return importances as shares with sum 1.

    Parameters
    ----------
    kind : {"attribution", "jacobian", "split", "gain"}
        "attribution" is the mean absolute attribution (see `attributions`). "jacobian" is the mean absolute Jacobian
        times the standard deviation of the feature; it misses categories and jumps. Both are means over outputs before
        several quantiles are sorted. "split" is the number of splits. "gain" is the gain of splits that the library
        reports. In an average of models, splits of all models count equally, and gains are multiplied by the squares of
        the weights.
    layer : int, optional
        Only for splits and gains: the layer whose columns get importances (see `layer_names`); -1 is the output layer.
        By default the features get importances for the whole model. Importance then flows from the outputs down, layer
        by layer: that of a hidden unit goes to the columns that its trees read. The `base` of a layer does not count.
    X : array-like, (rows, features), optional
        Only for attributions and Jacobians: the rows to average over. The default is some hundred training rows, whose
        result the model stores.

    Returns
    -------
    (features,) or (columns of the layer,) float64

    Raises
    ------
    ValueError
        If a layer does not exist, or the backend reports no gains.
    """
    model = self.model_
    checks.one_of("kind", kind, KINDS)
    by_rows = kind in ("attribution", "jacobian")
    if by_rows and layer is not None:
        raise ValueError(f"layer={layer!r} with kind={kind!r} is not supported: use kind='split' or 'gain'.")
    if not by_rows:
        number = None if layer is None else Names.layer_number(layer, len(model.network.layers))
        return split_importances(model.network, kind, number)
    assert model.summary is not None
    if X is None:
        return np.array(getattr(model.summary, kind))
    start, n_threads = model.summary.center[None], threads.count(self.n_jobs)
    return importances_over(model.network, kind, self._read(X), start, n_threads=n_threads)


def attributions(
    self: FittedModel,
    X: TableLike,
    method: str = "integrated_gradients",
    *,
    baseline: TableLike | None = None,
    steps: int = 32,
) -> Attributions:
    """Return the contribution of each feature to the output of each row, through all layers.

    Parameters
    ----------
    X : array-like, (rows, features)
    method : {"integrated_gradients", "gradient_x_input"}
        Integrated gradients follow the straight line from the baseline to the row. Jumps of trees on this line, which
        gradients miss, are attributed to the features whose splits cause them. Base value and attributions therefore
        sum to the output, up to rounding (see `boostbp.model.attributions`). Gradient times input is the Jacobian
        times ``X - baseline``. It is quick, but does not sum to the output; categories, and values that are missing in
        the row or the baseline, have no slope and get 0.
    baseline : array-like, (1 or rows, features), optional
        Rows like `X`. The default is the mean of each feature in training, or its most frequent category.
    steps : int
        Number of steps on the line. More steps separate the features more finely; the sum stays the same.

    Returns
    -------
    Attributions
        ``values``, (rows, outputs, features), and ``base_values`` sum to the output of `jacobian`: `predict`,
        `decision_function` of a classifier, or logarithms with ``loss="poisson"``, ``"gamma"``, ``"tweedie"`` and
        ``"aft"``, all without an offset. ``error`` is the largest distance between an output and its sum.
        ``to_frame()`` returns a table.

    Raises
    ------
    ValueError
        If a method is unknown, or the baseline has a wrong number of rows.
    """
    model = self.model_
    checks.one_of("method", method, METHODS)
    steps = checks.whole("steps", steps, 1)
    table, sort = self._read(X), model.targets.link_name == "sorted"
    assert model.summary is not None
    start = model.summary.center[None] if baseline is None else dense(self._read(baseline).X)
    if len(start) not in (1, len(table.X)):
        raise ValueError(f"baseline has {len(start)} rows: give one, or one for each of the {len(table.X)} rows of X.")
    rows, n_threads, names = dense(table.X), threads.count(self.n_jobs), model.names()
    how: Any = {"categorical": table.categorical, "method": method, "steps": steps, "sort": sort}
    result = attribute(model.network, rows, start, **how, n_threads=n_threads)
    return result.in_units(model.targets.scale, model.targets.shift, names.features, names.outputs)


def explain(
    self: FittedModel,
    X: TableLike,
    method: str = "integrated_gradients",
    *,
    baseline: TableLike | None = None,
    steps: int = 32,
) -> Any:
    """Return `attributions` as a `shap.Explanation`, for the plots of shap; needs the extra ``shap``.

    The values are not Shapley values, for which ``shap.Explainer(model.predict, background)(X)`` calls the model many
    times for each row. Both agree if the output is a sum of functions of single features and there is one baseline. The
    value that plots label E[f(X)] is the output of the baseline.

    Parameters
    ----------
    X, method, baseline, steps :
        As in `attributions`.

    Returns
    -------
    shap.Explanation
        Base values and values sum to the output: see `attributions`. ``values`` is (rows, features) for one
        output, such as the log-odds of ``classes_[1]`` for two classes. It is (rows, features, outputs) for several;
        ``explanation[:, :, "setosa"]`` selects a class. ``data`` has the codes of categories, and ``display_data``
        their names if there are any.

    Raises
    ------
    ImportError
        If shap is not installed.
    ValueError
        As in `attributions`.
    """
    shap = require("shap", extra="shap", what="explain(...)")
    result = attributions(self, X, method, baseline=baseline, steps=steps)
    rows, names = dense(self._read(X).X), self.model_.names()
    values, base, outputs = result.values.transpose(0, 2, 1), result.base_values, list(result.output_names)
    display = names.as_written(rows) if names.categories else None
    named: dict[str, Any] = {"feature_names": list(result.feature_names), "output_names": outputs}
    if len(outputs) == 1:
        values, base, named["output_names"] = values[:, :, 0], base[:, 0], outputs[0]
    return shap.Explanation(values, base, rows, display_data=display, **named)


def apply(self: FittedModel, X: TableLike, layer: int = -1) -> NDArray[np.int32]:
    """Return the leaf of each row in each tree of a layer, like `pred_leaf` of LightGBM and XGBoost.

    Parameters
    ----------
    X : array-like, (rows, features)
    layer : int
        Number of the layer: 0 is next to the input, -1 is the output layer.

    Returns
    -------
    (rows, trees) int32
        Trees and leaves are numbered as in `leaf_report` and `trees_to_dataframe`. A tree without splits, such as the
        ridge regression that a layer starts from, has only leaf 0.

    Raises
    ------
    ValueError
        If the layer does not exist.
    """
    network, n_threads = self.model_.network, threads.count(self.n_jobs)
    number = Names.layer_number(layer, len(network.layers))
    h = above(network.layers[:number], self._read(X).X, skip=network.skip, n_jobs=n_threads)
    return np.ascontiguousarray(network.layers[number].forest.route(h, n_threads).T, np.int32)


def leaf_report(self: FittedModel, X: TableLike) -> LeafRecords:
    """Describe the leaf of each row in each tree, and the regression in it; meant for few rows.

    Parameters
    ----------
    X : array-like, (rows, features)

    Returns
    -------
    list of dict
        An entry for each row, layer, tree and output of the tree; ``to_frame()`` returns a table. Its items are

        - ``row``, ``layer``, ``tree``, ``output`` (a name), ``leaf``;
        - ``path``: the conditions of the leaf, such as ``"20 < age <= 33.5 or missing"``;
        - ``coefficients``: weight of each term in the user's units, ``{"age": .., "age^2": ..}``, and ``constant``;
        - ``inputs``: the values that the regression reads; ``clipped`` names those that are clipped to the training
          range of the leaf, ``missing`` those that are replaced by its training mean;
        - ``value``: constant plus coefficients times inputs.

        A tree without splits is the ridge regression that the layer starts from, and tree -1 is the constant that the
        output starts from. For each row, layer and output, the values sum to the hidden unit, or to the output of
        `jacobian`; of several quantiles, to that before they are sorted.
    """
    model, n_threads = self.model_, threads.count(self.n_jobs)
    units = {"scale": model.targets.scale, "offset": model.targets.shift}
    return leaf_records(model.network, dense(self._read(X).X), model.names(), **units, n_threads=n_threads)


def trees_to_dataframe(self: FittedModel) -> Any:
    """Return all leaves of all trees with their regressions; needs the extra ``frames``.

    Returns
    -------
    pandas.DataFrame
        A row for each layer, tree, leaf and output of the tree. ``layer``, ``tree``, ``leaf``, ``output``, ``path``,
        ``constant`` and ``coefficients`` are those of `leaf_report`. The regression clips its inputs to ``ranges``,
        such as ``{"age": (18.0, 33.5)}``, and replaces missing ones by ``means``. The trees are summed; tree -1 is the
        constant that the output starts from.
    """
    model = self.model_
    units = {"scale": model.targets.scale, "offset": model.targets.shift}
    return all_leaves(model.network, model.names(), **units).to_frame()


def hidden_representation(self: FittedModel, X: TableLike, layer: int | None = None) -> Any:
    """Return the units of one or all hidden layers.

    Parameters
    ----------
    X : array-like, (rows, features)
    layer : int, optional
        Number of the hidden layer: 0 is next to the input, -1 next to the output. None returns all layers.

    Returns
    -------
    (rows, units) float64, or a list of such arrays from the input up
        The units of `transform`; `hidden_names` returns their names.
    """
    network, n_threads = self.model_.network, threads.count(self.n_jobs)
    if is_blocks(X):
        parts = [hidden_representation(self, block, layer) for block in blocks_of(X, self.model_.schema)]
        return np.concatenate(parts) if layer is not None else list(map(np.concatenate, zip(*parts, strict=True)))
    hidden = len(network.layers) - 1
    if layer is None:
        table = self._read(X)
        return [network.representation(table.X, number + 1, n_jobs=n_threads) for number in range(hidden)]
    if isinstance(layer, bool) or not isinstance(layer, Integral) or not -hidden <= layer < hidden:
        none = "no hidden layer (deep=False and hidden_layer_sizes=() train none, and deep='auto' keeps none "
        none += "without weight): use deep=True for a model that is the network"
        layers = f"{hidden} hidden layers, 0 to {hidden - 1}" if hidden else none
        raise ValueError(f"layer={layer!r} does not exist: this model has {layers}.")
    number, blocks = layer % hidden + 1, read_in_blocks(self, X, n_threads)
    units = []
    for rows in blocks:
        units.append(network.representation(rows, number, n_jobs=n_threads))
        del rows  # before the next block is read
    return units[0] if len(units) == 1 else np.concatenate(units)


def health(self: FittedModel) -> Health:
    """Return the health of the hidden layers according to the training history, with a sentence on each problem.

    ``print(model.health())`` shows a table. It covers the network with the most weight in the model, which is
    ``health().weight``, and no other network of an average. With ``deep=True`` it covers the requested network, even if
    that has no weight.
    """
    return health_of(self.model_.history)


def layer_names(self: FittedModel, layer: int) -> list[str]:
    """Return the names of the columns that a layer reads: features in layer 0, hidden units above.

    With `skip`, layers above 0 also read the features.
    """
    return self.model_.names().inputs_of(layer)


def hidden_names(self: FittedModel, layer: int = -1) -> list[str]:
    """Return the names of the units of a hidden layer: ``h0_0``, ``h0_1``, ... next to the input."""
    return self.model_.names().hidden(layer)


def output_names(self: FittedModel) -> list[str]:
    """Return the names of the raw outputs."""
    return list(self.model_.names().outputs)
