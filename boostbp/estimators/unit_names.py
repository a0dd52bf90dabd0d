"""Names of the columns that `transform` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators.inspected import Inspected


class UnitNames(Inspected, ClassNamePrefixFeaturesOutMixin):
    """Names of the units of the last hidden layer."""

    deep: Any
    hidden_layer_sizes: Any

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of `transform`, such as ``boostbpregressor0``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Only compared with the names that `fit` saw.

        Raises
        ------
        ValueError
            If the model has no hidden layer, as with ``deep=False`` or ``hidden_layer_sizes=()``.
        """
        check_is_fitted(self)
        try:
            _ = self._n_features_out
        except AttributeError as error:
            raise ValueError(str(error)) from None
        return np.asarray(super().get_feature_names_out(input_features))

    @property
    def _n_features_out(self) -> int:
        """Units of the last hidden layer; an AttributeError where there is none, as `hasattr` of scikit-learn asks."""
        check_is_fitted(self)
        if self._left_networks_out():
            return 0
        if len(self.network_.layers) == 1:
            need = "use deep=True, and hidden_layer_sizes other than ()"
            raise AttributeError(f"This model has no hidden layer, whose units could have names: {need}.")
        return self.network_.layers[-2].forest.n_outputs

    def _left_networks_out(self) -> bool:
        """Whether hidden layers were asked for, and none is in the model."""
        return self.deep == "auto" and np.size(self.hidden_layer_sizes) > 0 and len(self.network_.layers) == 1
