"""Parameters of an estimator, checked, as settings of the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from boostbp import backends, checks
from boostbp.backends.base import MOST_THREADS, Growth
from boostbp.estimators.ensemble_parameters import check_single_layers
from boostbp.estimators.held_out import check_validation
from boostbp.layers import LayerSettings
from boostbp.layers.rounds import rate_of
from boostbp.network import steps
from boostbp.network.settings import Settings
from boostbp.network.starts import STARTS
from boostbp.trees import basis as bases
from boostbp.trees import forks, threads
from boostbp.trees.ridge import Ridge

__all__ = ["settings_of"]

# What None stands for: in hidden layers, in the output layer.
DEFAULTS: dict[str, tuple[Any, Any]] = {
    "n_estimators": (20, 100),
    "max_depth": (3, 4),
    "reg_lambda": (1.0, 1.0),
    "base_lambda": ("gcv", "gcv"),
    "max_leaves": (None, None),
}
OF_ALL: dict[str, tuple[Any, ...]] = {
    "start": tuple(STARTS),
    "refit_order": ("upward", "downward"),
    "output": ("boost", "move"),
    "deep": ("auto", True, False),
    **dict.fromkeys(("skip", "best_rounds", "refit", "warm_start"), (True, False)),
}
COUNTS: dict[str, Callable[[str, Any], Any]] = {
    "epochs": partial(checks.whole, least=0),
    "structure_epochs": checks.or_else("auto", partial(checks.whole, least=1)),
    "n_iter_no_change": checks.or_else(None, partial(checks.whole, least=1)),
}
MOST_UNITS = 2**16  # of a hidden layer: a slip of the keyboard is not a layer
OUTPUT_RATE = 0.1
# Trees that an epoch grows for the output layer of a classifier: more learn by heart what hidden layers should learn.
OUTPUT_TREES = 400
# Of the variance of a hidden unit: the ridge base above hidden units holds back directions in which they vary less.
# Units that move along the same gradients become alike; large weights on their differences turn gradients to noise.
ALIKE = 0.15
STRUCTURE_EPOCHS = 4  # for which structures are kept: half the time of growing them every epoch, and no worse
NATIVE_ROWS = 20_000  # from here on a library's own threads beat the cost of starting them


def settings_of(estimator: Any, n_rows: int, n_outputs: int, seed: int) -> Settings:
    """Settings of the driver.

    Parameters
    ----------
    estimator : BaseBoostBP
    n_rows, n_outputs : int
        Of the training data.
    seed : int

    Raises
    ------
    ValueError
        If a parameter is out of bounds; the message names it.
    """
    for name, allowed in (checks.WORDS | OF_ALL).items():
        checks.one_of(name, getattr(estimator, name), allowed)
    for name, check in COUNTS.items():
        check(name, getattr(estimator, name))
    checks.at_least("tol", estimator.tol, 0)
    checks.seconds("max_time", estimator.max_time)
    check_single_layers(estimator)
    check_validation(estimator.validation)
    checks.between("validation_fraction", estimator.validation_fraction, 0, 1)
    units = _sizes(estimator.hidden_layer_sizes, estimator._fewest_hidden)
    return Settings(
        layers=_layers(estimator, (*units, n_outputs), n_rows, seed),
        units=units,
        epochs=int(estimator.epochs) if units else 0,
        step=steps.load(estimator.step, estimator.step_size, estimator.momentum),
        start=STARTS[estimator.start],
        refit_order=estimator.refit_order,
        output=estimator.output,
        skip=bool(estimator.skip),
        structure_epochs=_structure_epochs(estimator),
        structure_samples=_samples(estimator, n_rows),
        best_rounds=estimator.best_rounds,
        n_iter_no_change=estimator.n_iter_no_change if estimator.early_stopping else None,
        tol=estimator.tol,
        max_time=estimator.max_time,
        n_threads=threads.count(estimator.n_jobs),
        seed=seed,
    )


def _layers(estimator: Any, outputs: tuple[int, ...], n_rows: int, seed: int) -> tuple[LayerSettings, ...]:
    n_threads = forks.native_threads(threads.count(estimator.n_jobs))
    names = [name for name in checks.NUMBERS if name not in ("learning_rate", "max_bins")]
    defaults = {name: _defaults(name, len(outputs)) for name in names}
    if len(outputs) > 1 and is_classifier(estimator):
        defaults["n_estimators"][-1] = min(defaults["n_estimators"][-1], max(20, OUTPUT_TREES // outputs[-1]))
    chosen = {name: _per_layer(name, getattr(estimator, name), defaults[name]) for name in names}
    chosen["learning_rate"] = _rates(estimator.learning_rate, chosen["n_estimators"], estimator.output == "boost")
    native = estimator.leaves == "native" and estimator.extra_trees == "auto"
    drawn = not native and backends.draws(estimator.backend, estimator.extra_trees)
    typed = None if estimator.clip and len(outputs) == 1 else 0.0  # of a single layer on typed columns
    built = []
    for i, size in enumerate(outputs):
        last = i == len(outputs) - 1
        growth = Growth(
            max_depth=chosen["max_depth"][i],
            max_leaves=chosen["max_leaves"][i],
            min_samples_leaf=chosen["min_samples_leaf"][i],
            max_bins=checks.NUMBERS["max_bins"]("max_bins", estimator.max_bins),
            extra_trees=drawn,
            n_threads=min(n_threads, MOST_THREADS) if size < n_threads and n_rows >= NATIVE_ROWS else 1,
            random_state=seed % (2**31 - 1),
            shared=estimator.multi_strategy == "multi_output_tree" and not last,
            alone=len(outputs) == 1,
            params=checks.named("backend_params", estimator.backend_params),
        )
        settings = LayerSettings(
            n_estimators=chosen["n_estimators"][i],
            learning_rate=chosen["learning_rate"][i],
            growth=growth,
            basis=_basis(estimator, len(outputs) - 1),
            ridge=Ridge(chosen["reg_lambda"][i], estimator.penalize_constant, estimator.standardize),
            clip=estimator.clip,
            base=estimator.base,
            base_lambda=None if chosen["base_lambda"][i] == "gcv" else chosen["base_lambda"][i],
            min_base_lambda=ALIKE if i > 0 else typed,
            leaves=estimator.leaves,
        )
        built.append(settings)
    return tuple(built)


def _basis(estimator: Any, hidden: int) -> bases.Basis:
    basis = bases.load(estimator.basis)
    if not basis.columns_per_feature and hidden:
        raise ValueError(
            "basis='constant' with hidden layers: neither their leaves nor the ridge regression under them, on the "
            "same terms, would have a derivative to learn by. Use another basis, or hidden_layer_sizes=()."
        )
    return basis


def _structure_epochs(estimator: Any) -> int:
    if estimator.structure_epochs == "auto":
        return 1 if estimator.leaves == "native" else STRUCTURE_EPOCHS
    if estimator.leaves == "native" and estimator.structure_epochs > 1:
        raise ValueError(
            f"structure_epochs={estimator.structure_epochs!r} is not supported with leaves='native': the library fits "
            "its leaves only to trees that it grows. Use leaves='refit', or structure_epochs=1."
        )
    return int(estimator.structure_epochs)


def _samples(estimator: Any, n_rows: int) -> int | None:
    value = estimator.structure_samples
    if value is None:
        return None
    share = isinstance(value, float)
    checks.finite("structure_samples", value)
    if not (0.0 < value <= 1.0 if share else value >= 1):
        raise ValueError(f"structure_samples={value!r} is not allowed: give a share in (0, 1], or a number of rows.")
    if estimator.leaves == "native":
        raise ValueError(
            f"structure_samples={value!r} is not supported with leaves='native': the library fits its leaves "
            "on the rows it grows on. Use leaves='refit'."
        )
    return max(1, round(value * n_rows)) if share else int(value)


def _sizes(hidden_layer_sizes: Any, fewest: int) -> tuple[int, ...]:
    several = isinstance(hidden_layer_sizes, Sequence | np.ndarray) and not isinstance(hidden_layer_sizes, str)
    sizes = tuple(hidden_layer_sizes) if several else (hidden_layer_sizes,)
    if len(sizes) < fewest or not all(_is_size(size) for size in sizes):
        raise ValueError(
            f"hidden_layer_sizes={hidden_layer_sizes!r} must hold at least {fewest} hidden layers of 1 to "
            f"{MOST_UNITS} units, such as (32,)."
        )
    return tuple(int(size) for size in sizes)


def _is_size(size: Any) -> bool:
    whole = isinstance(size, Integral) or (isinstance(size, Real) and float(size).is_integer())
    return whole and not isinstance(size, bool) and 1 <= size <= MOST_UNITS


def _defaults(name: str, n_layers: int) -> list[Any]:
    hidden, output = DEFAULTS.get(name, (None, None))
    return [hidden] * (n_layers - 1) + [output]


def _per_layer(name: str, value: Any, defaults: list[Any]) -> list[Any]:
    n_layers = len(defaults)
    several = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)
    values = list(value) if several and not isinstance(value, str | bytes) else [value] * n_layers
    if len(values) != n_layers:
        raise ValueError(
            f"{name}={checks.shown(value)} has {len(values)} numbers for {n_layers} layers: give one number, "
            "or one per layer (hidden layers first, the output layer last)."
        )
    values = [default if one is None else one for one, default in zip(values, defaults, strict=True)]
    return [checks.NUMBERS[name](name, one) for one in values]


def _rates(learning_rate: Any, rounds: list[int], boosted: bool) -> list[float]:
    """Shrinkage of each layer; by default layers fitted to a moved target can cover nearly all of it."""
    rates = [rate_of(n) for n in rounds]
    return _per_layer("learning_rate", learning_rate, [*rates[:-1], OUTPUT_RATE] if boosted else rates)
