"""What all estimators share: parameters into settings, training, hidden representations."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, is_classifier
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from boostbp import backends, cautions, checks, metrics
from boostbp.backends.base import Table
from boostbp.ensemble import selection
from boostbp.estimators import parameters, session
from boostbp.estimators.atomic import all_or_nothing
from boostbp.estimators.inspected import Inspected
from boostbp.floats import usual_in_methods
from boostbp.inputs import drop_zero_weight, read_input
from boostbp.inspection import summary_of
from boostbp.losses import Loss
from boostbp.metrics import Metric
from boostbp.network.backprop import EvalSet, Progress
from boostbp.network.steps import Step
from boostbp.trees import threads

__all__ = ["BaseBoostBP", "names_of"]

Floats = NDArray[np.float64]
NOT_WEIGHED = (
    "The network was not weighed against single layers, though deep='auto': without evaluation sets and held-out rows "
    "(fewer than 36, early_stopping=False or epochs=0), or after an interrupt, it is the model."
)


@usual_in_methods
class BaseBoostBP(Inspected, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Parameters, training and hidden representations; see `BoostBPRegressor` for the parameters."""

    _fewest_hidden = 1
    # who splits by groups means them for our held-out rows, too
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (16,),
        *,
        backend: Any = "lightgbm",
        n_estimators: int | Sequence[int] | None = None,
        learning_rate: float | Sequence[float] | None = None,
        max_depth: int | Sequence[int] | None = None,
        max_leaves: int | Sequence[int | None] | None = None,
        min_samples_leaf: int | Sequence[int] = 20,
        max_bins: int = 255,
        extra_trees: bool | str = "auto",
        multi_strategy: str = "one_output_per_tree",
        leaves: str = "refit",
        basis: Any = "quadratic",
        reg_lambda: float | Sequence[float] | None = None,
        penalize_constant: bool = True,
        standardize: bool = True,
        clip: bool = True,
        base: str | None = "ridge",
        base_lambda: float | str | Sequence[float | str] | None = None,
        epochs: int = 300,
        start: str = "projection",
        step: str | Step = "normalised",
        step_size: float = 0.4,
        momentum: float = 0.8,
        refit_order: str = "upward",
        output: str = "boost",
        deep: str | bool = "auto",
        skip: bool = False,
        structure_epochs: int | str = "auto",
        structure_samples: int | float | None = None,
        best_rounds: bool = True,
        eval_metric: Any = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        validation: Any = "random",
        refit: bool = True,
        n_iter_no_change: int | None = 30,
        tol: float = 0.0,
        max_time: float | None = None,
        categorical_features: Any = "from_dtype",
        callbacks: Sequence[Callable[[Progress], object]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        backend_params: dict[str, Any] | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.backend = backend
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins
        self.extra_trees = extra_trees
        self.multi_strategy = multi_strategy
        self.leaves = leaves
        self.basis = basis
        self.reg_lambda = reg_lambda
        self.penalize_constant = penalize_constant
        self.standardize = standardize
        self.clip = clip
        self.base = base
        self.base_lambda = base_lambda
        self.epochs = epochs
        self.start = start
        self.step = step
        self.step_size = step_size
        self.momentum = momentum
        self.refit_order = refit_order
        self.output = output
        self.deep = deep
        self.skip = skip
        self.structure_epochs = structure_epochs
        self.structure_samples = structure_samples
        self.best_rounds = best_rounds
        self.eval_metric = eval_metric
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.validation = validation
        self.refit = refit
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.max_time = max_time
        self.categorical_features = categorical_features
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.backend_params = backend_params

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Show the shared parameters in the signature of a subclass that adds its own and passes on the rest."""
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            setattr(cls.__init__, "__signature__", _signature(cls))  # noqa: B010

    def transform(self, X: Any, layer: int = -1) -> Floats:
        """Hidden representation: the units of all networks in the model, side by side.

        With ``deep=True`` these are those of `hidden_layer_sizes`. If the model is an average without any network,
        they are those of the network that was asked for, and a warning says so.

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
            If no network has weight in the model (``history_.weight()`` is 0).
        """
        check_is_fitted(self)
        named = _get_output_config("transform", self)["dense"] != "default"
        if named and layer not in (-1, len(self.network_.layers) - 2):
            raise ValueError(
                f"layer={layer!r} with set_output is not supported: its columns are named for the last hidden layer. "
                "Use hidden_representation(X, layer) and hidden_names(layer)."
            )
        units = self.hidden_representation(X, layer)
        if not self.history_.weight():
            cautions.warn(
                "transform: no network has weight in this model (history_.choice). These are the units of the one that "
                "was asked for, on which no prediction depends. Use deep=True for a model that is the network.",
            )
        return units

    def jacobian(self, X: Any) -> Floats:
        """Derivative of the raw output in the features: of `decision_function`, or the prediction of a regressor.

        With ``loss="poisson"``, ``"gamma"`` or ``"tweedie"`` the raw output is the logarithm of the prediction; with
        one's own loss it is what its `link` gets.

        Returns
        -------
        (rows, outputs, features) float64
            In the units of the target and the features; 0 where a leaf clips its input, infinite where float64 ends.
            Where a cell is replaced (see `clip`), slopes are those at the value in its place, which is held fixed.
        """
        check_is_fitted(self)
        slopes = self.network_.jacobian(self._read(X).X, n_jobs=self._n_threads())
        with np.errstate(over="ignore"):
            return slopes * self._output_scale()[:, None]

    @all_or_nothing
    def fit_more(self, epochs: int) -> Self:
        """Train on for more epochs, on the rows and with the parameters of `fit`.

        Parameters
        ----------
        epochs : int
            How many more; patience and `max_time` count anew.

        Raises
        ------
        ValueError
            If `fit` did not keep the state of training: it does with ``warm_start=True``.
        KeyboardInterrupt
            On Ctrl-C, as `fit` does.
        """
        check_is_fitted(self)
        session.more(self, epochs)
        return self

    def summary(self) -> str:
        """What training did and what depth added, in a few sentences."""
        check_is_fitted(self)
        if self._fewest_hidden or self.deep is True or self.history_.choice or len(self.network_.layers) == 1:
            return self.history_.summary()
        return f"{self.history_.summary()}\n{NOT_WEIGHED}"

    @property
    def _n_features_out(self) -> int:
        """Units of the last hidden layer, for the names of `transform`'s columns."""
        if len(self.network_.layers) == 1:
            raise ValueError("hidden_layer_sizes=() has no hidden layer, whose units could have names: give one.")
        return self.network_.layers[-2].forest.n_outputs

    def _to_target(self, y: Floats) -> Floats:
        """Targets of an evaluation set as the loss takes them."""
        return y

    def _n_threads(self) -> int:
        return threads.count(self.n_jobs)

    def _read(self, X: Any, *, reset: bool = False) -> Table:
        return read_input(self, X, reset=reset, categorical_features=self.categorical_features)

    def _raw(self, X: Any) -> Floats:
        """Raw output h_L, (rows, outputs)."""
        check_is_fitted(self)
        return self.network_.predict(self._read(X).X, n_jobs=self._n_threads())

    def _metric(self, loss: Loss, eval_sets: Sequence[EvalSet], scale: Floats | float = 1.0) -> Metric | None:
        """What evaluation sets are scored by, None where there are none; training divides targets by `scale`."""
        if not eval_sets and self.eval_metric is None:
            return None
        metric = metrics.load(self.eval_metric, loss, classes=is_classifier(self), scale=scale)
        return metric if eval_sets else None  # a wrong name is refused even where nothing is scored

    def _train(
        self,
        table: Table,
        y: Floats,
        weight: Floats,
        loss: Loss,
        eval_sets: Sequence[EvalSet],
        metric: Metric | None,
        outcome: Callable[[Floats], Floats],
    ) -> Self:
        random = checks.random_state("random_state", self.random_state)
        settings = parameters.settings_of(self, len(table.X), y.shape[1], int(random.randint(2**31 - 1)))
        given = weight.sum()
        table, y, weight = drop_zero_weight(table, y, weight)
        in_rows = weight.sum() / given
        eval_sets = [replace(one, weight=one.weight * in_rows) if one.from_training else one for one in eval_sets]
        train = partial(
            selection.train,
            table,
            y,
            backend=backends.load(self.backend),
            loss=loss,
            weight=weight,
            eval_sets=eval_sets,
            metric=metric,
            outcome=outcome,
            to_target=self._to_target,
        )
        summarise = partial(summary_of, table=table, weight=weight, n_threads=settings.n_threads)
        session.begin(self, session.Training(train, settings, summarise=summarise))
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What pickle keeps: not the state of training, which holds the training rows."""
        return {name: value for name, value in super().__getstate__().items() if name != "_training"}


def names_of(eval_set: Sequence[Any], eval_names: Sequence[str] | None) -> list[str]:
    """Names of the evaluation sets: the user's, or "valid_0", "valid_1", ..."""
    if eval_names is None:
        return [f"valid_{number}" for number in range(len(eval_set))]
    names = [eval_names] if isinstance(eval_names, str) else list(eval_names)
    if len(set(names)) < len(names) or len(names) != len(eval_set) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"eval_names={eval_names!r} must hold {len(eval_set)} different strings, one for each eval_set."
        )
    return names


def _signature(cls: type) -> inspect.Signature:
    """The parameters of a class, with those of the classes it is derived from in the place of its ``**shared``."""
    of_init = cls.__dict__["__init__"]
    own = list(inspect.signature(of_init).parameters.values())
    found = {p.name: p for p in own if p.kind is not p.VAR_KEYWORD}
    if len(found) < len(own):
        for parent in cls.__mro__[1:]:
            if issubclass(parent, BaseBoostBP) and "__init__" in parent.__dict__:
                for p in inspect.signature(parent.__dict__["__init__"]).parameters.values():
                    found.setdefault(p.name, p)
    return inspect.Signature(list(found.values()))
