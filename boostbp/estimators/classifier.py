"""BoostBPClassifier."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from boostbp import losses
from boostbp.estimators import session
from boostbp.estimators.beyond_memory import all_or_nothing, on_blocks
from boostbp.estimators.conformal import Sets
from boostbp.estimators.earlier import begin_from
from boostbp.estimators.held_out import Split, hold_out, hold_out_others
from boostbp.estimators.nested_parameters import suggests
from boostbp.estimators.outcomes import ClassPredictions
from boostbp.estimators.supervised import listed
from boostbp.floats import Floats, usual_in_methods
from boostbp.group import workers
from boostbp.inputs import classes_of, read_target, read_weight, warn_of_numbers, weights_of_classes
from boostbp.layers import LayerSpec
from boostbp.losses import Loss
from boostbp.network.monitor import Progress
from boostbp.network.settings import BackpropSpec


@usual_in_methods
class BoostBPClassifier(ClassifierMixin, ClassPredictions, Sets):
    """Multi-layered gradient boosted trees for classification, trained by back-propagation.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of each hidden layer, from the input up, of each network in the model. None at all, ``()``, is a single
        layer of boosted trees: all rounds are grown, and as many kept as validation likes best.
    quality : {1, 2, 3, 4, 5}
        How much the fit may cost, and so how good the model is; see the table in README. 1: one layer, at the speed of
        the library. From 2 on, other layers and hidden ones join. The leaves are then fitted again on all rows,
        if `fit` held some out itself; `eval_set` is never learned from. 5 is the mean of four models of 4, each with
        other rows held out. What is tried is begun by what it promises for its work, so that a fit that is cut
        short, by `max_time` or Ctrl-C, is good as well. With ``deep=True``, a network ends where more epochs promise
        too little, and from 4 on after all of them; 5 is then the same as 4.
    loss : str or Loss
        ``"log_loss"``: logistic for two classes, softmax for more. One's own gives probabilities by its `link`, and
        says by ``task = "classification"`` that it is one of classes.
    class_weight : dict, "balanced" or None
        Weights of the classes, times `sample_weight`; rows that are held out here have them too, an `eval_set` has the
        weights that it is given.
    backend : {"lightgbm", "xgboost", "sklearn"} or Backend
        Who grows the trees.
    n_estimators : int or None
        Boosting rounds of the output layer, which is the only one where ``hidden_layer_sizes=()``. None: see
        `LayerSpec`. Hidden layers, which are fitted again every epoch, have 20: ``hidden={"n_estimators": ...}``.
    learning_rate : float or None
        Shrinkage of each tree of the output layer (the paper's beta). None: see `LayerSpec`.
    max_depth : int or None
        Of the trees of every layer; -1: no limit. None: 3 in hidden layers, 4 in the output layer.
    min_samples_leaf : int or None
        Rows in a leaf of every layer. None: 20.
    subsample : float or None
        Share of the rows on which a tree of any layer is grown, drawn anew each round; its leaves are fitted on all of
        them. None: 1.
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
        Largest number of epochs of back-propagation.
    deep : {"auto", True, False}
        "auto": a sum of single layers, of the network, of variants of it (linear hidden units; sums of smooth
        functions) and of layers on the directions in which others vary most, each for as long as it promises enough
        (see `quality`), with weights by the held-out rows (``history_.choice``, ``summary()``). All but the network
        have rounds and shrinkage of their own, and those with constant leaves their own depth, number of leaves and
        penalty. Needs an evaluation set, or rows to hold out; with ``hidden_layer_sizes=()`` it is one single layer.
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
        are repeated), drawn at random, of each class its share; rows of a group (`fit`'s `groups`) stay together, and
        so do rows that are repeated, in numbers that chance would not repeat. "last": the last tenth, of rows in the
        order of time. Or the last split of a splitter of scikit-learn, such as `TimeSeriesSplit` or
        `GroupShuffleSplit`, or of one's own with ``split(X, y, groups)``; or a pair, the numbers (or masks) of the
        rows to learn from and of those to hold out.
    calibration : float or None
        Share of the rows (of the groups, if `fit` is told them), below 0.5, that the fit does not learn from, for
        `predict_set`. None: none; `calibrate` takes rows of one's own.
    eval_metric : str, callable, tuple or None
        Metric of the evaluation sets, which chooses the best epoch and number of rounds (models of the average are
        weighed by the loss), by its name in LightGBM, XGBoost or scikit-learn ("tweedie-nloglik@1.3"), a
        function ``f(y_true, y_pred)``, which is maximised if its name ends in ``_score``, or a tuple
        ``(name, f, greater_is_better)``; None: the loss's own. Metrics of classes are a classifier's. With `n_jobs`
        above 1, functions are called from several threads.
    max_time : float or None
        Seconds after which no further rounds and no new epoch begin; what is there by then is the model, and time is
        left to grow it again on all rows. The clock starts when everything is compiled; see `boostbp.warmup`.
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
    classes_ : (classes,) ndarray
        Those of `y`; a class whose rows all have weight 0 is one, with a probability of a millionth or less.
    network_, history_, n_iter_, best_iteration_, best_score_, evals_result_, feature_importances_ :
        As in `BoostBPRegressor`.
    feature_summary_, n_features_in_, feature_names_in_ :
        As there.
    """

    @suggests
    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (16,),
        *,
        quality: int = 3,
        loss: Any = "log_loss",
        class_weight: Any = None,
        backend: Any = "lightgbm",
        n_estimators: int | None = None,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        min_samples_leaf: int | None = None,
        subsample: float | None = None,
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
        self.hidden_layer_sizes = hidden_layer_sizes
        self.quality = quality
        self.loss = loss
        self.class_weight = class_weight
        self.backend = backend
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.hidden = hidden
        self.output = output
        self.backprop = backprop
        self.epochs = epochs
        self.deep = deep
        self.early_stopping = early_stopping
        self.validation = validation
        self.calibration = calibration
        self.eval_metric = eval_metric
        self.max_time = max_time
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.backend_params = backend_params

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
        X : array-like, data frame or sparse matrix, (rows, features); path, or iterator of blocks ``(X, y)``
            Rows beyond memory: see `BoostBPRegressor.fit`.
        y : array-like of labels, (rows,)
            More than 50 that are numbers other than 0, 1, 2, ... are warned of: they are probably an amount.
        sample_weight : array-like, (rows,), optional
            A weight of 2 is as good as the row twice, but that `min_samples_leaf` counts it once. Weights of less
            than 1 on average are scaled to 1.
        offset : array-like, (rows,) for two classes, (rows, classes) for more, optional
            What is known of each row beforehand, and added to its raw output: log-odds. The model learns the rest, and
            does not hold it: pass it to `predict_proba` and its like, too. LightGBM calls it ``init_score``, XGBoost
            ``base_margin``.
        init_model : BoostBPClassifier, optional
            A fitted or loaded model that training goes on from, on these rows, which may be others than its own. What
            it predicts is added to the raw output, as an `offset` is; new layers learn the rest, and the model is the
            sum of both. It stays as it is. Tables and targets are read as it reads them (columns, categories, classes,
            units), and the loss is the same; other parameters are those of the new layers.
        eval_set : (X, y), (X, y, sample_weight) or a list of these, optional
            The first one chooses the epoch and stops training (in XGBoost the last does, in LightGBM any).
        eval_names : list of str, optional
            What the evaluation sets are called in history, log and progress bar; "valid_0", "valid_1", ... if left out.
        groups : array-like, (rows,), optional
            Group of each row; those of a group are held out together (see `BoostBPRegressor.fit`).
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
        """
        earlier = begin_from(self, init_model)
        run = session.Run(callbacks, checkpoint, keep_state, earlier)
        table = self._read(X, reset=earlier is None)
        labels = read_target(y, len(table.X), labels=True)
        weight, kept_out = self._keep_out(table, read_weight(sample_weight, len(table.X)), labels, groups)
        if self.class_weight is not None:
            weight = weight * weights_of_classes(self.class_weight, labels)
            if not workers().max(weight.max(initial=0.0))[0] > 0:
                raise ValueError(
                    f"class_weight={self.class_weight!r} leaves no row a weight: give a class of y, "
                    f"{np.unique(labels).tolist()}, a weight above 0."
                )
        if earlier is None:
            self.classes_ = classes_of(labels)  # those without weight, too: others count on a column for each
        elif len(unknown := np.setdiff1d(labels, self.classes_)):
            raise ValueError(
                f"y has classes that init_model does not know: {unknown.tolist()!r}. Leave those rows out, or train "
                "anew."
            )
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()[0]!r}: a classifier needs rows of at least two."
            )
        warn_of_numbers(self.classes_)
        target = self._one_hot(labels)
        if earlier is None:
            table = self._repaired(table, weight)
        self._loss = loss = losses.load(self.loss, n_outputs=target.shape[1])
        self._check_loss(loss, target.shape[1])
        if earlier is not None:
            earlier.check(loss, target.shape[1])
        loss.check(target)
        parts = listed(eval_set, eval_X, eval_y, eval_sample_weight, eval_offset)
        sets = self._eval_sets(parts, eval_names, offset, target.shape[1], earlier)
        given = Split(table, target, weight, sets, self._offset(table.X, offset, target.shape[1], earlier))
        split = given if sets else hold_out(self, given, labels, groups=groups, X=X)
        others = hold_out_others(self, given, labels, groups=groups, sets=split.sets)
        metric = self._metric(loss, split.sets)
        self._train([split, *others], loss, metric, loss.link, run)
        self._calibrate_by(kept_out, given, offset)
        return self

    def _check_loss(self, loss: Loss, n_outputs: int) -> None:
        """Refuse losses whose link gives no probabilities that sum to 1."""
        traits = losses.traits_of(loss)
        if traits.task == "regression":
            raise ValueError(
                f"loss={self.loss!r} is one of numbers, and its output no probability: use loss='log_loss', or a "
                "regressor."
            )
        if not traits.takes(n_outputs):
            raise ValueError(f"loss={self.loss!r} is not for {max(n_outputs, 2)} classes: use loss='log_loss'.")

    def _one_hot(self, labels: NDArray[Any]) -> Floats:
        one_hot = (labels[:, None] == self.classes_).astype(np.float64)
        return one_hot[:, 1:] if len(self.classes_) == 2 else one_hot

    def _encode(self, y: Any, n_rows: int) -> Floats:
        labels = read_target(y, n_rows, labels=True)
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"y has classes that it did not have at fit: {unknown.tolist()!r}. Leave those rows out.")
        return self._one_hot(labels)

    def _output_names(self) -> list[str]:
        labels = [str(label) for label in self.classes_]
        return labels[1:] if len(labels) == 2 else labels
