"""State: all that training needs to go on as if it had never stopped."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boostbp.learning.history import History
from boostbp.learning.layer import Fit, Trace
from boostbp.learning.network import Network, seen

if TYPE_CHECKING:
    from boostbp.learning.backprop import Run
    from boostbp.learning.watch import Watch

__all__ = ["State", "capture", "restore"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class State:
    """Training after an epoch; its arrays are those of training, not copies.

    Attributes
    ----------
    epoch : int
    h, g : tuple of (rows, units) float64
        Hidden variables h_1 .. h_L and the gradients of the loss in them.
    m : tuple of (rows, units) float64
        Momentum of each.
    drift, r2 : tuple of float
    random : mapping
        State of the random generator.
    network : Network
        As it stands.
    best : Network
        Of the best epoch.
    best_score : float
    history : History
    elapsed : float
        Seconds of training so far.
    fingerprint : mapping of str to str
        What was trained on, and how; see `fingerprint`.
    since : int
        Epoch at which more epochs were asked for; patience counts from there.
    origin : str
        Where the state comes from, as the user wrote it, for errors.
    """

    epoch: int
    h: tuple[Floats, ...]
    g: tuple[Floats, ...]
    m: tuple[Floats, ...]
    drift: tuple[float, ...]
    r2: tuple[float, ...]
    random: Mapping[str, Any]
    network: Network
    best: Network
    best_score: float
    history: History
    elapsed: float
    fingerprint: Mapping[str, str]
    since: int = -1
    origin: str = ""


def capture(run: Run, watch: Watch, fingerprint: Mapping[str, str]) -> State:
    """The state after an epoch that `watch` has seen."""
    assert watch.best is not None
    return State(
        run.epoch,
        tuple(run.h[1:]),
        tuple(run.g[1:]),
        tuple(run.m[1:]),
        run.drift,
        run.r2,
        run.rng.bit_generator.state,
        run.network,
        watch.best,
        watch.best_score,
        replace(watch.history, epochs=list(watch.history.epochs)),
        time.perf_counter() - watch.begun,
        fingerprint,
        watch.since,
    )


def restore(state: State, run: Run, watch: Watch, fingerprint: Mapping[str, str]) -> None:
    """Put a training that has not begun into a state.

    Raises
    ------
    ValueError
        If the state is of other data or other parameters; the message says which.
    """
    _check(state, run.settings.epochs, fingerprint)
    threads = run.settings.n_threads
    run.epoch, run.drift, run.r2, run.losses = state.epoch, state.drift, state.r2, state.history.loss
    run.h = [run.table.X, *state.h]
    run.g = [np.empty((0, 0)), *state.g]
    run.m = [np.empty((0, 0)), *state.m]
    run.rng.bit_generator.state = dict(copy.deepcopy(state.random))
    run.T = []
    for i, (layer, output) in enumerate(zip(state.network.layers, run.h[1:], strict=True)):
        h = seen(run.h[: i + 1], skip=state.network.skip)
        trace = Trace(layer.forest, h, layer.forest.route(h, threads), threads)
        run.T.append(Fit(layer, output, trace))
    run.T[-1] = run.T[-1]._replace(output=run.T[-1].output - run.baseline)
    watch.best, watch.best_score, watch.since = state.best, state.best_score, state.since
    watch.history.epochs = list(state.history.epochs)
    watch.history.best_epoch = state.history.best_epoch
    watch.begun = time.perf_counter() - state.elapsed


def _check(state: State, epochs: int, fingerprint: Mapping[str, str]) -> None:
    other = [
        f"{name} differs" if _is_digest(now) else f"{name} was {state.fingerprint.get(name)}, is {now}"
        for name, now in fingerprint.items()
        if state.fingerprint.get(name) != now
    ]
    if other:
        raise ValueError(
            f"{state.origin} belongs to another fit: {'; '.join(other)}. "
            "Pass what it was fitted to, or start anew without it."
        )
    if state.epoch > epochs:
        raise ValueError(
            f"epochs={epochs} is less than the {state.epoch} epochs of {state.origin}: give a larger number."
        )


def _is_digest(text: str) -> bool:
    return text.startswith("sha256:")
