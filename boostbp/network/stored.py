"""Conversion of networks, histories, losses and step rules to plain values and arrays and back, with checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from functools import partial
from typing import Any

from boostbp.losses import LOSSES, Loss
from boostbp.network.history import Epoch, History
from boostbp.network.layers import Layer
from boostbp.network.network import Network
from boostbp.network.steps import STEPS, Step
from boostbp.runtime import plain
from boostbp.runtime.archive import Arrays, take
from boostbp.trees import packed


def network_of(network: Network) -> tuple[Any, Arrays]:
    """Return the JSON content of a network, and its arrays; ValueError if a basis has functions of the user's own."""
    facts: list[Any] = []
    arrays: Arrays = {"baseline": network.baseline}
    for i, layer in enumerate(network.layers):
        fact, parts = packed.pack(layer.forest)
        facts.append(fact)
        arrays |= {f"layer{i}.{name}": part for name, part in parts.items()}
    return {"layers": facts, "skip": network.skip}, arrays


def network_from(facts: object, arrays: Arrays, prefix: str = "") -> Network:
    """Return the network that `network_of` described, and remove its arrays, whose names begin with `prefix`."""
    facts = _checked(facts, {"layers", "skip"}, "a network")
    if type(facts["skip"]) is not bool or not isinstance(facts["layers"], list) or not facts["layers"]:
        raise ValueError(f"This is not a network: skip={facts['skip']!r:.99}, layers={facts['layers']!r:.99}.")
    layers = tuple(Layer(packed.unpack(fact, arrays, f"{prefix}layer{i}.")) for i, fact in enumerate(facts["layers"]))
    sizes = [layer.forest.n_outputs for layer in layers]
    n_skip = layers[0].forest.n_features if facts["skip"] else 0
    if [layer.forest.n_features - n_skip for layer in layers[1:]] != sizes[:-1]:
        raise ValueError(f"This is not a network: layers with {sizes} outputs do not fit together.")
    return Network(layers, take(arrays, f"{prefix}baseline", float, (sizes[-1],)), facts["skip"])


def history_from(facts: object, *, hidden: int | None = None) -> History:
    """Return an encoded history, with epochs of `hidden` layers; by default of as many as the first one has.

    Raises ValueError if a field is missing or has another type, or if epochs describe other layers or evaluation sets.
    """
    # Older histories have no refits, or no plan.
    history: History = plain.decode_as(
        History, {"refits": [], "plan": "", **facts} if isinstance(facts, dict) else facts
    )
    epochs, choice, rounds = history.epochs, history.choice, [look.rounds for look in history.looks]
    names = list(epochs[0].metrics) if epochs else []
    scored = [*(epoch.metrics for epoch in epochs), *(look.metrics for look in history.looks)]
    n_hidden = len(epochs[0].stds) if hidden is None and epochs else hidden
    faults = {
        "its epochs are not consecutive": [epoch.epoch for epoch in epochs] != list(range(len(epochs))),
        "its best epoch is not one of its epochs": not 0 <= history.best_epoch < len(epochs),
        f"an epoch lacks some of {n_hidden} hidden layers": not all(_fits_layers(epoch, n_hidden) for epoch in epochs),
        "its metric has no name": bool(names) and not history.metric,
        f"it is not scored on {names}": any(list(metrics) != names for metrics in scored),
        "its rounds do not ascend": rounds != sorted({*rounds}) or min(rounds, default=0) < 0,
        "its choice has no members, or is scored on other sets": choice is not None
        and (choice.members < 1 or (bool(choice.metrics) and list(choice.metrics) != names)),
        "its choice has a weight outside 0 to 1": choice is not None
        and not all(0.0 <= result.weight <= 1.0 + 1e-9 for result in choice.candidates),  # sums are rounded
    }
    for fault, is_there in faults.items():
        if is_there:
            raise ValueError(f"This is not a history: {fault}.")
    return history


def _fits_layers(epoch: Epoch, hidden: int | None) -> bool:
    """Return whether an epoch has a figure for each hidden layer, except that epoch 0 has none of moves and refits."""
    per_layer = (epoch.gradient_norms, epoch.dead, epoch.drift, epoch.stds, epoch.explained, epoch.explained_held)
    refits = len(epoch.r2) == (0 if epoch.epoch == 0 else (hidden or 0) + 1)
    return refits and all(len(numbers) == hidden for numbers in per_layer)


def _checked(facts: object, keys: set[str], what: str) -> dict[str, Any]:
    """Return a dict that has these keys and no others; ValueError for anything else."""
    if not isinstance(facts, dict) or set(facts) != keys:
        names = sorted(facts) if isinstance(facts, dict) else facts
        raise ValueError(f"This is not {what}: it holds {names!r:.999}.")
    return facts


def _registered_of(value: object, *, known: Mapping[str, type], what: str) -> Any:
    """Return the name and parameters of a loss or step rule that is known by name; TypeError for any other."""
    if (name := next((name for name, kind in known.items() if kind is type(value)), None)) is None:
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
