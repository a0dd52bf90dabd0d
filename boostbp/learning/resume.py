"""Resume: a training put down as a state, and taken up from it."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from boostbp.learning.layers import Fit, Trace
from boostbp.learning.layers.rounds import structure_of_another
from boostbp.learning.network import seen
from boostbp.learning.run import Run
from boostbp.learning.state import State
from boostbp.learning.watch import Watch

__all__ = ["capture", "restore"]


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
        watch.calmest,
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
    _check_shapes(state, run)
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
    watch.best, watch.best_score, watch.calmest = state.best, state.best_score, state.calmest
    watch.since = state.since
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


def _check_shapes(state: State, run: Run) -> None:
    """Refuse arrays and trees of other sizes than this training's: a file may state another's fingerprint."""
    table, settings, wrong = run.table, run.settings, ""
    sizes = (*settings.units, run.y.shape[1])
    shapes = [h.shape for h in state.h]
    if shapes != [(len(table.X), size) for size in sizes]:
        wrong = f"hidden variables of the shapes {shapes}"
    elif state.network.skip != settings.skip or state.network.layers[0].forest.n_features != table.X.shape[1]:
        wrong = f"a network of {state.network.layers[0].forest.n_features} features"
    else:
        for layer, of_layer in zip(state.network.layers, settings.layers, strict=True):
            wrong = wrong or structure_of_another(layer.forest, of_layer)
    if wrong:
        raise ValueError(f"{state.origin} is not consistent: it holds {wrong}. Start anew without it.")


def _is_digest(text: str) -> bool:
    return text.startswith("sha256:")
