"""Request: parameters of an estimator and arguments of a fit, read once; the way and the settings of its training."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Literal, Self, cast

import numpy as np
from sklearn.utils import get_tags

from boostbp.ensemble.budget import LEVELS, QualityLevel
from boostbp.ensemble.plan import Way
from boostbp.estimators.arguments import NO_ARGUMENTS, Arguments
from boostbp.estimators.constructor import SupervisedParameters, check_validation
from boostbp.estimators.nested_parameters import LAYER_PARAMETERS, OUTPUT_PARAMETERS
from boostbp.inputs.schema import Schema
from boostbp.inputs.sources import places_of
from boostbp.network import steps
from boostbp.network.layers import LayerSettings, LayerSpec
from boostbp.network.layers.layer_spec import HIDDEN, OUTPUT, Signs, is_constrained
from boostbp.network.layers.layer_spec import settings_of as layer_settings_of
from boostbp.network.settings import BackpropSpec, Settings
from boostbp.network.steps import STARTS
from boostbp.runtime import checks, plain, threads
from boostbp.runtime.threads import usable_threads

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
NATIVE_ROWS = 20_000  # rows from which the library's own threads gain more than starting them costs


WITH_NETWORKS = (Way.AVERAGE, Way.NETWORK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The parameters of an estimator, read and checked once, and the arguments of a fit.

    Those in `values` and in the arguments are as the user set them.
    """

    kind: type[Any]  # class of the estimator
    task: str | None  # type of the estimator in scikit-learn's tags
    needs_hidden: bool  # whether the hidden layers are the model
    values: Mapping[str, Any]  # parameters of the constructor
    deep: Literal["auto"] | bool
    quality: int
    units: tuple[int, ...]
    epochs: int
    validation: Any
    backprop: BackpropSpec
    hidden: tuple[LayerSpec, ...]  # fields that the user set, for each hidden layer
    output: LayerSpec
    n_threads: int
    arguments: Arguments = NO_ARGUMENTS

    @classmethod
    def of(cls, estimator: Any, arguments: Arguments = NO_ARGUMENTS) -> Self:
        """Read the parameters of an estimator; raise ValueError if one is out of bounds."""
        names = dict.fromkeys(
            [field.name for field in fields(SupervisedParameters)] + [*estimator.get_params(deep=False)]
        )
        values = {name: getattr(estimator, name, None) for name in names}  # derived classes may have fewer parameters
        fewest = estimator._min_hidden
        deep: Literal["auto"] | bool = checks.one_of("deep", values["deep"], ("auto", True, False))
        checks.seconds("max_time", values["max_time"])
        if fewest and not deep:
            name = type(estimator).__name__
            raise ValueError(f"deep=False is not supported by {name}, which needs hidden layers: leave it 'auto'.")
        units = _sizes(values["hidden_layer_sizes"], fewest)
        backprop = BackpropSpec.of(values["backprop"], "backprop")
        any_layer = {name: values[name] for name in LAYER_PARAMETERS}
        of_output = LayerSpec(**any_layer, **{name: values[name] for name in OUTPUT_PARAMETERS})
        return cls(
            kind=type(estimator),
            task=get_tags(estimator).estimator_type,
            needs_hidden=bool(fewest),
            values=values,
            deep=True if fewest else deep,
            quality=int(checks.one_of("quality", values["quality"], tuple(LEVELS))),
            units=units,
            epochs=checks.whole("epochs", values["epochs"], 0),
            validation=check_validation(values["validation"]),
            backprop=backprop,
            hidden=_hidden_specs(values["hidden"], LayerSpec(**any_layer), len(units)),
            output=LayerSpec.of(values["output"], "output").or_else(of_output),
            n_threads=threads.count(values["n_jobs"]),
            arguments=arguments,
        )

    @property
    def level(self) -> QualityLevel:
        """The limits of the quality."""
        return LEVELS[self.quality]

    @property
    def constrained(self) -> bool:
        """Whether the model must be monotone in some feature."""
        return is_constrained(self.output.monotone_constraints)

    @property
    def way(self) -> Way:
        """The way of training if rows are held out; no model with hidden units, which mix features, is monotone."""
        if self.deep is False or (self.constrained and self.units):
            return Way.LAYERS
        if not self.units:
            return Way.FIXED_LAYER
        if self.deep is True:
            return Way.NETWORK
        return Way.ONE_LAYER if self.level.networks is None else Way.AVERAGE

    def settings(self, n_rows: int, n_outputs: int, seed: int, schema: Schema | None = None) -> Settings:
        """Return the settings of a training on `n_rows` rows; raise ValueError if a parameter does not suit them.

        Without the `schema` of the table, the settings have no monotone constraints.
        """
        backprop, specs = self.backprop, self._layer_specs(n_outputs)
        native = any(spec.leaves == "native" for spec in specs)
        return Settings(
            layers=self._layers(specs, n_outputs, n_rows, seed, schema),
            units=self.units,
            epochs=self.epochs if self.units else 0,
            step=steps.rule_of(backprop.step, backprop.step_size, backprop.momentum),
            start=STARTS[backprop.start],
            refit_order=backprop.refit_order,
            output_target=backprop.output_target if self.way in WITH_NETWORKS else "loss",
            skip=backprop.skip,
            structure_epochs=_structure_epochs(backprop, native),
            structure_samples=_structure_samples(backprop, native, n_rows),
            n_iter_no_change=backprop.n_iter_no_change if self.values["early_stopping"] else None,
            max_time=self.values["max_time"],
            n_threads=self.n_threads,
            seed=seed,
            given=self.output.given,
        )

    def __post_init__(self) -> None:
        """Raise ValueError if a parameter that is not code holds what no file can store, as an iterator or a date."""
        values = [(name, self.values.get(name)) for name in CONTAINERS]
        if isinstance(self.values["backend"], str):
            values += [("backend_params", spec.backend_params) for spec in (*self.hidden, self.output)]
        for name, value in (*values, ("monotone_constraints", self.output.monotone_constraints)):
            try:
                plain.encode(value)
            except TypeError as error:
                raise ValueError(f"{name}={checks.shown(value)} is not allowed: {error}. Give one of these.") from error

    def _layer_specs(self, n_outputs: int) -> list[LayerSpec]:
        """Return the complete spec of each layer: its fields, then the estimator's parameters, then the defaults."""
        default = OUTPUT
        if self.units and self.task == "classifier":
            rounds = max(MIN_OUTPUT_ROUNDS, OUTPUT_TREES // n_outputs)
            default = replace(default, n_estimators=min(OUTPUT.n_estimators or 0, rounds))
        if self.backprop.output_target == "moved" and self.units:
            default = replace(default, learning_rate=None)
        return [*(spec.complete(HIDDEN) for spec in self.hidden), self.output.complete(default)]

    def _layers(
        self, specs: Sequence[LayerSpec], n_outputs: int, n_rows: int, seed: int, schema: Schema | None
    ) -> tuple[LayerSettings, ...]:
        n_threads = usable_threads(self.n_threads)
        single_layer_lambda = None if specs[0].clip and len(specs) == 1 else 0.0  # None: see `LayerSettings`
        layers, last = [], len(specs) - 1
        for i, (spec, width) in enumerate(zip(specs, (*self.units, n_outputs), strict=True)):
            settings = layer_settings_of(
                spec,
                self.values["backend"],
                seed=seed,
                n_threads=n_threads if width < n_threads and n_rows >= NATIVE_ROWS else 1,
                alone=len(specs) == 1,
                own_trees=i == last,
                min_base_lambda=MIN_BASE_LAMBDA if i > 0 else single_layer_lambda,
                signs=self._signs(spec, width, schema) if i == last else None,
            )
            if not settings.basis.columns_per_feature and len(specs) > 1 and self.way in WITH_NETWORKS:
                raise ValueError(
                    "basis='constant' with hidden layers is not supported: their leaves, and the ridge base on the "
                    "same terms, have no derivatives, which back-propagation needs. Use another basis, or deep=False."
                )
            layers.append(settings)
        return tuple(layers)

    def _signs(self, spec: LayerSpec, n_outputs: int, schema: Schema | None) -> Signs | None:
        """Return the monotone signs of the features for single layers; None if the model must have hidden layers."""
        if self.deep is True and self.units:
            return None
        if schema is None:
            return ()
        columns: Any = {"labels": schema.labels, "categorical": schema.categories.keys()}
        return signs_of(spec.monotone_constraints, schema.n_features, **columns, n_outputs=n_outputs)


def _hidden_specs(hidden: Any, any_layer: LayerSpec, n_hidden: int) -> tuple[LayerSpec, ...]:
    """Return the fields that the user set for each hidden layer, in its spec or in `any_layer`."""
    if not isinstance(hidden, Sequence) or isinstance(hidden, str | bytes):
        specs = [LayerSpec.of(cast(Any, hidden), "hidden")] * n_hidden  # checked although it may not be used
    elif len(hidden) != n_hidden:
        raise ValueError(
            f"hidden={checks.shown(hidden)} has {len(hidden)} specs for {n_hidden} hidden layers: give one, or as many."
        )
    else:
        specs = [LayerSpec.of(value, f"hidden[{number}]") for number, value in enumerate(hidden)]
    return tuple(spec.or_else(any_layer) for spec in specs)


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
    value: Any = hidden_layer_sizes
    several = isinstance(value, Sequence | np.ndarray) and checks.is_container(value)
    if not (several or isinstance(value, Real)):
        raise checks.not_allowed("hidden_layer_sizes", value, "a whole number, or a list of them")
    sizes: tuple[Any, ...] = tuple(hidden_layer_sizes) if several else (hidden_layer_sizes,)
    if len(sizes) < fewest:
        raise ValueError(f"hidden_layer_sizes={hidden_layer_sizes!r} must hold {fewest} layers or more.")
    names = [f"hidden_layer_sizes[{number}]" if several else "hidden_layer_sizes" for number in range(len(sizes))]
    return tuple(checks.whole(name, size, 1, MAX_UNITS) for name, size in zip(names, sizes, strict=True))
