"""Effect of each parameter in each way of training, and warnings of parameters without effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np

from boostbp.ensemble.plan import Way
from boostbp.estimators.nested_parameters import SPECS, nested_values
from boostbp.estimators.request import Request
from boostbp.losses import Quantile
from boostbp.network.callbacks import StopOnInterrupt
from boostbp.network.choice import NETWORK, ModelChoice
from boostbp.network.monitor import EvalSet
from boostbp.runtime import checks, messages
from boostbp.runtime.group import workers

USED, SCORES_ONLY, IF_NETWORK, UNUSED, IS_REFUSED = (
    "used",
    "scores only",
    "if a network has weight",
    "no effect",
    "refused",
)
SCORES_AND_EPOCH = "scores, and the epoch of a network"
# Effect of each parameter in each `Way`, in order. A field of a spec that is not listed has the effect of the spec.
USES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *("n_estimators", "learning_rate", "max_depth", "min_samples_leaf", "colsample_bytree", "output"),
            *("backend", "backend_params", "loss", "alpha", "class_weight", "deep", "early_stopping", "validation"),
            *("calibration", "max_time", "categorical_features", "n_jobs", "random_state", "verbose"),
            "backprop__structure_samples",
        ),
        (USED,) * 5,
    ),
    "eval_metric": (SCORES_ONLY, SCORES_AND_EPOCH, USED, SCORES_ONLY, USED),
    "quality": (USED, USED, "4 and 5 only", USED, UNUSED),
    **dict.fromkeys(("hidden_layer_sizes", "hidden", "backprop", "epochs"), (UNUSED, IF_NETWORK, USED, UNUSED, UNUSED)),
    "callbacks": (UNUSED, USED, USED, UNUSED, USED),  # of `fit`
    "hidden__monotone_constraints": (IS_REFUSED,) * 4 + (UNUSED,),
    "output__monotone_constraints": (USED, USED, IS_REFUSED, USED, USED),
    "output__multi_strategy": (UNUSED,) * 5,
}
HIDDEN_TREE_FIELDS = {
    *("n_estimators", "learning_rate", "max_depth", "max_leaves", "min_samples_leaf", "max_bins", "subsample"),
    *("colsample_bytree", "extra_trees", "multi_strategy", "leaves", "backend_params"),
}
REFITTED_LEAF_FIELDS = ("reg_lambda", "penalize_constant", "standardize")


def use_of(name: str, way: Way) -> str:
    """Return the effect of a parameter, such as ``epochs`` or ``hidden__max_depth``, in a way of training."""
    return USES.get(name, USES.get(name.partition("__")[0], ()))[list(Way).index(way)]


def non_defaults(request: Request) -> dict[str, Any]:
    """Return the parameters that differ from their defaults, with fields of specs as ``hidden__max_depth``."""
    parameters = signature(request.kind).parameters
    values = {name: value for name, value in request.values.items() if name in parameters} | nested_values(
        request.values
    )
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    for name, kind in SPECS.items():
        defaults |= {f"{name}__{field.name}": field.default for field in fields(kind)}
        if isinstance(values.get(name), kind | Mapping | None):
            values.pop(name, None)  # its fields are in `values`
    return {name: value for name, value in values.items() if not _same(value, defaults[name])}


def _same(value: Any, default: Any) -> bool:
    if isinstance(default, tuple):  # hidden_layer_sizes
        return isinstance(value, Sequence | np.ndarray) and list(value) == list(default)
    return value is default or (isinstance(value, str | Real | np.bool_) and bool(value == default))


def warn_before(request: Request, way: Way, sets: Sequence[EvalSet]) -> None:
    """Warn of parameters that have no effect on a fit with these evaluation sets."""
    values = non_defaults(request)
    if way in (Way.ONE_LAYER, Way.LAYERS):
        unused_callbacks = [
            callback for callback in request.arguments.callbacks or () if not isinstance(callback, StopOnInterrupt)
        ]
        values |= {"callbacks": unused_callbacks} if unused_callbacks else {}
    harmless = {"quality"} if request.quality == 1 else set()  # quality 1 requests a single layer too
    if not request.units:
        harmless.add("hidden_layer_sizes")

    def is_unused(name: str) -> bool:
        return use_of(name, way) == UNUSED and set(USES.get(name, ())) != {UNUSED}

    unused = [name for name in values if name not in harmless and is_unused(name)]
    why, cure, before = _why(request, way)
    of_networks = [name for name in unused if use_of(name, Way.AVERAGE) == IF_NETWORK]
    others = [name for name in unused if name not in of_networks]
    reasons = (of_networks, f"{why}. {before}deep=True."), (others, f"{why}. {cure}.")
    for names, reason in (*reasons, *_conditions(request, values, way, sets)):
        _warn({name: values[name] for name in names if name in values}, reason)


def _why(request: Request, way: Way) -> tuple[str, str, str]:
    """Return why parameters have no effect, the cure, and for those of networks what comes before ``deep=True``."""
    if way is Way.FIXED_LAYER and not request.units:
        cure = "Give hidden layers, or deep=False for an average of layers"
        return "hidden_layer_sizes=() is a single layer", cure, "Give hidden layers, and use "
    if way is Way.FIXED_LAYER:
        cure = "Give an eval_set, or use early_stopping=True"
        return "without held-out rows or an eval_set the model is a single layer", cure, "Use "
    if request.constrained:
        return "monotone_constraints allow no network", "Leave them out", "Leave them out, and use "
    if way is Way.LAYERS:
        return "deep=False trains no network", "Use deep='auto' with quality=2 or more", "Use "
    return "quality=1 trains no network", "Use quality=2 or more", "Use "


def _conditions(
    request: Request, values: Mapping[str, Any], way: Way, sets: Sequence[EvalSet]
) -> Iterator[tuple[list[str], str]]:
    """Yield parameters that have no effect because of another parameter or the rows, and the reason."""
    early_stopping, loss = request.values["early_stopping"], request.values.get("loss", "")
    if way is Way.NETWORK and not request.level.thorough:
        yield ["quality"], "deep=True trains the network alone, and qualities 1 to 3 are the same."
    if not sets:
        off = "early_stopping=False holds no rows out" if early_stopping is False else "no rows are held out"
        yield ["validation", "eval_metric"], f"{off}. Use early_stopping=True, or give an eval_set."
    elif not sets[0].from_training:
        yield ["validation"], "the eval_set replaces the held-out rows. Leave one of them out."
        if early_stopping is False and way is not Way.NETWORK:
            yield ["early_stopping"], "the eval_set chooses the model. Leave it out to choose without such rows."
    if way is Way.NETWORK and not (sets and early_stopping):
        yield ["backprop__n_iter_no_change"], "all epochs run without held-out rows, or with early_stopping=False."
    if not isinstance(values.get("backprop__step", ""), str):
        yield ["backprop__step_size", "backprop__momentum"], "step is an object with its own values. Set them there."
    if not isinstance(loss, str) or loss not in (Quantile.name, *Quantile.aliases):
        yield ["alpha"], f"loss={checks.shown(loss)} has no level. Use loss='quantile', or boostbp.losses.Huber(delta)."
    for spec in ("hidden", "output"):
        if values.get(f"{spec}__leaves") == "native":
            unused = [f"{spec}__{name}" for name in REFITTED_LEAF_FIELDS]
            yield unused, "leaves='native' uses the penalties of the library."
    if values.get("output__multi_strategy") != "one_output_per_tree":  # the output layer always does this
        yield ["output__multi_strategy"], "the output layer grows separate trees for each output. Set it in hidden."


def warn_after(request: Request, choice: ModelChoice) -> None:
    """Warn of network parameters without effect on an average in which the user's network has no weight."""
    if (choice.members > 1 and choice.has_hidden) or choice.weight(NETWORK):  # `choice` is that of the first member
        return
    values = {name: value for name, value in non_defaults(request).items() if use_of(name, Way.AVERAGE) == IF_NETWORK}
    # Variants depend on the hidden parameters then.
    if values.get("hidden__n_estimators") == 0 or len(request.units) != 1:
        values = {name: value for name, value in values.items() if not name.startswith("hidden")}
    has_variants = choice.network is not None

    def is_unused(name: str) -> bool:
        return not has_variants or name.removeprefix("hidden__") in HIDDEN_TREE_FIELDS

    subject = "the requested network has" if has_variants else "no network has"
    why = f"{subject} weight in this model, as the held-out rows chose. Use deep=True for a model that is the network."
    _warn({name: value for name, value in values.items() if is_unused(name)}, why)


def _warn(unused: Mapping[str, Any], why: str) -> None:
    if unused and workers().rank == 0:
        names = ", ".join(f"{name}={checks.shown(value)}" for name, value in unused.items())
        messages.warn(f"No effect on the model: {names}, as {why}")
