"""BoostBPAutoencoder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_array

from boostbp.estimators import session
from boostbp.estimators.arguments import Arguments, OneOrMore, PassedSet, named_tables
from boostbp.estimators.base import BaseBoostBP, public_methods
from boostbp.estimators.constructor import CommonParameters, takes
from boostbp.estimators.nested_parameters import documented_as
from boostbp.estimators.regressor import BoostBPRegressor
from boostbp.inputs.matrices import check_numeric
from boostbp.inputs.targets import refuse_extreme
from boostbp.losses import SquaredError
from boostbp.model.model import Targets
from boostbp.network.monitor import Progress
from boostbp.network.settings import BackpropSpec
from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats, TableLike


@documented_as(BoostBPRegressor)
@public_methods
class BoostBPAutoencoder(BaseBoostBP):
    """Auto-encoder of multi-layered gradient boosted trees: it reconstructs its input from hidden layers.

    The loss is the squared error of the standardised features. All features must be numeric, without missing values.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Number of units in each hidden layer, from the input up; at least one layer.
    others : as in `BoostBPRegressor`

    Attributes
    ----------
    others : as in `BoostBPRegressor`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> coder = BoostBPAutoencoder((2,), epochs=2, random_state=0).fit(X)
    >>> coder.transform(X).shape, coder.predict(X).shape
    ((150, 2), (150, 4))
    """

    deep = True  # a class attribute and not a parameter: the model is the network
    quality = 3  # has no effect without an ensemble

    @takes(CommonParameters)
    def __init__(self) -> None: ...

    def fit(
        self,
        X: TableLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: OneOrMore | None = None,
        eval_names: Sequence[str] | None = None,
        groups: ArrayLike | None = None,
        eval_X: OneOrMore | None = None,
        callbacks: Sequence[Callable[[Progress], object]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        keep_state: bool = False,
    ) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array-like or data frame, (rows, features)
        y : ignored
        eval_set : array-like or list of array-like, optional
            Evaluation sets; the first one chooses the epoch. An array or data frame is one set.
        eval_names : list of str, optional
            Names of the evaluation sets in the history; "valid_0", "valid_1", ... by default.
        groups : array-like, (rows,), optional
            Group of each row. Rows of a group are held out together (see `BoostBPRegressor.fit`).
        eval_X : array-like or tuple of array-like, optional
            The same as `eval_set`, under the name that other estimators have.
        others : as in `BoostBPRegressor`
        """
        if BackpropSpec.of(self.backprop, "backprop").skip:
            raise ValueError("skip=True: an auto-encoder must see its input through the hidden layer. Use skip=False.")
        if eval_set is not None and eval_X is not None:
            raise ValueError("eval_set and eval_X are both given, and mean the same: leave one of them out.")
        sets = [PassedSet(*named) for named in named_tables("eval_set", eval_set) + named_tables("eval_X", eval_X)]
        arguments = Arguments(
            X, None, sample_weight, None, groups, None, sets, eval_names, None, callbacks, checkpoint, keep_state
        )
        session.run_fit(self, arguments)
        return self

    def predict(self, X: TableLike) -> Floats:
        """Return the reconstruction of the input, (rows, features)."""
        raw = self._raw(X)
        return self.model_.targets.outcome(raw)

    def inverse_transform(self, H: ArrayLike) -> Floats:
        """Return the reconstruction, (rows, features), from the last hidden layer, (rows, units)."""
        network, targets = self.model_.network, self.model_.targets
        h = check_array(H, dtype=np.float64, order="C")
        return targets.outcome(network.layers[-1].predict(h, n_jobs=threads.count(self.n_jobs)) + network.baseline)

    def score(self, X: TableLike, y: object = None) -> float:
        """Return R2 of the reconstruction, averaged over features with their variances as weights."""
        target = self._read(X).X
        residual = np.square(target - self.predict(X)).sum()
        total = np.square(target - target.mean(axis=0)).sum()
        return float(1.0 - residual / total) if total > 0 else 0.0

    def _read_target(self, values: Any, weight: Floats, *_: object) -> tuple[Targets, Floats, Floats]:
        check_numeric(values)
        X = np.asarray(values.X)
        refuse_extreme(X, "X")
        return Targets(SquaredError(), np.zeros(X.shape[1]), np.ones(X.shape[1]), is_input=True), X, weight

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
