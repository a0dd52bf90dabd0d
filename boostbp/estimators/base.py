"""What all estimators share: parameters into settings, training, hidden representations."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, is_classifier
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from boostbp import backends, cautions, checks, metrics
from boostbp.backends.base import Table
from boostbp.ensemble import ensemble
from boostbp.ensemble.problem import Problem, back_propagate
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.estimators import nested_parameters, parameters, session
from boostbp.estimators.held_out import Split
from boostbp.estimators.other_names import OtherNames
from boostbp.estimators.parameters import check_run, ensemble_settings_of
from boostbp.estimators.session import all_or_nothing, check_sum
from boostbp.floats import Floats, usual_in_methods
from boostbp.group import joined, workers
from boostbp.inputs import Schema, blocks_of, drop_zero_weight, is_blocks, read_input
from boostbp.inspection import summary_of
from boostbp.losses import Loss
from boostbp.metrics import Metric
from boostbp.network.history import History
from boostbp.network.monitor import EvalSet, Progress
from boostbp.network.network import Network
from boostbp.network.offsets import of_rows
from boostbp.network.settings import BackpropSpec, Settings
from boostbp.suggestions import suggestion
from boostbp.trees import threads

WHY = "without evaluation sets and held-out rows (fewer than 36, early_stopping=False or epochs=0)"
NOT_WEIGHED = (
    f"The network was not weighed against single layers, though deep='auto': {WHY}, or after an interrupt, it is the "
    "model."
)
ONE_SINGLE_LAYER = f"Single layers were not weighed: {WHY}, the model is one with n_estimators rounds."


@usual_in_methods
class BaseBoostBP(OtherNames, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Parameters, training and hidden representations; see `BoostBPRegressor` for the parameters."""

    _fewest_hidden = 1
    _packing: ClassVar[tuple[Callable[..., dict[str, Any]], Callable[..., dict[str, Any]]]]  # of `packed_state`
    # who splits by groups means them for our held-out rows, too
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    schema_: Schema
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

    def _keep_parameters(self, parameters: dict[str, Any]) -> None:
        """Keep what a constructor was passed, its `locals()`, unchanged and by the same names."""
        self.__dict__.update({name: value for name, value in parameters.items() if name != "self"})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; if `deep`, the fields of specs as well, such as ``hidden__max_depth``."""
        params: dict[str, Any] = super().get_params(deep=deep)
        return {**params, **nested_parameters.nested(self)} if deep else params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; fields of specs by names such as ``hidden__max_depth``.

        Raises
        ------
        ValueError
            If there is no such parameter; the message says which one was meant.
        """
        fields: dict[str, dict[str, Any]] = {}
        plain: dict[str, Any] = {}
        known = self.get_params(deep=False)
        for name, value in params.items():
            head, nested, field = name.partition("__")
            if nested and head in nested_parameters.SPECS:
                fields.setdefault(head, {})[field] = value
            elif name in known:
                plain[name] = value
            else:
                cure = suggestion(name, nested_parameters.places_of(type(self)))
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: {cure}")
        specs = {
            head: nested_parameters.changed(head, plain.get(head, known[head]), changes)
            for head, changes in fields.items()
        }
        super().set_params(**{**plain, **specs})
        return self

    def _backprop(self) -> BackpropSpec:
        return BackpropSpec.of(self.backprop, "backprop")

    def transform(self, X: Any, layer: int = -1) -> Floats:
        """Hidden representation: the units of all networks in the model, side by side.

        With ``deep=True`` these are those of `hidden_layer_sizes`. If no network has weight in the model, they are
        those of one that was trained, and a warning says so. With ``deep=False`` there are none, and with
        ``deep="auto"`` only where a network promised enough.

        Parameters
        ----------
        X : array-like, (rows, features)
        layer : int
            Which hidden layer: 0 is the one next to the input, -1 the one next to the output.

        Returns
        -------
        (rows, units) float64

        Warns
        -----
        UserWarning
            If no network has weight in the model (``history_.weight()`` is 0), unless ``deep=True`` asked for one.

        Raises
        ------
        ValueError
            If the model has no such layer.
        """
        check_is_fitted(self)
        named = _get_output_config("transform", self)["dense"] != "default"
        if named and layer not in (-1, len(self.network_.layers) - 2):
            raise ValueError(
                f"layer={layer!r} with set_output is not supported: its columns are named for the last hidden layer. "
                "Use hidden_representation(X, layer) and hidden_names(layer)."
            )
        units = self.hidden_representation(X, layer)
        if not (self.history_.weight() or self.deep is True or self.network_._hidden_used()):
            cautions.warn(
                "transform: no network has weight in this model (history_.choice). These are the units of the one that "
                "was asked for, on which no prediction depends. Use deep=True and early_stopping=False for a model "
                "that is the network.",
            )
        return units

    def jacobian(self, X: Any) -> Floats:
        """Derivative of the raw output in the features: of `decision_function`, or the prediction of a regressor.

        With ``loss="poisson"``, ``"gamma"`` or ``"tweedie"`` the raw output is the logarithm of the prediction; with
        one's own loss it is what its `link` gets.

        Returns
        -------
        (rows, outputs, features) float64
            In the units of the target and the features; 0 where a leaf clips its input, infinite where float64 ends.
            Where a cell is replaced (see `clip`), slopes are those at the value in its place, which is held fixed.
        """
        check_is_fitted(self)
        slopes = self.network_.jacobian(self._read(X).X, n_jobs=self._n_threads())
        with np.errstate(over="ignore"):
            return slopes * self._output_scale()[:, None]

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
        session.more(self, epochs, session.Run(callbacks, checkpoint, keep_state=True))
        return self

    def summary(self) -> str:
        """What training did and what depth added, in a few sentences."""
        check_is_fitted(self)
        deep = ensemble_settings_of(self).deep
        if self.history_.choice or deep is True or (deep == "auto" and not np.size(self.hidden_layer_sizes)):
            return self.history_.summary()
        return f"{self.history_.summary()}\n{NOT_WEIGHED if deep else ONE_SINGLE_LAYER}"

    @property
    def _n_features_out(self) -> int:
        """Units of the last hidden layer, for the names of `transform`'s columns."""
        if len(self.network_.layers) == 1:
            raise ValueError(
                "This model has no hidden layer, whose units could have names: use deep=True, and "
                "hidden_layer_sizes other than ()."
            )
        return self.network_.layers[-2].forest.n_outputs

    def _to_target(self, y: Floats) -> Floats:
        """Targets of an evaluation set as the loss takes them."""
        return y

    def _n_threads(self) -> int:
        return threads.count(self.n_jobs)

    def _read(self, X: Any, *, reset: bool = False) -> Table:
        return read_input(self, X, reset=reset, categorical_features=self.categorical_features)

    def _raw(self, X: Any) -> Floats:
        """Raw output h_L, (rows, outputs)."""
        if "network_" not in vars(self):  # scikit-learn would look through all attributes, for every row
            check_is_fitted(self)
        if is_blocks(X):
            return np.concatenate([self._raw(block) for block in blocks_of(X, self.schema_)])
        return self.network_.predict(self._read(X).X, n_jobs=self._n_threads())

    def _metric(self, loss: Loss, eval_sets: Sequence[EvalSet], scale: Floats | float = 1.0) -> Metric | None:
        """What evaluation sets are scored by, None where there are none; training divides targets by `scale`."""
        if not eval_sets and self.eval_metric is None:
            return None
        metric = metrics.load(self.eval_metric, loss, classes=is_classifier(self), scale=scale)
        return metric if eval_sets else None  # a wrong name is refused even where nothing is scored

    def _train(
        self,
        first: Split,
        loss: Loss,
        metric: Metric | None,
        outcome: Callable[[Floats], Floats],
        run: session.Run,
        others: Sequence[Callable[[], Split]] = (),
    ) -> Self:
        """Train on rows and evaluation sets; other splits are those of further members of an average."""
        check_run(self, run)
        random = checks.random_state("random_state", self.random_state)
        [n_rows], seed = workers().sum(len(first.table.X)), workers().agree(int(random.randint(2**31 - 1)))
        settings = parameters.settings_of(self, int(n_rows), first.y.shape[1], seed)
        backend = backends.load(self.backend)

        def problem_of(split: Split) -> partial[Problem]:
            table, y, weight = drop_zero_weight(split.table, split.y, split.weight)
            offset = of_rows(split.offset, split.weight > 0)
            total, given = workers().sum(weight.sum(), split.weight.sum())
            in_rows = total / given
            sets = [replace(part, weight=part.weight * in_rows) if part.from_training else part for part in split.sets]
            return partial(
                Problem.of,
                table,
                y,
                weight,
                group=split.group.of(split.weight > 0),
                backend=backend,
                loss=loss,
                offset=offset,
                eval_sets=sets,
                metric=metric,
                outcome=outcome,
                to_target=self._to_target,
            )

        problem = problem_of(first)
        how = workers().agree(ensemble_settings_of(self, run))  # callbacks may be given on rank 0 alone
        earlier = run.earlier
        if earlier is not None:
            check_sum(earlier.network, settings, networks=how.deep is not False)

        group = first.group.of(first.weight > 0)

        @joined(group)
        def train(*, settings: Settings, **training: Any) -> tuple[Network, History]:
            """Train with settings, callbacks and an earlier state, which may be others each time."""
            if self._fewest_hidden:  # its hidden units are the model, and nothing may stand beside them
                return back_propagate(problem(settings=settings, **training))
            more = (problem_of(other())(settings=settings) for other in others)
            network, history = ensemble.train(problem(settings=settings, **training), how, more)
            return network if earlier is None else weighted_sum([earlier.network, network], [1.0, 1.0]), history

        table, _, weight = problem.args
        summarise = joined(group)(partial(summary_of, table=table, weight=weight, n_threads=settings.n_threads))
        session.begin(self, session.Training(train, settings, summarise=summarise), run, n_rows=len(table.X))
        return self

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
        return {name: value for name, value in super().__getstate__().items() if name != "_training"}
