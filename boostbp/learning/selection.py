"""Selection: what depth adds to a single layer on held-out rows, and the model that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.learning import backprop
from boostbp.learning.bound import LayerSettings
from boostbp.learning.heads import boost
from boostbp.learning.history import Candidate, Choice, History, Stop
from boostbp.learning.layer import Layer
from boostbp.learning.losses import Loss
from boostbp.learning.merging import weighted_sum
from boostbp.learning.network import Network, seen
from boostbp.learning.settings import Settings
from boostbp.learning.watch import EvalSet
from boostbp.trees.basis import Constant
from boostbp.trees.ridge import Ridge

__all__ = ["train"]

Floats = NDArray[np.float64]
RATE = 0.04  # shrinkage of heads: slower than in an epoch, as they are grown once
PICKS = 20  # steps of the search for weights, which are multiples of one over the picks made
PLAIN = {"max_depth": 8, "max_leaves": 48}  # of trees with constant leaves, which need more of them than regressions do
PLAIN_LAMBDA = 1.0


@dataclass(frozen=True, slots=True)
class _Option:
    name: str
    deep: bool
    network: Network
    held: Floats


def train(
    table: Table,
    y: Floats,
    *,
    backend: Backend,
    loss: Loss,
    settings: Settings,
    weight: Floats,
    eval_sets: Sequence[EvalSet] = (),
    to_target: Callable[[Floats], Floats],
    **rest: Any,
) -> tuple[Network, History]:
    """Train a network by back-propagation, then weigh it against single layers of the same library.

    With ``settings.deep == "auto"`` and an evaluation set, the model is the sum of single layers, the network, and
    the network with its output layer boosted anew to its end, with the weights that the first evaluation set likes
    best (forward selection with replacement: Caruana and others 2004). Where no sum with the network in it is better
    than the best without by more than `settings.least_gain` standard errors, the network is left out.

    Parameters are those of `backprop.train`, and:

    Parameters
    ----------
    to_target : callable
        Targets of an evaluation set as the loss takes them.
    """
    network, history = backprop.train(
        table, y, backend=backend, loss=loss, settings=settings, weight=weight, eval_sets=eval_sets, **rest
    )
    undecided = settings.deep == "auto" and settings.units and eval_sets and history.stop is not Stop.INTERRUPTED
    if not undecided:
        return network, history
    held = eval_sets[0]
    target = to_target(held.y)

    def row_losses(raw: Floats) -> Floats:
        return loss.value(raw, target)

    def score(raw: Floats) -> float:
        return float(held.weight @ row_losses(raw) / held.weight.sum())

    def head(X: Floats, held_X: Floats, categorical: tuple[int, ...], layer: LayerSettings) -> tuple[Layer, Floats]:
        grown = boost(
            Table(X, categorical), y, weight, backend=backend, settings=layer, loss=loss, baseline=network.baseline,
            held_X=held_X, score=score, n_threads=settings.n_threads, seed=settings.seed,
        )  # fmt: skip
        return grown.layer, grown.held

    options = list(_options(table, network, held, settings, head))
    picks, gain, error = _picks(options, row_losses, held.weight, settings.least_gain)
    weights = np.bincount(picks, minlength=len(options)) / len(picks)
    history.choice = Choice(
        tuple(Candidate(o.name, score(o.held), float(w)) for o, w in zip(options, weights, strict=True)), gain, error
    )
    chosen = [(o.network, float(w)) for o, w in zip(options, weights, strict=True) if w > 0 or o.network is network]
    alone = len(chosen) == 1
    return (network if alone else weighted_sum(*zip(*chosen, strict=True))), history


def _options(
    table: Table,
    network: Network,
    held: EvalSet,
    settings: Settings,
    head: Callable[[Floats, Floats, tuple[int, ...], LayerSettings], tuple[Layer, Floats]],
) -> Iterator[_Option]:
    """Single layers, the network, and the network's hidden layers under heads of their own."""
    n_threads = settings.n_threads
    smooth = replace(settings.layers[-1], learning_rate=RATE)
    refitted = smooth.leaves == "refit"
    plain = replace(
        smooth,
        basis=Constant(),
        base=None,
        ridge=Ridge(PLAIN_LAMBDA, True, True),
        growth=replace(smooth.growth, **PLAIN),
    )

    def single(name: str, layer: LayerSettings) -> _Option:
        fitted, raw = head(table.X, held.X, table.categorical, layer)
        return _Option(name, False, Network((fitted,), network.baseline), raw)

    def topped(name: str, skip: bool, layer: LayerSettings) -> _Option:
        below, held_below = (seen([x, h], skip=skip) for x, h in zip(raws, hidden, strict=True))
        categorical = tuple(hidden[0].shape[1] + j for j in table.categorical) if skip else ()
        fitted, raw = head(below, held_below, categorical, layer)
        return _Option(name, True, Network((*network.layers[:-1], fitted), network.baseline, skip), raw)

    yield single("single layer", smooth)
    if refitted:
        yield single("single layer, constant leaves", plain)
    yield _Option("network", True, network, network.predict(held.X, n_jobs=n_threads))
    raws = (table.X, held.X)
    hidden = tuple(network.representation(X, -2, n_jobs=n_threads) for X in raws)
    yield topped("network, final output layer", network.skip, smooth)
    if refitted and len(network.layers) == 2:
        yield topped("network, final output layer with constant leaves on hidden units and features", True, plain)


def _picks(
    options: Sequence[_Option], row_losses: Callable[[Floats], Floats], weight: Floats, least_gain: float
) -> tuple[list[int], float, float]:
    """Numbers of the options picked, once or more; what the deep ones add to the loss, and its standard error."""
    singles = [k for k, option in enumerate(options) if not option.deep]
    shallow, shallow_raw = _forward(options, singles, row_losses, weight)
    picks, raw = _forward(options, range(len(options)), row_losses, weight)
    difference = row_losses(shallow_raw) - row_losses(raw)
    share = weight / weight.sum()
    gain = float(share @ difference)
    error = float(np.sqrt(np.square(share) @ np.square(difference - gain)))
    return (picks if gain > least_gain * error else shallow), gain, error


def _forward(
    options: Sequence[_Option], allowed: Sequence[int], row_losses: Callable[[Floats], Floats], weight: Floats
) -> tuple[list[int], Floats]:
    """Forward selection with replacement: options picked one by one, each the best for the mean of all picked."""
    picked: list[int] = []
    total = np.zeros_like(options[0].held)
    best = np.inf
    while len(picked) < PICKS:
        means = {k: (total + options[k].held) / (len(picked) + 1) for k in allowed}
        scores = {k: float(weight @ row_losses(mean)) for k, mean in means.items()}
        k = min(scores, key=lambda option: scores[option])
        if not scores[k] < best:
            break
        best = scores[k]
        picked.append(k)
        total = total + options[k].held
    return picked, total / len(picked)
