"""Supervised: the fit, offsets and calibration of the regressor and the classifier."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from boostbp.backends.base import Table
from boostbp.estimators.base import BaseBoostBP
from boostbp.estimators.conformal import conformity_scores
from boostbp.estimators.fit_options import FitOptions
from boostbp.estimators.held_out import at_random, hold_out, hold_out_others
from boostbp.estimators.init_model import begin_from, check_target
from boostbp.estimators.nested_parameters import public_methods
from boostbp.estimators.passed_sets import PassedSet, listed, names_of
from boostbp.estimators.session import FittedOn, all_or_nothing, start_fit
from boostbp.estimators.target_units import units_of
from boostbp.inputs.rows import NO_OFFSET, Rows
from boostbp.inputs.targets import read_groups, read_weight
from boostbp.inspection.calibration import Calibration
from boostbp.losses import traits_of
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.model import Model, Targets
from boostbp.network.eval_sets import EvalSet, Evaluation, raw_output
from boostbp.network.monitor import Progress
from boostbp.runtime import checks, messages
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import training_in, workers
from boostbp.runtime.messages import named_in_errors
from boostbp.trees.sparse import Matrix

CALIBRATION_DRAW = 99  # number of the draw of calibration rows; held-out rows have the numbers from 0 on; arbitrary
_ROUTED: dict[str, bool] = {"offset": True}


@public_methods
class Supervised(BaseBoostBP):
    """Fit, offsets and calibration; subclasses read targets in `_read_target` and `_learn_target`."""

    # Every method requests the offset by default: an offset in `fit` alone would make predictions and scores wrong.
    __metadata_request__fit: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__predict: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__predict_log_proba: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = _ROUTED
    __metadata_request__score: ClassVar[dict[str, bool]] = _ROUTED

    _min_hidden = 0  # a single layer is a model
    _takes_blocks = True
    loss: Any
    calibration: Any

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        init_model: Supervised | None = None,
        eval_set: Any = None,
        eval_names: Sequence[str] | None = None,
        groups: Any = None,
        eval_X: Any = None,
        eval_y: Any = None,
        eval_sample_weight: Any = None,
        eval_offset: Any = None,
        callbacks: Sequence[Callable[[Progress], object]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        keep_state: bool = False,
    ) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix, (rows, features); path, dataset, or iterator of blocks ``(X, y)``
            Entries that a sparse matrix does not store are 0, as in scikit-learn; a stored NaN is missing. A sparse
            matrix is never made dense, and gives the same model as an array with the same numbers. Data larger than
            memory come from files or in blocks; with files, `y`, `sample_weight`, `offset` and `groups` are column
            names. See ``docs/beyond_memory.md``.
        y : array-like, (rows,) or (rows, outputs)
            Numbers for a regressor; text is refused even if it spells numbers. Labels, (rows,), for a classifier, which
            warns of more than 50 labels that are numbers other than 0, 1, 2, ..., as they are probably an amount.
        sample_weight : array-like, (rows,), optional
            A weight of 2 equals the row twice, except that `min_samples_leaf` counts it once. Weights with a mean below
            1 are scaled to a mean of 1. Penalties treat weights as numbers of rows: divide weights that are not, such
            as exposures and inverse probabilities, by their mean.
        offset : array-like, (rows,) or (rows, outputs), optional
            A known part of the raw output of each row: the logarithm of its exposure for ``loss="poisson"``,
            ``"gamma"`` and ``"tweedie"``; an amount in the units of `y` for losses of residuals; log-odds of the
            classes, (rows,) for two. The model learns the rest and does not store the offset: pass it to `predict`,
            `score` and similar methods too. LightGBM calls it ``init_score``, XGBoost ``base_margin``.
        init_model : estimator of the same kind, optional
            A fitted or loaded model to continue from; these rows may differ from those it was trained on. Its raw
            output acts as an `offset`, new layers learn the rest, and the fitted model is the sum of both. `init_model`
            itself is not changed. It determines how tables and targets are read (columns, categories, classes, units),
            and the loss must be the same; all other parameters apply to the new layers.
        eval_set : (X, y), (X, y, sample_weight) or a list of these, optional
            Evaluation sets. The first one chooses the epoch and stops training (the last one in XGBoost, any in
            LightGBM).
        eval_names : list of str, optional
            Names of the evaluation sets in history, log and progress bar; "valid_0", "valid_1", ... by default.
        groups : array-like, (rows,), optional
            Group of each row, such as the patient, shop or place that it was measured on. Rows of a group are held out
            together, so scores of held-out rows are those of new groups. Ignored with an `eval_set`.
        eval_X, eval_y, eval_sample_weight : optional
            The same as `eval_set` in separate arguments, as in LightGBM: one table and its target, or tuples of them.
            Scikit-learn can route them, and a pipeline with ``transform_input=["eval_X"]`` transforms the tables.
        eval_offset : array-like or tuple of array-like, optional
            The `offset` of each evaluation set; required with `offset`.
        callbacks : sequence of callable, optional
            Functions that are called with a `Progress` after each epoch; one that returns True stops the training. See
            `boostbp.callbacks`.
        checkpoint : str or path, optional
            File for the whole state of the network's training, written after each epoch. If it exists, `fit` continues
            from it and returns the same model, bit for bit, as a fit without interruption. Data and parameters must be
            the same, except that `epochs` may grow. The other parts of the model are trained anew. `random_state` must
            be an integer.
        keep_state : bool
            Whether to keep the state of the network's training in memory for `fit_more`. It contains the training rows.

        Raises
        ------
        ValueError
            If the input, the target or a parameter is not usable; the message names it and the cure.
        KeyboardInterrupt
            On Ctrl-C. After the first epoch, the estimator has the best state so far, with `Stop.INTERRUPTED` in its
            history; see `boostbp.callbacks.stop_on_interrupt`. Every other exception, including those of other signal
            handlers, leaves the estimator as it was.
        """
        earlier = begin_from(self, init_model, with_offset=offset is not None)
        options = FitOptions(callbacks, checkpoint, keep_state, earlier)
        schema, table = self._learn_schema(X) if earlier is None else (earlier.schema, self._read(X, earlier.schema))
        values, strata = self._read_target(y, len(table.X))
        passed_weight = read_weight(sample_weight, len(table.X))
        calibration_rows = self._calibration_rows(table, passed_weight, strata, groups)
        weight = passed_weight.copy()
        weight[calibration_rows] = 0.0
        targets, target, weight = self._learn_target(values, weight, earlier)
        loss = targets.loss
        if earlier is not None:
            check_target(earlier, loss, targets.n_outputs)
        CheckedLoss(loss).check(target)
        passed = listed(eval_set, eval_X, eval_y, eval_sample_weight, eval_offset)
        sets = [
            self._eval_set(name, part, FittedOn(schema, targets, offset is not None), earlier)
            for name, part in zip(names_of(passed, eval_names), passed, strict=True)
        ]
        known = self._offset(table.X, offset, targets, earlier)
        all_rows = Rows(table, target, weight, known, workers())
        rows, sets = (all_rows, sets) if sets else hold_out(self, all_rows, strata, groups=groups, X=X)
        numbers = targets.classes is None
        if earlier is None and numbers:
            with training_in(rows.group):
                units = units_of(rows.y - rows.offset, rows.weight, loss)
            shift, scale = (np.repeat(unit, traits_of(loss).copies or 1) for unit in units)
            targets = replace(targets, shift=shift, scale=scale)
        metric = self._metric(loss, sets, targets.scale if numbers else 1.0)
        outcome = raw_output if metric is not None and metric.takes_raw else targets.outcome

        def in_units(rows: Rows, sets: Sequence[EvalSet]) -> tuple[Rows, Evaluation]:
            if numbers:  # metrics take the targets of evaluation sets as they were passed
                rows = rows.in_units(targets.shift, targets.scale)
                sets = [replace(part, rows=part.rows.with_offset_unit(targets.scale)) for part in sets]
            return rows, Evaluation(tuple(sets), metric, outcome)

        draws = hold_out_others(self, all_rows, strata, groups=groups, sets=sets)
        others = [lambda draw=draw: in_units(*draw()) for draw in draws]
        fitted = FittedOn(schema, targets, offset is not None)
        training = self._training_of(fitted, *in_units(rows, sets), options, others)
        start_fit(self, training, options, n_rows=len(rows))
        if len(calibration_rows):
            if offset is not None:
                offset = targets.read_offset(offset, len(all_rows))[calibration_rows]
            self._calibrate(
                table.take(calibration_rows), target[calibration_rows], passed_weight[calibration_rows], offset
            )
        return self

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> Self:
        """Calibrate prediction intervals or sets on rows that the model has not seen.

        These rows replace those of an earlier calibration, including the rows reserved by ``calibration=...``.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix, (rows, features)
            Rows that neither `fit` nor an `eval_set` contained; otherwise intervals and sets cover too few targets.
        y : array-like, (rows,) or (rows, outputs)
        sample_weight : array-like, (rows,), optional
            Share of future rows that each row stands for, in any unit. Unequal weights count as fewer rows.
        offset : array-like, optional
            As in `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._check_offset(offset, "calibrate")
        table, targets = self._read(X), self.model_.targets
        target = targets.read(y, len(table.X))
        if target.shape[1] != targets.n_columns:
            raise ValueError(
                f"y has {target.shape[1]} outputs, the model was fitted to {targets.n_columns}: give the same outputs."
            )
        self._calibrate(table, target, read_weight(sample_weight, len(table.X)), offset)
        return self

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the checked target as it was passed, and the labels to stratify draws by, or None."""
        raise NotImplementedError

    def _learn_target(
        self, values: NDArray[Any], weight: Floats, earlier: Model | None
    ) -> tuple[Targets, Floats, Floats]:
        """Return the `Targets`, the target as the loss reads it, (rows, columns), and the weights of the rows."""
        raise NotImplementedError

    def _eval_set(self, name: str, part: PassedSet, fitted: FittedOn, earlier: Model | None) -> EvalSet:
        """Read an evaluation set; it must have an offset exactly if the training rows have one."""
        with named_in_errors(part.source):
            table, targets = self._read(part.X, fitted.schema), fitted.targets
            y = targets.read(part.y, len(table.X))
            if y.shape[1] != targets.n_columns:  # NumPy would broadcast it
                raise ValueError(
                    f"its y has {y.shape[1]} outputs, the training target has {targets.n_columns}. Give the same "
                    "outputs, in the same order."
                )
            weight = read_weight(part.weight, len(table.X))
            if (part.offset is not None) != fitted.with_offset:
                passed, other = ("offset", "eval_offset") if fitted.with_offset else ("eval_offset", "offset")
                raise ValueError(f"{passed} is given without {other}: give both, with zeros for rows without one.")
            offset = self._offset(table.X, part.offset, targets, earlier, "eval_offset")
            CheckedLoss(targets.loss).check(y)
        return EvalSet(name, Rows(table, y, weight, offset))

    def _offset(self, X: Matrix, offset: Any, targets: Targets, earlier: Model | None, name: str = "offset") -> Floats:
        """Return the user's offset plus the raw output of `init_model`, (rows, outputs), or `NO_OFFSET`."""
        known = NO_OFFSET if offset is None else targets.read_offset(offset, X.shape[0], name)
        if earlier is None:
            return known
        return known + earlier.network.predict(X, n_jobs=self._n_threads()) * earlier.targets.scale

    def _with_offset(self, raw: Floats, offset: Any) -> Floats:
        """Return the raw output plus the user's offset, (rows, outputs); warn if the model needs one."""
        model = self.model_
        if offset is None and model.with_offset:
            messages.warn(
                "The model was fitted with an offset, but none was passed: the output is for an offset of 0, such as "
                "an exposure of 1. Pass offset=... (--offset on the command line), or offset=0 if you mean it."
            )
        if offset is None or _is_zero(offset):
            return raw
        return raw + model.targets.read_offset(offset, len(raw)) / model.targets.scale

    def _check_offset(self, offset: Any, method: str) -> None:
        """Raise ValueError if the model was fitted with an offset and none is passed to a method that needs targets."""
        if offset is None and self._fitted_model().with_offset:
            raise ValueError(
                f"{method} needs the offset of its rows, as the model was fitted with one: pass offset=..., or "
                "offset=0 for none. Searches and cross-validation in scikit-learn pass it after "
                "sklearn.set_config(enable_metadata_routing=True)."
            )

    def _calibration_rows(
        self, table: Table, weight: Floats, strata: NDArray[Any] | None, groups: Any
    ) -> NDArray[np.intp]:
        """Return the numbers of the rows that ``calibration=...`` reserves; see `hold_out`."""
        if self.calibration is None:
            return np.empty(0, np.intp)
        checks.between("calibration", self.calibration, 0, 0.5)
        names = None if groups is None else read_groups(groups, len(weight))
        rows = at_random(self, table, weight, strata, names, 0, CALIBRATION_DRAW, _n_calibration_rows)
        if not len(rows):
            raise ValueError(
                f"calibration={self.calibration!r} reserves none of {np.count_nonzero(weight)} rows: give more "
                "distinct rows, or leave it None and call calibrate(X, y)."
            )
        return rows

    def _calibrate(self, table: Table, target: Floats, weight: Floats, offset: Any) -> None:
        """Store the calibration of the fitted model on rows that it was not trained on."""
        counted = weight > 0
        raw = self._with_offset(self.network_.predict(table.X, n_jobs=self._n_threads()), offset)
        scores = conformity_scores(self.model_.targets, raw, target)
        self.model_ = replace(self.model_, calibration=Calibration(scores[counted], weight[counted]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags


def _is_zero(offset: Any) -> bool:
    return isinstance(offset, Real) and not isinstance(offset, bool) and offset == 0


def _n_calibration_rows(estimator: BaseBoostBP, count: int, unit: str) -> int:
    """Return how many of `count` rows, or groups of rows, are reserved."""
    return int(np.ceil(estimator.calibration * count))
