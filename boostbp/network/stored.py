"""Conversion of networks, histories, losses and step rules to plain values and arrays and back, with checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from functools import partial
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from boostbp import plain
from boostbp.archive import Arrays, take
from boostbp.layers import Layer
from boostbp.losses import LOSSES, Loss
from boostbp.network.choice import CandidateResult, ModelChoice
from boostbp.network.history import Epoch, History, Look, Stop
from boostbp.network.network import Network
from boostbp.network.steps import STEPS, Step
from boostbp.trees import packed

T = TypeVar("T", Epoch, Look, CandidateResult, ModelChoice)


def network_of(network: Network) -> tuple[Any, Arrays]:
    """Return the JSON content of a network, and its arrays: ``baseline``, and ``layer{i}.NAME`` for layer i.

    Raises
    ------
    ValueError
        If a basis has functions of the user's own.
    """
    facts: list[Any] = []
    arrays: Arrays = {"baseline": network.baseline}
    for i, layer in enumerate(network.layers):
        fact, parts = packed.pack(layer.forest)
        facts.append(fact)
        arrays |= {f"layer{i}.{name}": part for name, part in parts.items()}
    return {"layers": facts, "skip": network.skip}, arrays


def network_from(facts: object, arrays: Arrays, prefix: str = "") -> Network:
    """Return the network that `network_of` described.

    Parameters
    ----------
    arrays : dict
        Arrays by name. Those of the network, whose names begin with `prefix`, are removed.

    Raises
    ------
    ValueError
        If parts of the network do not fit together.
    """
    facts = _checked(facts, {"layers", "skip"}, "a network")
    if type(facts["skip"]) is not bool or not isinstance(facts["layers"], list) or not facts["layers"]:
        raise ValueError(f"This is not a network: skip={facts['skip']!r:.99}, layers={facts['layers']!r:.99}.")
    layers = tuple(Layer(packed.unpack(fact, arrays, f"{prefix}layer{i}.")) for i, fact in enumerate(facts["layers"]))
    sizes = [layer.forest.n_outputs for layer in layers]
    n_skip = layers[0].forest.n_features if facts["skip"] else 0
    if [layer.forest.n_features - n_skip for layer in layers[1:]] != sizes[:-1]:
        raise ValueError(f"This is not a network: layers with {sizes} outputs do not fit together.")
    return Network(layers, take(arrays, f"{prefix}baseline", float, (sizes[-1],)), facts["skip"])


def history_of(history: History) -> Any:
    """Return the JSON content of a history."""
    return {
        "epochs": [_values_of(epoch) for epoch in history.epochs],
        "best_epoch": history.best_epoch,
        "stop": history.stop.name,
        "metric": history.metric,
        "choice": None if history.choice is None else _values_of(history.choice),
        "refitted": history.refitted,
        "looks": [_values_of(look) for look in history.looks],
    }


def _values_of(record: Epoch | Look | ModelChoice) -> dict[str, Any]:
    return {name: plain.encode(value) for name, value in asdict(record).items()}


def _choice_from(facts: object, names: list[str]) -> ModelChoice:
    """Return the choice of a history that scores evaluation sets with these names."""
    values = _decoded(facts)
    if isinstance(values, dict) and isinstance(values.get("candidates"), tuple):
        values["candidates"] = tuple(_record(result, CandidateResult, "a candidate") for result in values["candidates"])
    choice = _record(values, ModelChoice, "a choice")
    if not all(
        0.0 <= result.weight <= 1.0 + 1e-9 for result in choice.candidates
    ):  # rounding may lift a sum of weights
        raise ValueError(f"This is not a choice: it has the candidates {choice.candidates!r:.999}.")
    if choice.members < 1 or (choice.metrics and list(choice.metrics) != names):
        raise ValueError(f"This is not a choice: it holds {values!r:.999}.")
    return choice


def history_from(facts: object, *, hidden: int | None = None) -> History:
    """Return the history that `history_of` described.

    Parameters
    ----------
    hidden : int, optional
        Number of hidden layers that each epoch must describe; by default the number in the first epoch.

    Raises
    ------
    ValueError
        If a field is missing or has another type, or if epochs describe other layers or evaluation sets.
    """
    keys = {"epochs", "best_epoch", "stop", "metric", "choice", "refitted", "looks"}
    facts = _checked(facts, keys, "a history")
    epochs = [_record(_decoded(fact), Epoch, "an epoch") for fact in facts["epochs"]]
    best = facts["best_epoch"]
    consecutive = [epoch.epoch for epoch in epochs] == list(range(len(epochs)))
    if not consecutive or type(best) is not int or not 0 <= best < len(epochs):
        raise ValueError("This is not a history: its epochs are not consecutive, or none of them is the best.")
    n_hidden = len(epochs[0].stds) if hidden is None else hidden
    names = list(epochs[0].metrics)
    for epoch in epochs:
        if not _fits_layers(epoch, n_hidden) or list(epoch.metrics) != names:
            raise ValueError(f"This is not a history of {n_hidden} hidden layers scored on {names}: it holds {epoch}.")
    known = isinstance(facts["stop"], str) and facts["stop"] in Stop.__members__ and isinstance(facts["metric"], str)
    if not known or type(facts["refitted"]) is not bool or (names and not facts["metric"]):
        raise ValueError(f"This is not a history: stop={facts['stop']!r:.99}, metric={facts['metric']!r:.99}.")
    choice = None if facts["choice"] is None else _choice_from(facts["choice"], names)
    looks = [_record(_decoded(fact), Look, "a look") for fact in facts["looks"]]
    rounds = [look.rounds for look in looks]
    if rounds != sorted({*rounds}) or (rounds and rounds[0] < 0) or any(list(look.metrics) != names for look in looks):
        raise ValueError(f"This is not a history scored on {names}: it has the looks {looks!r:.999}.")
    return History(epochs, best, Stop[facts["stop"]], facts["metric"], choice, facts["refitted"], looks)


def _fits_layers(epoch: Epoch, hidden: int) -> bool:
    """Return whether an epoch has a number for each hidden layer; epoch 0 moves and refits nothing."""
    per_layer = (epoch.gradient_norms, epoch.dead, epoch.drift, epoch.stds, epoch.explained, epoch.explained_held)
    refits = len(epoch.r2) == (0 if epoch.epoch == 0 else hidden + 1)
    return refits and all(len(numbers) == hidden for numbers in per_layer)


def _decoded(facts: object) -> object:
    """Return the fields that `_values_of` encoded."""
    return {name: plain.decode(value) for name, value in facts.items()} if isinstance(facts, dict) else facts


def _record(values: object, kind: type[T], what: str) -> T:
    """Return a record with these fields; ValueError if one is missing or has another type than its annotation."""
    hints = get_type_hints(kind)
    values = _checked(values, set(hints), what)
    for name, hint in hints.items():
        if not _fits(values[name], hint):
            raise ValueError(f"This is not {what}: {name}={values[name]!r:.99}.")
    return kind(**values)


def _fits(value: object, hint: object) -> bool:
    """Return whether a value has the type of an annotation; a whole number that a float can represent is a float."""
    kinds = get_args(hint)
    if isinstance(hint, UnionType):
        return any(_fits(value, kind) for kind in kinds)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(item, kinds[0]) for item in value)
    if get_origin(hint) is dict:
        return isinstance(value, dict) and all(_fits(key, kinds[0]) and _fits(value[key], kinds[1]) for key in value)
    return type(value) is hint or (hint is float and type(value) is int and math.isfinite(float(value)))


def _checked(facts: object, keys: set[str], what: str) -> dict[str, Any]:
    """Return a dict that has these keys and no others; ValueError for anything else."""
    if not isinstance(facts, dict) or set(facts) != keys:
        names = sorted(facts) if isinstance(facts, dict) else facts
        raise ValueError(f"This is not {what}: it holds {names!r:.999}.")
    return facts


def _registered_of(value: object, *, known: Mapping[str, type], what: str) -> Any:
    """Return the name and parameters of a loss or step rule that is known by name; TypeError for any other."""
    name = next((name for name, kind in known.items() if kind is type(value)), None)
    if name is None:
        raise TypeError(f"{value!r} is a {what} of your own, and files do not store code")
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{value!r} is not a dataclass, so its parameters are not known")
    return {"name": name, "parameters": plain.encode(asdict(value))}


def _registered_from(facts: object, *, known: Mapping[str, type], what: str) -> Any:
    """Return what `_registered_of` described; ValueError if nothing known has this name and these parameters."""
    facts = _checked(facts, {"name", "parameters"}, f"a {what}")
    if not isinstance(facts["name"], str) or facts["name"] not in known:
        raise ValueError(f"This is not a {what}: {facts['name']!r:.99}.")
    parameters = plain.decode(facts["parameters"])
    try:
        return known[facts["name"]](**parameters)
    except TypeError as error:
        raise ValueError(f"This is not a {what}: {facts['name']!r} with {parameters!r:.99}.") from error


loss_of: Callable[[Loss], Any] = partial(_registered_of, known=LOSSES, what="loss")
loss_from: Callable[[object], Loss] = partial(_registered_from, known=LOSSES, what="loss")
step_of: Callable[[Step], Any] = partial(_registered_of, known=STEPS, what="step")
step_from: Callable[[object], Step] = partial(_registered_from, known=STEPS, what="step")
