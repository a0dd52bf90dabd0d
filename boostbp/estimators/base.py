"""BaseBoostBP: parameters, the fitted model, and the methods that all estimators share."""

from __future__ import annotations

import copyreg
import inspect
import os
from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators import inspected, nested_parameters, session
from boostbp.estimators.arguments import Arguments
from boostbp.estimators.data import ColumnNames, Learnt
from boostbp.estimators.state import pack_state, stored_attributes, unpack_state
from boostbp.estimators.training import Training
from boostbp.inputs.blocks import blocks_of
from boostbp.inputs.matrices import check_numeric
from boostbp.inputs.schema import Schema, read_input
from boostbp.inputs.sources import is_blocks
from boostbp.model.model import Model
from boostbp.model.summary import Summary
from boostbp.network.history import History
from boostbp.network.monitor import Progress
from boostbp.network.network import Network, network_output
from boostbp.runtime import messages, threads
from boostbp.runtime.arrays import NUMPY_DEFAULTS, Floats, TableLike, numpy_errstate
from boostbp.runtime.messages import suggestion
from boostbp.trees.sparse import Table

ONE_SINGLE_LAYER = (
    "Candidates of a single layer were not compared: without evaluation sets and held-out rows (fewer than 36 rows, or "
    "early_stopping=False), the model is one layer of n_estimators rounds."
)
SITE = "https://boostbp.github.io/boostbp"
C = TypeVar("C", bound=type)
if TYPE_CHECKING:  # the parameters are attributes
    from boostbp.estimators.constructor import CommonParameters as _Attributes
else:
    _Attributes = object


def public_methods(kind: C) -> C:
    """Wrap the constructor and public methods: unknown arguments get a suggestion, and `numpy_errstate` applies."""
    for name, method in list(vars(kind).items()):
        is_public = isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_"))
        if is_public:
            setattr(kind, name, _public(method))
    return kind


def _public(method: FunctionType) -> Any:
    in_numpy_errstate = numpy_errstate()(method)
    takes_any = bool(method.__code__.co_flags & inspect.CO_VARKEYWORDS)
    known = nested_parameters.argument_names(method)

    @wraps(method)
    def run(self: BaseBoostBP, *args: object, **arguments: object) -> Any:
        if not (arguments.keys() <= known or takes_any):
            nested_parameters.refuse_unknown(method, type(self), arguments)
        # entering a context takes a tenth of the time of predicting one row
        try:
            return (method if np.geterr() == NUMPY_DEFAULTS else in_numpy_errstate)(self, *args, **arguments)
        except Exception as error:
            messages.shorten(error)
            raise

    return run


@public_methods
class BaseBoostBP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, _Attributes):
    """Parameters, training and hidden representations; see `BoostBPRegressor` for the parameters."""

    _min_hidden = 1  # smallest number of hidden layers
    # Groups that are routed to a splitter also keep held-out rows apart.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    model_: Model

    jacobian = inspected.jacobian
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
    hidden_representation = inspected.hidden_representation

    if not TYPE_CHECKING:  # for type checkers, unknown attributes are errors

        def __getattr__(self, name: str) -> Any:
            """Raise NotFittedError for the model, and hints for attributes of LightGBM, XGBoost and CatBoost."""
            if name == "model_":
                check_is_fitted(self)  # attributes of set_output and of subclasses make an estimator look fitted
            if name in messages.ATTRIBUTES:
                fault = f"{type(self).__name__!r} object has no attribute {name!r}"
                raise AttributeError(f"{fault}: use {messages.ATTRIBUTES[name]}.")
            return object.__getattribute__(self, name)  # raises the error again, which may be that of a property

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` adds the fields of specs, such as ``hidden__max_depth``."""
        params: dict[str, Any] = super().get_params(deep=deep)
        return {**params, **nested_parameters.nested_values(params)} if deep else params

    def set_params(self, **params: object) -> Self:
        """Set parameters by name, and fields of specs by names such as ``hidden__max_depth``.

        Raises ValueError if a parameter does not exist; the message suggests the closest one.
        """
        known, plain = self.get_params(deep=False), {}
        spec_changes: dict[str, dict[str, object]] = {}
        for name, value in params.items():
            head, is_field, field = name.partition("__")
            if is_field and head in nested_parameters.SPECS:
                spec_changes.setdefault(head, {})[field] = value
            elif name in known:
                plain[name] = value
            else:
                cure = suggestion(name, nested_parameters.spellings(type(self)))
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: {cure}")
        now = known | plain
        specs = {head: nested_parameters.replaced(head, now[head], changes) for head, changes in spec_changes.items()}
        super().set_params(**{**plain, **specs})
        return self

    @property
    def network_(self) -> Network:
        """The layers of the fitted model."""
        return self.model_.network

    @property
    def history_(self) -> History:
        """Record of the training."""
        return self.model_.history

    @property
    def schema_(self) -> Schema:
        """The columns of the training table."""
        return self.model_.schema

    @property
    def feature_summary_(self) -> Summary | None:
        """Means of the training rows, and the statistics that importances need."""
        return self.model_.summary

    @property
    def n_iter_(self) -> int:
        """Number of epochs that ran."""
        return len(self.history_) - 1

    @property
    def feature_importances_(self) -> Floats:
        """Importance of each feature for the whole model, (features,), with sum 1 (or 0 for a constant model).

        This is `importance` with ``kind="attribution"``: the mean absolute attribution over some hundred training rows,
        summed over outputs. It covers slopes, splits, categories and missing values in all layers.
        """
        return self.importance("attribution")

    def _get_doc_link(self) -> str:
        """Return the address of the page to which the view of scikit-learn in notebooks links."""
        package, _, module = type(self).__module__.partition(".")
        name = ".".join(["boostbp", *([module] if module in ("dask", "spark") else []), type(self).__name__])
        return f"{SITE}/reference/generated/{name}.html" if package == "boostbp" else ""

    @property
    def _n_features_out(self) -> int:
        """Units of the last hidden layer; AttributeError without one, because scikit-learn calls `hasattr`."""
        network = self.model_.network
        if self.deep == "auto" and np.size(self.hidden_layer_sizes) and len(network.layers) == 1:
            return 0  # no network has weight
        if len(network.layers) == 1:
            need = "use deep=True, and hidden_layer_sizes other than ()"
            raise AttributeError(f"This model has no hidden layer, so there are no units to name: {need}.")
        return network.layers[-2].forest.n_outputs

    def transform(self, X: TableLike, layer: int = -1) -> Floats:
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

        Raises
        ------
        ValueError
            If the layer does not exist. With ``deep=False`` or ``hidden_layer_sizes=()`` there is none.
        """
        n_hidden = len(self.model_.network.layers) - 1
        named = _get_output_config("transform", self)["dense"] != "default"
        if named and layer not in (-1, n_hidden - 1):
            raise ValueError(
                f"layer={layer!r} with set_output is not supported: its columns are named for the last hidden layer. "
                "Use hidden_representation(X, layer) and hidden_names(layer)."
            )
        # an error would let the rows decide if a pipeline works
        if layer == -1 and getattr(self, "_n_features_out", 1) == 0:
            messages.warn(
                "transform returns no columns: this model has no hidden layer, as deep='auto' kept none. Use deep=True."
            )
            blocks = blocks_of(X, self.schema_) if is_blocks(X) else [X]
            return np.empty((sum([self._read(block).X.shape[0] for block in blocks]), 0))
        return self.hidden_representation(X, layer)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the columns of `transform`, such as ``boostbpregressor0``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Must be the names that `fit` saw; they have no other effect.

        Raises ValueError if the model has no hidden layer, as with ``deep=False`` or ``hidden_layer_sizes=()``.
        """
        check_is_fitted(self)
        try:
            _ = self._n_features_out
        except AttributeError as error:
            raise ValueError(str(error)) from None
        return np.asarray(super().get_feature_names_out(input_features))

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

        Raises KeyboardInterrupt on Ctrl-C, and ValueError if `fit` did not keep the state of training, as it does with
        ``keep_state=True``.
        """
        check_is_fitted(self)
        arguments = Arguments(callbacks=callbacks, checkpoint=checkpoint, keep_state=True)
        session.run_more(self, epochs, arguments)
        return self

    def summary(self) -> str:
        """Describe the training, the parts of the model and the gain from hidden layers in a few sentences.

        A notebook shows the text line by line.
        """
        history = self.model_.history
        text, asked_for = history.summary(), self.deep and not np.size(self.hidden_layer_sizes)
        network = asked_for or self.deep is True or len(history) > 1
        return messages.Lines(text if history.choice or network else f"{text}\n{ONE_SINGLE_LAYER}")

    @property
    def best_iteration_(self) -> int:
        """Iterations of the part of the model with the most weight (``history_.choice.lead``).

        For a layer these are boosting rounds, for a network the epoch of back-propagation; 0 precedes the first.
        """
        return self.history_.best_iteration

    @property
    def best_score_(self) -> dict[str, dict[str, float]]:
        """Metric of the model on each evaluation set, ``{"valid_0": {"rmse": 0.5}}``.

        Rows that `fit` held out are named "held_out". Empty without an evaluation.
        """
        return {name: {self.history_.metric: score} for name, score in self.history_.scores.items()}

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """Metric of the leading part on each evaluation set, ``{"valid_0": {"rmse": [0.9, 0.7, 0.5]}}``.

        Each list has an entry for each of ``history_.iterations``: epochs of a network, or every 25th round of a layer.
        The first entry precedes all of them.
        """
        return {name: {self.history_.metric: curve} for name, curve in self.history_.curves.items()}

    def _raw(self, X: TableLike, offset: ArrayLike | None = None) -> Floats:
        """Return the raw output h_L plus the user's offset, (rows, outputs)."""
        model, n_threads = self.model_, threads.count(self.n_jobs)
        in_blocks = not isinstance(X, np.ndarray) and is_blocks(X)
        parts: list[Floats] = []
        for block in blocks_of(X, model.schema) if in_blocks else (X,):
            for part in inspected.read_in_blocks(self, block, n_threads):
                parts.append(network_output(model.network, part, n_threads))
                del part  # before the next block is read
        raw = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return raw if offset is None and not model.with_offset else model.add_offset(raw, offset)

    def _read(self, X: TableLike) -> Table:
        """Read a table with the columns of the model."""
        table = read_input(self, X, self.model_.schema)
        if self.model_.targets.is_input:
            check_numeric(table)
        return table

    def _read_target(self, values: Any, weight: Floats, earlier: Model | None, names: ColumnNames) -> Learnt:
        """Return the `Targets`, the target as the loss reads it, (rows, columns), and the weights of the rows.

        `names` are those of the columns of the target, if it has any.
        """
        raise NotImplementedError

    def _plan(self, training: Training) -> Training:
        """Return the training that a fit runs, from that of its parameters and data."""
        return training

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        """Return what pickle stores: all but the state of training, which contains the training rows."""
        derived = type(self).__getstate__ is not BaseBoostBP.__getstate__
        state = self.__getstate__() if derived else stored_attributes(super().__getstate__())
        return copyreg.__newobj__, (type(self),), state  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        """Return what skops stores; it does not call `__reduce_ex__`."""
        return pack_state(type(self), stored_attributes(super().__getstate__()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the attributes from the state of pickle or skops."""
        super().__setstate__(unpack_state(type(self), state))
