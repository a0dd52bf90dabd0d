"""Parameters of an estimator: read, nested, and turned into the settings of its training."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial, wraps
from numbers import Integral, Real
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from sklearn.base import is_classifier

from boostbp import checks
from boostbp.estimators.ensemble_parameters import check_single_layers
from boostbp.estimators.held_out import check_validation
from boostbp.layers import LayerSettings, LayerSpec
from boostbp.layers.spec import HIDDEN, OUTPUT
from boostbp.layers.spec import settings_of as layer_settings_of
from boostbp.network import steps
from boostbp.network.settings import Settings
from boostbp.network.spec import BackpropSpec
from boostbp.network.starts import STARTS
from boostbp.suggestions import suggestion
from boostbp.trees import forks, threads

__all__ = ["FIELD_PLACES", "SPECS", "changed", "clips", "nested", "places_of", "settings_of", "suggests"]

P = ParamSpec("P")
E = TypeVar("E")

# Parameters that are specs: their fields are parameters too, by names such as hidden__max_depth.
SPECS: Mapping[str, type[Any]] = {"hidden": LayerSpec, "output": LayerSpec, "backprop": BackpropSpec}
OF_ANY_LAYER = ("max_depth", "min_samples_leaf", "subsample", "colsample_bytree", "backend_params")
OF_OUTPUT = ("n_estimators", "learning_rate")
# Fields that no parameter is called by, and the specs that hold them.
FIELD_PLACES: Mapping[str, tuple[str, ...]] = {
    **{f.name: ("hidden", "output") for f in fields(LayerSpec) if f.name not in OF_ANY_LAYER + OF_OUTPUT},
    **{f.name: ("backprop",) for f in fields(BackpropSpec)},
}
OF_FIT = ("callbacks", "checkpoint", "keep_state", "eval_set", "sample_weight", "groups")
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "deep": partial(checks.one_of, allowed=("auto", True, False)),
    "refit": partial(checks.one_of, allowed=(True, False)),
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


def settings_of(estimator: Any, n_rows: int, n_outputs: int, seed: int) -> Settings:
    """Return the settings of the training.

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
    for name, check in CHECKS.items():
        check(name, getattr(estimator, name))
    check_validation(estimator.validation)
    check_single_layers(estimator)
    units = _sizes(estimator.hidden_layer_sizes, estimator._fewest_hidden)
    backprop = estimator._backprop()
    specs = _layer_specs(estimator, backprop, len(units), n_outputs)
    native = any(spec.leaves == "native" for spec in specs)
    return Settings(
        layers=_layers(estimator, specs, (*units, n_outputs), n_rows, seed),
        units=units,
        epochs=int(estimator.epochs) if units else 0,
        step=steps.load(backprop.step, backprop.step_size, backprop.momentum),
        start=STARTS[backprop.start],
        refit_order=backprop.refit_order,
        output_target=backprop.output_target,
        skip=backprop.skip,
        structure_epochs=_structure_epochs(backprop, native),
        structure_samples=_structure_samples(backprop, native, n_rows),
        n_iter_no_change=backprop.n_iter_no_change if estimator.early_stopping else None,
        max_time=estimator.max_time,
        n_threads=threads.count(estimator.n_jobs),
        seed=seed,
    )


def clips(estimator: Any) -> bool:
    """Return whether regressions on the features clip what they read."""
    units = _sizes(estimator.hidden_layer_sizes, estimator._fewest_hidden)
    return bool(_layer_specs(estimator, estimator._backprop(), len(units), 1)[0].clip)


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
    hidden = [LayerSpec.of(value, name).or_else(any_layer).or_else(HIDDEN) for name, value in named]
    if not n_hidden:
        LayerSpec.of(None if several else given, "hidden")  # checked where it is not used, too
    default = OUTPUT
    if n_hidden and is_classifier(estimator):
        default = replace(
            default, n_estimators=min(OUTPUT.n_estimators or 0, max(FEWEST_ROUNDS, OUTPUT_TREES // n_outputs))
        )
    if backprop.output_target == "moved":
        default = replace(default, learning_rate=None)
    of_output = LayerSpec(**{name: getattr(estimator, name) for name in OF_OUTPUT})
    output = LayerSpec.of(estimator.output, "output").or_else(of_output).or_else(any_layer).or_else(default)
    return [*hidden, output]


def _layers(
    estimator: Any, specs: Sequence[LayerSpec], outputs: tuple[int, ...], n_rows: int, seed: int
) -> tuple[LayerSettings, ...]:
    n_threads = forks.native_threads(threads.count(estimator.n_jobs))
    typed = None if specs[0].clip and len(specs) == 1 else 0.0  # of a single layer on typed columns
    layers = []
    for i, (spec, n_outputs) in enumerate(zip(specs, outputs, strict=True)):
        settings = layer_settings_of(
            spec,
            estimator.backend,
            seed=seed,
            n_threads=n_threads if n_outputs < n_threads and n_rows >= NATIVE_ROWS else 1,
            alone=len(specs) == 1,
            own_trees=i == len(specs) - 1,
            min_base_lambda=ALIKE if i > 0 else typed,
        )
        if not settings.basis.columns_per_feature and len(specs) > 1:
            raise ValueError(
                "basis='constant' with hidden layers: neither their leaves nor the ridge regression under them, on the "
                "same terms, would have a derivative to learn by. Use another basis, or hidden_layer_sizes=()."
            )
        layers.append(settings)
    return tuple(layers)


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


def nested(estimator: Any) -> dict[str, Any]:
    """Return the fields of the estimator's specs by names such as ``hidden__max_depth``; unset ones are None."""
    values: dict[str, Any] = {}
    for name, kind in SPECS.items():
        value = getattr(estimator, name)
        held = value if isinstance(value, Mapping) else {}
        spec = value if isinstance(value, kind) else kind()
        if isinstance(value, Mapping | kind | None):
            values |= {f"{name}__{f.name}": held.get(f.name, getattr(spec, f.name)) for f in fields(kind)}
    return values


def changed(name: str, value: Any, changes: Mapping[str, Any]) -> Any:
    """Return a spec parameter with some of its fields changed.

    Raises
    ------
    ValueError
        If there is no such field, a value is out of bounds, or the parameter holds a spec for each hidden layer.
    """
    kind = SPECS[name]
    if isinstance(value, Sequence) and not isinstance(value, str):
        raise ValueError(f"{name} holds a spec for each hidden layer: set {name} itself, not {name}__{min(changes)}.")
    spec = kind.of(value, name)
    kind.of(dict(changes), name)
    return replace(spec, **changes)


def places_of(kind: type) -> dict[str, str]:
    """Return how to write each parameter of an estimator: its own, those of its specs, and those of `fit`."""
    written = {name: repr(name) for name in inspect.signature(kind).parameters}
    layer_fields = {f.name: f"output={{{f.name!r}: ...}}, and hidden=... for hidden layers" for f in fields(LayerSpec)}
    backprop_fields = {f.name: f"backprop={{{f.name!r}: ...}}" for f in fields(BackpropSpec)}
    return {name: f"{name}=... of fit" for name in OF_FIT} | layer_fields | backprop_fields | written


def suggests(init: Callable[Concatenate[E, P], None]) -> Callable[Concatenate[E, P], None]:
    """Make a constructor say what was meant by a parameter that it does not have.

    Raises
    ------
    TypeError
        As Python does, with the parameter that was meant.
    """

    @wraps(init)
    def checked(self: E, *args: P.args, **parameters: P.kwargs) -> None:
        for name in parameters:
            if name not in init.__code__.co_varnames[: init.__code__.co_argcount + init.__code__.co_kwonlyargcount]:
                kind = type(self)
                raise TypeError(f"{kind.__name__} has no parameter {name!r}: {suggestion(name, places_of(kind))}")
        init(self, *args, **parameters)

    return checked
