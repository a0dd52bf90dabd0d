"""BoostBPAutoencoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

from boostbp.backends.base import Table
from boostbp.estimators.atomic import all_or_nothing
from boostbp.estimators.base import BaseBoostBP, names_of
from boostbp.estimators.eval_sets import named_in_errors, tables
from boostbp.estimators.held_out import hold_out
from boostbp.estimators.units import standard_units
from boostbp.floats import usual_in_methods
from boostbp.inputs import read_weight, refuse_extreme
from boostbp.losses import SquaredError
from boostbp.network.backprop import EvalSet

__all__ = ["BoostBPAutoencoder"]

Floats = NDArray[np.float64]


@usual_in_methods
class BoostBPAutoencoder(BaseBoostBP):
    """Multi-layered gradient boosted trees that reconstruct their own input from a hidden layer.

    Parameters are those of `BoostBPRegressor` without `loss`: the loss is the squared error of the
    standardised features. All features must be numeric and present.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> coder = BoostBPAutoencoder((2,), epochs=2, random_state=0).fit(X)
    >>> coder.transform(X).shape, coder.predict(X).shape
    ((150, 2), (150, 4))
    """

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        eval_names: Sequence[str] | None = None,
        groups: Any = None,
        eval_X: Any = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or data frame, (rows, features)
        y : ignored
        sample_weight : array-like, (rows,), optional
            A weight of 2 is as good as the row twice, but that `min_samples_leaf` counts it once. Weights of less
            than 1 on average are scaled to 1.
        eval_set : array-like or list of array-like, optional
            Inputs to watch; the first one chooses the epoch. An array or data frame is one set.
        eval_names : list of str, optional
            What they are called in the history; "valid_0", "valid_1", ... if left out.
        groups : array-like, (rows,), optional
            Group of each row; those of a group are held out together (see `BoostBPRegressor.fit`).
        eval_X : array-like or tuple of array-like, optional
            The same as `eval_set`, by the name of other estimators.
        """
        if self.skip:
            raise ValueError("skip=True: an auto-encoder must see its input through the hidden layer. Use skip=False.")
        table = self._read(X, reset=True)
        weight = read_weight(sample_weight, len(table.X))
        if eval_set is not None and eval_X is not None:
            raise ValueError("eval_set and eval_X are both given, and say the same: leave one of them out.")
        parts = tables("eval_set", eval_set) + tables("eval_X", eval_X)
        sets = [self._eval_set(name, *part) for name, part in zip(names_of(parts, eval_names), parts, strict=True)]
        target = table.X
        refuse_extreme(target, "X")
        if not sets:
            table, target, weight, sets = hold_out(self, table, target, weight, None, groups=groups, X=X)
        self._shift, self._scale = standard_units(target, weight)
        loss = SquaredError()
        metric = self._metric(loss, sets)
        target = np.ascontiguousarray((target - self._shift) / self._scale)
        return self._train(table, target, weight, loss, sets, metric, self._outcome)

    def _eval_set(self, name: str, source: str, X: Any) -> EvalSet:
        with named_in_errors(source):
            X = self._read(X).X
        return EvalSet(name, X, X, np.ones(len(X)))

    def predict(self, X: Any) -> Floats:
        """Reconstruction, (rows, features)."""
        return self._outcome(self._raw(X))

    def inverse_transform(self, H: Any) -> Floats:
        """Reconstruction from the last hidden layer, (rows, units) -> (rows, features)."""
        check_is_fitted(self)
        h = check_array(H, dtype=np.float64, order="C")
        return self._outcome(self.network_.layers[-1].predict(h, n_jobs=self._n_threads()) + self.network_.baseline)

    def score(self, X: Any, y: Any = None) -> float:
        """R^2 of the reconstruction, averaged over features by their variance."""
        check_is_fitted(self)
        X = self._read(X).X
        residual = np.square(X - self.predict(X)).sum()
        total = np.square(X - X.mean(axis=0)).sum()
        return float(1.0 - residual / total) if total > 0 else 0.0

    def _read(self, X: Any, *, reset: bool = False) -> Table:
        if issparse(X):
            raise TypeError(
                "X is sparse: sparse input is not supported by an auto-encoder, which reconstructs all of it. "
                "Use X.toarray()."
            )
        table = super()._read(X, reset=reset)
        if table.categorical:
            raise ValueError(
                f"X has categorical columns {list(table.categorical)}: an auto-encoder reconstructs numbers. "
                "Encode them first."
            )
        with np.errstate(invalid="ignore"):  # it looks at the sum first
            check_array(table.X, estimator=self, input_name="X")
        return table

    def _outcome(self, raw: Floats) -> Floats:
        return raw * self._scale + self._shift

    def _output_scale(self) -> Floats:
        return self._scale

    def _output_offset(self) -> Floats:
        return self._shift

    def _output_names(self) -> list[str]:
        return self._feature_names()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
