"""BaseBoostBP: parameters, the fitted model, and the methods that all estimators share."""

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
from boostbp.estimators.inspected import require_trees
from boostbp.estimators.nested_parameters import SPECS, nested_values, public_methods, replaced, spellings
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
# Attributes of a training that copies of a fitted estimator leave out; scikit-learn does the same since 1.9.
TRAINING_ATTRIBUTES = ("_training", "_callback_fit_ctx", "_parent_callback_ctx")


@public_methods
class BaseBoostBP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Parameters, training and hidden representations; see `BoostBPRegressor` for the parameters."""

    _min_hidden = 1  # smallest number of hidden layers
    _takes_blocks = False  # whether `X` of a fit may be a path or an iterator of blocks
    # `pack` and `unpack` of `boostbp.storage.models`, which sets them
    _packing: ClassVar[tuple[Callable[..., dict[str, Any]], Callable[..., dict[str, Any]]]]
    # Groups that are routed to a splitter also keep held-out rows apart.
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
        """Set the arguments of a constructor, its `locals()`, as attributes."""
        self.__dict__.update({name: value for name, value in parameters.items() if name != "self"})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` adds the fields of specs, such as ``hidden__max_depth``."""
        params: dict[str, Any] = super().get_params(deep=deep)
        return {**params, **nested_values(self)} if deep else params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and fields of specs by names such as ``hidden__max_depth``.

        Raises
        ------
        ValueError
            If a parameter does not exist; the message suggests the closest one.
        """
        known, plain = self.get_params(deep=False), {}
        spec_changes: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            head, is_field, field = name.partition("__")
            if is_field and head in SPECS:
                spec_changes.setdefault(head, {})[field] = value
            elif name in known:
                plain[name] = value
            else:
                cure = suggestion(name, spellings(type(self)))
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: {cure}")
        specs = {head: replaced(head, plain.get(head, known[head]), changes) for head, changes in spec_changes.items()}
        super().set_params(**{**plain, **specs})
        return self

    @property
    def network_(self) -> Network:
        """The layers of the fitted model."""
        return self._fitted_model().network

    @property
    def history_(self) -> History:
        """Record of the training."""
        return self._fitted_model().history

    @property
    def schema_(self) -> Schema:
        """The columns of the training table."""
        return self._fitted_model().schema

    @property
    def feature_summary_(self) -> Summary | None:
        """Means of the training rows, and the statistics that importances need."""
        return self._fitted_model().summary

    @property
    def n_iter_(self) -> int:
        """Number of epochs that ran."""
        return len(self._fitted_model().history) - 1

    def _fitted_model(self) -> Model:
        """Return the fitted model; before a fit raise NotFittedError, which is an AttributeError too."""
        model: Model | None = vars(self).get("model_")
        if model is None:
            check_is_fitted(self)
            raise AttributeError("model_")  # set_output and attributes of subclasses make an estimator look fitted
        return model

    def _summary(self) -> Summary:
        summary = self._fitted_model().summary
        assert summary is not None
        return summary

    @property
    def feature_importances_(self) -> Floats:
        """Importance of each feature for the whole model, (features,), with sum 1 (or 0 for a constant model).

        This is `importance` with ``kind="attribution"``: the mean absolute attribution over some hundred training rows,
        summed over outputs. It covers slopes, splits, categories and missing values in all layers.
        """
        return self.importance("attribution")

    @property
    def _n_features_out(self) -> int:
        """Units of the last hidden layer; AttributeError without one, because scikit-learn calls `hasattr`."""
        check_is_fitted(self)
        if self._left_networks_out():
            return 0
        if len(self.network_.layers) == 1:
            need = "use deep=True, and hidden_layer_sizes other than ()"
            raise AttributeError(f"This model has no hidden layer, so there are no units to name: {need}.")
        return self.network_.layers[-2].forest.n_outputs

    def _left_networks_out(self) -> bool:
        """Return whether ``deep="auto"`` made a model without the hidden layers that were requested."""
        return self.deep == "auto" and np.size(self.hidden_layer_sizes) > 0 and len(self.network_.layers) == 1

    def _names(self) -> Names:
        return self._fitted_model().names()

    def _backprop(self) -> BackpropSpec:
        return BackpropSpec.of(self.backprop, "backprop")

    def jacobian(self, X: Any) -> Floats:
        """Return the derivative of the raw output with respect to the features.

        The raw output is `decision_function` of a classifier and the prediction of a regressor, or its logarithm with
        ``loss="poisson"``, ``"gamma"`` or ``"tweedie"``. With a custom loss it is the argument of its `link`.

        Returns
        -------
        (rows, outputs, features) float64
            In units of the target over units of the feature; 0 where a leaf clips its input, infinite on overflow.
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
        """Train for more epochs, on the rows and with the parameters of `fit`.

        Parameters
        ----------
        epochs : int
            Number of further epochs; patience and `max_time` start anew.
        callbacks, checkpoint : optional
            As in `fit`.

        Raises
        ------
        ValueError
            If `fit` did not keep the state of training, as it does with ``keep_state=True``.
        KeyboardInterrupt
            On Ctrl-C, as in `fit`.
        """
        check_is_fitted(self)
        session.continue_fit(self, epochs, FitOptions(callbacks, checkpoint, keep_state=True))
        return self

    def summary(self) -> str:
        """Describe the training, the parts of the model and the gain from hidden layers in a few sentences."""
        check_is_fitted(self)
        text, asked_for = self.history_.summary(), self.deep and not np.size(self.hidden_layer_sizes)
        network = asked_for or self.deep is True or self.n_iter_ > 0
        return text if self.history_.choice or network else f"{text}\n{ONE_SINGLE_LAYER}"

    @property
    def best_iteration_(self) -> int:
        """Iterations of the leading part of the model, the one with the most weight (``history_.choice.lead``).

        For a layer this is its number of boosting rounds. For a network it is its epoch of back-propagation, where 0
        precedes the first.
        """
        check_is_fitted(self)
        return self.history_.best_iteration

    @property
    def best_score_(self) -> dict[str, dict[str, float]]:
        """Metric of the model on each evaluation set, ``{"valid_0": {"rmse": 0.5}}``.

        Rows that `fit` held out are named "held_out". Empty if there was no evaluation. See ``history_.scores``.
        """
        check_is_fitted(self)
        return {name: {self.history_.metric: score} for name, score in self.history_.scores.items()}

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """Metric of the leading part on each evaluation set, ``{"valid_0": {"rmse": [0.9, 0.7, 0.5]}}``.

        Each list has an entry for each of ``history_.iterations``: epochs of a network, or rounds of a layer, which is
        scored every 25 rounds. The first entry precedes all of them.
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
        """Read a table with the columns of `schema`, by default those of the model."""
        return self._checked_table(X, read_input(self, X, self.schema_ if schema is None else schema))

    def _checked_table(self, X: Any, table: Table) -> Table:
        """Return the table of the input `X`; subclasses raise an error for tables that they do not support."""
        return table

    def _raw(self, X: Any) -> Floats:
        """Return the raw output h_L, (rows, outputs)."""
        if "model_" not in vars(self):  # check_is_fitted searches all attributes, which is slow for single rows
            check_is_fitted(self)
        if is_blocks(X):
            return np.concatenate([self._raw(block) for block in blocks_of(X, self.schema_)])
        X, n_threads = self._read(X).X, self._n_threads()
        few = self.network_.of_few_rows(X)
        return self.network_.predict(X, n_jobs=n_threads) if few is None else few

    def _staged_raw(self, X: Any) -> Iterator[Floats]:
        """Yield the raw output, (rows, outputs), after each round of the output layer."""
        require_trees(self)
        network, n_threads = self.network_, self._n_threads()
        forest, h = network.layers[-1].forest, network.output_input(self._read(X).X, n_jobs=n_threads)
        numbers = range(1, max(rounds.rounds_of(forest), 1) + 1)
        for _, raw in rounds.staged(forest, h, numbers, n_threads=n_threads):
            yield raw + network.baseline

    def _metric(self, loss: Loss, eval_sets: Sequence[EvalSet], scale: Floats | float = 1.0) -> Metric | None:
        """Return the metric of the evaluation sets, None without any; training divides targets by `scale`."""
        if not eval_sets and self.eval_metric is None:
            return None
        metric = metrics.load(self.eval_metric, loss, classes=is_classifier(self), scale=scale)
        return metric if eval_sets else None  # load refuses a wrong name even if nothing is scored

    _training_of = session.training_of

    def _warn_of_fit(self) -> None:
        """Warn of hidden layers that did not learn, and of parameters without effect."""
        warn_if_ill(self.history_)
        if self.history_.choice is not None and way_of(self) is Way.AVERAGE:
            warn_after(self, self.history_.choice)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Return what pickle stores: all but the state of training, which contains the training rows."""
        derived = type(self).__getstate__ is not BaseBoostBP.__getstate__
        state = self.__getstate__() if derived else self._attributes()
        return copyreg.__newobj__, (type(self),), state  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        """Return what skops stores; it does not call `__reduce_ex__`."""
        return self._packing[0](self, self._attributes())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the attributes from the state of pickle or skops."""
        super().__setstate__(self._packing[1](type(self), state))

    def _attributes(self) -> dict[str, Any]:
        """Return the attributes without those of a training."""
        state: dict[str, Any] = super().__getstate__()
        return {
            name: value for name, value in state.items() if name not in TRAINING_ATTRIBUTES or "model_" not in state
        }
