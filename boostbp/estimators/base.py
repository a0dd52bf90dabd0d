"""What all estimators share: parameters into settings, training, hidden representations, names of other libraries."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, is_classifier
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from boostbp import backends, cautions, checks, metrics
from boostbp.backends.base import Backend, Table
from boostbp.ensemble.problem import Problem
from boostbp.estimators import parameters, session
from boostbp.estimators.nested_parameters import NestedParameters, public_methods
from boostbp.estimators.parameter_use import Way, warn_after, warn_before, way_of
from boostbp.estimators.parameters import check_run, ensemble_settings_of
from boostbp.estimators.session import all_or_nothing, check_sum
from boostbp.estimators.unit_names import UnitNames
from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.inputs.blocks import blocks_of, is_blocks
from boostbp.inputs.reader import learn_schema, read_input
from boostbp.inputs.rows import Rows
from boostbp.inputs.schema import Schema
from boostbp.inspection import Names, warn_if_ill
from boostbp.layers import rounds
from boostbp.losses import Loss
from boostbp.metrics import Metric
from boostbp.model import Targets
from boostbp.network.eval_sets import EvalSet, Evaluation
from boostbp.network.monitor import Progress
from boostbp.network.settings import BackpropSpec, Settings
from boostbp.trees import threads

ONE_SINGLE_LAYER = (
    "Single layers were not compared: without evaluation sets and held-out rows (fewer than 36 rows, or "
    "early_stopping=False), the model is one layer of n_estimators rounds."
)
# Attributes of a fit that runs, or may go on, which no copy of a fitted estimator keeps; scikit-learn's own since 1.9.
OF_A_FIT = ("_training", "_callback_fit_ctx", "_parent_callback_ctx")


@public_methods
class BaseBoostBP(UnitNames, TransformerMixin, NestedParameters):
    """Parameters, training and hidden representations; see `BoostBPRegressor` for the parameters."""

    _fewest_hidden = 1
    _packing: ClassVar[tuple[Callable[..., dict[str, Any]], Callable[..., dict[str, Any]]]]  # of `packed_state`
    # who splits by groups means them for our held-out rows, too
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    def _backprop(self) -> BackpropSpec:
        return BackpropSpec.of(self.backprop, "backprop")

    def transform(self, X: Any, layer: int = -1) -> Floats:
        """Hidden representation: the units of all hidden layers in the model, side by side.

        With ``deep=True`` these are those of `hidden_layer_sizes`. If ``deep="auto"`` made a model without hidden
        layers, as none was worth its weight, there are no columns, and a warning says so.

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
            If ``deep="auto"`` made a model without hidden layers (``history_.weight()`` is 0).

        Raises
        ------
        ValueError
            If the model has no such layer, as none has with ``deep=False`` or ``hidden_layer_sizes=()``.
        """
        check_is_fitted(self)
        named = _get_output_config("transform", self)["dense"] != "default"
        if named and layer not in (-1, len(self.network_.layers) - 2):
            raise ValueError(
                f"layer={layer!r} with set_output is not supported: its columns are named for the last hidden layer. "
                "Use hidden_representation(X, layer) and hidden_names(layer)."
            )
        if self._left_networks_out() and layer == -1:  # an error would make what a pipeline does a matter of the rows
            cautions.warn(
                "transform returns no columns: this model has no hidden layer, as deep='auto' kept none. Use deep=True "
                "for a model that is the network."
            )
            rows = map(self._read, blocks_of(X, self.schema_) if is_blocks(X) else [X])
            return np.empty((sum(table.X.shape[0] for table in rows), 0))
        return self.hidden_representation(X, layer)

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
        session.continue_fit(self, epochs, session.FitOptions(callbacks, checkpoint, keep_state=True))
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
        self._check_trees()
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

    def _train(
        self,
        fitted: session.FittedOn,
        rows: Rows,
        evaluation: Evaluation,
        run: session.FitOptions,
        others: Sequence[Callable[[], tuple[Rows, Evaluation]]] = (),
    ) -> Self:
        """Train on some rows; `others` hold other rows out, for further members of an average."""
        check_run(self, run)
        random = checks.random_state("random_state", self.random_state)
        [n_rows], seed = workers().sum(len(rows)), workers().agree(int(random.randint(2**31 - 1)))
        settings = parameters.settings_of(self, int(n_rows), rows.y.shape[1], seed)
        problem_of = partial(_problem_of, fitted.targets, backend=backends.load(self.backend), settings=settings)
        ensemble = workers().agree(ensemble_settings_of(self, run))  # callbacks may be given on rank 0 alone
        way = way_of(self, held_out=bool(evaluation.sets), wanted=ensemble.network_wanted)
        warn_before(self, way, evaluation.sets, run.callbacks)
        if run.earlier is not None:
            check_sum(run.earlier.network, settings, networks=ensemble.deep is not False)
        training = session.Training(
            fitted,
            problem_of(rows, evaluation),
            # the hidden units of an auto-encoder are the model, and nothing may stand beside them
            ensemble=None if self._fewest_hidden else ensemble,
            others=[partial(_drawn, draw, problem_of) for draw in others],
            earlier=None if run.earlier is None else run.earlier.network,
        )
        session.start_fit(self, training, run, n_rows=len(rows))
        return self

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


def _problem_of(
    targets: Targets, rows: Rows, evaluation: Evaluation, *, backend: Backend, settings: Settings
) -> Problem:
    """Return the problem of the rows that have weight; held-out rows get weights in the same unit."""
    counted = rows.counted()
    total, before = workers().sum(counted.weight.sum(), rows.weight.sum())

    def in_rows(part: EvalSet) -> EvalSet:
        return replace(part, rows=replace(part.rows, weight=part.rows.weight * (total / before)))

    sets = tuple(in_rows(part) if part.from_training else part for part in evaluation.sets)
    evaluation = replace(evaluation, sets=sets)
    return Problem.of(
        counted,
        backend=backend,
        loss=targets.loss,
        settings=settings,
        evaluation=evaluation,
        to_target=targets.to_loss,
    )


def _drawn(draw: Callable[[], tuple[Rows, Evaluation]], problem_of: Callable[[Rows, Evaluation], Problem]) -> Problem:
    return problem_of(*draw())
