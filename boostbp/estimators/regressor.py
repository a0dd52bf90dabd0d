"""BoostBPRegressor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from boostbp import losses
from boostbp.backends.base import Backend
from boostbp.estimators.conformal import predict_interval
from boostbp.estimators.nested_parameters import public_methods
from boostbp.estimators.supervised import Supervised
from boostbp.inputs.targets import read_target
from boostbp.layers import LayerSpec
from boostbp.model import Model, Targets
from boostbp.network.settings import BackpropSpec
from boostbp.runtime.arrays import Floats


@public_methods
class BoostBPRegressor(RegressorMixin, Supervised):
    """Multi-layered gradient boosted trees for regression, trained by back-propagation.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of each hidden layer, from the input up, of each network in the model. None at all, ``()``, is a single
        layer of boosted trees: all rounds are grown, and as many kept as validation likes best. With ``deep=False`` it
        does not matter: the model is an average of single layers, also with ``()``.
    quality : {1, 2, 3, 4, 5}
        How much the fit may cost, and so how good the model is; see the table in README. 1: one layer, the better of
        two, at some three times the library's seconds. From 2 on, other layers and hidden ones join. The leaves are
        then fitted again on all rows, if `fit` held some out itself; `eval_set` is never learned from. At 4 and 5 the
        model may be the mean of several such, each with other rows held out. What is tried is begun by what it promises
        for its work, so that a fit that is cut short, by `max_time` or Ctrl-C, is good as well. With ``deep=True``, a
        network ends where more epochs promise too little, and from 4 on after all of them; 5 is then the same as 4.
    loss : str or Loss
        ``"squared_error"``, ``"absolute_error"``, ``"huber"`` (delta 1, in standard deviations), ``"quantile"`` (the
        median), ``"poisson"`` (counts), ``"gamma"`` (amounts above 0), ``"tweedie"`` (amounts of which many are 0), the
        names of LightGBM and XGBoost for these; ``Quantile(0.9)``, ``Huber(2.0)`` or ``Tweedie(power=1.7)`` from
        `boostbp.losses`; or an object of your own (`boostbp.losses.Loss`). Predictions of
        ``"poisson"``, ``"gamma"`` and ``"tweedie"`` are above 0: their link is logarithmic.
    alpha : float, sequence of float or None
        Level of ``loss="quantile"``; None: 0.5, the median. Several ascending levels, such as ``[0.1, 0.5, 0.9]``, make
        one model of all: `predict` gives a column for each, which never cross (those of a row are sorted, see
        `boostbp.losses.Quantiles`), metrics are means over the levels, and `y` has one column. Of other losses a number
        is not looked at.
    backend : {"lightgbm", "xgboost", "sklearn"} or Backend
        Who grows the trees.
    n_estimators : int or None
        Largest number of boosting rounds of every single layer and output layer. None: up to 4,000 while the held-out
        loss falls; see `LayerSpec` where the number is fixed. Hidden layers, which are fitted again every epoch, have
        20: ``hidden={"n_estimators": ...}``.
    learning_rate : float or None
        Shrinkage of each tree of single layers and output layers (the paper's beta). None: see `LayerSpec`.
    max_depth : int or None
        Of the trees of every layer; -1: no limit. None: 3 in hidden layers, 4 in the output layer.
    min_samples_leaf : int or None
        Rows in a leaf of every layer. None: 20.
    colsample_bytree : float or None
        Share of the features on which a tree of any layer may split, drawn anew for each tree. None: 1.
    hidden : LayerSpec, dict or None, or a sequence of these
        How hidden layers are fitted, by the fields of `LayerSpec`, such as ``{"max_depth": 2, "basis": "linear"}``; a
        sequence holds one for each. They win over the parameters above, and so do those of `output`.
    output : LayerSpec, dict or None
        How the output layer is fitted, by the fields of `LayerSpec`.
    backprop : BackpropSpec, dict or None
        How hidden layers are trained, by the fields of `BackpropSpec`, such as ``{"step_size": 0.3}``.
    epochs : int
        Largest number of epochs of back-propagation. 0: with ``deep=True`` the network as it starts, otherwise none.
    deep : {"auto", True, False}
        "auto": a sum of single layers, of the network, of variants of it (linear hidden units; sums of smooth
        functions) and of layers on the directions in which others vary most, each for as long as it promises enough
        (see `quality`), with weights by the held-out rows (``history_.choice``, ``summary()``). What is set of the
        output layer holds for each of them; rounds, shrinkage and sizes that are not set they choose themselves. With
        ``hidden_layer_sizes=()``, or without an evaluation set and rows to hold out, it is one single layer.
        True: one network. Its output layer is the sum, weighed by the held-out rows, of the one that it was trained
        with, one boosted to its end on the hidden units, and one on the features beside them; with
        ``early_stopping=False``, or the paper's output target, it is the network exactly as the parameters say.
        False: the sum of single layers alone; no network is trained, `transform` has nothing to show, and without rows
        to weigh by it is the single layer that ``hidden_layer_sizes=()`` gives. `hidden` and `backprop`, and callbacks,
        which are called after epochs, then have no effect; `checkpoint` and `keep_state` of `fit` are refused.
    early_stopping : bool or "auto"
        Without `eval_set`, hold out the rows that `validation` says. "auto": from 36 rows on, and 50 rows at least, or
        a quarter of fewer than 200. False: run all epochs.
    validation : float, "last", splitter or pair
        Which rows are held out. A share of the rows (of the groups, if `fit` is told them; of distinct rows, if some
        are repeated), drawn at random, of classes each its share; rows of a group (`fit`'s `groups`) stay together, and
        so do rows that are repeated, in numbers that chance would not repeat. "last": the last tenth, of rows in the
        order of time. Or the last split of a splitter of scikit-learn, such as `TimeSeriesSplit` or
        `GroupShuffleSplit`, or of one's own with ``split(X, y, groups)``; or a pair, the numbers (or masks) of the
        rows to learn from and of those to hold out.
    calibration : float or None
        Share of the rows (of the groups, if `fit` is told them), below 0.5, that the fit does not learn from, for
        `predict_interval`. None: none; `calibrate` takes rows of one's own.
    eval_metric : str, callable, tuple or None
        Metric of the evaluation sets, which chooses the best epoch and number of rounds (models of the average are
        weighed by the loss), by its name in LightGBM, XGBoost or scikit-learn ("tweedie-nloglik@1.3"), a
        function ``f(y_true, y_pred)``, which is maximised if its name ends in ``_score``, or a tuple
        ``(name, f, greater_is_better)``; None: the loss's own. Metrics of classes are a classifier's. With `n_jobs`
        above 1, functions are called from several threads.
    max_time : float or None
        Seconds after which no further rounds and no new epoch begin; what is there by then is the model, and time is
        left to grow it again on all rows. Compiling, which the first fit on a machine does, is not counted: see
        `boostbp.warmup`.
    categorical_features : "from_dtype", sequence or None
        Columns with categories. "from_dtype": those of a data frame that are categories or text by their dtype; text
        that spells numbers or dates is refused until it is converted, or named here. Otherwise names, numbers, or bools
        for all columns.
    n_jobs : int or None
        Threads; -1: all cores. The model does not depend on it.
    random_state : int, RandomState or None
    verbose : int
        0: silent; 1: a progress bar; 2: log what is trained, and each epoch, to the logger ``boostbp``, and to the
        standard error if no logging was set up.
    backend_params : dict or None
        Native parameters of the library under its names, for every layer; values must be of their kind and within their
        bounds. Refused, with the reason, are those that would break the method, that a parameter of ours stands for,
        and that speak of features by number or name: hidden layers have units in their place. Only
        ``interaction_constraints``, lists of column numbers, is taken where ``hidden_layer_sizes=()``: features without
        a list in common do not interact.

    Attributes
    ----------
    network_ : Network
    history_ : History
    n_iter_ : int
        Epochs that were run.
    best_iteration_, best_score_, evals_result_ : int, dict, dict
        What `history_` holds, by the names of LightGBM: iterations of the leading piece of the model (rounds of a
        layer, epochs of a network), score of the model, and scores of that piece by iteration.
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

    alpha: Any

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (16,),
        *,
        quality: Literal[1, 2, 3, 4, 5] = 3,
        loss: Any = "squared_error",
        alpha: float | Sequence[float] | None = None,
        backend: Literal["lightgbm", "xgboost", "sklearn"] | Backend = "lightgbm",
        n_estimators: int | None = None,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        min_samples_leaf: int | None = None,
        colsample_bytree: float | None = None,
        hidden: LayerSpec | Mapping[str, Any] | Sequence[LayerSpec | Mapping[str, Any]] | None = None,
        output: LayerSpec | Mapping[str, Any] | None = None,
        backprop: BackpropSpec | Mapping[str, Any] | None = None,
        epochs: int = 300,
        deep: Literal["auto"] | bool = "auto",
        early_stopping: Literal["auto"] | bool = "auto",
        validation: Any = 0.1,
        calibration: float | None = None,
        eval_metric: Any = None,
        max_time: float | None = None,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        backend_params: Mapping[str, Any] | None = None,
    ) -> None:
        self._keep_parameters(locals())

    def predict(self, X: Any, *, offset: Any = None) -> Floats:
        """Predicted target, (rows,) or (rows, outputs); of several quantiles, (rows, levels) in ascending order.

        Parameters
        ----------
        X : array-like, (rows, features); path, or iterator of blocks of features
        offset : array-like, (rows,) or (rows, outputs), or 0, optional
            As in `fit`. Without one it is 0, such as an exposure of 1; a model that was fitted with one warns then,
            unless ``offset=0`` says that this is meant.
        """
        raw = self._with_offset(self._raw(X), offset)
        return self.model_.targets.prediction(raw)

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[Floats]:
        """Predictions of the growing model: after each round of its output layer, on hidden layers that stay.

        Of an average (``deep="auto"``, ``quality``) one tree for each output joins at a time, in the order of
        `trees_to_dataframe`: those of one model after those of another.

        Parameters
        ----------
        X, offset :
            As in `predict`.

        Yields
        ------
        (rows,) or (rows, outputs) float64
            The last one is that of `predict`, up to rounding.
        """
        return (self.model_.targets.prediction(self._with_offset(raw, offset)) for raw in self._staged_raw(X))

    predict_interval = predict_interval

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """R2 of the prediction; of several quantiles, the mean of its like for pinball losses (`d2_pinball_score`).

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        offset : array-like or 0, optional
            As in `predict`; of a model that was fitted with one it must be given.
        """
        self._check_offset(offset, "score")
        return self._score(y, self.predict(X, offset=offset), sample_weight=sample_weight)

    def _score(self, y: Any, prediction: Floats, *, sample_weight: Any = None) -> float:
        """R2, or of several quantiles the mean of its like for pinball losses."""
        from sklearn.metrics import d2_pinball_score, r2_score  # imported here, as it slows the import of the package

        loss = self.model_.targets.loss
        if not isinstance(loss, losses.Quantiles):
            return float(r2_score(y, prediction, sample_weight=sample_weight))
        levels = zip(loss.alpha, prediction.T, strict=True)
        scores = [d2_pinball_score(y, at, sample_weight=sample_weight, alpha=level) for level, at in levels]
        return float(np.mean(scores))

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, None]:
        return read_target(y, n_rows), None

    def _learn_target(self, values: Floats, weight: Floats, earlier: Model | None) -> tuple[Targets, Floats, Floats]:
        """Return targets in their own units; `fit` learns the units on the rows that are not held out."""
        target = values.reshape(len(values), -1)
        loss = losses.load(self.loss, n_outputs=target.shape[1], alpha=self.alpha, task="regression")
        traits = losses.traits_of(loss)
        if traits.task == "classification":
            raise ValueError(
                f"loss={self.loss!r} is one of classes, and a regressor predicts numbers: use BoostBPClassifier, or a "
                "loss of numbers, such as loss='squared_error'."
            )
        n_outputs = traits.copies or target.shape[1]
        shift, scale = np.zeros(n_outputs), np.ones(n_outputs)
        if earlier is not None and earlier.targets.n_outputs == n_outputs:
            shift, scale = earlier.targets.shift, earlier.targets.scale
        return Targets(loss, shift, scale, None, values.ndim == 1 and traits.copies is None), target, weight

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
