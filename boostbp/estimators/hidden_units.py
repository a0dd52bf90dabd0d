"""Hidden units of a fitted estimator, and their names as columns of `transform`.

These functions are methods of every estimator.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from boostbp.inputs.blocks import blocks_of, is_blocks
from boostbp.runtime import messages
from boostbp.runtime.arrays import Floats

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP


def transform(self: BaseBoostBP, X: Any, layer: int = -1) -> Floats:
    """Return the units of a hidden layer; in an average, those of all its networks side by side.

    With ``deep=True`` the sizes are those of `hidden_layer_sizes`. If ``deep="auto"`` made a model without hidden
    layers, because no network got weight, the result has no columns, and a warning says so.

    Parameters
    ----------
    X : array-like, (rows, features)
    layer : int
        Number of the hidden layer: 0 is next to the input, -1 next to the output.

    Returns
    -------
    (rows, units) float64

    Warns
    -----
    UserWarning
        If ``deep="auto"`` made a model without hidden layers (``history_.weight()`` is 0).

    Raises
    ------
    ValueError
        If the layer does not exist. With ``deep=False`` or ``hidden_layer_sizes=()`` there is none.
    """
    check_is_fitted(self)
    named = _get_output_config("transform", self)["dense"] != "default"
    if named and layer not in (-1, len(self.network_.layers) - 2):
        raise ValueError(
            f"layer={layer!r} with set_output is not supported: its columns are named for the last hidden layer. "
            "Use hidden_representation(X, layer) and hidden_names(layer)."
        )
    if self._left_networks_out() and layer == -1:  # with an error, the rows would decide whether a pipeline works
        messages.warn(
            "transform returns no columns: this model has no hidden layer, as deep='auto' kept none. Use deep=True "
            "for a model that is the network."
        )
        rows = map(self._read, blocks_of(X, self.schema_) if is_blocks(X) else [X])
        return np.empty((sum(table.X.shape[0] for table in rows), 0))
    return self.hidden_representation(X, layer)


def hidden_representation(self: BaseBoostBP, X: Any, layer: int | None = None) -> Any:
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
    check_is_fitted(self)
    if is_blocks(X):
        parts = [self.hidden_representation(block, layer) for block in blocks_of(X, self.schema_)]
        return np.concatenate(parts) if layer is not None else list(map(np.concatenate, zip(*parts, strict=True)))
    hidden = len(self.network_.layers) - 1
    if layer is None:
        table = self._read(X)
        return [self.network_.representation(table.X, number + 1, n_jobs=self._n_threads()) for number in range(hidden)]
    if isinstance(layer, bool) or not isinstance(layer, Integral) or not -hidden <= layer < hidden:
        none = "no hidden layer (deep=False and hidden_layer_sizes=() train none, and deep='auto' keeps none "
        none += "without weight): use deep=True for a model that is the network"
        layers = f"{hidden} hidden layers, 0 to {hidden - 1}" if hidden else none
        raise ValueError(f"layer={layer!r} does not exist: this model has {layers}.")
    return self.network_.representation(self._read(X).X, layer % hidden + 1, n_jobs=self._n_threads())


def get_feature_names_out(self: BaseBoostBP, input_features: ArrayLike | None = None) -> NDArray[Any]:
    """Return the names of the columns of `transform`, such as ``boostbpregressor0``.

    Parameters
    ----------
    input_features : array-like of str, optional
        Must be the names that `fit` saw; they have no other effect.

    Raises
    ------
    ValueError
        If the model has no hidden layer, for example with ``deep=False`` or ``hidden_layer_sizes=()``.
    """
    check_is_fitted(self)
    try:
        _ = self._n_features_out
    except AttributeError as error:
        raise ValueError(str(error)) from None
    return np.asarray(ClassNamePrefixFeaturesOutMixin.get_feature_names_out(self, input_features))
