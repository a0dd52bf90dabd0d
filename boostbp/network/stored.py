"""Stored: networks, histories, losses and step rules as plain values and arrays, and back, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from boostbp import plain
from boostbp.archive import Arrays, take
from boostbp.layers import Layer
from boostbp.losses import LOSSES, Loss
from boostbp.network.choice import CandidateResult, Choice
from boostbp.network.history import Epoch, History, Look, Stop
from boostbp.network.network import Network
from boostbp.network.steps import STEPS, Step
from boostbp.trees import packed


def network_of(network: Network) -> tuple[Any, Arrays]:
    """What JSON holds of a network, and its arrays: ``baseline`` and, of layer i, ``layer{i}.NAME``.

    Raises ValueError if a basis has functions of the user's own.
    """
    facts: list[Any] = []
    arrays: Arrays = {"baseline": network.baseline}
    for i, layer in enumerate(network.layers):
        fact, parts = packed.pack(layer.forest)
        facts.append(fact)
        arrays |= {f"layer{i}.{name}": part for name, part in parts.items()}
    return {"layers": facts, "skip": network.skip}, arrays


def network_from(facts: Any, arrays: Arrays, prefix: str = "") -> Network:
    """The network that `network_of` described; ValueError if it does not fit together.

    Its arrays, whose names begin with `prefix`, are taken out of `arrays`.
    """
    _require_keys(facts, {"layers", "skip"}, "a network")
    if type(facts["skip"]) is not bool or not isinstance(facts["layers"], list) or not facts["layers"]:
        raise ValueError(f"This is not a network: skip={facts['skip']!r:.99}, layers={facts['layers']!r:.99}.")
    layers = tuple(Layer(packed.unpack(fact, arrays, f"{prefix}layer{i}.")) for i, fact in enumerate(facts["layers"]))
    sizes = [layer.forest.n_outputs for layer in layers]
    beside = layers[0].forest.n_features if facts["skip"] else 0
    if [layer.forest.n_features - beside for layer in layers[1:]] != sizes[:-1]:
        raise ValueError(f"This is not a network: layers with {sizes} outputs do not stand on one another.")
    return Network(layers, take(arrays, f"{prefix}baseline", float, (sizes[-1],)), facts["skip"])


def history_of(history: History) -> Any:
    """What JSON holds of a history: all of it."""
    return {
        "epochs": [
            {field.name: plain.encode(getattr(epoch, field.name)) for field in fields(epoch)}
            for epoch in history.epochs
        ],
        "best_epoch": history.best_epoch,
        "stop": history.stop.name,
        "metric": history.metric,
        "choice": None if history.choice is None else _choice_of(history.choice),
        "refitted": history.refitted,
        "looks": [{"rounds": look.rounds, "metrics": plain.encode(look.metrics)} for look in history.looks],
    }


def _choice_of(choice: Choice) -> Any:
    results = choice.candidates
    candidates = [
        [result.name, plain.encode(result.loss), plain.encode(result.weight), result.network, result.directions]
        for result in results
    ]
    encoded = {name: plain.encode(getattr(choice, name)) for name in ("gain", "error", "metrics", "seconds", "failed")}
    return {"candidates": candidates, **encoded, "cut_by_time": choice.cut_by_time, "members": choice.members}


def _choice_from(fact: Any, names: Sequence[str]) -> Choice:
    """The choice that `_choice_of` described, of a history that scores evaluation sets of these names."""
    values = _fields_of(fact, Choice, "a choice")
    results, metrics = values.pop("candidates"), values["metrics"]
    if not all(map(_is_candidate, results)):
        raise ValueError(f"This is not a choice: it has the candidates {results!r:.999}.")
    if values["members"] < 1 or (metrics and list(metrics) != list(names)):
        raise ValueError(f"This is not a choice: it holds {values!r:.999}.")
    candidates = (
        CandidateResult(name, float(loss), float(weight), network, directions)
        for name, loss, weight, network, directions in results
    )
    return Choice(tuple(candidates), **values)


def _is_candidate(fact: Any) -> bool:
    if not isinstance(fact, list) or len(fact) != 5:
        return False
    name, loss, weight, network, directions = fact
    named = isinstance(name, str) and isinstance(network, str | None) and type(directions) is bool
    return named and _numbers(loss, weight) and 0.0 <= weight <= 1.0 + 1e-9


def history_from(facts: Any, *, hidden: int | None = None) -> History:
    """The history that `history_of` described, of so many hidden layers if `hidden` is given.

    Raises ValueError if an epoch lacks a field, holds one of another type, or tells of other layers or evaluation sets.
    """
    if isinstance(facts, dict):
        facts = {"looks": [], **facts}  # earlier versions had none
    _require_keys(facts, {"epochs", "best_epoch", "stop", "metric", "choice", "refitted", "looks"}, "a history")
    epochs = [Epoch(**_fields_of(fact, Epoch, "an epoch")) for fact in facts["epochs"]]
    best = facts["best_epoch"]
    consecutive = [epoch.epoch for epoch in epochs] == list(range(len(epochs)))
    if not consecutive or type(best) is not int or not 0 <= best < len(epochs):
        raise ValueError("This is not a history: its epochs do not follow one another, or the best is none of them.")
    n_hidden = len(epochs[0].stds) if hidden is None else hidden
    names = list(epochs[0].metrics)
    for epoch in epochs:
        if not _fits_layers(epoch, n_hidden) or list(epoch.metrics) != names:
            raise ValueError(f"This is not a history of {n_hidden} hidden layers scored on {names}: it holds {epoch}.")
    words = isinstance(facts["stop"], str) and facts["stop"] in Stop.__members__ and isinstance(facts["metric"], str)
    if not words or type(facts["refitted"]) is not bool or (names and not facts["metric"]):
        raise ValueError(f"This is not a history: stop={facts['stop']!r:.99}, metric={facts['metric']!r:.99}.")
    choice = None if facts["choice"] is None else _choice_from(facts["choice"], names)
    looks = [Look(**_fields_of(fact, Look, "a look")) for fact in facts["looks"]]
    rounds = [look.rounds for look in looks]
    if rounds != sorted({*rounds}) or (rounds and rounds[0] < 0) or any(list(look.metrics) != names for look in looks):
        raise ValueError(f"This is not a history scored on {names}: it has the looks {looks!r:.999}.")
    return History(epochs, best, Stop[facts["stop"]], facts["metric"], choice, facts["refitted"], looks)


def _fits_layers(epoch: Epoch, hidden: int) -> bool:
    """Whether an epoch has a number for each hidden layer; the start of a training moves and refits nothing."""
    per_layer = (epoch.gradient_norms, epoch.dead, epoch.drift, epoch.stds, epoch.explained, epoch.explained_held)
    refits = len(epoch.r2) == (0 if epoch.epoch == 0 else hidden + 1)
    return refits and all(len(numbers) == hidden for numbers in per_layer)


def _fields_of(fact: Any, kind: type[Epoch | Look | Choice], what: str) -> dict[str, Any]:
    """Return the fields of an epoch, a look or a choice; ValueError if one is missing or of another type."""
    _require_keys(fact, {field.name for field in fields(kind)}, what)
    values = {name: plain.decode(value) for name, value in fact.items()}
    for field in fields(kind):
        if not _fits(values[field.name], str(field.type)):
            raise ValueError(f"This is not {what}: {field.name}={values[field.name]!r:.99}.")
    return values


def _fits(value: Any, annotation: str) -> bool:
    """Whether a value has the type of a field: a number, a truth value, numbers, texts, scores, or candidates."""
    if annotation in ("int", "bool"):
        return type(value).__name__ == annotation
    if annotation == "float":
        return _numbers(value)
    if annotation.startswith("dict"):
        return isinstance(value, dict) and all(isinstance(name, str) for name in value) and _numbers(*value.values())
    if "Candidate" in annotation:
        return isinstance(value, list)
    if not isinstance(value, tuple):
        return False
    return all(isinstance(text, str) for text in value) if "str" in annotation else _numbers(*value)


def _numbers(*values: Any) -> bool:
    """Whether all are numbers that a float can be: infinite ones and NaN are some."""
    return all(type(value) is float or (type(value) is int and math.isfinite(float(value))) for value in values)


def _require_keys(facts: Any, keys: set[str], what: str) -> None:
    if not isinstance(facts, dict) or set(facts) != keys:
        names = sorted(facts) if isinstance(facts, dict) else facts
        raise ValueError(f"This is not {what}: it holds {names!r:.999}.")


def loss_of(loss: Loss) -> Any:
    """Name and parameters of a loss that is known by name; TypeError of any other."""
    return _known(loss, LOSSES, "loss")


def loss_from(facts: Any) -> Loss:
    """The loss that `loss_of` described; ValueError if there is none with such a name and parameters."""
    loss: Loss = _made(facts, LOSSES, "loss")
    return loss


def step_of(step: Step) -> Any:
    """Name and parameters of a step rule that is known by name; TypeError of any other."""
    return _known(step, STEPS, "step")


def step_from(facts: Any) -> Step:
    """The step rule that `step_of` described; ValueError if there is none with such a name and parameters."""
    step: Step = _made(facts, STEPS, "step")
    return step


def _known(value: Any, known: Mapping[str, type[Any]], what: str) -> Any:
    name = next((name for name, kind in known.items() if kind is type(value)), None)
    if name is None:
        raise TypeError(
            f"{value!r} is a {what} of your own: its functions are code, which a file of data does not hold"
        )
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{value!r} is no dataclass, whose fields would be its parameters")
    return {"name": name, "parameters": plain.encode(asdict(value))}


def _made(facts: Any, known: Mapping[str, type[Any]], what: str) -> Any:
    _require_keys(facts, {"name", "parameters"}, f"a {what}")
    if not isinstance(facts["name"], str) or facts["name"] not in known:
        raise ValueError(f"This is not a {what}: {facts['name']!r:.99}.")
    parameters = plain.decode(facts["parameters"])
    try:
        return known[facts["name"]](**parameters)
    except TypeError as error:
        raise ValueError(f"This is not a {what}: {facts['name']!r} with {parameters!r:.99}.") from error
