"""Checkpoints: files of the state of a training, without pickle.

The file is a `boostbp.archive`, kind "checkpoint", version `VERSION`. Its arrays are ``h{i}``, ``g{i}`` and ``m{i}``
for i = 1 .. L, and those of up to three networks (see `boostbp.network.stored`): ``now.NAME`` of the current network,
``best.NAME`` of the best epoch, and ``lowest_loss.NAME`` of the epoch with the lowest training loss. A network that
equals an earlier one in this list is not written again.

Several workers write one such file without h, g and m; it states the number of rows of each worker. Before that, each
worker writes its arrays to a separate file, ``NAME.EPOCH-RANK`` of kind "rows of a checkpoint". These files are removed
when the next state is complete. A checkpoint is therefore complete at any time, and any number of workers can continue
from it.
"""

from __future__ import annotations

import glob
import math
import operator
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boostbp import archive, plain
from boostbp.archive import Arrays, take
from boostbp.network.history import History
from boostbp.network.monitor import State
from boostbp.network.network import Network
from boostbp.network.stored import history_from, history_of, network_from, network_of
from boostbp.runtime import interrupts
from boostbp.runtime.atomic_write import remove_partial
from boostbp.runtime.group import workers

KIND, ROWS_KIND = "checkpoint", "rows of a checkpoint"
VERSION = 5  # of both kinds; earlier versions have another format


def write(path: str | os.PathLike[str], state: State) -> None:
    """Write a state atomically.

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
    group = workers()
    if not group.is_single:
        name, content_of_rows = _file_of_rows(path, state.epoch, group.rank), {"epoch": state.epoch}
        archive.write(name, kind=ROWS_KIND, version=VERSION, content=content_of_rows, arrays=arrays)
        arrays, state = {}, replace(state, rows=tuple(group.gather(len(state.h[0]))))  # after all workers have written
        if group.rank:
            return
    networks, of_networks = _facts_of_networks(state)
    loss, _, quiet_epoch = state.lowest_loss
    numbers = [state.drift, state.r2, state.best_score, state.elapsed, state.since, loss, quiet_epoch]
    content: dict[str, Any] = {
        "epoch": state.epoch,
        **networks,
        "numbers": plain.encode(numbers),
        "random": plain.encode(state.random),
        "history": history_of(state.history),
        "fingerprint": dict(state.fingerprint),
    }
    if state.rows:
        content["rows"] = list(state.rows)
    archive.write(path, kind=KIND, version=VERSION, content=content, arrays=arrays | of_networks)
    if state.rows:
        for other in Path(path).parent.glob(f"{glob.escape(Path(path).name)}.*-*"):
            epoch, _, rank = other.name.rpartition(".")[2].partition("-")
            if epoch.isdigit() and rank.isdigit() and int(epoch) != state.epoch:
                other.unlink(missing_ok=True)


def _facts_of_networks(state: State) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON content of each network, or the role of an equal earlier one, and the arrays."""
    facts: dict[str, Any] = {}
    arrays: Arrays = {}
    written: dict[str, Network] = {}
    for role, network in {"now": state.network, "best": state.best, "lowest_loss": state.lowest_loss[1]}.items():
        facts[role] = None
        if network is not None:
            facts[role] = next((name for name, earlier in written.items() if _same(earlier, network)), None)
        if network is not None and facts[role] is None:
            facts[role], parts = network_of(network)
            arrays |= {f"{role}.{name}": part for name, part in parts.items()}
            written[role] = network
    return facts, arrays


def _file_of_rows(path: str | os.PathLike[str], epoch: int, rank: int) -> Path:
    return Path(f"{os.fspath(path)}.{epoch}-{rank}")


@interrupts.deferred()  # otherwise an exception of a signal handler would look like a fault of the file
def read(path: str | os.PathLike[str]) -> State:
    """Read a state that `write` wrote.

    Raises
    ------
    ValueError
        If the file has another format or version, or is truncated, corrupted or inconsistent.
    OSError
        If the file cannot be read.
    """
    state = archive.load(path, _state, kind=KIND, version=VERSION, oldest=VERSION)
    return replace(state, origin=f"checkpoint={str(path)!r}")


def find(path: Path | None, n_rows: int) -> State | None:
    """Return the state in a file, or None without one, and remove partial files of killed processes.

    If several workers wrote the file, a worker with `n_rows` rows reads the part that now belongs to it. Raises the
    errors of `read`, and ValueError if not all workers see the file.
    """
    if path is None:
        return None
    remove_partial(path)
    exists = workers().gather(path.exists())
    if not any(exists):
        return None
    if not all(exists):
        raise ValueError(
            f"checkpoint={str(path)!r} is not seen by worker {exists.index(False)}, but by worker "
            f"{exists.index(True)}: give a path in a folder that all workers share."
        )
    state = read(path)
    return _with_rows(state, path, n_rows) if state.rows else state


def _with_rows(state: State, path: Path, n_rows: int) -> State:
    """Return the state with the rows of this worker, from the files of the workers that wrote them."""
    [(first, _)], total = workers().row_runs(n_rows)
    if total != sum(state.rows):
        raise ValueError(
            f"{state.origin} belongs to another fit: it has {sum(state.rows)} rows, these are {total}. Pass what it "
            "was fitted to, or start anew without it."
        )
    sizes, start = _sizes(state.network), 0
    parts: list[list[list[Any]]] = []
    for rank, count in enumerate(state.rows):
        rows = slice(max(first - start, 0), max(min(first + n_rows - start, count), 0))
        start += count
        if rows.start < rows.stop or not (parts or start < total):  # of none, the last: all are of one shape
            name = _file_of_rows(path, state.epoch, rank)
            if not name.exists():
                raise ValueError(f"{state.origin} is not whole: {str(name)!r} is missing. Start anew without it.")
            read_rows = partial(_rows_of, epoch=state.epoch, count=count, sizes=sizes)
            found = archive.load(name, read_rows, kind=ROWS_KIND, version=VERSION, oldest=VERSION)
            parts.append([[array[rows] for array in of_letter] for of_letter in found])
    h, g, m = (tuple(map(np.concatenate, zip(*(part[k] for part in parts), strict=True))) for k in range(3))
    return replace(state, h=h, g=g, m=m, rows=())


def _rows_of(content: Any, arrays: Arrays, *, epoch: int, count: int, sizes: list[int]) -> list[list[Any]]:
    if content != {"epoch": epoch}:
        raise ValueError(f"its content is {content!r:.999}")
    return [[_finite(arrays, f"{name}{i}", count, size) for i, size in enumerate(sizes, start=1)] for name in "hgm"]


def _state(content: Any, arrays: Arrays) -> State:
    keys = {"epoch", "now", "best", "lowest_loss", "numbers", "random", "history", "fingerprint"}
    if not isinstance(content, dict) or set(content) - {"rows"} != keys:
        raise ValueError(f"its content is {content!r:.999}")
    networks = _networks(content, arrays)
    sizes = _sizes(networks["now"])
    hidden = len(sizes) - 1
    history = history_from(content["history"], hidden=hidden)
    if content["epoch"] != len(history) - 1 or history.choice is not None:
        raise ValueError(f"epoch {content['epoch']!r:.99} and a history of {len(history)} epochs")
    counts = content.get("rows", [])
    if not isinstance(counts, list) or not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError(f"its rows are {counts!r:.999}")
    rows, stored = len(arrays["h1"]) if "h1" in arrays else 0, [] if counts else sizes
    h, g, m = ([_finite(arrays, f"{name}{i}", rows, size) for i, size in enumerate(stored, start=1)] for name in "hgm")
    random = plain.decode(content["random"])
    np.random.default_rng().bit_generator.state = random
    fingerprint = content["fingerprint"]
    if not isinstance(fingerprint, dict) or not all(isinstance(value, str) for value in fingerprint.values()):
        raise ValueError(f"its fingerprint is {fingerprint!r:.999}")
    drift, r2, best_score, elapsed, since, loss, quiet_epoch = _numbers(plain.decode(content["numbers"]), history)
    return State(
        content["epoch"],
        tuple(h),
        tuple(g),
        tuple(m),
        drift,
        r2,
        random,
        networks["now"],
        networks["best"],
        best_score,
        (loss, networks.get("lowest_loss"), quiet_epoch),
        history,
        elapsed,
        dict(fingerprint),
        since,
        rows=tuple(counts),
    )


def _networks(content: Mapping[str, Any], arrays: Arrays) -> dict[str, Network]:
    """Return the networks by their roles; raise ValueError unless all have the same shape."""
    networks: dict[str, Network] = {}
    for role in ("now", "best", "lowest_loss"):
        fact = content[role]
        if fact is None and role == "lowest_loss":
            continue
        networks[role] = networks[fact] if isinstance(fact, str) else network_from(fact, arrays, f"{role}.")
    now = networks["now"]
    for network in networks.values():
        same_shape = network.skip == now.skip and _sizes(network) == _sizes(now)
        if not same_shape or network.layers[0].forest.n_features != now.layers[0].forest.n_features:
            raise ValueError("its networks are of different shapes")
    return networks


def _sizes(network: Network) -> list[int]:
    return [layer.forest.n_outputs for layer in network.layers]


def _finite(arrays: Arrays, name: str, rows: int, size: int) -> Any:
    array = take(arrays, name, float, (rows, size))
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return array


def _numbers(numbers: Any, history: History) -> tuple[Any, ...]:
    """Return the checked numbers of a state in the order of `write`."""
    if not isinstance(numbers, list) or len(numbers) != 7:
        raise ValueError(f"its numbers are {numbers!r:.999}")
    drift, r2, best_score, elapsed, since, loss, quiet_epoch = numbers
    last, epochs = history[-1], range(-1, len(history))
    good = (drift, r2) == (last.drift, last.r2) or repr((drift, r2)) == repr((last.drift, last.r2))  # NaN is not NaN
    good &= all(type(number) is float for number in (best_score, elapsed, loss)) and math.isfinite(elapsed)
    good &= type(since) is int and type(quiet_epoch) is int and since in epochs and quiet_epoch in epochs
    if not good:
        raise ValueError(f"its numbers are {numbers!r:.999}")
    return tuple(numbers)


def _same(first: Network, second: Network) -> bool:
    """Return whether two networks have the same layers, as objects."""
    return len(first.layers) == len(second.layers) and all(map(operator.is_, first.layers, second.layers))
