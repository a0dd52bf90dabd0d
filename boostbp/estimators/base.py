"""What all estimators share: parameters into settings, training, hidden representations."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from boostbp import backends
from boostbp.backends.base import Growth, Table
from boostbp.inputs import read_input
from boostbp.learning import backprop, metrics
from boostbp.learning.backprop import EvalSet, Progress, Settings
from boostbp.learning.history import History
from boostbp.learning.layer import LayerSettings
from boostbp.learning.losses import Loss
from boostbp.learning.metrics import Metric
from boostbp.learning.network import Network
from boostbp.learning.starts import STARTS
from boostbp.learning.steps import Normalised, Plain, Step
from boostbp.trees import basis as bases
from boostbp.trees import threads
from boostbp.trees.ridge import Ridge

__all__ = ["BaseBoostBP"]

Floats = NDArray[np.float64]
log = logging.getLogger("boostbp")

HIDDEN_ROUNDS, OUTPUT_ROUNDS = 20, 100
OUTPUT_RATE = 0.1
KEPT = 0.95  # share of its target that a hidden layer can reach in one refit; less makes it shrink epoch by epoch
NATIVE_ROWS = 20_000  # from here on a library's own threads beat the cost of starting them


class BaseBoostBP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Parameters, training and hidden representations; see `BoostBPRegressor` for the parameters."""

    network_: Network
    history_: History

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (32,),
        *,
        backend: Any = "lightgbm",
        n_estimators: int | Sequence[int] | None = None,
        learning_rate: float | Sequence[float] | None = None,
        max_depth: int | Sequence[int] = 5,
        max_leaves: int | Sequence[int | None] | None = None,
        min_samples_leaf: int | Sequence[int] = 20,
        max_bins: int = 255,
        multi_strategy: str = "one_output_per_tree",
        leaves: str = "refit",
        basis: Any = "quadratic",
        reg_lambda: float | Sequence[float] = 1.0,
        penalize_constant: bool = True,
        standardize: bool = True,
        clip: bool = True,
        base: str | None = "ridge",
        base_lambda: float | None = None,
        epochs: int = 30,
        start: str = "projection",
        step: str = "normalised",
        step_size: float = 0.5,
        momentum: float = 0.8,
        refit_order: str = "upward",
        output: str = "boost",
        eval_metric: Any = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = 10,
        tol: float = 0.0,
        max_time: float | None = None,
        categorical_features: Any = "from_dtype",
        callbacks: Sequence[Callable[[Progress], object]] | None = None,
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
        self.eval_metric = eval_metric
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.max_time = max_time
        self.categorical_features = categorical_features
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.backend_params = backend_params

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Show the shared parameters in the signature of a subclass that adds its own and passes on the rest."""
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__.__signature__ = _signature(cls.__dict__["__init__"])

    def transform(self, X: Any, layer: int = -1) -> Floats:
        """Hidden representation.

        Parameters
        ----------
        X : array-like, (rows, features)
        layer : int
            Which hidden layer: 0 is the one next to the input, -1 the one next to the output.

        Returns
        -------
        (rows, units) float64
        """
        check_is_fitted(self)
        hidden = len(self.network_.layers) - 1
        if not -hidden <= layer < hidden:
            raise ValueError(f"layer={layer!r} does not exist: this model has {hidden} hidden layers, 0 to {hidden - 1}.")
        return self.network_.representation(self._read(X).X, layer % hidden + 1, n_jobs=self._n_threads())

    def jacobian(self, X: Any) -> Floats:
        """Derivative of the raw output (`decision_function`, or the prediction of a regressor) in the features.

        Returns
        -------
        (rows, outputs, features) float64
            In the units of the target and the features; 0 where a leaf clips its input.
        """
        check_is_fitted(self)
        return self.network_.jacobian(self._read(X).X, n_jobs=self._n_threads()) * self._output_scale()[:, None]

    @property
    def _n_features_out(self) -> int:
        """Units of the last hidden layer, for the names of `transform`'s columns."""
        return self.network_.layers[-2].forest.n_outputs

    def _output_scale(self) -> Floats:
        """Units of the target in one unit of the raw output, (outputs,)."""
        return np.ones(len(self.network_.baseline))

    def _n_threads(self) -> int:
        return threads.count(self.n_jobs)

    def _read(self, X: Any, *, reset: bool = False) -> Table:
        return read_input(self, X, reset=reset, categorical_features=self.categorical_features)

    def _raw(self, X: Any) -> Floats:
        """Raw output h_L, (rows, outputs)."""
        check_is_fitted(self)
        return self.network_.predict(self._read(X).X, n_jobs=self._n_threads())

    def _metric(self, loss: Loss, eval_sets: Sequence[EvalSet]) -> Metric | None:
        """What evaluation sets are scored by; None where there are none."""
        if not eval_sets:
            return None
        return metrics.default_metric(loss) if self.eval_metric is None else metrics.load(self.eval_metric, loss)

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
        random = check_random_state(self.random_state)
        settings = self._settings(len(table.X), y.shape[1], int(random.randint(2**31 - 1)))
        used = weight > 0  # a row without weight is no row: it must not count in min_samples_leaf either
        if not used.all():
            table, y, weight = Table(table.X[used], table.categorical), y[used], weight[used]
        callbacks = list(self.callbacks or [])
        if self.verbose:
            callbacks.append(_log_epoch)
        self.network_, self.history_ = backprop.train(
            table,
            y,
            backend=backends.load(self.backend),
            loss=loss,
            settings=settings,
            weight=weight,
            eval_sets=eval_sets,
            metric=metric,
            outcome=outcome,
            callbacks=callbacks,
        )
        self.n_iter_ = len(self.history_) - 1
        return self

    def _settings(self, n_rows: int, n_outputs: int, seed: int) -> Settings:
        """The estimator's parameters as settings of the driver; errors name the parameter."""
        units = _sizes(self.hidden_layer_sizes)
        n_threads = self._n_threads()
        one_of = {
            "multi_strategy": ("one_output_per_tree", "multi_output_tree"),
            "leaves": ("refit", "native"),
            "base": ("ridge", None),
            "start": tuple(STARTS),
            "step": ("normalised", "plain"),
            "refit_order": ("upward", "downward"),
            "output": ("boost", "move"),
        }
        for name, allowed in one_of.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} is not known: use one of {', '.join(map(repr, allowed))}.")
        _at_least("epochs", self.epochs, 0)
        if self.n_iter_no_change is not None:
            _at_least("n_iter_no_change", self.n_iter_no_change, 1)
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction={self.validation_fraction!r} is not between 0 and 1: try 0.1.")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum={self.momentum!r} is not in [0, 1): 0 is no momentum, 0.8 a usual value.")
        if not (self.step_size > 0 and np.isfinite(self.step_size)):
            raise ValueError(f"step_size={self.step_size!r} is not a positive number: try 0.3.")
        step: Step = {"normalised": Normalised, "plain": Plain}[self.step](self.step_size, self.momentum)
        return Settings(
            layers=self._layer_settings(units, n_rows, n_outputs, n_threads, seed),
            units=units,
            epochs=self.epochs,
            step=step,
            start=STARTS[self.start],
            refit_order=self.refit_order,  # type: ignore[arg-type]
            output=self.output,  # type: ignore[arg-type]
            n_iter_no_change=None if self.early_stopping is False else self.n_iter_no_change,
            tol=self.tol,
            max_time=self.max_time,
            n_threads=n_threads,
            seed=seed,
        )

    def _layer_settings(
        self, units: tuple[int, ...], n_rows: int, n_outputs: int, n_threads: int, seed: int
    ) -> tuple[LayerSettings, ...]:
        L = len(units) + 1
        rounds = self.n_estimators
        if rounds is None:
            rounds = [HIDDEN_ROUNDS] * len(units) + [OUTPUT_ROUNDS]
        per_layer = {
            "n_estimators": _per_layer("n_estimators", rounds, L, 0),
            "max_depth": _per_layer("max_depth", self.max_depth, L, -1),
            "max_leaves": _per_layer("max_leaves", self.max_leaves, L, 2),
            "min_samples_leaf": _per_layer("min_samples_leaf", self.min_samples_leaf, L, 1),
            "reg_lambda": _per_layer("reg_lambda", self.reg_lambda, L, 0),
        }
        rates = self.learning_rate
        if rates is None:
            rates = [_keeping(n) for n in per_layer["n_estimators"][:-1]] + [OUTPUT_RATE]
        per_layer["learning_rate"] = _per_layer("learning_rate", rates, L, 0)
        built = []
        for i, outputs in enumerate([*units, n_outputs]):
            value = {name: values[i] for name, values in per_layer.items()}
            last = i == L - 1
            growth = Growth(
                max_depth=value["max_depth"],
                max_leaves=value["max_leaves"],
                min_samples_leaf=value["min_samples_leaf"],
                max_bins=self.max_bins,
                n_threads=n_threads if outputs < n_threads and n_rows >= NATIVE_ROWS else 1,
                random_state=seed % (2**31 - 1),
                shared=self.multi_strategy == "multi_output_tree" and not last,
                params=dict(self.backend_params or {}),
            )
            built.append(
                LayerSettings(
                    n_estimators=value["n_estimators"],
                    learning_rate=value["learning_rate"],
                    growth=growth,
                    basis=bases.load(self.basis),
                    ridge=Ridge(value["reg_lambda"], self.penalize_constant, self.standardize),
                    clip=self.clip,
                    base=self.base,  # type: ignore[arg-type]
                    base_lambda=self.base_lambda,
                    leaves=self.leaves,  # type: ignore[arg-type]
                )
            )
        return tuple(built)


def _keeping(rounds: int) -> float:
    """Shrinkage with which `rounds` trees can cover the share `KEPT` of a target: ``1 - (1 - beta)^rounds``."""
    return 1.0 - (1.0 - KEPT) ** (1.0 / max(rounds, 1))


def _signature(init: Callable[..., None]) -> inspect.Signature:
    """The parameters of `init`, with those of the base in the place of its ``**shared``."""
    own = [p for p in inspect.signature(init).parameters.values() if p.kind is not p.VAR_KEYWORD]
    named = {p.name for p in own}
    base = inspect.signature(BaseBoostBP.__init__).parameters.values()
    return inspect.Signature([*own, *(p for p in base if p.name not in named)])


def _log_epoch(progress: Progress) -> None:
    epoch = progress.epoch
    metrics = "".join(f"  {name} {value:.6g}" for name, value in epoch.metrics.items())
    log.info("epoch %d/%d  loss %.6g%s  %.2f s", epoch.epoch, progress.epochs, epoch.loss, metrics, epoch.seconds)


def _sizes(hidden_layer_sizes: Any) -> tuple[int, ...]:
    sizes = (hidden_layer_sizes,) if np.isscalar(hidden_layer_sizes) else tuple(hidden_layer_sizes)
    if not sizes or any(isinstance(s, bool) or int(s) != s or s < 1 for s in sizes):
        raise ValueError(
            f"hidden_layer_sizes={hidden_layer_sizes!r} must hold at least one hidden layer of at least one unit, such as (32,)."
        )
    return tuple(int(s) for s in sizes)


def _per_layer(name: str, value: Any, n_layers: int, least: float) -> list[Any]:
    values = [value] * n_layers if value is None or np.isscalar(value) else list(value)
    if len(values) != n_layers:
        raise ValueError(
            f"{name}={value!r} has {len(values)} numbers for {n_layers} layers: give one number, or one per layer "
            "(hidden layers first, the output layer last)."
        )
    for one in values:
        if one is not None:
            _at_least(name, one, least)
    return values


def _at_least(name: str, value: Any, least: float) -> None:
    try:
        good = np.isfinite(value) and value >= least
    except TypeError:
        good = False
    if not good:
        raise ValueError(f"{name}={value!r} is not allowed: give a number of at least {least}.")
