"""The fit of the supervised estimators: the same for numbers and for classes, but for how targets are read.

Rows beyond memory are arrays in files while it lasts.
"""

from __future__ import annotations

import copy
import gc
import os
from collections.abc import Callable, Sequence
from functools import wraps
from traceback import clear_frames
from typing import Any, Self, TypeVar, cast

from numpy.typing import NDArray
from sklearn.base import is_classifier

from boostbp import losses
from boostbp.cautions import named_in_errors
from boostbp.estimators import session
from boostbp.estimators.conformal import Conformal
from boostbp.estimators.held_out import hold_out, hold_out_others
from boostbp.estimators.nested_parameters import suggests
from boostbp.estimators.session import Earlier, all_or_nothing, begin_from
from boostbp.estimators.supervised import listed
from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.inputs.blocks import is_blocks, rows_of
from boostbp.inputs.rows import Rows
from boostbp.inputs.targets import read_weight
from boostbp.losses import Loss, checked
from boostbp.network.eval_sets import EvalSet, Evaluation, raw_output
from boostbp.network.monitor import Progress
from boostbp.trees.disk_arrays import on_disk

KEPT = ("network_", "_calibration")  # what a fit leaves that may hold large arrays
F = TypeVar("F", bound=Callable[..., Any])


def on_blocks(fit: F) -> F:
    """Let `fit` take a path or an iterator of blocks in the place of arrays; the model is that of these rows as arrays.

    Raises ValueError if the state of training is to be kept: it is as large as the rows.
    """

    @wraps(fit)
    def whole(self: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        if not is_blocks(X):
            return fit(self, X, y, sample_weight, **options)
        if options.get("keep_state"):
            raise ValueError(
                f"keep_state={options['keep_state']!r} is not supported with rows that are read block by block: the "
                "state is as large as they are. Use checkpoint=..., which keeps it in a file."
            )
        named = {"y": y, "sample_weight": sample_weight, **{name: options.get(name) for name in ("offset", "groups")}}
        with on_disk():
            X, beside = rows_of(
                X,
                named,
                labels=is_classifier(self),
                categorical_features=self.categorical_features,
                schema=getattr(options.get("init_model"), "schema_", None),
            )
            options |= {name: beside[name] for name in options.keys() & beside.keys()}
            try:
                fitted = fit(self, X, beside["y"], beside["sample_weight"], **options)
            except BaseException as error:
                clear_frames(error.__traceback__)  # which would hold arrays, and so room on the disk
                raise
            finally:
                del X, beside, options
                gc.collect()  # a training holds its rows in a circle
        for name in KEPT:
            if name in vars(self):
                setattr(self, name, copy.deepcopy(vars(self)[name]))
        return fitted

    return cast(F, whole)


class SupervisedFit(Conformal):
    """`fit`, by what an estimator says of its targets."""

    @all_or_nothing
    @on_blocks
    @suggests
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        init_model: Any = None,
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
        """Train.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix, (rows, features); path, dataset, or iterator of blocks ``(X, y)``
            What a sparse matrix does not hold is 0, as in scikit-learn; a NaN that it holds is missing. It is never
            made dense, and gives the model that the same numbers give as an array. Rows beyond memory come from files,
            whose columns `y`, `sample_weight`, `offset` and `groups` name, or in blocks: ``docs/beyond_memory.md``.
        y : array-like, (rows,) or (rows, outputs)
            Of a regressor numbers; text is refused even where it spells them. Of a classifier labels, (rows,): more
            than 50 that are numbers other than 0, 1, 2, ... are warned of, as they are probably an amount.
        sample_weight : array-like, (rows,), optional
            A weight of 2 is as good as the row twice, but that `min_samples_leaf` counts it once. Weights of less
            than 1 on average are scaled to 1. Penalties count weights as rows: divide exposures and inverse
            probabilities, which are no numbers of rows, by their mean.
        offset : array-like, (rows,) or (rows, outputs), optional
            What is known of each row beforehand, and added to its raw output: the logarithm of its exposure for
            ``loss="poisson"``, ``"gamma"`` and ``"tweedie"``; an amount in units of `y` for losses of residuals;
            log-odds of classes, (rows,) if these are two. The model learns the rest, and does not hold it: pass it to
            `predict`, `score` and their like, too. LightGBM calls it ``init_score``, XGBoost ``base_margin``.
        init_model : estimator of the same kind, optional
            A fitted or loaded model that training goes on from, on these rows, which may be others than its own. What
            it predicts is added to the raw output, as an `offset` is; new layers learn the rest, and the model is the
            sum of both. It stays as it is. Tables and targets are read as it reads them (columns, categories, classes,
            units), and the loss is the same; other parameters are those of the new layers.
        eval_set : (X, y), (X, y, sample_weight) or a list of these, optional
            The first one chooses the epoch and stops training (in XGBoost the last does, in LightGBM any).
        eval_names : list of str, optional
            What the evaluation sets are called in history, log and progress bar; "valid_0", "valid_1", ... if left out.
        groups : array-like, (rows,), optional
            Group of each row, such as the patient, shop or place that it was measured on: rows of a group are held out
            together, so that what is said of held-out rows is said of new groups. Not looked at with an `eval_set`.
        eval_X, eval_y, eval_sample_weight : optional
            The same as `eval_set`, each an argument of its own as in LightGBM: one table and its target, or tuples of
            them. Scikit-learn can route them, and a pipeline with ``transform_input=["eval_X"]`` transform the tables.
        eval_offset : array-like or tuple of array-like, optional
            The `offset` of the evaluation set, or of each; needed where there is an `offset`.
        callbacks : sequence of callable, optional
            Each is called with a `Progress` after each epoch; returning True stops. See `boostbp.callbacks`.
        checkpoint : str or path, optional
            File that holds the whole state of the network's training after each epoch. A fit that finds it goes on from
            there, and ends in the same model, bit for bit, as one that was never interrupted; it must see the same data
            and parameters (`epochs` may grow). What the network is weighed against is trained anew. Needs a whole
            number as `random_state`.
        keep_state : bool
            Keep the state of the network's training, which holds the training rows, in memory for `fit_more`.

        Raises
        ------
        ValueError
            If the input, the target or a parameter is not usable; the message says which, and what to do.
        KeyboardInterrupt
            On Ctrl-C, with the best state so far in the estimator and `Stop.INTERRUPTED` in its history, unless the
            first epoch is not over. See `boostbp.callbacks.stop_on_interrupt`. What any other handler of a signal
            raises, between rounds of trees, leaves the estimator as it was, as all exceptions do.
        """
        earlier = begin_from(self, init_model, offset_given=offset is not None)
        run = session.Run(callbacks, checkpoint, keep_state, earlier)
        table = self._read(X, reset=earlier is None)
        values, strata = self._read_target(y, len(table.X))
        weight, kept_out = self._keep_out(table, read_weight(sample_weight, len(table.X)), strata, groups)
        target, weight = self._learn_target(values, weight, earlier)
        n_outputs = target.shape[1]
        self._loss = loss = self._load_loss(n_outputs)
        if earlier is not None:
            earlier.check(loss, losses.traits_of(loss).copies or n_outputs)
        checked.check_target(loss, target)
        parts = listed(eval_set, eval_X, eval_y, eval_sample_weight, eval_offset)
        sets = self._eval_sets(parts, eval_names, offset, n_outputs, earlier)
        for part, watched in zip(parts, sets, strict=True):
            with named_in_errors(part.source):
                checked.check_target(loss, watched.rows.y)
        known = self._offset(table.X, offset, n_outputs, earlier)
        all_rows = Rows(table, target, weight, known, workers())
        rows, sets = (all_rows, sets) if sets else hold_out(self, all_rows, strata, groups=groups, X=X)
        if earlier is None:
            self._learn_units(rows)
        metric = self._metric(loss, sets, self._training_unit())
        outcome = raw_output if metric is not None and metric.takes_raw else self._outcome

        def in_units(rows: Rows, sets: list[EvalSet]) -> tuple[Rows, Evaluation]:
            return self._in_units(rows), Evaluation(tuple(map(self._set_in_units, sets)), metric, outcome)

        draws = hold_out_others(self, all_rows, strata, groups=groups, sets=sets)
        others = [lambda draw=draw: in_units(*draw()) for draw in draws]
        self._train(*in_units(rows, sets), loss, run, others)
        self._fitted_with_offset = offset is not None
        self._calibrate_by(kept_out, all_rows, offset)
        return self

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], Any]:
        """Return the target as it was passed, checked, and classes that keep their shares where rows are drawn."""
        raise NotImplementedError

    def _learn_target(self, values: NDArray[Any], weight: Floats, earlier: Earlier | None) -> tuple[Floats, Floats]:
        """Return the target, (rows, outputs), and the weights of its rows."""
        raise NotImplementedError

    def _load_loss(self, n_outputs: int) -> Loss:
        """Return the loss; ValueError if it is for another kind of target."""
        raise NotImplementedError

    def _learn_units(self, rows: Rows) -> None:
        """Learn the units that training sees targets in; without, they are as they were passed."""

    def _training_unit(self) -> Floats | float:
        """Return their size, (outputs,)."""
        return 1.0

    def _in_units(self, rows: Rows) -> Rows:
        """Return training rows with targets and offsets in these units."""
        return rows

    def _set_in_units(self, part: EvalSet) -> EvalSet:
        """Return an evaluation set with offsets in these units; metrics take targets as they were passed."""
        return part

    def _outcome(self, raw: Floats) -> Floats:
        """Return what metrics compare with targets, of raw outputs."""
        raise NotImplementedError
