"""Checkpoints: the state of a training in a file, without pickle.

The file is an `boostbp.archive`, kind "checkpoint", version 1. Its arrays are ``h{i}``, ``g{i}`` and ``m{i}``
for i = 1 .. L, and those of the network as it stands, ``now.NAME``, of the best epoch,
``best.NAME``, and of that with the least training loss, ``calmest.NAME``, each if it is another one than those before
(see `boostbp.learning.stored`).
"""

from __future__ import annotations

import operator
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import archive, aside, plain
from boostbp.learning.network import Network
from boostbp.learning.state import State
from boostbp.learning.stored import history_from, history_of, network_from, network_of

__all__ = ["find", "read", "write"]

Arrays = dict[str, NDArray[Any]]
KIND, VERSION = "checkpoint", 1


def write(path: str | os.PathLike[str], state: State) -> None:
    """Write a state aside and rename the file.

    Raises
    ------
    ValueError
        If the basis has functions of the user's own.
    OSError
        If the file cannot be written.
    """
    arrays: Arrays = {}
    for i, (h, g, m) in enumerate(zip(state.h, state.g, state.m, strict=True), start=1):
        arrays |= {f"h{i}": h, f"g{i}": g, f"m{i}": m}
    networks: dict[str, Any] = {}
    loss, calmest, quiet_epoch = state.calmest
    written: dict[str, Network] = {}
    for role, network in {"now": state.network, "best": state.best, "calmest": calmest}.items():
        same = None if network is None else next((name for name, one in written.items() if _same(one, network)), None)
        networks[role] = same
        if network is not None and same is None:
            networks[role], parts = network_of(network)
            arrays |= {f"{role}.{name}": part for name, part in parts.items()}
            written[role] = network
    numbers = [state.drift, state.r2, state.best_score, state.elapsed, state.since, loss, quiet_epoch]
    content = {
        "epoch": state.epoch,
        **networks,
        "numbers": plain.encode(numbers),
        "random": plain.encode(state.random),
        "history": history_of(state.history),
        "fingerprint": dict(state.fingerprint),
    }
    archive.write(path, kind=KIND, version=VERSION, content=content, arrays=arrays)


def read(path: str | os.PathLike[str]) -> State:
    """Read a state that `write` wrote.

    Raises
    ------
    ValueError
        If the file is foreign, truncated, corrupted, inconsistent, or of a later version.
    OSError
        If it cannot be read.
    """
    content, arrays = archive.read(path, kind=KIND, version=VERSION)
    try:
        return replace(_state(content, arrays), origin=f"checkpoint={str(path)!r}")
    except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{str(path)!r} is not consistent: {error}") from error


def find(path: Path | None) -> State | None:
    """The state in a file, if there is one; what a killed process left beside it goes."""
    if path is None:
        return None
    aside.clear(path)
    return read(path) if path.exists() else None


def _state(content: Any, arrays: Arrays) -> State:
    network = _network(content["now"], arrays, "now.")
    sizes = [layer.forest.n_outputs for layer in network.layers]
    rows = len(arrays["h1"])
    for i, size in enumerate(sizes, start=1):
        for name in "hgm":
            array = arrays[f"{name}{i}"]
            if array.dtype != np.float64 or array.shape != (rows, size):
                raise ValueError(f"{name}{i} is {array.dtype}, {array.shape}, not float64, {(rows, size)}.")
    drift, r2, best_score, elapsed, since, loss, quiet_epoch = plain.decode(content["numbers"])
    networks = {"now": network}
    for role in ("best", "calmest"):
        fact = content[role]
        if fact is not None:
            networks[role] = networks[fact] if isinstance(fact, str) else _network(fact, arrays, f"{role}.")
    random = plain.decode(content["random"])
    np.random.default_rng().bit_generator.state = random
    numbers = range(1, len(sizes) + 1)
    history = history_from(content["history"])
    if content["epoch"] != len(history) - 1:
        raise ValueError(f"epoch {content['epoch']} and a history of {len(history)} epochs")
    return State(
        content["epoch"],
        tuple(arrays[f"h{i}"] for i in numbers),
        tuple(arrays[f"g{i}"] for i in numbers),
        tuple(arrays[f"m{i}"] for i in numbers),
        drift,
        r2,
        random,
        network,
        networks["best"],
        best_score,
        (loss, networks.get("calmest"), quiet_epoch),
        history,
        elapsed,
        dict(content["fingerprint"]),
        since,
    )


def _same(one: Network, other: Network) -> bool:
    """Whether two networks are made of the same objects."""
    return len(one.layers) == len(other.layers) and all(map(operator.is_, one.layers, other.layers))


def _network(facts: Any, arrays: Arrays, prefix: str) -> Network:
    parts = {name.removeprefix(prefix): part for name, part in arrays.items() if name.startswith(prefix)}
    return network_from(facts, parts)
