"""BoostBPRegressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from boostbp import losses
from boostbp.estimators.base import public_methods
from boostbp.estimators.conformal import predict_interval
from boostbp.estimators.constructor import RegressorParameters, takes
from boostbp.estimators.data import ColumnNames, Learnt
from boostbp.estimators.supervised import Supervised, check_offset
from boostbp.model.model import Model, Targets
from boostbp.runtime.arrays import Floats, TableLike


@public_methods
class BoostBPRegressor(RegressorMixin, Supervised):
    """Multi-layered gradient boosted trees for regression, trained by back-propagation.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Number of units in each hidden layer of each network, from the input up. ``()`` trains a single layer of boosted
        trees: `fit` grows all rounds and keeps the number of rounds with the best validation score. With ``deep=False``
        this parameter has no effect: the model is an average of single layers, also with ``()``.
    quality : {1, 2, 3, 4, 5}
        How much time the fit may spend on accuracy; the README has a table of both.

        - 1: two or three single layers, one to five times LightGBM's time.
        - 2 and up: also networks.
        - 4 and 5: may average several models, each with other rows held out.

        A fit holds out some rows to choose the number of rounds and the parts. At the end the leaves are fitted again
        on all rows; an `eval_set` is never trained on. The most promising candidates for their cost are trained first,
        so a fit that `max_time` or Ctrl-C cuts short is good as well. With ``deep=True``, quality 1 to 3 stops the
        network when more epochs promise too little; quality 4 and 5 are the same and run all epochs.
    loss : str or Loss
        ``"squared_error"``, ``"absolute_error"``, ``"huber"`` (delta 1, in standard deviations), ``"quantile"`` (the
        median), ``"poisson"`` (counts), ``"gamma"`` (positive amounts), ``"tweedie"`` (amounts, many of them 0), or the
        name of one of these in LightGBM or XGBoost. Or a loss object: ``Quantile(0.9)``, ``Huber(2.0)`` or
        ``Tweedie(power=1.7)`` from `boostbp.losses`, or a custom one (see `boostbp.losses.Loss`). ``"poisson"``,
        ``"gamma"`` and ``"tweedie"`` have a logarithmic link, so their predictions are positive.
    alpha : float, sequence of float or None
        Level of ``loss="quantile"``; None means 0.5, the median. Several ascending levels, such as
        ``[0.1, 0.5, 0.9]``, train one model for all of them: `predict` returns a column for each level, `y` has one
        column, and metrics are means over the levels. The columns never cross, because each row is sorted (see
        `boostbp.losses.Quantiles`). Other losses ignore a number.
    backend : {"lightgbm", "xgboost", "sklearn"} or Backend
        Library that grows the trees.
    n_estimators : int or None
        Maximum number of boosting rounds of each single layer and each output layer. None allows up to 4,000 while the
        held-out loss falls; `LayerSpec` lists the cases with a fixed number. Hidden layers are fitted again in every
        epoch and have 20 rounds: set ``hidden={"n_estimators": ...}``.
    learning_rate : float or None
        Shrinkage of each tree in single layers and output layers (the paper's beta). None: see `LayerSpec`.
    max_depth : int or None
        Maximum depth of the trees in every layer; -1 sets no limit. None: 3 in hidden layers, 4 in the output layer.
    min_samples_leaf : int or None
        Minimum number of rows in a leaf, for every layer. None: 20.
    colsample_bytree : float or None
        Share of the features that a tree of any layer may split on, drawn anew for each tree. None: 1.
    hidden : LayerSpec, dict or None, or a sequence of these
        Settings of the hidden layers: fields of `LayerSpec`, such as ``{"max_depth": 2, "basis": "linear"}``. A
        sequence holds one entry for each hidden layer. `hidden` and `output` override the parameters above.
    output : LayerSpec, dict or None
        Settings of the output layer: fields of `LayerSpec`.
    backprop : BackpropSpec, dict or None
        Settings of back-propagation: fields of `BackpropSpec`, such as ``{"step_size": 0.3}``.
    epochs : int
        Maximum number of epochs of back-propagation. With 0, ``deep=True`` keeps the network as it was initialised;
        otherwise no network is trained.
    deep : {"auto", True, False}
        Which parts the model has. "auto": a weighted sum of single layers, the network, variants of the network (linear
        hidden units; sums of smooth functions), and layers on the directions in which other parts vary most. Each part
        is trained for as long as it promises enough (see `quality`). The held-out rows determine the weights
        (``history_.choice``, ``summary()``). Settings of the output layer apply to every part; each part chooses the
        rounds, shrinkage and sizes that are not set. With ``hidden_layer_sizes=()``, or with neither an evaluation
        set nor held-out rows, the model is one single layer.
        True: one network. Its output layer is a sum of three, with weights from the held-out rows: the one it was
        trained with, one boosted to its end on the hidden units, and one boosted on the features alone. With
        ``early_stopping=False``, or the paper's output target, the network is exactly what the parameters describe.
        False: the weighted sum of single layers only. No network is trained, so `transform` has no columns to return.
        Without rows to determine weights, the model is the single layer of ``hidden_layer_sizes=()``. `hidden`,
        `backprop` and callbacks, which run after epochs, have no effect; `fit` refuses `checkpoint` and `keep_state`.
    early_stopping : bool or "auto"
        Whether to hold out rows when `fit` gets no `eval_set`; `validation` states which. "auto" holds rows out from 36
        rows on: at least 50 of them, or a quarter if there are fewer than 200. False runs all epochs.
    validation : float, "last", splitter or pair
        Which rows are held out. A float is a share of the rows, drawn at random: a share of the groups if `fit` gets
        `groups`, or of the distinct rows if some are repeated. Each class keeps its share. Rows of a group stay
        together, and so do rows that are repeated more often than chance explains. "last" is the last tenth, for rows
        in order of time. A splitter of scikit-learn, such as `TimeSeriesSplit` or `GroupShuffleSplit`, or a custom one
        with ``split(X, y, groups)``, holds out the rows of its last split. A pair lists the rows to train on and the
        rows to hold out, as indices or masks.
    calibration : float or None
        Share of the rows, below 0.5, that `fit` reserves for `predict_interval`; a share of the groups if `fit` gets
        `groups`. None reserves none; `calibrate` accepts other rows.
    eval_metric : str, callable, tuple or None
        Metric of the evaluation sets. It chooses the best epoch and number of rounds; the weights of an average
        minimise the loss instead. A name in LightGBM, XGBoost or scikit-learn ("tweedie-nloglik@1.3"); a function
        ``f(y_true, y_pred)``, which is maximised if its name ends in ``_score``; or a tuple
        ``(name, f, greater_is_better)``. None is the metric of the loss. Metrics of classes need a classifier. With
        `n_jobs` above 1, several threads call functions.
    max_time : float or None
        Seconds from the call of `fit` after which no further round or epoch starts, nor one that is expected to end
        later; the model is what has been trained by then. Time is reserved to train it again on all rows.
    categorical_features : "from_dtype", sequence or None
        Columns with categories. "from_dtype" takes the columns of a data frame whose dtype is categorical or text; a
        column of text that spells numbers or dates is refused until it is converted or named here. A sequence holds
        names, indices, or a bool for each column.
    n_jobs : int or None
        Number of threads; -1 uses all cores. The model does not depend on it.
    random_state : int, RandomState or None
        Seed of all random draws.
    verbose : int or "auto"
        0 is silent, 1 shows a progress bar, and 2 logs the parts and each epoch to the logger ``boostbp``, which writes
        to standard error unless logging is set up. "auto" shows a bar on a terminal or in a notebook while a fit takes
        longer than a second, and none in worker processes and threads.
    backend_params : dict or None
        Native parameters of the library under its own names, for every layer. Values must have the right type and lie
        within the library's bounds. `fit` refuses, with the reason, parameters that would break the method, that have
        an equivalent here, or that refer to features by index or name, since hidden layers have units instead. The only
        exception is ``interaction_constraints`` with ``hidden_layer_sizes=()``: lists of column indices, where features
        that share no list do not interact.

    Attributes
    ----------
    network_ : Network
    history_ : History
    n_iter_ : int
        Number of epochs that ran.
    best_iteration_, best_score_, evals_result_ : int, dict, dict
        Contents of `history_` under LightGBM's names: iterations of the leading part of the model (rounds of a layer,
        epochs of a network), score of the model, and scores of that part by iteration.
    feature_importances_ : (features,) ndarray
        Mean absolute attributions, as shares.
    feature_summary_ : Summary
        Means of the training rows, and the statistics that importances need.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if the input had names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BoostBPRegressor(hidden_layer_sizes=(8,), epochs=3, deep=True, random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (442, 8)
    """

    alpha: Any

    @takes(RegressorParameters)
    def __init__(self) -> None: ...

    predict_interval = predict_interval

    def score(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, offset: ArrayLike | None = None
    ) -> float:
        """Return R2, or for several quantiles the mean of `sklearn.metrics.d2_pinball_score` over the levels.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        offset : array-like or 0, optional
            As in `predict`; required if the model was fitted with one.
        """
        check_offset(self.model_, offset, "score")
        return self._score(y, self.predict(X, offset=offset), sample_weight=sample_weight)

    def _score(self, y: ArrayLike, prediction: Floats, *, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of a prediction; see `score`."""
        from sklearn.metrics import d2_pinball_score, r2_score  # imported here, as it slows the import of the package

        loss = self.model_.targets.loss
        if not isinstance(loss, losses.Quantiles):
            return float(r2_score(y, prediction, sample_weight=sample_weight))
        levels = zip(loss.alpha, prediction.T, strict=True)
        scores = [d2_pinball_score(y, at, sample_weight=sample_weight, alpha=level) for level, at in levels]
        return float(np.mean(scores))

    def _read_target(self, values: Any, weight: Floats, earlier: Model | None, names: ColumnNames) -> Learnt:
        """Return targets with neutral units; `fit` learns the units from the rows that it does not hold out."""
        target = values.reshape(len(values), -1)
        loss = losses.load_loss(self.loss, n_outputs=target.shape[1], alpha=self.alpha, task="regression")
        traits = losses.traits_of(loss)
        if traits.task == "classification":
            raise ValueError(f"loss={self.loss!r} is for classification: use BoostBPClassifier.")
        n_outputs = traits.copies or traits.n_outputs(target)
        shift, scale = np.zeros(n_outputs), np.ones(n_outputs)
        if earlier is not None and earlier.targets.n_outputs == n_outputs:
            shift, scale = earlier.targets.shift, earlier.targets.scale
        one_dimensional = bool(traits.columns) or (values.ndim == 1 and traits.copies is None)
        return Targets(loss, shift, scale, None, one_dimensional), target, weight

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
