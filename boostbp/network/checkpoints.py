"""Checkpoints: the state of a training in a file, without pickle; of several workers, with the rows of each beside it.

The file is an `boostbp.archive`, kind "checkpoint", version 3. Its arrays are ``h{i}``, ``g{i}`` and ``m{i}``
for i = 1 .. L, and those of the network as it stands, ``now.NAME``, of the best epoch,
``best.NAME``, and of that with the least training loss, ``lowest_loss.NAME``, each if it is another one than those
before (see `boostbp.network.stored`).

Several workers write one such file without h, g and m, which says how many rows each of them has, and before it a file
of these arrays each, kind "rows of a checkpoint", beside it: ``NAME.EPOCH-RANK``. They go when the next state is there.
So it is whole at any time, and any number of workers can go on from it.
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
from boostbp.atomic_write import remove_partial
from boostbp.group import workers
from boostbp.network.history import History
from boostbp.network.monitor import State
from boostbp.network.network import Network
from boostbp.network.stored import history_from, history_of, network_from, network_of
from boostbp.trees import interrupts

KIND, VERSION = "checkpoint", 4
ROWS, ROWS_VERSION = "rows of a checkpoint", 1
OLDEST = 4  # earlier versions had other arrays of trees


def write(path: str | os.PathLike[str], state: State) -> None:
    """Write a state atomically.

    Raises ValueError if the basis has functions of the user's own, and OSError if the file cannot be written.
    """
    arrays: Arrays = {}
    for i, (h, g, m) in enumerate(zip(state.h, state.g, state.m, strict=True), start=1):
        arrays |= {f"h{i}": h, f"g{i}": g, f"m{i}": m}
    group = workers()
    if not group.alone:
        beside = _beside(path, state.epoch, group.rank)
        archive.write(beside, kind=ROWS, version=ROWS_VERSION, content={"epoch": state.epoch}, arrays=arrays)
        arrays, state = {}, replace(state, rows=tuple(group.gather(len(state.h[0]))))  # all have written theirs
        if group.rank:
            return
    networks: dict[str, Any] = {}
    loss, lowest_loss, quiet_epoch = state.lowest_loss
    written: dict[str, Network] = {}
    for role, network in {"now": state.network, "best": state.best, "lowest_loss": lowest_loss}.items():
        same = (
            None
            if network is None
            else next((name for name, earlier in written.items() if _same(earlier, network)), None)
        )
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
    if state.rows:
        content["rows"] = list(state.rows)
    archive.write(path, kind=KIND, version=VERSION, content=content, arrays=arrays)
    if state.rows:
        for other in Path(path).parent.glob(f"{glob.escape(Path(path).name)}.*-*"):
            epoch, _, rank = other.name.rpartition(".")[2].partition("-")
            if epoch.isdigit() and rank.isdigit() and int(epoch) != state.epoch:
                other.unlink(missing_ok=True)


def _beside(path: str | os.PathLike[str], epoch: int, rank: int) -> Path:
    """Where a worker keeps its rows."""
    return Path(f"{os.fspath(path)}.{epoch}-{rank}")


@interrupts.deferred()  # what a handler raises is no fault of the file
def read(path: str | os.PathLike[str]) -> State:
    """Read a state that `write` wrote.

    Raises ValueError if the file is foreign, truncated, corrupted, inconsistent, or of a later version, and OSError if
    it cannot be read.
    """
    state = archive.load(path, _state, kind=KIND, version=VERSION, oldest=OLDEST)
    return replace(state, origin=f"checkpoint={str(path)!r}")


def find(path: Path | None, n_rows: int) -> State | None:
    """The state in a file, if there is one; what a killed process left beside it goes.

    A worker with `n_rows` rows reads those that several others wrote as far as they are its own. Raises ValueError as
    `read` does, and if not all workers see the file.
    """
    if path is None:
        return None
    remove_partial(path)
    there = workers().gather(path.exists())
    if not any(there):
        return None
    if not all(there):
        raise ValueError(
            f"checkpoint={str(path)!r} is not seen by worker {there.index(False)}, but by worker {there.index(True)}: "
            "give a path in a folder that all workers share."
        )
    state = read(path)
    return _with_rows(state, path, n_rows) if state.rows else state


def _with_rows(state: State, path: Path, n_rows: int) -> State:
    """The state with the rows of this worker, from the files of those that wrote them."""
    [(first, _)], total = workers().runs(n_rows)
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
            name = _beside(path, state.epoch, rank)
            if not name.exists():
                raise ValueError(f"{state.origin} is not whole: {str(name)!r} is missing. Start anew without it.")
            read_rows = partial(_rows_of, epoch=state.epoch, count=count, sizes=sizes)
            found = archive.load(name, read_rows, kind=ROWS, version=ROWS_VERSION, oldest=ROWS_VERSION)
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
    """The networks by their roles, of one shape: the present one, the best, and perhaps that of the least loss."""
    networks: dict[str, Network] = {}
    for role in ("now", "best", "lowest_loss"):
        fact = content[role]
        if fact is None and role == "lowest_loss":
            continue
        networks[role] = networks[fact] if isinstance(fact, str) else network_from(fact, arrays, f"{role}.")
    now = networks["now"]
    for network in networks.values():
        alike = network.skip == now.skip and _sizes(network) == _sizes(now)
        if not alike or network.layers[0].forest.n_features != now.layers[0].forest.n_features:
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
    """What stands beside the networks, as `write` orders it: movements, refits, scores, seconds and epochs."""
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
    """Whether two networks are made of the same objects."""
    return len(first.layers) == len(second.layers) and all(map(operator.is_, first.layers, second.layers))
