"""Supervised: the fit, offsets and calibration of the regressor and the classifier."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags, get_tags

from boostbp.ensemble.new_rows import refitted
from boostbp.estimators import session
from boostbp.estimators.arguments import Arguments, EvalSets, OneOrMore, listed
from boostbp.estimators.base import BaseBoostBP, public_methods
from boostbp.estimators.conformal import calibrated
from boostbp.estimators.inspected import FittedModel
from boostbp.estimators.request import Request
from boostbp.estimators.state import TRAINING_ATTRIBUTES
from boostbp.inputs.rows import NO_OFFSET, Rows
from boostbp.inputs.survival_times import read_by_kind
from boostbp.inputs.targets import label_names, read_weight
from boostbp.losses import traits_of
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.model.hazards import with_curves
from boostbp.model.model import Model
from boostbp.model.summary import summary_of
from boostbp.network.layers.layer import rounds_of, stage_forests
from boostbp.network.monitor import Progress
from boostbp.runtime import checks, interrupts, threads
from boostbp.runtime.arrays import Floats, TableLike
from boostbp.runtime.threads import single_threaded_blas

OFFSET_IS_ROUTED: dict[str, bool] = {"offset": True}


@public_methods
class Supervised(BaseBoostBP):
    """Fit, offsets and calibration; subclasses read targets in `_read_target`."""

    # Every method requests the offset by default: an offset in `fit` alone would make predictions and scores wrong.
    __metadata_request__fit = __metadata_request__predict = __metadata_request__score = OFFSET_IS_ROUTED

    _min_hidden = 0  # a single layer is a model
    loss: Any
    calibration: Any = None

    def fit(
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        init_model: Supervised | None = None,
        eval_set: EvalSets | None = None,
        eval_names: Sequence[str] | None = None,
        groups: ArrayLike | None = None,
        eval_X: OneOrMore | None = None,
        eval_y: OneOrMore | None = None,
        eval_sample_weight: OneOrMore | None = None,
        eval_offset: OneOrMore | None = None,
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
            names. See ``docs/guide/beyond_memory.md``.
        y : array-like, (rows,) or (rows, outputs)
            Numbers for a regressor; text is refused even if it spells numbers. Labels, (rows,), for a classifier, which
            warns of more than 50 labels that are numbers other than 0, 1, 2, ..., as they are probably an amount. If a
            row may have several labels, an array, data frame or sparse matrix with a column of 0 and 1 for each.
        sample_weight : array-like, (rows,), optional
            A weight of 2 equals the row twice, except that `min_samples_leaf` counts it once. Weights with a mean below
            1 are scaled to a mean of 1. Penalties treat weights as numbers of rows: divide weights that are not, such
            as exposures and inverse probabilities, by their mean.
        offset : array-like, (rows,) or (rows, outputs), optional
            A known part of the raw output of each row: the logarithm of its exposure for ``loss="poisson"``,
            ``"gamma"`` and ``"tweedie"``; an amount in the units of `y` for losses of residuals; log-odds of the
            classes, (rows,) for two, or of several labels. The model learns the rest and does not store the offset:
            pass it to `predict`, `score` and similar methods too. LightGBM calls it ``init_score``, XGBoost
            ``base_margin``.
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
        sets = listed(eval_set, eval_X, eval_y, eval_sample_weight, eval_offset)
        arguments = Arguments(
            X, y, sample_weight, offset, groups, init_model, sets, eval_names, None, callbacks, checkpoint, keep_state
        )
        session.run_fit(self, arguments)
        return self

    def calibrate(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, offset: ArrayLike | None = None
    ) -> Self:
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
        """
        check_offset(self.model_, offset, "calibrate")
        table, targets = self._read(X), self.model_.targets
        target = targets.read(y, len(table.X))
        if target.shape[1] != targets.n_columns:
            raise ValueError(f"y has {target.shape[1]} outputs, the model {targets.n_columns}: give as many.")
        weight = read_weight(sample_weight, len(table.X))
        self.model_ = calibrated(self.model_, table, target, weight, offset, threads.count(self.n_jobs))
        return self

    @interrupts.deferred()
    @single_threaded_blas()
    def refit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        decay_rate: float = 0.9,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Return a copy of the model whose leaves are fitted again to other rows; its trees and hidden layers stay.

        This follows a drifting target in a fraction of the time of `fit`. The estimator itself stays as it is, so it
        can serve until the copy is checked. See ``docs/guide/continuing.md``.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix, (rows, features)
            Read as by `predict`: the same columns; categories that `fit` did not see go the way of unseen ones.
        y : array-like, (rows,) or (rows, outputs)
            Of the classes that `fit` saw.
        sample_weight : array-like, (rows,), optional
            As in `fit`.
        decay_rate : float
            Share of the old leaves, from 0 to 1. 0: the leaves are fitted as if `fit` had grown these trees on these
            rows, with their units and ranges; for old and new rows together. Above 0: each weight of a leaf is
            ``decay_rate * old + (1 - decay_rate) * new``, as in LightGBM; for new rows alone. Units and ranges of the
            leaves, the base that boosting starts from, and its constant then stay, and the loss of the rows does not
            rise. 1 changes nothing. A leaf that no row reaches stays, unless there are monotone constraints.
        offset : array-like, optional
            As in `fit`; required if `fit` had one.

        Returns
        -------
        estimator
            Of the same parameters. It has no calibration, which was that of the old leaves: call `calibrate`. Its
            `history_` has the refit, after the figures of the fit, and `feature_summary_` is that of these rows.

        Raises
        ------
        ValueError
            If the rows are not usable, or no leaf of the model can be fitted again: those of ``leaves="native"``, and
            layers around a mean with several quantiles.
        """
        check_offset(self.model_, offset, "refit")
        decay_rate, model = checks.at_least("decay_rate", decay_rate, 0, 1), self.model_
        table, targets = self._read(X), model.targets
        values, _ = read_by_kind(y, len(table.X), get_tags(self).estimator_type)
        _, target, weight = self._read_target(values, read_weight(sample_weight, len(table.X)), model, label_names(y))
        if target.shape[1] != targets.n_columns:
            raise ValueError(f"y has {target.shape[1]} outputs, the model {targets.n_columns}: give as many.")
        CheckedLoss(targets.loss).check(target, weight)
        known = NO_OFFSET if offset is None else model.add_offset(np.zeros((len(target), targets.n_outputs)), offset)
        rows, n_threads = Rows(table, targets.to_loss(target), weight, known).counted(), threads.count(self.n_jobs)
        growth = Request.of(self).settings(len(rows), targets.n_outputs, 0, model.schema).layers[-1].growth
        network, record = refitted(model.network, rows, targets.loss, decay_rate, growth.monotone, n_threads)
        summary = summary_of(network, rows.table, rows.weight, n_threads=n_threads)
        history = replace(model.history, refits=[*model.history.refits, record])
        new = object.__new__(type(self))
        new.__dict__.update({name: value for name, value in vars(self).items() if name not in TRAINING_ATTRIBUTES})
        with_offset = model.with_offset or offset is not None
        new.model_ = Model(model.schema, targets, network, history, summary, with_offset)
        if traits_of(targets.loss).task == "survival":
            raw = network.predict(rows.X, n_jobs=n_threads) + rows.offset
            new.model_ = with_curves(new.model_, raw, rows.y, rows.weight)
        return new

    def predict(self, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
        """Predict the target; a ranker, the scores by which the rows of a query are ordered, the largest first.

        Parameters
        ----------
        X : array-like, (rows, features); path, or iterator of blocks of features
        offset : array-like, (rows,) or (rows, outputs), or 0, optional
            As in `fit`. The default is 0, which is an exposure of 1. A model that was fitted with an offset warns
            without one; pass ``offset=0`` to confirm.

        Returns
        -------
        (rows,) or (rows, outputs) float64
            (rows, levels) in ascending order for several quantiles.
        """
        raw = self._raw(X, offset)
        return self.model_.targets.prediction(raw)

    def staged_predict(self, X: TableLike, *, offset: ArrayLike | None = None) -> Iterator[Floats]:
        """Yield the prediction after each round of the output layer; hidden layers stay as they are.

        An average (``deep="auto"``, ``quality``) grows by one tree for each output at a time, in the order of
        `trees_to_dataframe`: all trees of one part, then those of the next.

        Parameters
        ----------
        X, offset : as in `predict`

        Yields
        ------
        (rows,) or (rows, outputs) float64
            The last one equals that of `predict`, up to rounding.
        """
        prediction = self.model_.targets.prediction
        return (prediction(raw) for raw in staged_raw(self, X, offset))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags


def staged_raw(self: FittedModel, X: TableLike, offset: ArrayLike | None) -> Iterator[Floats]:
    """Yield the raw output with the offset, (rows, outputs), after each round of the output layer."""
    model, n_threads = self.model_, threads.count(self.n_jobs)
    network = model.network
    forest, h = network.layers[-1].forest, network.output_input(self._read(X).X, n_jobs=n_threads)
    numbers = range(1, max(rounds_of(forest), 1) + 1)
    for raw in accumulate(part.predict(h, n_threads) for part in stage_forests(forest, numbers)):
        yield model.add_offset(raw + network.baseline, offset)


def check_offset(model: Model, offset: object, method: str) -> None:
    """Raise ValueError if the model was fitted with an offset and none is passed to a method that needs targets."""
    if model.with_offset and offset is None:
        raise ValueError(
            f"{method} needs the offset of its rows, as the model was fitted with one: pass offset=..., or "
            "offset=0 for none. Searches and cross-validation in scikit-learn pass it after "
            "sklearn.set_config(enable_metadata_routing=True)."
        )
