"""BoostBPRegressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from boostbp import losses
from boostbp.estimators.atomic import all_or_nothing
from boostbp.estimators.eval_sets import listed, named_in_errors
from boostbp.estimators.held_out import hold_out
from boostbp.estimators.supervised import Supervised
from boostbp.estimators.units import units_of
from boostbp.floats import usual_in_methods
from boostbp.inputs import read_target, read_weight
from boostbp.network.backprop import EvalSet

__all__ = ["BoostBPRegressor"]

Floats = NDArray[np.float64]


@usual_in_methods
class BoostBPRegressor(RegressorMixin, Supervised):
    """Multi-layered gradient boosted trees for regression, trained by back-propagation.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of each hidden layer, from the input up, of each network in the model. None at all, ``()``, is a single
        layer of boosted trees: all rounds are grown, and as many kept as validation likes best.
    loss : str or Loss
        ``"squared_error"``, ``"absolute_error"``, ``"huber"`` (delta 1, in standard deviations), ``"quantile"`` (the
        median), ``"poisson"`` (counts), ``"gamma"`` (amounts above 0), ``"tweedie"`` (amounts of which many are 0), the
        names of LightGBM and XGBoost for these; ``Quantile(0.9)``, ``Huber(2.0)`` or ``Tweedie(power=1.7)`` from
        `boostbp.losses`; or an object of your own (`boostbp.losses.Loss`). Predictions of
        ``"poisson"``, ``"gamma"`` and ``"tweedie"`` are above 0: their link is logarithmic.
    backend : {"lightgbm", "xgboost", "sklearn"} or Backend
        Who grows the trees.
    n_estimators : int, sequence of int or None
        Boosting rounds: one number, or one per layer (output layer last). None: 20 for hidden layers,
        100 for the output layer; fewer above hidden layers where five or more classes are told apart, 400 trees in
        all but at least 20 rounds. One number or one per layer also holds for `learning_rate`, `max_depth`,
        `max_leaves`, `min_samples_leaf` and `reg_lambda`. None for one layer, as in ``[None, 300]``, is its default.
    learning_rate : float, sequence of float or None
        Shrinkage of each tree (the paper's beta). None: 0.1 in a boosted output layer, and in any other
        as much as lets its trees cover 95 % of a target, ``1 - 0.05 ** (1 / n_estimators)``.
    max_depth : int, sequence of int or None
        -1: no limit. None: 3 in hidden layers, 4 in the output layer.
    max_leaves : int or None
        None: as many as `max_depth` allows.
    min_samples_leaf : int
    max_bins : int
    extra_trees : bool or "auto"
        Draw the one threshold of each feature that a node may split at, in place of the best one: hidden units become
        smoother and fit their training rows less closely. "auto": where the library can (LightGBM and scikit-learn),
        but not with ``leaves="native"``.
    multi_strategy : {"one_output_per_tree", "multi_output_tree"}
        Whether each unit of a hidden layer has trees of its own, or all units share the structure of
        each tree (vector leaves of XGBoost; otherwise grown on a random projection of
        the gradients, drawn anew each round).
    leaves : {"refit", "native"}
        Leaf regressions on `basis`, or the library's own linear leaves (LightGBM).
    basis : {"constant", "linear", "quadratic"} or Elementwise
        phi, the terms of a leaf regression.
    reg_lambda : float, sequence of float or None
        Ridge penalty of leaf regressions. None: 1.
    penalize_constant, standardize : bool
        Whether the constant is penalised, and whether weights are penalised in units of the leaf.
    clip : bool
        Clip the inputs of a leaf regression to the range the leaf saw in training. Isolated values, such as cells off
        by a factor of ten, do not widen it: regressions read them as the nearest of the other values of their column,
        in training as well. The ridge regression under a single layer then has a least penalty, if `base_lambda` is
        "gcv", so that one wrong cell does not outweigh other columns that say the same. Before all that, a cell that
        contradicts the rest of its row is replaced by what the others say of it, in training and wherever tables are
        read: where others tell at least half of a column, and it is further off than in any training row, by far.
    base : {"ridge", "additive", None}
        Start each layer with a ridge regression on all its inputs; with more than 1,000 rows and inputs, on the 1,000
        inputs of largest variance in units of their range. "additive": on smooth functions of each input, splines of
        the degree of `basis` with up to 9 intervals between quantiles, kept smooth by the same penalty. Both are on the
        terms of `basis`: on a constant, nothing.
    base_lambda : float, "gcv", sequence of these, or None
        Its penalty; "gcv" (and None): by generalised cross-validation, on hidden units not less than .15 of the mean
        sum of squares of a unit. Linear hidden layers may learn faster with 1.
    epochs : int
        Largest number of epochs of back-propagation.
    start : {"projection", "principal", "identity", "noise"}
        Hidden variables before the first epoch: random projections of the input, its principal components, copies
        of its first columns, or the paper's noise.
    step : {"normalised", "plain"} or Step
        Whether `step_size` counts in standard deviations of the hidden units, or multiplies the gradient as in the
        paper; or an object with its own size and momentum, of `boostbp.network.steps` or your own.
    step_size, momentum : float
        alpha and mu of the paper; not looked at if `step` is an object.
    refit_order : {"upward", "downward"}
        Layers are fitted again from the input to the output, each on the new output of the one below;
        or as in the paper, from the output to the input, each on its old input.
    output : {"boost", "move"}
        The output layer is boosted on the loss, or fitted to its moved target as in the paper.
    deep : {"auto", True}
        On held-out rows, weigh the deep network and variants of it (linear hidden units; sums of smooth functions)
        against single layers of the same library: the model is the average of them that does
        best, without networks where they add nothing (``history_.choice``, ``summary()``). All but the network have
        rounds and shrinkage of their own, and those with constant leaves their own depth, number of leaves and penalty.
        Needs an evaluation set, or rows to hold out. True: just the network, exactly as the parameters say.
    skip : bool
        Layers above the first see the features beside the hidden layer below them.
    structure_epochs : int or "auto"
        Epochs for which tree structures are kept while their leaves are fitted again; 1: grown every epoch.
        "auto": 4, or 1 with ``leaves="native"``.
    structure_samples : int, float or None
        Rows (a number, or a share of them) that tree structures are grown on, drawn once; leaves are fitted on all
        rows. Not with ``leaves="native"``.
    best_rounds : bool
        Keep as many rounds of the output layer as the first evaluation set likes best.
    eval_metric : str, callable, tuple or None
        Metric of the evaluation sets, which chooses the best epoch and number of rounds (models of the average are
        weighed by the loss), by its name in LightGBM, XGBoost or scikit-learn ("tweedie-nloglik@1.3"), a
        function ``f(y_true, y_pred)``, which is maximised if its name ends in ``_score``, or a tuple
        ``(name, f, greater_is_better)``; None: the loss's own. Metrics of classes are a classifier's. With `n_jobs`
        above 1, functions are called from several threads.
    early_stopping : bool or "auto"
        Without `eval_set`, hold out `validation_fraction` of the rows. "auto": from 36 rows on, and 50 rows at least,
        or a quarter of fewer than 200. False: run all epochs.
    validation_fraction : float
        Of the rows; of the groups, if `fit` is told them; of distinct rows, if some are repeated.
    validation : {"random", "last"}, splitter or pair
        Which rows are held out. "random": any, of each class its share; rows of a group (`fit`'s `groups`) stay
        together, and so do rows that are repeated, in numbers that chance would not repeat. "last": the last ones, of
        rows in the order of time. Or the last split of a splitter of scikit-learn, such as `TimeSeriesSplit` or
        `GroupShuffleSplit`, or of one's own with ``split(X, y, groups)``; or a pair, the numbers (or masks) of the rows
        to learn from and of those to hold out.
    refit : bool
        With ``deep="auto"`` and rows held out here, not in `eval_set`: once the model is chosen, its single layers and
        output layers are grown again, by as many rounds, on all rows. Hidden layers stay.
    n_iter_no_change : int or None
        Epochs (not rounds) without improvement on the first evaluation set after which training stops. The best epoch
        is restored.
    tol : float
        Smallest change of the metric that counts as an improvement.
    max_time : float or None
        Seconds after which no new epoch begins, nor any further rounds of what the network is weighed against, to
        which 60 % of them are left. The clock starts when everything is compiled; see `boostbp.warmup`.
    categorical_features : "from_dtype", sequence or None
        Columns with categories. "from_dtype": those of a data frame that are categories or text by their dtype; text
        that spells numbers or dates is refused until it is converted, or named here. Otherwise names, numbers, or bools
        for all columns.
    callbacks : sequence of callable or None
        Each is called with a `Progress` after each epoch; returning True stops. See `boostbp.callbacks`.
    checkpoint : str, path or None
        File that holds the whole state of the network's training after each epoch. A fit that finds it goes on from
        there, and ends in the same model, bit for bit, as one that was never interrupted; it must see the same data and
        parameters (`epochs` may grow). What the network is weighed against is trained anew. Needs a whole number as
        `random_state`.
    warm_start : bool
        Keep the state of the network's training in memory, for `fit_more` and for another `fit` on the same data with
        more `epochs`.
    n_jobs : int or None
        Threads; -1: all cores. The model does not depend on it.
    random_state : int, RandomState or None
    verbose : int
        0: silent; 1: a progress bar; 2: log each epoch to the logger ``boostbp``.
    backend_params : dict or None
        Native parameters of the library under its names; values must be of their kind and within their bounds. Refused,
        with the reason, are those that would break the method, that a parameter of this list stands for, and that speak
        of features by number or name: hidden layers have units in their place. Only ``interaction_constraints``, lists
        of column numbers, is taken where ``hidden_layer_sizes=()``: features without a list in common do not interact.

    Attributes
    ----------
    network_ : Network
    history_ : History
    n_iter_ : int
        Epochs that were run.
    feature_importances_ : (features,) ndarray
        Mean absolute attributions, as shares.
    feature_summary_ : Summary
        Of the training rows: means, and what importances need.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the input had names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BoostBPRegressor(hidden_layer_sizes=(8,), epochs=3, deep=True, random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (442, 8)
    """

    def __init__(
        self, hidden_layer_sizes: Sequence[int] = (16,), *, loss: Any = "squared_error", **shared: Any
    ) -> None:
        self.loss = loss
        super().__init__(hidden_layer_sizes, **shared)

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        eval_names: Sequence[str] | None = None,
        groups: Any = None,
        eval_X: Any = None,
        eval_y: Any = None,
        eval_sample_weight: Any = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix, (rows, features)
            What a sparse matrix does not hold is 0, as in scikit-learn; a NaN that it holds is missing. It is never
            made dense, and gives the model that the same numbers give as an array.
        y : array-like, (rows,) or (rows, outputs)
            Numbers; text is refused even where it spells them.
        sample_weight : array-like, (rows,), optional
            A weight of 2 is as good as the row twice, but that `min_samples_leaf` counts it once. Weights of less
            than 1 on average are scaled to 1.
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

        Raises
        ------
        ValueError
            If the input, the target or a parameter is not usable; the message says which, and what to do.
        KeyboardInterrupt
            On Ctrl-C, with the best state so far in the estimator and `Stop.INTERRUPTED` in its history, unless the
            first epoch is not over. See `boostbp.callbacks.stop_on_interrupt`. What any other handler of a signal
            raises, between rounds of trees, leaves the estimator as it was, as all exceptions do.
        """
        table = self._read(X, reset=True)
        target = read_target(y, len(table.X))
        self._one_dimensional = target.ndim == 1
        target = target.reshape(len(target), -1)
        weight = read_weight(sample_weight, len(table.X))
        table = self._repaired(table, weight)
        parts = listed(eval_set, eval_X, eval_y, eval_sample_weight)
        sets = self._eval_sets(parts, eval_names)
        _check_outputs(sets, target)
        loss = losses.load(self.loss, n_outputs=target.shape[1])
        if losses.traits_of(loss).task == "classification":
            raise ValueError(
                f"loss={self.loss!r} is one of classes, and a regressor predicts numbers: use BoostBPClassifier, or a "
                "loss of numbers, such as loss='squared_error'."
            )
        loss.check(target)
        for part, one in zip(parts, sets, strict=True):
            with named_in_errors(part.source):
                loss.check(one.y)
        if not sets:
            table, target, weight, sets = hold_out(self, table, target, weight, None, groups=groups, X=X)
        self._shift, self._scale = units_of(target, weight, loss)
        self._loss = loss
        metric = self._metric(loss, sets, self._scale)
        return self._train(
            table, (target - self._shift) / self._scale, weight, loss, sets, metric, self._outcome
        )  # fmt: skip

    def predict(self, X: Any) -> Floats:
        """Predicted target, (rows,) or (rows, outputs)."""
        prediction = self._outcome(self._raw(X))
        return prediction.ravel() if self._one_dimensional else prediction

    def _outcome(self, raw: Floats) -> Floats:
        return self._loss.link(raw) * self._scale + self._shift

    def _to_target(self, y: Floats) -> Floats:
        return (y - self._shift) / self._scale

    def _output_scale(self) -> Floats:
        return self._scale

    def _output_offset(self) -> Floats:
        return self._shift

    def _encode(self, y: Any, n_rows: int) -> Floats:
        target = read_target(y, n_rows)
        return target.reshape(len(target), -1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _check_outputs(sets: Sequence[EvalSet], target: Floats) -> None:
    """Refuse an evaluation set with other outputs than the target, which numpy would broadcast."""
    for number, one in enumerate(sets):
        if one.y.shape[1] != target.shape[1]:
            raise ValueError(
                f"eval_set[{number}]: its y has {one.y.shape[1]} outputs, the training target has {target.shape[1]}. "
                "Give the same outputs, in the same order."
            )
