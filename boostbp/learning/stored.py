"""Stored: networks, histories and losses as plain values and arrays, and back, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import plain
from boostbp.learning import losses
from boostbp.learning.history import Candidate, Choice, Epoch, History, Stop
from boostbp.learning.layers import Layer
from boostbp.learning.losses import Loss
from boostbp.learning.network import Network
from boostbp.trees import packed

__all__ = ["history_from", "history_of", "loss_from", "loss_of", "network_from", "network_of"]

Arrays = dict[str, NDArray[Any]]

_LOSSES: dict[str, Any] = {
    loss.name: loss
    for loss in (
        losses.AbsoluteError,
        losses.Huber,
        losses.Logistic,
        losses.Poisson,
        losses.Quantile,
        losses.Softmax,
        losses.SquaredError,
    )
}


def network_of(network: Network) -> tuple[Any, Arrays]:
    """What JSON holds of a network, and its arrays: ``baseline`` and, of layer i, ``layer{i}.NAME``.

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


def network_from(facts: Any, arrays: Mapping[str, NDArray[Any]]) -> Network:
    """The network that `network_of` described.

    Raises
    ------
    ValueError
        If it does not fit together.
    """
    layers = []
    for i, fact in enumerate(facts["layers"]):
        prefix = f"layer{i}."
        parts = {name.removeprefix(prefix): part for name, part in arrays.items() if name.startswith(prefix)}
        layers.append(Layer(packed.unpack(fact, parts)))
    baseline, skip = arrays["baseline"], facts["skip"]
    if type(skip) is not bool:
        raise ValueError(f"This is not a network: skip={skip!r}.")
    sizes = [layer.forest.n_outputs for layer in layers]
    beside = layers[0].forest.n_features if skip and layers else 0
    if not layers or [layer.forest.n_features - beside for layer in layers[1:]] != sizes[:-1]:
        raise ValueError(f"This is not a network: layers with {sizes} outputs do not stand on one another.")
    if baseline.dtype != np.float64 or baseline.shape != (sizes[-1],):
        raise ValueError(f"This is not a network: baseline is {baseline.dtype}, {baseline.shape}.")
    return Network(tuple(layers), baseline, skip)


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
    }


def _choice_of(choice: Choice) -> Any:
    candidates = [[one.name, plain.encode(one.loss), plain.encode(one.weight), one.stack] for one in choice.candidates]
    numbers = {"gain": plain.encode(choice.gain), "error": plain.encode(choice.error)}
    numbers["metrics"] = plain.encode(choice.metrics)
    return {"candidates": candidates, **numbers, "hurried": choice.hurried}


def _choice_from(fact: Any) -> Choice:
    candidates = tuple(
        Candidate(
            str(name), float(plain.decode(loss)), float(plain.decode(weight)), None if stack is None else str(stack)
        )
        for name, loss, weight, stack in fact["candidates"]
    )
    gain, error = (float(plain.decode(fact[name])) for name in ("gain", "error"))
    metrics = dict(plain.decode(fact["metrics"])) if "metrics" in fact else {}
    return Choice(candidates, gain, error, bool(fact["hurried"]), metrics)


def history_from(facts: Any) -> History:
    """The history that `history_of` described.

    Raises
    ------
    ValueError
        If an epoch lacks a field, or holds one of another type.
    """
    epochs = [_epoch(fact) for fact in facts["epochs"]]
    if [epoch.epoch for epoch in epochs] != list(range(len(epochs))) or facts["best_epoch"] not in range(len(epochs)):
        raise ValueError("This is not a history: its epochs do not follow one another.")
    if facts["stop"] not in Stop.__members__ or not isinstance(facts["metric"], str):
        raise ValueError(f"This is not a history: stop={facts['stop']!r}, metric={facts['metric']!r}.")
    choice = None if facts["choice"] is None else _choice_from(facts["choice"])
    refitted = bool(facts.get("refitted", False))
    return History(epochs, facts["best_epoch"], Stop[facts["stop"]], facts["metric"], choice, refitted)


def _epoch(fact: Any) -> Epoch:
    values = {name: plain.decode(value) for name, value in fact.items()}
    if set(values) != {field.name for field in fields(Epoch)}:
        raise ValueError(f"This is not an epoch: it holds {sorted(values)}.")
    for field in fields(Epoch):
        if not _fits(values[field.name], str(field.type)):
            raise ValueError(f"This is not an epoch: {field.name}={values[field.name]!r}.")
    return Epoch(**values)


def _fits(value: Any, annotation: str) -> bool:
    """Whether a value is an int, a float, a tuple or a dict as a field of `Epoch` says."""
    kind = {"int": int, "float": float, "str": str, "bool": bool}.get(annotation)
    if kind is not None:
        return type(value) is kind or (kind is float and type(value) is int)
    parts = list(value.values()) if annotation.startswith("dict") and isinstance(value, dict) else value
    if not isinstance(parts, list | tuple) or isinstance(parts, tuple) != annotation.startswith("tuple"):
        return False
    return all(type(part) in (int, float, bool, str) for part in parts)


def loss_of(loss: Loss) -> Any:
    """Name and parameters of one of the package's losses.

    Raises
    ------
    TypeError
        If it is an object of the user's own.
    """
    if type(loss) not in _LOSSES.values():
        raise TypeError(f"{loss!r} is a loss of your own: its functions are code, which a file of data does not hold")
    return {"name": loss.name, "parameters": plain.encode(asdict(loss))}  # type: ignore[call-overload]


def loss_from(facts: Any) -> Loss:
    """The loss that `loss_of` described.

    Raises
    ------
    ValueError
        If there is none with such a name and parameters.
    """
    if facts["name"] not in _LOSSES:
        raise ValueError(f"This is not a loss: {facts['name']!r}.")
    parameters = plain.decode(facts["parameters"])
    try:
        loss: Loss = _LOSSES[facts["name"]](**parameters)
    except TypeError as error:
        raise ValueError(f"This is not a loss: {facts['name']!r} with {parameters!r}.") from error
    return loss
