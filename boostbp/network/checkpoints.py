"""Checkpoints: files of the state of a training, without pickle.

The file is a `runtime.archive` with the arrays ``h{i}``, ``g{i}`` and ``m{i}`` for i = 1 .. L, and those of up to three
networks (see `boostbp.network.stored`), ``now.NAME``, ``best.NAME`` and ``lowest_loss.NAME``; equal ones are written
once.

Several workers write one such file without h, g and m, with the number of rows of each. Before that, each worker writes
its arrays to a file ``NAME.EPOCH-RANK``, which is removed when the next state is complete. A checkpoint is therefore
complete at any time, and any number of workers can continue from it.
"""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boostbp.network.monitor import State
from boostbp.network.network import Network
from boostbp.network.stored import history_from, network_from, network_of
from boostbp.runtime import archive, interrupts, plain
from boostbp.runtime.archive import Arrays, take
from boostbp.runtime.arrays import Floats
from boostbp.runtime.atomic_write import remove_partial
from boostbp.runtime.group import workers

CHECKPOINT_KIND, ROWS_KIND = "checkpoint", "rows of a checkpoint"
# Version of both kinds of files; earlier versions have another format.
CHECKPOINT_VERSION = 7


def write_state(path: str | os.PathLike[str], state: State) -> None:
    """Write a state atomically; ValueError if the basis has functions of the user's own."""
    arrays: Arrays = {}
    for i, (h, g, m) in enumerate(zip(state.h, state.g, state.m, strict=True), start=1):
        arrays |= {f"h{i}": h, f"g{i}": g, f"m{i}": m}
    group = workers()
    if not group.is_single:
        name, content_of_rows = _file_of_rows(path, state.epoch, group.rank), {"epoch": state.epoch}
        archive.write(name, kind=ROWS_KIND, version=CHECKPOINT_VERSION, content=content_of_rows, arrays=arrays)
        # `gather` waits for all workers, so the file that names their rows comes after these.
        arrays, state = {}, replace(state, rows=tuple(group.gather(len(state.h[0]))))
        if group.rank:
            return
    networks, of_networks = _facts_of_networks(state)
    content: dict[str, Any] = {**networks, "elapsed": state.elapsed, "since": state.since, "rows": list(state.rows)}
    content |= {"random": plain.encode(state.random), "fingerprint": plain.encode(state.fingerprint)}
    content["history"] = plain.encode(state.history, records=True)
    archive.write(path, kind=CHECKPOINT_KIND, version=CHECKPOINT_VERSION, content=content, arrays=arrays | of_networks)
    if state.rows:
        for other in Path(path).parent.glob(f"{glob.escape(Path(path).name)}.*-*"):
            epoch, _, rank = other.name.rpartition(".")[2].partition("-")
            if epoch.isdigit() and rank.isdigit() and int(epoch) != state.epoch:
                other.unlink(missing_ok=True)


def _facts_of_networks(state: State) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON content of each network, or the role of an equal earlier one, and the arrays."""
    facts: dict[str, Any] = {}
    arrays: Arrays = {}
    # Roles of networks by the identities of their layers.
    written: dict[tuple[int, ...], str] = {}
    for role, network in {"now": state.network, "best": state.best, "lowest_loss": state.lowest_loss}.items():
        layers = () if network is None else tuple(map(id, network.layers))
        facts[role] = written.get(layers)
        if network is not None and facts[role] is None:
            facts[role], parts = network_of(network)
            arrays |= {f"{role}.{name}": part for name, part in parts.items()}
            written[layers] = role
    return facts, arrays


def _file_of_rows(path: str | os.PathLike[str], epoch: int, rank: int) -> Path:
    return Path(f"{os.fspath(path)}.{epoch}-{rank}")


# Interrupts are deferred, as an exception of a signal handler would be reported as a fault of the file.
@interrupts.deferred()
def read_state(path: str | os.PathLike[str]) -> State:
    """Read a state that `write_state` wrote; ValueError or OSError if the file is not valid or cannot be read."""
    state = archive.read(path, _state, kind=CHECKPOINT_KIND, version=CHECKPOINT_VERSION, oldest=CHECKPOINT_VERSION)
    return replace(state, origin=f"checkpoint={str(path)!r}")


def find(path: Path, n_rows: int) -> State | None:
    """Return the state in a file, or None without one, and remove partial files of killed processes.

    If several workers wrote the file, a worker with `n_rows` rows reads the part that now belongs to it. Raises the
    errors of `read_state`, and ValueError if not all workers see the file.
    """
    remove_partial(path)
    exists = workers().gather(path.exists())
    if not any(exists):
        return None
    if not all(exists):
        fault = f"does not exist for worker {exists.index(False)}, but does for worker {exists.index(True)}"
        raise ValueError(f"checkpoint={str(path)!r} {fault}: give a path in a folder that all workers share.")
    state = read_state(path)
    return _with_rows(state, path, n_rows) if state.rows else state


def _with_rows(state: State, path: Path, n_rows: int) -> State:
    """Return the state with the rows of this worker, from the files of the workers that wrote them."""
    [(first, _)], total = workers().row_runs(n_rows)
    if total != sum(state.rows):
        fault = f"it has {sum(state.rows)} rows, these are {total}"
        raise ValueError(f"{state.origin} belongs to another fit: {fault}. Pass its rows, or start anew without it.")
    sizes, start = _sizes(state.network), 0
    parts: list[list[list[Floats]]] = []
    for rank, count in enumerate(state.rows):
        rows = slice(max(first - start, 0), max(min(first + n_rows - start, count), 0))
        start += count
        # A worker without rows reads the last file for the shapes alone.
        if rows.start < rows.stop or not (parts or start < total):
            name = _file_of_rows(path, state.epoch, rank)
            if not name.exists():
                raise ValueError(f"{state.origin} is not whole: {str(name)!r} is missing. Start anew without it.")
            read_rows = partial(_rows_of, epoch=state.epoch, count=count, sizes=sizes)
            found = archive.read(name, read_rows, kind=ROWS_KIND, version=CHECKPOINT_VERSION, oldest=CHECKPOINT_VERSION)
            parts.append([[array[rows] for array in of_letter] for of_letter in found])
    h, g, m = (tuple(map(np.concatenate, zip(*of_letter, strict=True))) for of_letter in zip(*parts, strict=True))
    return replace(state, h=h, g=g, m=m, rows=())


def _rows_of(content: object, arrays: Arrays, *, epoch: int, count: int, sizes: list[int]) -> list[tuple[Floats, ...]]:
    if content != {"epoch": epoch}:
        raise ValueError(f"its content is {content!r:.999}")
    return _variables(arrays, count, sizes)


def _state(content: object, arrays: Arrays) -> State:
    keys = {"now", "best", "lowest_loss", "elapsed", "since", "random", "history", "fingerprint", "rows"}
    if not isinstance(content, dict) or set(content) != keys:
        raise ValueError(f"its content is {content!r:.999}")
    networks = _networks(content, arrays)
    sizes = _sizes(networks["now"])
    history = history_from(content["history"], hidden=len(sizes) - 1)
    if history.choice is not None:
        raise ValueError("its history has a choice of candidates")
    hints = {"elapsed": float, "fingerprint": dict[str, str], "since": int, "rows": list[int]}
    elapsed, fingerprint, since, counts = (plain.decode_as(hint, content[name]) for name, hint in hints.items())
    if not math.isfinite(elapsed) or not -1 <= since < len(history) or min(counts, default=0) < 0:
        raise ValueError(f"its numbers are elapsed={elapsed}, since={since} and rows={counts!r:.999}")
    random = plain.decode(content["random"])
    # NumPy raises an error if this is no state of a generator.
    np.random.default_rng().bit_generator.state = random
    n_rows = len(arrays["h1"]) if "h1" in arrays else 0
    h, g, m = _variables(arrays, n_rows, [] if counts else sizes)
    now, best, lowest_loss = networks["now"], networks["best"], networks.get("lowest_loss")
    return State(h, g, m, random, now, best, lowest_loss, history, elapsed, fingerprint, since, rows=tuple(counts))


def _networks(content: Mapping[str, Any], arrays: Arrays) -> dict[str, Network]:
    """Return the networks by their roles; raise ValueError unless all have the same shape."""
    networks: dict[str, Network] = {}
    for role in ("now", "best", "lowest_loss"):
        if (fact := content[role]) is not None or role != "lowest_loss":
            networks[role] = networks[fact] if isinstance(fact, str) else network_from(fact, arrays, f"{role}.")
    now = networks["now"]
    for network in networks.values():
        same_shape = network.skip == now.skip and _sizes(network) == _sizes(now)
        if not same_shape or network.layers[0].forest.n_features != now.layers[0].forest.n_features:
            raise ValueError("its networks are of different shapes")
    return networks


def _sizes(network: Network) -> list[int]:
    return [layer.forest.n_outputs for layer in network.layers]


def _variables(arrays: Arrays, n_rows: int, sizes: Sequence[int]) -> list[tuple[Floats, ...]]:
    """Return the arrays h, g and m of layers with these numbers of units."""
    return [tuple(_finite(arrays, f"{name}{i}", (n_rows, size)) for i, size in enumerate(sizes, 1)) for name in "hgm"]


def _finite(arrays: Arrays, name: str, shape: tuple[int, int]) -> Floats:
    array: Floats = take(arrays, name, float, shape)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return array
