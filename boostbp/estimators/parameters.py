"""Conversion of an estimator's parameters into the settings of its training, with checks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import is_classifier

from boostbp.ensemble.problem import EnsembleSettings
from boostbp.estimators.fit_options import FitOptions
from boostbp.estimators.held_out import check_validation
from boostbp.estimators.nested_parameters import LAYER_PARAMETERS, OUTPUT_PARAMETERS, constrained
from boostbp.estimators.parameter_use import Way, deep_of, level_of, way_of
from boostbp.inputs.schema import Schema
from boostbp.inputs.sources import places_of
from boostbp.network import steps
from boostbp.network.callbacks import Checkpoint
from boostbp.network.layers import LayerSettings, LayerSpec
from boostbp.network.layers.layer_spec import HIDDEN, OUTPUT, Signs, is_constrained
from boostbp.network.layers.layer_spec import settings_of as layer_settings_of
from boostbp.network.settings import BackpropSpec, Settings
from boostbp.network.steps import STARTS
from boostbp.runtime import checks, plain, threads
from boostbp.runtime.threads import usable_threads

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP

MAX_UNITS = 2**16  # units of a hidden layer; more are probably a typing error. Arbitrary
# Number of trees in the output layer of a classifier in an epoch, over all classes, and its minimum number of rounds.
# With more trees the output layer memorises what the hidden layers should learn.
OUTPUT_TREES, MIN_OUTPUT_ROUNDS = 400, 20
# Penalty of the ridge base above hidden units, as a share of their variance. It shrinks directions in which the units
# vary less. Units that follow the same gradients become similar, and large weights on their differences turn gradients
# into noise.
MIN_BASE_LAMBDA = 0.15
STRUCTURE_EPOCHS = 4  # epochs between growths of structures: half the time of growth in every epoch, no worse models
CONTAINERS = ("hidden_layer_sizes", "categorical_features", "alpha", "class_weight")  # parameters that may be one
WITH_NETWORKS = (Way.AVERAGE, Way.NETWORK)
NATIVE_ROWS = 20_000  # rows from which the library's own threads gain more than starting them costs


def training_settings(
    estimator: BaseBoostBP, n_rows: int, n_outputs: int, seed: int, schema: Schema | None = None
) -> Settings:
    """Return the settings of a training on `n_rows` rows; raise ValueError if a parameter is out of bounds.

    Without the `schema` of the table, the settings have no monotone constraints.
    """
    deep_of(estimator)
    level_of(estimator)
    epochs = checks.whole("epochs", estimator.epochs, 0)
    checks.seconds("max_time", estimator.max_time)
    check_validation(estimator.validation)
    if estimator._min_hidden and not estimator.deep:
        raise ValueError(
            f"deep=False is not supported by {type(estimator).__name__}, which needs hidden layers: leave it 'auto'."
        )
    units = _sizes(estimator.hidden_layer_sizes, estimator._min_hidden)
    backprop = BackpropSpec.of(estimator.backprop, "backprop")
    specs = _layer_specs(estimator, backprop, len(units), n_outputs)
    _check_storable(estimator, specs)
    native = any(spec.leaves == "native" for spec in specs)
    return Settings(
        layers=_layers(estimator, specs, (*units, n_outputs), n_rows, seed, schema),
        units=units,
        epochs=epochs if units else 0,
        step=steps.rule_of(backprop.step, backprop.step_size, backprop.momentum),
        start=STARTS[backprop.start],
        refit_order=backprop.refit_order,
        output_target=backprop.output_target if way_of(estimator) in WITH_NETWORKS else "loss",
        skip=backprop.skip,
        structure_epochs=_structure_epochs(backprop, native),
        structure_samples=_structure_samples(backprop, native, n_rows),
        n_iter_no_change=backprop.n_iter_no_change if estimator.early_stopping else None,
        max_time=estimator.max_time,
        n_threads=threads.count(estimator.n_jobs),
        seed=seed,
        given=output_spec(estimator).given,
    )


def _check_storable(estimator: BaseBoostBP, specs: Sequence[LayerSpec]) -> None:
    """Raise ValueError if a parameter that is not code holds what no file can store, such as an iterator or a date."""
    values = [(name, getattr(estimator, name, None)) for name in CONTAINERS]
    if isinstance(estimator.backend, str):
        values += [("backend_params", spec.backend_params) for spec in specs]
    for name, value in (*values, ("monotone_constraints", specs[-1].monotone_constraints)):
        try:
            plain.encode(value)
        except TypeError as error:
            raise ValueError(f"{name}={checks.shown(value)} is not allowed: {error}. Give one of these.") from error


def _layer_specs(estimator: BaseBoostBP, backprop: BackpropSpec, n_hidden: int, n_outputs: int) -> list[LayerSpec]:
    """Return the complete spec of each layer: its fields, then the estimator's parameters, then the defaults."""
    any_layer = LayerSpec(**{name: getattr(estimator, name) for name in LAYER_PARAMETERS})
    specs: Any = cast(Any, estimator.hidden)
    several = isinstance(specs, Sequence) and not isinstance(specs, str | bytes)
    if several and len(specs) != n_hidden:
        raise ValueError(
            f"hidden={checks.shown(specs)} has {len(specs)} specs for {n_hidden} hidden layers: give one, or as many."
        )
    if several:
        given = [LayerSpec.of(cast(Any, value), f"hidden[{number}]") for number, value in enumerate(specs)]
    else:
        given = [LayerSpec.of(cast(Any, specs), "hidden")] * n_hidden  # checked although it may not be used
    hidden = [spec.or_else(any_layer).complete(HIDDEN) for spec in given]
    default = OUTPUT
    if n_hidden and is_classifier(estimator):
        rounds = max(MIN_OUTPUT_ROUNDS, OUTPUT_TREES // n_outputs)
        default = replace(default, n_estimators=min(OUTPUT.n_estimators or 0, rounds))
    if backprop.output_target == "moved" and n_hidden:
        default = replace(default, learning_rate=None)
    return [*hidden, output_spec(estimator).complete(default)]


def output_spec(estimator: BaseBoostBP) -> LayerSpec:
    """Return the spec of the output layer with the fields that the user set."""
    parameters = LayerSpec(**{name: getattr(estimator, name) for name in (*OUTPUT_PARAMETERS, *LAYER_PARAMETERS)})
    return LayerSpec.of(estimator.output, "output").or_else(parameters)


def _layers(
    estimator: BaseBoostBP,
    specs: Sequence[LayerSpec],
    outputs: tuple[int, ...],
    n_rows: int,
    seed: int,
    schema: Schema | None,
) -> tuple[LayerSettings, ...]:
    n_threads = usable_threads(threads.count(estimator.n_jobs))
    single_layer_lambda = None if specs[0].clip and len(specs) == 1 else 0.0  # None: see `LayerSettings`
    layers, last = [], len(specs) - 1
    for i, (spec, n_outputs) in enumerate(zip(specs, outputs, strict=True)):
        settings = layer_settings_of(
            spec,
            estimator.backend,
            seed=seed,
            n_threads=n_threads if n_outputs < n_threads and n_rows >= NATIVE_ROWS else 1,
            alone=len(specs) == 1,
            own_trees=i == last,
            min_base_lambda=MIN_BASE_LAMBDA if i > 0 else single_layer_lambda,
            signs=_signs(estimator, spec, n_outputs, schema) if i == last else None,
        )
        if not settings.basis.columns_per_feature and len(specs) > 1 and way_of(estimator) in WITH_NETWORKS:
            raise ValueError(
                "basis='constant' with hidden layers is not supported: their leaves, and the ridge base on the same "
                "terms, have no derivatives, which back-propagation needs. Use another basis, or deep=False."
            )
        layers.append(settings)
    return tuple(layers)


def _signs(estimator: BaseBoostBP, spec: LayerSpec, n_outputs: int, schema: Schema | None) -> Signs | None:
    """Return the monotone signs of the features for single layers; None if the model must have hidden layers."""
    if deep_of(estimator) is True and np.size(estimator.hidden_layer_sizes):
        return None
    if schema is None:
        return ()
    columns: Any = {"labels": schema.labels, "categorical": schema.categories.keys()}
    return signs_of(spec.monotone_constraints, schema.n_features, **columns, n_outputs=n_outputs)


def signs_of(
    constraints: Sequence[int] | Mapping[Any, int] | None,
    n_features: int,
    *,
    labels: Sequence[str] | None = None,
    categorical: Collection[int] = (),
    n_outputs: int = 1,
) -> Signs:
    """Return the sign of each feature in which a layer is to be monotone, (features,); () if it is in none.

    `labels` are column names as `label_of` writes them, and `categorical` are the features that are category codes.
    Raises ValueError if the constraints (`checked_constraints`) are not those of such an input, or cannot be kept.
    """
    if constraints is None or not is_constrained(constraints):
        return ()
    shown = f"monotone_constraints={checks.shown(constraints)}"
    if isinstance(constraints, Mapping):
        sign_of = dict(zip(places_of(constraints, labels, shown), constraints.values(), strict=True))
        constraints = tuple(sign_of.get(j, 0) for j in range(n_features))
    if len(constraints) != n_features:
        raise ValueError(f"{shown} has {len(constraints)} signs, but X has {n_features} columns: give one for each.")
    without_order = [j for j in categorical if constraints[j]]
    if without_order:
        raise ValueError(f"{shown} is not supported for columns {without_order}, categories: use 0.")
    if n_outputs != 1:
        raise ValueError(f"{shown} is not supported with {n_outputs} outputs: train one model for each.")
    return tuple(constraints)


def _structure_epochs(backprop: BackpropSpec, native: bool) -> int:
    if backprop.structure_epochs == "auto":
        return 1 if native else STRUCTURE_EPOCHS
    if native and backprop.structure_epochs > 1:
        raise ValueError(
            f"structure_epochs={backprop.structure_epochs!r} is not supported with leaves='native': the library fits "
            "its leaves only to trees that it grows. Use leaves='refit', or structure_epochs=1."
        )
    return backprop.structure_epochs


def _structure_samples(backprop: BackpropSpec, native: bool, n_rows: int) -> int | None:
    samples = backprop.structure_samples
    if samples is None:
        return None
    if native:
        raise ValueError(
            f"structure_samples={samples!r} is not supported with leaves='native': the library fits its leaves "
            "on the rows it grows on. Use leaves='refit'."
        )
    return max(1, round(samples * n_rows)) if isinstance(samples, float) else int(samples)


def _sizes(hidden_layer_sizes: Any, fewest: int) -> tuple[int, ...]:
    several = isinstance(hidden_layer_sizes, Sequence | np.ndarray) and checks.is_container(hidden_layer_sizes)
    if not (several or isinstance(hidden_layer_sizes, Real)):
        raise checks.not_allowed("hidden_layer_sizes", hidden_layer_sizes, "a whole number, or a list of them")
    sizes: tuple[Any, ...] = tuple(hidden_layer_sizes) if several else (hidden_layer_sizes,)
    if len(sizes) < fewest:
        raise ValueError(f"hidden_layer_sizes={hidden_layer_sizes!r} must hold {fewest} layers or more.")
    names = [f"hidden_layer_sizes[{number}]" if several else "hidden_layer_sizes" for number in range(len(sizes))]
    return tuple(checks.whole(name, size, 1, MAX_UNITS) for name, size in zip(names, sizes, strict=True))


def ensemble_settings_of(estimator: BaseBoostBP, options: FitOptions) -> EnsembleSettings:
    """Return the settings of the ensemble, from parameters that `training_settings` checked."""
    deep = deep_of(estimator)
    if constrained(estimator) and np.size(estimator.hidden_layer_sizes):  # hidden units mix features
        deep = False
    network_needed = bool(options.callbacks or any(_network_options(options).values()))
    return EnsembleSettings(deep, int(estimator.quality), network_needed)


def _network_options(options: FitOptions) -> dict[str, Any]:
    """Return the options that store the training of a network, by their names in `fit`."""
    callbacks = options.callbacks if isinstance(options.callbacks, list | tuple) else ()
    stored = {f"callbacks[{i}]": call for i, call in enumerate(callbacks) if isinstance(call, Checkpoint)}
    return {"checkpoint": options.checkpoint, "keep_state": options.keep_state} | stored


def check_options(estimator: BaseBoostBP, options: FitOptions) -> None:
    """Raise ValueError if the options store the training of a network, and the estimator trains none."""
    deep, level = deep_of(estimator), level_of(estimator)
    if deep is True or (deep == "auto" and level.networks and not constrained(estimator)):
        return
    why = "monotone_constraints" if constrained(estimator) else f"quality={estimator.quality}"
    why = "deep=False" if deep is False else why
    for name, value in _network_options(options).items():
        if value:
            raise ValueError(
                f"{name}={value!r} with {why} is not supported: it stores the state of a network's training, and no "
                f"network is trained. Leave out {name}, or use deep='auto' and quality=2 or more."
            )
