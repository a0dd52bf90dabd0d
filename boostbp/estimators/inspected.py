"""What a fitted estimator tells about itself: importances, attributions, leaves, names, health.

These functions are methods of every estimator. Features, hidden units and outputs are named as `layer_names`,
`hidden_names` and `output_names` say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boostbp import inspection
from boostbp.inspection import Attributions, Health, LeafRecords, Names
from boostbp.network.network import Network
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import require
from boostbp.trees.sparse import dense

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP

KINDS = ("split", "gain", "jacobian", "attribution")
METHODS = ("integrated_gradients", "gradient_x_input")


def importance(self: BaseBoostBP, kind: str = "attribution", layer: int | None = None, X: Any = None) -> Floats:
    """Importances, as shares with sum 1.

    Parameters
    ----------
    kind : {"attribution", "jacobian", "split", "gain"}
        Mean absolute attribution (see `attributions`); mean absolute Jacobian times the standard deviation of
        the feature, blind to categories and jumps; number of splits; gain of splits as the library states it. Of an
        average of models, splits of all count alike, gains by the squares of the weights.
    layer : int, optional
        For splits and gains: of the columns that this layer reads (see `layer_names`); -1 is the output
        layer. Without it, of the features for the whole model: from the outputs, importance flows down layer by
        layer, that of a hidden unit to the columns that the trees of this unit read. What a layer
        starts from (`base`) does not count.
    X : array-like, (rows, features), optional
        For attributions and Jacobians: the rows to average over. Without it, some hundred training rows, whose
        result is kept in the model.

    Returns
    -------
    (features,) or (columns of the layer,) float64

    Raises
    ------
    ValueError
        If a layer does not exist, or the backend states no gains.
    """
    check_trees(self)
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not known: use one of {', '.join(map(repr, KINDS))}.")
    by_rows = kind in ("attribution", "jacobian")
    if by_rows and layer is not None:
        raise ValueError(f"layer={layer!r} with kind={kind!r} is not supported: use kind='split' or 'gain'.")
    if not by_rows:
        number = None if layer is None else Names.layer_number(layer, len(self.network_.layers))
        return inspection.importances(self.network_, kind, number)
    if X is None:
        return getattr(self._summary(), kind).copy()
    table = self._read(X)
    return inspection.importances_over(
        self.network_, kind, table, self._summary().center[None], n_threads=self._n_threads()
    )


def attributions(
    self: BaseBoostBP, X: Any, method: str = "integrated_gradients", *, baseline: Any = None, steps: int = 32
) -> Attributions:
    """What each feature adds to the output of each row, through all layers.

    Parameters
    ----------
    X : array-like, (rows, features)
    method : {"integrated_gradients", "gradient_x_input"}
        Integrated gradients follow the straight line from the baseline to the row. The jumps of trees on it,
        which no gradient shows, are counted for the features whose splits cause them, so base value and
        attributions sum to the output up to rounding (see `boostbp.inspection.attributions`). Gradient
        times input, the Jacobian times ``X - baseline``, is quick and does not; categories and values that are
        missing in one of both have no slope, and get 0.
    baseline : array-like, (1 or rows, features), optional
        As `X` is. Without it, the mean of each feature in training, or its most frequent category.
    steps : int
        Steps on the line. The sum does not depend on it; how finely features are told apart does.

    Returns
    -------
    Attributions
        ``values``, (rows, outputs, features), and ``base_values``, in units of the raw output: those of the
        target, log-odds of a classifier, logarithms of ``loss="poisson"``, ``"gamma"`` and ``"tweedie"``; ``error``
        is the largest distance between an output and its sum; ``to_frame()`` is a table of them.

    Raises
    ------
    ValueError
        If an argument is not known, or the baseline has another number of rows.
    """
    return _attributed(self, X, method, baseline, steps)[0]


def explain(
    self: BaseBoostBP, X: Any, method: str = "integrated_gradients", *, baseline: Any = None, steps: int = 32
) -> Any:
    """The attributions of `attributions` as a `shap.Explanation`, for the plots of shap; extra ``shap``.

    They are no Shapley values: those of ``shap.Explainer(model.predict, background)(X)`` call the model many times
    for each row. For an output that is a sum of functions of single features, and one baseline, they agree. What
    plots call E[f(X)] is the output of the baseline.

    Parameters
    ----------
    X, method, baseline, steps :
        As in `attributions`.

    Returns
    -------
    shap.Explanation
        Base values and values sum to the raw output: see `attributions`. ``values`` is (rows, features) for one
        output, which is the log-odds of ``classes_[1]`` for two classes, and (rows, features, outputs) for
        several: ``explanation[:, :, "setosa"]`` is that of a class. ``data`` has codes for categories,
        ``display_data``, where there are any, their names.

    Raises
    ------
    ImportError
        If shap is not installed.
    ValueError
        As `attributions`.
    """
    shap = require("shap", extra="shap", what="explain(...)")
    found, rows = _attributed(self, X, method, baseline, steps)
    names = self._names()
    values, base, outputs = found.values.transpose(0, 2, 1), found.base_values, list(found.output_names)
    alone = len(outputs) == 1
    return shap.Explanation(
        values[:, :, 0] if alone else values,
        base[:, 0] if alone else base,
        rows,
        display_data=names.as_written(rows) if names.categories else None,
        feature_names=list(found.feature_names),
        output_names=outputs[0] if alone else outputs,
    )


def _attributed(self: BaseBoostBP, X: Any, method: str, baseline: Any, steps: int) -> tuple[Attributions, Floats]:
    """Attributions, and the rows as they were read, (rows, features)."""
    check_trees(self)
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known: use one of {', '.join(map(repr, METHODS))}.")
    steps = checks.whole("steps", steps, 1)
    table = self._read(X)
    start = self._summary().center[None] if baseline is None else dense(self._read(baseline).X)
    if len(start) not in (1, len(table.X)):
        raise ValueError(f"baseline has {len(start)} rows: give one row, or one for each of the {len(table.X)} of X.")
    rows = dense(table.X)
    found = inspection.attribute(
        self.network_, rows, start, categorical=table.categorical, method=method, steps=steps,
        n_threads=self._n_threads(),
    )  # fmt: skip
    names = self._names()
    return found.in_units(self.model_.targets.scale, self.model_.targets.shift, names.features, names.outputs), rows


def apply(self: BaseBoostBP, X: Any, layer: int = -1) -> NDArray[np.int32]:
    """Leaf of each row under each tree of a layer, as `pred_leaf` of LightGBM and XGBoost.

    Parameters
    ----------
    X : array-like, (rows, features)
    layer : int
        0 is the one next to the input, -1 the output layer.

    Returns
    -------
    (rows, trees) int32
        Trees and leaves have the numbers of `leaf_report` and `trees_to_dataframe`. A tree without splits, such as
        the ridge regression that a layer starts from, has one leaf, 0.

    Raises
    ------
    ValueError
        If there is no such layer.
    """
    check_trees(self)
    number = Names.layer_number(layer, len(self.network_.layers))
    until = replace(self.network_, layers=self.network_.layers[: number + 1])
    h = until.output_input(self._read(X).X, n_jobs=self._n_threads())
    return np.ascontiguousarray(until.layers[-1].forest.route(h, self._n_threads()).T, np.int32)


def leaf_report(self: BaseBoostBP, X: Any) -> LeafRecords:
    """The leaf of each row under each tree, and the regression in it; made for few rows.

    Parameters
    ----------
    X : array-like, (rows, features)

    Returns
    -------
    list of dict
        One for each row, layer, tree and output that the tree serves (``to_frame()`` is a table of it), with

        - ``row``, ``layer``, ``tree``, ``output`` (a name), ``leaf``;
        - ``path``: what brings the row there, such as ``"20 < age <= 33.5 or missing"``;
        - ``coefficients``: weight of each term in the user's units, ``{"age": .., "age^2": ..}``, and ``constant``;
        - ``inputs``: the values that the regression reads; ``clipped`` and ``missing`` name those that are
          clipped to the range, or replaced by the mean, that the leaf saw in training;
        - ``value``: constant plus coefficients times inputs.

        A tree without splits is the ridge regression that the layer starts from; tree -1 is the constant
        that the output starts from. For each row, layer and output the values sum to the hidden unit, or
        to the raw output in its units (see `attributions`).
    """
    check_trees(self)
    return inspection.leaf_records(
        self.network_, dense(self._read(X).X), self._names(),
        scale=self.model_.targets.scale, offset=self.model_.targets.shift, n_threads=self._n_threads(),
    )  # fmt: skip


def trees_to_dataframe(self: BaseBoostBP) -> Any:
    """All leaves of all trees, with their regressions; extra ``frames``.

    Returns
    -------
    pandas.DataFrame
        A row for each layer, tree, leaf and output that the tree serves: ``layer``, ``tree``, ``leaf``, ``output``,
        ``path``, ``constant`` and ``coefficients`` are those of `leaf_report`. An input of the regression is
        clipped to its range in ``ranges``, ``{"age": (18.0, 33.5)}``, and a missing one is replaced by that in
        ``means``. Trees are summed: tree -1 is the constant that the output starts from.
    """
    check_trees(self)
    leaves = inspection.all_leaves(
        self.network_, self._names(), scale=self.model_.targets.scale, offset=self.model_.targets.shift
    )
    return leaves.to_frame()


def health(self: BaseBoostBP) -> Health:
    """Health of the hidden layers, by the records of training, with sentences on what is wrong.

    ``print(model.health())`` shows a table. It covers the network with most weight in the model, and
    ``health().weight`` is that weight. Other networks of an average are not covered. With ``deep=True`` it is the
    network that was asked for, whatever its weight.
    """
    check_is_fitted(self)
    return inspection.health_of(self.history_)


def layer_names(self: BaseBoostBP, layer: int) -> list[str]:
    """Names of the columns that a layer reads: features for 0; hidden units (and features, with `skip`) above."""
    check_trees(self)
    return self._names().inputs_of(layer)


def hidden_names(self: BaseBoostBP, layer: int = -1) -> list[str]:
    """Names of the units of a hidden layer: ``h0_0``, ``h0_1``, .. next to the input."""
    check_trees(self)
    return self._names().hidden(layer)


def output_names(self: BaseBoostBP) -> list[str]:
    """Names of the raw outputs."""
    check_is_fitted(self)
    return list(self._names().outputs)


def check_trees(estimator: BaseBoostBP) -> None:
    """Refuse a mixture with a neural network; AttributeError, as for a method that it does not have."""
    check_is_fitted(estimator)
    if not isinstance(estimator.network_, Network):
        raise AttributeError(
            f"{type(estimator).__name__} is trees and a neural network together, and this is told of trees only. "
            "Use jacobian or hidden_representation."
        )
