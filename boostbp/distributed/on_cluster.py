"""What estimators of clusters share: the fitted estimator for one machine."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators.supervised import Supervised


class OnCluster(BaseEstimator):
    """A subclass of an estimator, with the same parameters, that fits on a cluster."""

    _local: ClassVar[type[Any]]

    def to_local(self) -> Any:
        """Return the fitted estimator for one machine, which does not need the cluster."""
        check_is_fitted(self)
        local = self._local(**self.get_params(deep=False))
        vars(local).update(vars(self))
        return local

    def _take(self, fitted: Supervised) -> None:
        """Take over what a local estimator has after `fit`."""
        params = self.get_params(deep=False)
        self.__dict__.pop("feature_names_in_", None)  # from an earlier fit; this one may have none
        self.__dict__.update({name: value for name, value in vars(fitted).items() if name not in params})


def no_rows_of(local: Supervised, method: str, *arguments: float) -> NDArray[Any]:
    """Return what a method would return for no rows, with its shape and dtype."""
    row = np.full((1, local.n_features_in_), np.nan)
    if hasattr(local, "feature_names_in_"):
        row = import_module("pandas").DataFrame(row, columns=local.feature_names_in_)
    return getattr(local, method)(row, *arguments)[:0]
