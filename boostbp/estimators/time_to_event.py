"""BoostBPSurvival: hazards and times of events, of which some are censored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from boostbp import losses
from boostbp.ensemble.plan import Plan, Way
from boostbp.estimators.base import public_methods
from boostbp.estimators.constructor import SurvivalParameters, takes
from boostbp.estimators.data import ColumnNames, Learnt
from boostbp.estimators.nested_parameters import documented_as
from boostbp.estimators.regressor import BoostBPRegressor
from boostbp.estimators.supervised import Supervised, check_offset
from boostbp.estimators.training import Training
from boostbp.losses.checked_loss import CheckedLoss
from boostbp.metrics import StepFunction
from boostbp.metrics.scores import concordance
from boostbp.model.hazards import cumulative_hazards, times_by_which
from boostbp.model.model import Model, Targets
from boostbp.runtime import checks, clock
from boostbp.runtime.arrays import Floats, TableLike
from boostbp.runtime.group import training_in, workers


@documented_as(BoostBPRegressor)
@public_methods
class BoostBPSurvival(Supervised):
    """Multi-layered gradient boosted trees for survival times, trained by back-propagation.

    Methods have the names, arguments and results of scikit-survival.

    Parameters
    ----------
    others : as in `BoostBPRegressor`
    loss : str or Loss
        ``"cox"``: proportional hazards; the raw output is the logarithm of a hazard ratio. ``"aft"``: accelerated
        failure time, whose raw output is the logarithm of a time; ``AFT("logistic", scale=0.5)`` of `boostbp.losses`
        sets the distribution of the noise and its scale. By default held-out rows determine the scale: those of a model
        of ``quality=1`` for training, and then those of the model itself for curves and quantiles. Without held-out
        rows it is the scale around the best constant, which is too large.
    calibration : float or None
        Share of the rows, below 0.5, that `fit` reserves for the baseline hazard or the scale of the noise; a share of
        the groups if `fit` gets `groups`. None: the baseline hazard is that of the training rows. `calibrate` accepts
        other rows.
    eval_metric : str, callable, tuple or None
        Metric of the evaluation sets, which chooses the best epoch and number of rounds. None: the mean of the loss,
        ``"cox-nloglik"`` or ``"aft-nloglik"``, as in XGBoost. ``"concordance"``, ``"interval-regression-accuracy"``
        (for "aft"), or a function of bounds, (rows, 2), and predictions; see `BoostBPRegressor`.

    Attributes
    ----------
    unique_times_ : (times,) ndarray
        Times at which curves are returned: the distinct times of events, and the last time.
    others : as in `BoostBPRegressor`

    Notes
    -----
    `y` is a structured array of a bool field (event) and times, as ``sksurv.util.Surv`` makes it, or a data frame of
    two such columns, of which one named ``event`` may hold 1 and 0; or two columns of bounds, as XGBoost's
    ``label_lower_bound`` and ``label_upper_bound``, or others with "lower" and "upper" in their names; or one column,
    with minus the time of a censored row, as XGBoost's survival:cox takes it. Bounds are equal for an event, with an
    upper one of infinity for a row censored on the right, and a lower one of 0 for one censored on the left; only "aft"
    takes other bounds than those of events and right-censored rows. Columns without such names are bounds unless one
    may be a status, of whole numbers up to 9, and none is infinite: these are refused.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> time, censored_at = np.exp(X[:, 0] + 0.3 * rng.normal(size=300)), rng.exponential(4.0, size=300)
    >>> bounds = np.column_stack([np.minimum(time, censored_at), np.where(time <= censored_at, time, np.inf)])
    >>> model = BoostBPSurvival(quality=1, loss="aft", random_state=0).fit(X, bounds)
    >>> model.predict_survival_function(X[:2], times=[0.5, 1.0, 2.0]).shape
    (2, 3)
    >>> bool(model.score(X, bounds) > 0.85)
    True
    """

    @takes(SurvivalParameters)
    def __init__(self) -> None: ...

    @property
    def unique_times_(self) -> Floats:
        """Times at which curves are returned, (times,)."""
        return cast("Floats", self.model_.event_times)

    @property
    def _predict_risk_score(self) -> bool:
        """Whether larger predictions mean earlier events, for scikit-survival."""
        return self.loss in (losses.Cox.name, *losses.Cox.aliases) or isinstance(self.loss, losses.Cox)

    def predict(self, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
        """Predict risk scores of ``loss="cox"``, logarithms of hazard ratios; or times of ``loss="aft"``, (rows,).

        A larger score means an earlier event, and a larger time a later one; scikit-survival's functions of risks take
        ``-predict(X)`` of the latter. The time is the median of a normal or logistic distribution, and the quantile of
        level 0.632 of the extreme distribution, as in XGBoost.

        Parameters
        ----------
        X : array-like, (rows, features); path, or iterator of blocks of features
        offset : array-like, (rows,), or 0, optional
            As in `fit`. The default is 0. A model that was fitted with an offset warns without one; pass ``offset=0``
            to confirm.
        """
        raw = self._raw(X, offset)
        return self.model_.targets.prediction(raw)

    def predict_survival_function(
        self,
        X: TableLike,
        return_array: bool = False,
        *,
        times: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Predict the probability to have no event until each time.

        Parameters
        ----------
        X : array-like, (rows, features)
        return_array : bool
            Whether to return values at `unique_times_` instead of step functions.
        times : array-like, (times,), optional
            Times at which to return values. With ``loss="cox"``, none may be later than the training rows.
        offset : array-like, optional
            As in `predict`.

        Returns
        -------
        (rows, times) float64, or (rows,) of `boostbp.metrics.StepFunction`
        """
        return self._curves(X, return_array, times, offset, of_hazard=False)

    def predict_cumulative_hazard_function(
        self,
        X: TableLike,
        return_array: bool = False,
        *,
        times: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Predict the cumulative hazard, minus the logarithm of survival, as `predict_survival_function` does."""
        return self._curves(X, return_array, times, offset, of_hazard=True)

    def _curves(
        self, X: TableLike, return_array: bool, times: ArrayLike | None, offset: ArrayLike | None, *, of_hazard: bool
    ) -> NDArray[Any]:
        raw, grid = self._raw(X, offset), self.unique_times_
        if times is not None:
            grid = np.asarray(times, np.float64)
            if grid.ndim != 1 or not (grid >= 0).all() or not np.isfinite(grid).all():
                raise ValueError(f"times={checks.shown(times)} are no times: give numbers of 0 or more, (times,).")
        hazards = cumulative_hazards(self.model_, raw, grid)
        values = hazards if of_hazard else np.exp(-hazards)
        if return_array or times is not None:
            return values
        # Until the first time nothing has happened.
        x, start = np.append(0.0, grid), np.full((len(values), 1), 0.0 if of_hazard else 1.0)
        curves = np.empty(len(values), object)
        curves[:] = [StepFunction(x, curve) for curve in np.hstack([start, values])]
        return curves

    def predict_quantile(self, X: TableLike, q: ArrayLike = 0.5, *, offset: ArrayLike | None = None) -> Floats:
        """Predict the time by which a share `q` of rows like each one has had the event.

        Parameters
        ----------
        X : array-like, (rows, features)
        q : float, or array-like, (shares,)
            Between 0 and 1; 0.5 is the median.
        offset : array-like, optional
            As in `predict`.

        Returns
        -------
        (rows,) or (rows, shares) float64
            Infinite where the curve of ``loss="cox"`` ends before the share is reached.
        """
        shares = np.asarray(q, np.float64)
        for share in shares.ravel():
            checks.between("q", share, 0, 1)
        times = times_by_which(self.model_, self._raw(X, offset), np.atleast_1d(shares))
        return times if shares.ndim else times[:, 0]

    def predict_interval(self, X: TableLike, coverage: float = 0.9, *, offset: ArrayLike | None = None) -> Floats:
        """Predict intervals that contain the share `coverage` of the times, (rows, 2): quantiles of the model.

        They are not conformal: errors of censored rows are unknown. Their coverage depends on the baseline hazard or
        the scale of the noise, which `calibration` and `calibrate` estimate on rows without training. The upper end is
        infinite where the curve of ``loss="cox"`` ends before. Parameters are those of `predict_quantile`.
        """
        share = checks.between("coverage", coverage, 0, 1)
        return self.predict_quantile(X, [(1.0 - share) / 2, (1.0 + share) / 2], offset=offset)

    def score(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, offset: ArrayLike | None = None
    ) -> float:
        """Return Harrell's concordance index of events and right-censored rows.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        offset : array-like or 0, optional
            As in `predict`; required if the model was fitted with one.
        """
        check_offset(self.model_, offset, "score")
        raw = self._raw(X, offset)
        bounds, loss = self.model_.targets.read(y, len(raw)), self.model_.targets.loss
        return concordance(loss, raw, bounds, sample_weight)

    def _plan(self, training: Training) -> Training:
        loss, scale = training.data.targets.loss, getattr(self.loss, "scale", None)
        evaluated = training.problem.evaluation.sets
        if not isinstance(loss, losses.AFT) or scale is not None or training.data.earlier is not None or not evaluated:
            return training
        # The noise of the constant is larger than that of a model, and censored rows then count too much. A first model
        # tells more.
        held_out, raw = training.problem.held_out, first_model(training)
        loss = loss.estimated(held_out.y, held_out.weight, raw + held_out.offset, shifted=True)
        return training.with_targets(replace(training.data.targets, loss=loss))

    def _read_target(self, values: Any, weight: Floats, earlier: Model | None, names: ColumnNames) -> Learnt:
        loss = losses.load_loss(self.loss, n_outputs=1, task="survival")
        if not isinstance(loss, losses.AFT | losses.Cox):
            raise ValueError(f"loss={self.loss!r} has no survival curves: use 'cox', 'aft', or AFT(...).")
        if isinstance(loss, losses.AFT) and loss.scale is None:
            CheckedLoss(loss).check(values, weight)
            y, weights = workers().sample(values, weight)
            loss = loss.estimated(y, weights, np.zeros((len(y), 1)), shifted=True)
            if earlier is not None and getattr(earlier.targets.loss, "distribution", "") == loss.distribution:
                loss = cast("losses.AFT", earlier.targets.loss)
        return Targets(loss, np.zeros(1), np.ones(1), None, one_dimensional=True), values, weight

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "survival"  # by which targets are read
        tags.target_tags.required = True
        return tags


def first_model(training: Training) -> Floats:
    """Return the raw output, without offset, of the two single layers of quality 1 on the first evaluation set."""
    problem, time_limit = training.problem, training.problem.settings.max_time
    sets = (replace(problem.evaluation.sets[0], from_training=False),)  # nothing is refitted
    settings = replace(problem.settings, max_time=None if time_limit is None else time_limit / 4)
    problem = replace(problem, settings=settings, evaluation=replace(problem.evaluation, sets=sets))
    alone, plan = replace(training.data, others=()), Plan.of(problem, Way.LAYERS, quality=1)
    train = replace(training, data=alone, problem=problem, plan=plan).call(())
    with training_in(problem.rows.group):
        _, history = train()
    if (interrupt := clock.of_fit().interrupt) is not None:
        raise interrupt
    assert history.held_out is not None
    return history.held_out
