"""Selection: what depth adds to a single layer on held-out rows, and the model that follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Table
from boostbp.learning import backprop
from boostbp.learning.bound import LayerSettings
from boostbp.learning.heads import boost
from boostbp.learning.history import Candidate, Choice, History, Stop
from boostbp.learning.layer import Layer
from boostbp.learning.losses import Logistic, Loss, Softmax
from boostbp.learning.merging import weighted_sum
from boostbp.learning.metrics import Metric
from boostbp.learning.network import Network, seen
from boostbp.learning.sampling import growing
from boostbp.learning.settings import Settings
from boostbp.learning.watch import EvalSet
from boostbp.trees.basis import Constant, Linear, Quadratic
from boostbp.trees.ridge import Ridge

__all__ = ["train"]

Floats = NDArray[np.float64]
LIGHT = 1.0  # penalty of the ridge under hidden units, which follow their gradients faster than by cross-validation
WIDER = 2  # times the units asked for: without trees they are cheap
HEADED = 2  # networks, the best ones, that get output layers grown to their end
RATE = 0.04  # shrinkage of heads: slower than in an epoch, as they are grown once
LARGER = 3  # times the rows per leaf, of single layers with large leaves
SHALLOW = 2  # depth of single layers with shallow trees: few features act together
HALF = 0.5  # share of the features that each tree sees, of single layers with plain regressions
FEW = 0.2  # of single layers that see few
PICKS = 20  # steps of the search for weights
SOFTENING = 0.25  # rows like each held-out row that have another class, in the eyes of those who weigh
DOUBT = 2.0  # standard errors of the gain on held-out rows at which networks have half a say where classes are learnt
# of trees with constant leaves, which must be more of them and larger than those with regressions
PLAIN_DEPTH, PLAIN_LEAVES = 8, 48
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
    metric: Metric | None = None,
    outcome: Callable[[Floats], Floats] | None = None,
    **rest: Any,
) -> tuple[Network, History]:
    """Train a network by back-propagation, then weigh it against single layers of the same library.

    With ``settings.deep == "auto"`` and an evaluation set, the model is a sum of single layers and networks: the one
    that was trained, its variants (hidden units that share their trees, and linear ones under two penalties: none of
    them is best on all data), and the best of these with output layers boosted anew to the end.
    Weights are those that the first evaluation set likes best (forward selection with replacement: Caruana and
    others 2004). Where no sum with a network in it is better than the best without by more than
    `settings.least_gain` standard errors, networks are left out. Where classes are learnt, the model lies between the
    two sums: the same rows chose the networks' epochs, and few rows that are far off decide on their log-loss.

    Parameters are those of `backprop.train`, and:

    Parameters
    ----------
    to_target : callable
        Targets of an evaluation set as the loss takes them.
    """
    begun = time.perf_counter()
    again = partial(backprop.train, table, y, backend=backend, loss=loss, weight=weight, eval_sets=eval_sets)
    again = partial(again, metric=metric, outcome=outcome)
    network, history = again(settings=settings, **rest)
    if settings.deep != "auto" or not settings.units or not eval_sets or history.stop is Stop.INTERRUPTED:
        return network, history
    held = eval_sets[0]
    until = np.inf if settings.max_time is None else begun + settings.max_time
    grown_by = growing(backend, settings)
    target = _softened(to_target(held.y), held.weight, loss)
    pool = _Pool(table, y, weight, grown_by, loss, settings, network.baseline, held, target, until)
    try:
        options = [*pool.singles(), pool.plainly("network", network)]
        for name, variant in _variants(settings):
            left = until - time.perf_counter()
            if left > 0:
                trained = _trained(again, replace(variant, max_time=None if settings.max_time is None else left))
                options += [] if trained is None else [pool.plainly(name, trained)]
        ranked = sorted((option for option in options if option.deep), key=lambda option: pool.score(option.held))
        for option in ranked[:HEADED]:
            options += pool.headed(option)
        weights, gain, error = _weighed(
            options, pool.row_losses, held.weight, settings.least_gain, DOUBT if _of_classes(loss) else 0.0
        )
    except KeyboardInterrupt:
        history.stop = Stop.INTERRUPTED
        return network, history
    shares = list(zip(options, map(float, weights), strict=True))
    history.choice = Choice(tuple(Candidate(o.name, pool.score(o.held), w) for o, w in shares), gain, error)
    chosen = [(option.network, w) for option, w in shares if w > 0]
    if not any(option.deep and w for option, w in shares):  # its hidden layers are what `transform` gives
        chosen.append((network, 0.0))
    return weighted_sum(*zip(*chosen, strict=True)), history


def _trained(train: Callable[..., tuple[Network, History]], settings: Settings) -> Network | None:
    """A network beside the one that was asked for; None if it exploded in its first epoch."""
    try:
        network, history = train(settings=settings)
    except FloatingPointError:
        return None
    if history.stop is Stop.INTERRUPTED:  # it kept its best epoch, but the user wants all of this to end
        raise KeyboardInterrupt
    return network


def _variants(settings: Settings) -> Iterator[tuple[str, Settings]]:
    """Networks beside the one that was asked for, with other hidden layers; none if it has no trees there."""
    *hidden, last = settings.layers
    if not any(layer.n_estimators for layer in hidden):
        return

    def with_hidden(layers: Iterable[LayerSettings], wider: int = 1) -> Settings:
        return replace(settings, layers=(*layers, last), units=tuple(wider * n for n in settings.units))

    if all(layer.leaves == "refit" for layer in settings.layers):
        shared = with_hidden(map(_sharing, hidden))
        if shared != settings:
            yield "network of shared trees", shared
    straight = [replace(layer, n_estimators=0, base="ridge") for layer in hidden]
    yield "linear network", with_hidden(straight)
    light = [replace(layer, base_lambda=LIGHT) for layer in straight]
    yield "wide linear network, light penalty", with_hidden(light, WIDER)


def _sharing(layer: LayerSettings) -> LayerSettings:
    """The layer with one tree for all units; a sketch not in use before may be one that the library cannot grow on."""
    if layer.growth.shared:
        return layer
    return replace(_grown(layer, shared=True), sketch=None)


def _of_classes(loss: Loss) -> bool:
    return isinstance(loss, (Logistic, Softmax))


def _softened(target: Floats, weight: Floats, loss: Loss) -> Floats:
    """Targets of held-out rows; of classes, as if a quarter of a row more like each had another class.

    Few rows may all be told apart by a model that is sure of them without limit: it would seem to lose nothing, and
    lose without limit where it errs. The idea is Platt's (1999), with all held-out rows in place of those of a class,
    and a quarter of his row: models that tell few rows apart may well be right.
    """
    if not _of_classes(loss):
        return target
    other = SOFTENING / (np.count_nonzero(weight) + 2.0)
    if target.shape[1] == 1:
        return target * (1.0 - other) + (1.0 - target) * other
    return target * (1.0 - other) + (1.0 - target) * other / (target.shape[1] - 1)


@dataclass(frozen=True, slots=True)
class _Pool:
    """What options are grown from and scored on."""

    table: Table
    y: Floats
    weight: Floats
    backend: Backend
    loss: Loss
    settings: Settings
    baseline: Floats
    held: EvalSet
    target: Floats
    until: float

    def row_losses(self, raw: Floats) -> Floats:
        return self.loss.value(raw, self.target)

    def score(self, raw: Floats) -> float:
        return float(self.held.weight @ self.row_losses(raw) / self.held.weight.sum())

    @property
    def smooth(self) -> LayerSettings:
        """The output layer, grown more slowly."""
        return replace(self.settings.layers[-1], learning_rate=RATE)

    @property
    def plain(self) -> LayerSettings:
        """An output layer of trees with constant leaves."""
        large = _grown(self.smooth, max_depth=PLAIN_DEPTH, max_leaves=PLAIN_LEAVES)
        return replace(large, basis=Constant(), base=None, ridge=Ridge(PLAIN_LAMBDA, True, True))

    @property
    def refitted(self) -> bool:
        """Whether leaves are fitted by us: libraries' own are never constant."""
        return self.settings.layers[-1].leaves == "refit"

    def singles(self) -> Iterator[_Option]:
        """Single layers."""
        for kind, layer in self._kinds():
            fitted, raw = self._head(self.table, self.held.X, layer)
            name = f"single layer, {kind}" if kind else "single layer"
            yield _Option(name, False, Network((fitted,), self.baseline), raw)

    def _kinds(self) -> Iterator[tuple[str, LayerSettings]]:
        """What is special about a single layer, and its settings."""
        smooth, plain = replace(self.smooth, base_least=0.0), self.plain  # features are not alike as hidden units are
        if not self.refitted:
            yield "", smooth
            return
        best, drawn = _grown(smooth, extra_trees=False), smooth.growth.extra_trees
        large = LARGER * smooth.growth.min_samples_leaf
        shallow = SHALLOW if smooth.growth.max_depth > SHALLOW or smooth.growth.max_depth < 0 else None
        yield "", best
        if drawn:
            yield "random thresholds", smooth
            if shallow:
                yield "random thresholds, shallow trees", _grown(smooth, max_depth=shallow)
            straight = replace(smooth, basis=Linear() if smooth.basis == Quadratic() else smooth.basis, base=None)
            yield (
                "random thresholds, large leaves, half of the features, no base",
                _grown(straight, min_samples_leaf=large, colsample_bytree=HALF),
            )
        else:
            yield "large leaves", _grown(best, min_samples_leaf=large)
            if shallow:
                yield "shallow trees", _grown(best, max_depth=shallow)
        if smooth.base is not None:
            yield "no base", replace(best, base=None)
        plain_best = _grown(plain, extra_trees=False)
        yield "constant leaves", plain_best
        yield "constant leaves, shallow trees", _grown(plain_best, max_depth=SHALLOW)
        yield "constant leaves, few features per tree", _grown(plain, colsample_bytree=FEW)

    def plainly(self, name: str, network: Network) -> _Option:
        """A network as it was trained."""
        return _Option(name, True, network, network.predict(self.held.X, n_jobs=self.settings.n_threads))

    def headed(self, option: _Option) -> Iterator[_Option]:
        """The hidden layers of a network under output layers grown to their end."""
        network, n_threads = option.network, self.settings.n_threads
        inputs = self.table.X, self.held.X
        hidden = tuple(network.representation(X, -2, n_jobs=n_threads) for X in inputs)
        kinds = [("final output layer", network.skip, self.smooth)]
        if self.refitted and len(network.layers) == 2:  # with more, the layers between would see the features too
            kinds.append(("constant leaves on hidden units and features", True, self.plain))
        for kind, skip, layer in kinds:
            below, held_below = (seen([X, h], skip=skip) for X, h in zip(inputs, hidden, strict=True))
            categorical = tuple(hidden[0].shape[1] + j for j in self.table.categorical) if skip else ()
            fitted, raw = self._head(Table(below, categorical), held_below, layer)
            headed = Network((*network.layers[:-1], fitted), self.baseline, skip)
            yield _Option(f"{option.name}, {kind}", True, headed, raw)

    def _head(self, table: Table, held_X: Floats, layer: LayerSettings) -> tuple[Layer, Floats]:
        return boost(
            table, self.y, self.weight, backend=self.backend, settings=layer, loss=self.loss, baseline=self.baseline,
            held_X=held_X, score=self.score, n_threads=self.settings.n_threads, seed=self.settings.seed,
            until=self.until,
        )  # fmt: skip


def _grown(layer: LayerSettings, **how: Any) -> LayerSettings:
    """The layer with trees that are grown otherwise."""
    return replace(layer, growth=replace(layer.growth, **how))


def _weighed(
    options: Sequence[_Option],
    row_losses: Callable[[Floats], Floats],
    weight: Floats,
    least_gain: float,
    doubt: float,
) -> tuple[Floats, float, float]:
    """Weights of the options; what deep ones add to the best sum of shallow ones, and its standard error.

    The gain, t standard errors, counts for t^2 / (doubt^2 + t^2): so much of the model is the sum with deep ones, the
    rest is the sum without. With no more than `least_gain` standard errors it does not count.
    """
    singles = [k for k, option in enumerate(options) if not option.deep]
    shallow, shallow_raw = _forward(options, singles, row_losses, weight)
    deep, raw = _forward(options, range(len(options)), row_losses, weight)
    difference = row_losses(shallow_raw) - row_losses(raw)
    share = weight / weight.sum()
    gain = float(share @ difference)
    error = float(np.sqrt(np.square(share) @ np.square(difference - gain)))
    if not gain > least_gain * error:
        return shallow, gain, error
    trust = 1.0 / (1.0 + np.square(doubt * error / gain))
    return trust * deep + (1.0 - trust) * shallow, gain, error


def _forward(
    options: Sequence[_Option], allowed: Sequence[int], row_losses: Callable[[Floats], Floats], weight: Floats
) -> tuple[Floats, Floats]:
    """Forward selection with replacement: options picked one by one, each the best for the mean of all picked.

    Their weights, and the raw output of their sum.
    """
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
    return np.bincount(picked, minlength=len(options)) / len(picked), total / len(picked)
