"""What users of scikit-learn, LightGBM and XGBoost look for in a fitted estimator, by the names that these give it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators.inspected import Inspected
from boostbp.floats import Floats, usual_in_methods
from boostbp.inspection import Names
from boostbp.layers import rounds


@usual_in_methods
class OtherNames(Inspected):
    """Leaves of rows, numbers of training, and predictions of the growing model."""

    @property
    def best_iteration_(self) -> int:
        """Number of the epoch that the network was taken from, from 0, which is before any back-propagation.

        Of a single layer that was asked for (``hidden_layer_sizes=()``) it is the number of rounds that are kept. It is
        0 where ``deep="auto"`` trained no network.
        """
        check_is_fitted(self)
        if len(self.network_.layers) == 1 and self.history_.choice is None:
            return rounds.rounds_of(self.network_.layers[-1].forest)
        return self.history_.best_epoch

    @property
    def best_score_(self) -> dict[str, dict[str, float]]:
        """Metric of the model on each evaluation set, ``{"valid_0": {"rmse": 0.5}}``; of rows held out, "held_out".

        That of ``history_.scores``; empty where nothing was evaluated.
        """
        check_is_fitted(self)
        return {name: {self.history_.metric: score} for name, score in self.history_.scores.items()}

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """Metric on each evaluation set by epoch of back-propagation, ``{"valid_0": {"rmse": [0.9, 0.7, 0.5]}}``.

        Epochs are those of `history_`; of a model without a network, epoch 0 tells of the whole model.
        """
        check_is_fitted(self)
        history = self.history_
        return {name: {history.metric: history.metrics(name)} for name in history[0].metrics}

    def apply(self, X: Any, layer: int = -1) -> NDArray[np.int32]:
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
        self._check_trees()
        number = Names.layer_number(layer, len(self.network_.layers))
        until = replace(self.network_, layers=self.network_.layers[: number + 1])
        h = until.output_input(self._read(X).X, n_jobs=self._n_threads())
        return np.ascontiguousarray(until.layers[-1].forest.route(h, self._n_threads()).T, np.int32)

    def _staged_raw(self, X: Any) -> Iterator[Floats]:
        """Raw outputs after each round of the output layer, (rows, outputs)."""
        self._check_trees()
        network, n_threads = self.network_, self._n_threads()
        forest, h = network.layers[-1].forest, network.output_input(self._read(X).X, n_jobs=n_threads)
        numbers = range(1, max(rounds.rounds_of(forest), 1) + 1)
        for _, raw in rounds.staged(forest, h, numbers, n_threads=n_threads):
            yield raw + network.baseline
