"""Resume: a training put down as a state, and taken up from it."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from boostbp.layers import Fit
from boostbp.layers.rounds import structure_of_another
from boostbp.network.monitor import Monitor
from boostbp.network.network import layer_input
from boostbp.network.state import State
from boostbp.network.trainer import Trainer


def capture(trainer: Trainer, monitor: Monitor, fingerprint: Mapping[str, str]) -> State:
    """The state after an epoch that `monitor` has seen."""
    assert monitor.best is not None
    return State(
        trainer.epoch,
        tuple(trainer.h[1:]),
        tuple(trainer.g[1:]),
        tuple(trainer.m[1:]),
        trainer.drift,
        trainer.r2,
        trainer.rng.bit_generator.state,
        trainer.network,
        monitor.best,
        monitor.best_score,
        monitor.lowest_loss,
        replace(monitor.history, epochs=list(monitor.history.epochs)),
        time.perf_counter() - monitor.begun,
        fingerprint,
        monitor.since,
    )


def restore(state: State, trainer: Trainer, monitor: Monitor, fingerprint: Mapping[str, str]) -> None:
    """Put a training that has not begun into a state.

    Raises
    ------
    ValueError
        If the state is of other data or other parameters; the message says which.
    """
    _check(state, trainer.settings.epochs, fingerprint)
    _check_shapes(state, trainer)
    threads = trainer.settings.n_threads
    trainer.epoch, trainer.drift, trainer.r2, trainer.losses = state.epoch, state.drift, state.r2, state.history.loss
    trainer.h = [trainer.table.X, *state.h]
    trainer.g = [np.empty((0, 0)), *state.g]
    trainer.m = [np.empty((0, 0)), *state.m]
    trainer.rng.bit_generator.state = dict(copy.deepcopy(state.random))
    trainer.T = []
    for i, (layer, output) in enumerate(zip(state.network.layers, trainer.h[1:], strict=True)):
        h = layer_input(trainer.h[: i + 1], skip=state.network.skip)
        trace = layer.trace(h, n_jobs=threads)
        trainer.T.append(Fit(layer, output, trace))
    trainer.T[-1] = trainer.T[-1]._replace(output=trainer.T[-1].output - trainer.baseline)
    monitor.best, monitor.best_score, monitor.lowest_loss = state.best, state.best_score, state.lowest_loss
    monitor.since = state.since
    monitor.history.epochs = list(state.history.epochs)
    monitor.history.best_epoch = state.history.best_epoch
    monitor.begun = time.perf_counter() - state.elapsed


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


def _check_shapes(state: State, trainer: Trainer) -> None:
    """Refuse arrays and trees of other sizes than this training's: a file may state another's fingerprint."""
    table, settings, wrong = trainer.table, trainer.settings, ""
    sizes = (*settings.units, trainer.y.shape[1])
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
