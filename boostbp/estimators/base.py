"""What all estimators share: parameters into settings, training, hidden representations, names of other libraries."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from boostbp import metrics
from boostbp.backends.base import Table
from boostbp.estimators import hidden_units, inspected, session
from boostbp.estimators.fit_options import FitOptions
from boostbp.estimators.inspected import check_trees
from boostbp.estimators.nested_parameters import SPECS, changed, nested, places_of, public_methods
from boostbp.estimators.parameter_use import Way, warn_after, way_of
from boostbp.estimators.session import all_or_nothing
from boostbp.inputs.blocks import blocks_of, is_blocks
from boostbp.inputs.reader import learn_schema, read_input
from boostbp.inputs.schema import Schema
from boostbp.inspection import Names, Summary, warn_if_ill
from boostbp.layers import rounds
from boostbp.losses import Loss
from boostbp.metrics import Metric
from boostbp.model import Model
from boostbp.network.eval_sets import EvalSet
from boostbp.network.history import History
from boostbp.network.monitor import Progress
from boostbp.network.network import Network
from boostbp.network.settings import BackpropSpec
from boostbp.runtime import threads
from boostbp.runtime.arrays import Floats
from boostbp.runtime.suggestions import suggestion

ONE_SINGLE_LAYER = (
    "Single layers were not compared: without evaluation sets and held-out rows (fewer than 36 rows, or "
    "early_stopping=False), the model is one layer of n_estimators rounds."
)
# Attributes of a fit that runs, or may go on, which no copy of a fitted estimator keeps; scikit-learn's own since 1.9.
OF_A_FIT = ("_training", "_callback_fit_ctx", "_parent_callback_ctx")


@public_methods
class BaseBoostBP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Parameters, training and hidden representations; see `BoostBPRegressor` for the parameters."""

    _fewest_hidden = 1
    _takes_blocks = False  # whether `X` of a fit may be a path or an iterator of blocks
    _packing: ClassVar[tuple[Callable[..., dict[str, Any]], Callable[..., dict[str, Any]]]]  # of `packed_state`
    # who splits by groups means them for our held-out rows, too
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    hidden_layer_sizes: Any
    quality: Any
    backend: Any
    n_estimators: Any
    learning_rate: Any
    max_depth: Any
    min_samples_leaf: Any
    colsample_bytree: Any
    hidden: Any
    output: Any
    backprop: Any
    epochs: Any
    deep: Any
    early_stopping: Any
    validation: Any
    eval_metric: Any
    max_time: Any
    categorical_features: Any
    n_jobs: Any
    random_state: Any
    verbose: Any
    backend_params: Any
    model_: Model

    importance = inspected.importance
    attributions = inspected.attributions
    explain = inspected.explain
    apply = inspected.apply
    leaf_report = inspected.leaf_report
    trees_to_dataframe = inspected.trees_to_dataframe
    health = inspected.health
    layer_names = inspected.layer_names
    hidden_names = inspected.hidden_names
    output_names = inspected.output_names
    transform = hidden_units.transform
    hidden_representation = hidden_units.hidden_representation
    get_feature_names_out = hidden_units.get_feature_names_out

    def _keep_parameters(self, parameters: dict[str, Any]) -> None:
        """Keep what a constructor was passed, its `locals()`, unchanged and by the same names."""
        self.__dict__.update({name: value for name, value in parameters.items() if name != "self"})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; if `deep`, the fields of specs as well, such as ``hidden__max_depth``."""
        params: dict[str, Any] = super().get_params(deep=deep)
        return {**params, **nested(self)} if deep else params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; fields of specs by names such as ``hidden__max_depth``.

        Raises
        ------
        ValueError
            If there is no such parameter; the message says which one was meant.
        """
        known, plain = self.get_params(deep=False), {}
        of_specs: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            head, is_field, field = name.partition("__")
            if is_field and head in SPECS:
                of_specs.setdefault(head, {})[field] = value
            elif name in known:
                plain[name] = value
            else:
                cure = suggestion(name, places_of(type(self)))
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: {cure}")
        specs = {head: changed(head, plain.get(head, known[head]), changes) for head, changes in of_specs.items()}
        super().set_params(**{**plain, **specs})
        return self

    @property
    def network_(self) -> Network:
        """The layers of the fitted model."""
        return self._fitted_model().network

    @property
    def history_(self) -> History:
        """How the training went."""
        return self._fitted_model().history

    @property
    def schema_(self) -> Schema:
        """The columns of the training table."""
        return self._fitted_model().schema

    @property
    def feature_summary_(self) -> Summary | None:
        """Means of the training rows, and what importances need."""
        return self._fitted_model().summary

    @property
    def n_iter_(self) -> int:
        """Epochs that were run."""
        return len(self._fitted_model().history) - 1

    def _fitted_model(self) -> Model:
        """Return the fitted model; NotFittedError, which is an AttributeError too, before a fit."""
        model: Model | None = vars(self).get("model_")
        if model is None:
            check_is_fitted(self)
            raise AttributeError("model_")  # set_output or a class with attributes of its own seems fitted
        return model

    def _summary(self) -> Summary:
        summary = self._fitted_model().summary
        assert summary is not None
        return summary

    @property
    def feature_importances_(self) -> Floats:
        """Importance of each feature for the whole model, (features,), with sum 1 (or 0 for a constant model).

        The mean absolute attribution over some hundred training rows, summed over outputs: `importance` with
        ``kind="attribution"``. It counts slopes, splits, categories and missing values in all layers.
        """
        return self.importance("attribution")

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

    def _names(self) -> Names:
        return self._fitted_model().names()

    def _backprop(self) -> BackpropSpec:
        return BackpropSpec.of(self.backprop, "backprop")

    def jacobian(self, X: Any) -> Floats:
        """Derivative of the raw output in the features: of `decision_function`, or the prediction of a regressor.

        With ``loss="poisson"``, ``"gamma"`` or ``"tweedie"`` the raw output is the logarithm of the prediction; with
        one's own loss it is what its `link` gets.

        Returns
        -------
        (rows, outputs, features) float64
            In the units of the target and the features; 0 where a leaf clips its input, infinite where float64 ends.
        """
        check_is_fitted(self)
        return self.network_.jacobian(self._read(X).X, scale=self.model_.targets.scale, n_jobs=self._n_threads())

    @all_or_nothing
    def fit_more(
        self,
        epochs: int,
        *,
        callbacks: Sequence[Callable[[Progress], object]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on for more epochs, on the rows and with the parameters of `fit`.

        Parameters
        ----------
        epochs : int
            How many more; patience and `max_time` count anew.
        callbacks, checkpoint : optional
            As in `fit`.

        Raises
        ------
        ValueError
            If `fit` did not keep the state of training: it does with ``keep_state=True``.
        KeyboardInterrupt
            On Ctrl-C, as `fit` does.
        """
        check_is_fitted(self)
        session.continue_fit(self, epochs, FitOptions(callbacks, checkpoint, keep_state=True))
        return self

    def summary(self) -> str:
        """Describe the training, the parts of the model and the gain by hidden layers, in a few sentences."""
        check_is_fitted(self)
        text, asked_for = self.history_.summary(), self.deep and not np.size(self.hidden_layer_sizes)
        network = asked_for or self.deep is True or self.n_iter_ > 0
        return text if self.history_.choice or network else f"{text}\n{ONE_SINGLE_LAYER}"

    @property
    def best_iteration_(self) -> int:
        """Iterations of the leading part of the model, the one with most weight (``history_.choice.lead``).

        Of a layer it is the number of its boosting rounds; of a network the epoch of back-propagation that it was taken
        from, where 0 is before any.
        """
        check_is_fitted(self)
        return self.history_.best_iteration

    @property
    def best_score_(self) -> dict[str, dict[str, float]]:
        """Metric of the model on each evaluation set, ``{"valid_0": {"rmse": 0.5}}``; of rows held out, "held_out".

        That of ``history_.scores``; empty where nothing was evaluated.
        """
        check_is_fitted(self)
        return {name: {self.history_.metric: score} for name, score in self.history_.scores.items()}

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """Metric of the leading part on each evaluation set, ``{"valid_0": {"rmse": [0.9, 0.7, 0.5]}}``.

        An entry for each of ``history_.iterations``: epochs of a network, or numbers of rounds of a layer, which is
        looked at every 25 rounds. The first one is before all of them.
        """
        check_is_fitted(self)
        return {name: {self.history_.metric: curve} for name, curve in self.history_.curves.items()}

    def _n_threads(self) -> int:
        return threads.count(self.n_jobs)

    def _learn_schema(self, X: Any) -> tuple[Schema, Table]:
        """Read the training table and learn its columns."""
        schema, table = learn_schema(self, X, categorical_features=self.categorical_features)
        return schema, self._checked_table(X, table)

    def _read(self, X: Any, schema: Schema | None = None) -> Table:
        """Read a table like that of `fit`; `schema` is that of the model, if left out."""
        return self._checked_table(X, read_input(self, X, self.schema_ if schema is None else schema))

    def _checked_table(self, X: Any, table: Table) -> Table:
        """Return the table of an input, if the estimator takes its like."""
        return table

    def _raw(self, X: Any) -> Floats:
        """Raw output h_L, (rows, outputs)."""
        if "model_" not in vars(self):  # scikit-learn would look through all attributes, for every row
            check_is_fitted(self)
        if is_blocks(X):
            return np.concatenate([self._raw(block) for block in blocks_of(X, self.schema_)])
        X, n_threads = self._read(X).X, self._n_threads()
        few = self.network_.of_few_rows(X)
        return self.network_.predict(X, n_jobs=n_threads) if few is None else few

    def _staged_raw(self, X: Any) -> Iterator[Floats]:
        """Raw outputs after each round of the output layer, (rows, outputs)."""
        check_trees(self)
        network, n_threads = self.network_, self._n_threads()
        forest, h = network.layers[-1].forest, network.output_input(self._read(X).X, n_jobs=n_threads)
        numbers = range(1, max(rounds.rounds_of(forest), 1) + 1)
        for _, raw in rounds.staged(forest, h, numbers, n_threads=n_threads):
            yield raw + network.baseline

    def _metric(self, loss: Loss, eval_sets: Sequence[EvalSet], scale: Floats | float = 1.0) -> Metric | None:
        """What evaluation sets are scored by, None where there are none; training divides targets by `scale`."""
        if not eval_sets and self.eval_metric is None:
            return None
        metric = metrics.load(self.eval_metric, loss, classes=is_classifier(self), scale=scale)
        return metric if eval_sets else None  # a wrong name is refused even where nothing is scored

    _training_of = session.training_of

    def _warn_of_fit(self) -> None:
        """Warn of hidden layers that cannot have been trained, and of parameters without effect."""
        warn_if_ill(self.history_)
        if self.history_.choice is not None and way_of(self) is Way.AVERAGE:
            warn_after(self, self.history_.choice)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """What pickle keeps: not the state of training, which holds the training rows."""
        derived = type(self).__getstate__ is not BaseBoostBP.__getstate__
        state = self.__getstate__() if derived else self._kept()
        return copyreg.__newobj__, (type(self),), state  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        """What skops keeps, which does not ask for the former."""
        return self._packing[0](self, self._kept())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of either."""
        super().__setstate__(self._packing[1](type(self), state))

    def _kept(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in OF_A_FIT or "model_" not in state}
