"""BoostBPAutoencoder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

from boostbp.backends.base import Table
from boostbp.estimators import session
from boostbp.estimators.base import BaseBoostBP, names_of
from boostbp.estimators.beyond_memory import all_or_nothing
from boostbp.estimators.held_out import Split, hold_out
from boostbp.estimators.nested_parameters import suggests
from boostbp.estimators.outcomes import standard_units
from boostbp.estimators.supervised import tables
from boostbp.floats import Floats, usual_in_methods
from boostbp.inputs import named_in_errors, read_weight, refuse_extreme
from boostbp.layers import LayerSpec
from boostbp.losses import SquaredError
from boostbp.network.monitor import EvalSet, Progress
from boostbp.network.settings import BackpropSpec


@usual_in_methods
class BoostBPAutoencoder(BaseBoostBP):
    """Multi-layered gradient boosted trees that reconstruct their own input from a hidden layer.

    The loss is the squared error of the standardised features. All features must be numeric and present.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of each hidden layer, from the input up; at least one layer.
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
    early_stopping : bool or "auto"
        Without `eval_set`, hold out the rows that `validation` says. "auto": from 36 rows on, and 50 rows at least, or
        a quarter of fewer than 200. False: run all epochs.
    validation : float, "last", splitter or pair
        Which rows are held out. A share of the rows (of the groups, if `fit` is told them; of distinct rows, if some
        are repeated), drawn at random; rows of a group (`fit`'s `groups`) stay together, and
        so do rows that are repeated, in numbers that chance would not repeat. "last": the last tenth, of rows in the
        order of time. Or the last split of a splitter of scikit-learn, such as `TimeSeriesSplit` or
        `GroupShuffleSplit`, or of one's own with ``split(X, y, groups)``; or a pair, the numbers (or masks) of the
        rows to learn from and of those to hold out.
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
    network_, history_, n_iter_, feature_importances_, feature_summary_, n_features_in_, feature_names_in_ :
        As in `BoostBPRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> coder = BoostBPAutoencoder((2,), epochs=2, random_state=0).fit(X)
    >>> coder.transform(X).shape, coder.predict(X).shape
    ((150, 2), (150, 4))
    """

    deep = True  # nothing stands in for its hidden layer
    quality = 3  # of an ensemble, which this is not

    @suggests
    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (16,),
        *,
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
        early_stopping: Literal["auto"] | bool = "auto",
        validation: Any = 0.1,
        eval_metric: Any = None,
        max_time: float | None = None,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        backend_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
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
        self.early_stopping = early_stopping
        self.validation = validation
        self.eval_metric = eval_metric
        self.max_time = max_time
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.backend_params = backend_params

    @all_or_nothing
    @suggests
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        eval_names: Sequence[str] | None = None,
        groups: Any = None,
        eval_X: Any = None,
        callbacks: Sequence[Callable[[Progress], object]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        keep_state: bool = False,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or data frame, (rows, features)
        y : ignored
        sample_weight : array-like, (rows,), optional
            A weight of 2 is as good as the row twice, but that `min_samples_leaf` counts it once. Weights of less
            than 1 on average are scaled to 1.
        eval_set : array-like or list of array-like, optional
            Inputs to watch; the first one chooses the epoch. An array or data frame is one set.
        eval_names : list of str, optional
            What they are called in the history; "valid_0", "valid_1", ... if left out.
        groups : array-like, (rows,), optional
            Group of each row; those of a group are held out together (see `BoostBPRegressor.fit`).
        eval_X : array-like or tuple of array-like, optional
            The same as `eval_set`, by the name of other estimators.
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
        run = session.Run(callbacks, checkpoint, keep_state)
        if self._backprop().skip:
            raise ValueError("skip=True: an auto-encoder must see its input through the hidden layer. Use skip=False.")
        table = self._read(X, reset=True)
        weight = read_weight(sample_weight, len(table.X))
        if eval_set is not None and eval_X is not None:
            raise ValueError("eval_set and eval_X are both given, and say the same: leave one of them out.")
        parts = tables("eval_set", eval_set) + tables("eval_X", eval_X)
        sets = [self._eval_set(name, *part) for name, part in zip(names_of(parts, eval_names), parts, strict=True)]
        target = table.X
        refuse_extreme(target, "X")
        split = Split(table, target, weight, sets)
        if not sets:
            split = hold_out(self, split, None, groups=groups, X=X)
        self._shift, self._scale = standard_units(split.y, split.weight)
        loss = SquaredError()
        metric = self._metric(loss, split.sets)
        target = np.ascontiguousarray((split.y - self._shift) / self._scale)
        return self._train([split._replace(y=target)], loss, metric, self._outcome, run)

    def _eval_set(self, name: str, source: str, X: Any) -> EvalSet:
        with named_in_errors(source):
            X = self._read(X).X
        return EvalSet(name, X, X, np.ones(len(X)))

    def predict(self, X: Any) -> Floats:
        """Reconstruction, (rows, features)."""
        return self._outcome(self._raw(X))

    def inverse_transform(self, H: Any) -> Floats:
        """Reconstruction from the last hidden layer, (rows, units) -> (rows, features)."""
        check_is_fitted(self)
        h = check_array(H, dtype=np.float64, order="C")
        return self._outcome(self.network_.layers[-1].predict(h, n_jobs=self._n_threads()) + self.network_.baseline)

    def score(self, X: Any, y: Any = None) -> float:
        """R^2 of the reconstruction, averaged over features by their variance."""
        check_is_fitted(self)
        X = self._read(X).X
        residual = np.square(X - self.predict(X)).sum()
        total = np.square(X - X.mean(axis=0)).sum()
        return float(1.0 - residual / total) if total > 0 else 0.0

    def _read(self, X: Any, *, reset: bool = False) -> Table:
        if issparse(X):
            raise TypeError(
                "X is sparse: sparse input is not supported by an auto-encoder, which reconstructs all of it. "
                "Use X.toarray()."
            )
        table = super()._read(X, reset=reset)
        if table.categorical:
            raise ValueError(
                f"X has categorical columns {list(table.categorical)}: an auto-encoder reconstructs numbers. "
                "Encode them first."
            )
        with np.errstate(invalid="ignore"):  # it looks at the sum first
            check_array(table.X, estimator=self, input_name="X")
        return table

    def _outcome(self, raw: Floats) -> Floats:
        return raw * self._scale + self._shift

    def _output_scale(self) -> Floats:
        return self._scale

    def _output_offset(self) -> Floats:
        return self._shift

    def _output_names(self) -> list[str]:
        return self._feature_names()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
