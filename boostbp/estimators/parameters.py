"""Parameters of an estimator, checked, as the settings of its training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from boostbp.ensemble.problem import EnsembleSettings
from boostbp.ensemble.quality_levels import LEVELS
from boostbp.estimators.fit_options import FitOptions
from boostbp.estimators.held_out import check_validation
from boostbp.estimators.nested_parameters import OF_ANY_LAYER, OF_OUTPUT, constrained
from boostbp.estimators.parameter_use import Way, way_of
from boostbp.inputs.schema import Schema
from boostbp.layers import LayerSettings, LayerSpec
from boostbp.layers.constraints import Signs, signs_of
from boostbp.layers.layer_spec import HIDDEN, OUTPUT
from boostbp.layers.layer_spec import settings_of as layer_settings_of
from boostbp.network import steps
from boostbp.network.callbacks import Checkpoint
from boostbp.network.settings import BackpropSpec, Settings
from boostbp.network.starts import STARTS
from boostbp.runtime import checks, threads
from boostbp.runtime.native_threads import usable_threads

CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "deep": partial(checks.one_of, allowed=("auto", True, False)),
    "quality": partial(checks.one_of, allowed=tuple(LEVELS)),
    "epochs": partial(checks.whole, least=0),
    "max_time": checks.seconds,
}
MOST_UNITS = 2**16  # of a hidden layer: a slip of the keyboard is not a layer
# Trees that an epoch grows for the output layer of a classifier: more learn by heart what hidden layers should learn.
OUTPUT_TREES, FEWEST_ROUNDS = 400, 20
# Of the variance of a hidden unit: the ridge base above hidden units holds back directions in which they vary less.
# Units that move along the same gradients become alike; large weights on their differences turn gradients to noise.
ALIKE = 0.15
STRUCTURE_EPOCHS = 4  # for which structures are kept: half the time of growing them every epoch, and no worse
NATIVE_ROWS = 20_000  # from here on a library's own threads beat the cost of starting them


def settings_of(estimator: Any, n_rows: int, n_outputs: int, seed: int, schema: Schema | None = None) -> Settings:
    """Return the settings of a training on so many rows; ValueError if a parameter is out of bounds.

    Without the `schema` of the table, monotone constraints are left out.
    """
    for name, check in CHECKS.items():
        check(name, getattr(estimator, name))
    check_validation(estimator.validation)
    check_single_layers(estimator)
    units = _sizes(estimator.hidden_layer_sizes, estimator._fewest_hidden)
    backprop = estimator._backprop()
    specs = _layer_specs(estimator, backprop, len(units), n_outputs)
    native = any(spec.leaves == "native" for spec in specs)
    return Settings(
        layers=_layers(estimator, specs, (*units, n_outputs), n_rows, seed, schema),
        units=units,
        epochs=int(estimator.epochs) if units else 0,
        step=steps.load(backprop.step, backprop.step_size, backprop.momentum),
        start=STARTS[backprop.start],
        refit_order=backprop.refit_order,
        output_target=backprop.output_target if way_of(estimator) in (Way.AVERAGE, Way.NETWORK) else "loss",
        skip=backprop.skip,
        structure_epochs=_structure_epochs(backprop, native),
        structure_samples=_structure_samples(backprop, native, n_rows),
        n_iter_no_change=backprop.n_iter_no_change if estimator.early_stopping else None,
        max_time=estimator.max_time,
        n_threads=threads.count(estimator.n_jobs),
        seed=seed,
        given=output_spec(estimator).given,
    )


def _layer_specs(estimator: Any, backprop: BackpropSpec, n_hidden: int, n_outputs: int) -> list[LayerSpec]:
    """Return the spec of each layer, complete: its own fields, then the estimator's, then the defaults of its place."""
    any_layer = LayerSpec(**{name: getattr(estimator, name) for name in OF_ANY_LAYER})
    given = estimator.hidden
    several = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if several and len(given) != n_hidden:
        raise ValueError(
            f"hidden={checks.shown(given)} has {len(given)} specs for {n_hidden} hidden layers: give one for each, "
            "or a single one for all."
        )
    named = [(f"hidden[{i}]", given[i]) if several else ("hidden", given) for i in range(n_hidden)]
    hidden = [LayerSpec.of(value, name).or_else(any_layer).complete(HIDDEN) for name, value in named]
    if not n_hidden:
        LayerSpec.of(None if several else given, "hidden")  # checked where it is not used, too
    default = OUTPUT
    if n_hidden and is_classifier(estimator):
        default = replace(
            default, n_estimators=min(OUTPUT.n_estimators or 0, max(FEWEST_ROUNDS, OUTPUT_TREES // n_outputs))
        )
    if backprop.output_target == "moved" and n_hidden:
        default = replace(default, learning_rate=None)
    return [*hidden, output_spec(estimator).complete(default)]


def output_spec(estimator: Any) -> LayerSpec:
    """Return what the user said of the output layer."""
    of_estimator = LayerSpec(**{name: getattr(estimator, name) for name in (*OF_OUTPUT, *OF_ANY_LAYER)})
    return LayerSpec.of(estimator.output, "output").or_else(of_estimator)


def _layers(
    estimator: Any,
    specs: Sequence[LayerSpec],
    outputs: tuple[int, ...],
    n_rows: int,
    seed: int,
    schema: Schema | None,
) -> tuple[LayerSettings, ...]:
    n_threads = usable_threads(threads.count(estimator.n_jobs))
    typed = None if specs[0].clip and len(specs) == 1 else 0.0  # of a single layer on typed columns
    layers, last = [], len(specs) - 1
    for i, (spec, n_outputs) in enumerate(zip(specs, outputs, strict=True)):
        settings = layer_settings_of(
            spec,
            estimator.backend,
            seed=seed,
            n_threads=n_threads if n_outputs < n_threads and n_rows >= NATIVE_ROWS else 1,
            alone=len(specs) == 1,
            own_trees=i == last,
            min_base_lambda=ALIKE if i > 0 else typed,
            signs=_signs(estimator, spec, n_outputs, schema) if i == last else None,
        )
        if not settings.basis.columns_per_feature and len(specs) > 1:
            raise ValueError(
                "basis='constant' with hidden layers: neither their leaves nor the ridge regression under them, on the "
                "same terms, would have a derivative to learn by. Use another basis, or hidden_layer_sizes=()."
            )
        layers.append(settings)
    return tuple(layers)


def _signs(estimator: Any, spec: LayerSpec, n_outputs: int, schema: Schema | None) -> Signs | None:
    """Return the signs of the features of a model of single layers; None if hidden layers are asked for."""
    hidden = np.size(estimator.hidden_layer_sizes) and estimator.deep is True
    if estimator._fewest_hidden or hidden:
        return None
    if schema is None:
        return ()
    return signs_of(
        spec.monotone_constraints,
        schema.n_features,
        names=schema.names,
        categorical=schema.categories.keys(),
        n_outputs=n_outputs,
    )


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


def ensemble_settings_of(estimator: Any, run: FitOptions | None = None) -> EnsembleSettings:
    """Settings of the ensemble, of parameters that are checked; what needs its hidden layers is the network alone."""
    deep = True if estimator._fewest_hidden else estimator.deep
    if constrained(estimator) and np.size(estimator.hidden_layer_sizes):  # hidden units mix features
        deep = False
    wanted = run is not None and bool(run.callbacks or any(_kept(run).values()))
    return EnsembleSettings("auto" if deep == "auto" else bool(deep), int(estimator.quality), wanted)


def _kept(run: FitOptions) -> dict[str, Any]:
    """What is asked for that keeps the training of a network, by the name in `fit`."""
    callbacks = run.callbacks if isinstance(run.callbacks, list | tuple) else ()
    kept = {"checkpoint": run.checkpoint, "keep_state": run.keep_state}
    return kept | {
        f"callbacks[{number}]": callback
        for number, callback in enumerate(callbacks)
        if isinstance(callback, Checkpoint)
    }


def check_single_layers(estimator: Any) -> None:
    """Refuse ``deep=False`` where an estimator is made of its hidden layers."""
    if estimator._fewest_hidden and not isinstance(estimator.deep, str) and not estimator.deep:
        raise ValueError(
            f"deep=False is not supported by {type(estimator).__name__}, which is made of its hidden layers: leave it "
            "'auto'. BoostBPRegressor and BoostBPClassifier can do without."
        )


def check_run(estimator: Any, run: FitOptions) -> None:
    """Refuse to keep the training of a network where ``deep=False``, ``quality=1`` or constraints train none."""
    deep = checks.one_of("deep", estimator.deep, ("auto", True, False))
    level = LEVELS[checks.one_of("quality", estimator.quality, tuple(LEVELS))]
    if deep is True or (deep == "auto" and level.networks and not constrained(estimator)):
        return
    why = "monotone_constraints" if constrained(estimator) else f"quality={estimator.quality}"
    why = "deep=False" if deep is False else why
    for name, value in _kept(run).items():
        if value:
            raise ValueError(
                f"{name}={value!r} with {why} is not supported: it keeps the training of a network, and none is "
                f"trained. Leave out {name}, or use deep='auto' and quality=2 or more."
            )
