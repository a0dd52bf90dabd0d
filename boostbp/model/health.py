"""Health of the hidden layers: how far back-propagation moved them, how well they were fitted, and their faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from boostbp.network.choice import weight_in_words
from boostbp.network.history import History, Stop
from boostbp.runtime import messages

# Thresholds of the warnings. Arbitrary, far from the numbers of layers that learn.
MAX_DEAD = 0.9  # share of rows without gradient
MAX_ALWAYS_DEAD = 0.99  # the same, in all epochs
MIN_STD = 1e-3  # standard deviation, as a share of that at the start
MIN_R2 = 0.3  # of the refits
MAX_GAP = 0.3  # share of the target's variance that is explained on training rows and not on held-out rows
# Field of `LayerHealth` -> its meaning in the table.
SHOWN_NUMBERS = {
    "dead": "rows without gradient (dead)",
    "drift": "movement in an epoch, in standard deviations (drift)",
    "std_start": "standard deviation at the start (std_start)",
    "std": "standard deviation now (std)",
    "r2": "R2 of the refits to moved values (r2)",
    "explained": "target explained, training rows (explained)",
    "explained_held": "target explained, held-out rows (explained_held)",
    "gap": "difference of these two (gap)",
}
# Sentences on a `LayerHealth`, each with its cure.
DEAD = (
    "Back-propagation is dead at hidden layer {0.layer}: {0.dead:.0%} of the rows have a gradient of exactly zero. The "
    "layer above has no slopes there: try base='ridge', more n_estimators or a smaller min_samples_leaf for it."
)
COLLAPSED = (
    "Hidden layer {0.layer} has collapsed: its units have a standard deviation of {0.std:.2g}, and had "
    "{0.std_start:.2g} at the start. Try a larger learning_rate, more n_estimators or a smaller reg_lambda for it, or "
    "a smaller step_size."
)
LOOSE = (
    "Hidden layer {0.layer} does not follow its targets: a refit explains {0.r2:.0%} of them on average. Try more "
    "n_estimators, a larger learning_rate or a larger max_depth for it."
)
MEMORISED = (
    "Hidden layer {0.layer} has memorised training rows: a linear regression on it explains {0.explained:.0%} of the "
    "target there, and {0.explained_held:.0%} on held-out rows. Try a larger reg_lambda or min_samples_leaf, or a "
    "smaller max_depth."
)
# Sentences on a model.
LEFT_OUT = (
    "The network has no weight in the model (history_.choice), so this report does not describe the predictions. "
    "Use early_stopping=False for a model that is the network."
)
NO_HIDDEN_LAYERS = (
    "This model has no hidden layers: deep=False and hidden_layer_sizes=() train none, and deep='auto' keeps none "
    "without weight."
)
DIRECTIONS = (
    "No network is part of the model, so no hidden layer was trained by back-propagation. Layers with {words} have "
    "linear combinations of the features as input, which are not trained."
)


class HealthWarning(UserWarning):
    """A layer that back-propagation cannot have trained: it is dead, or has collapsed."""


@dataclass(frozen=True, slots=True)
class LayerHealth:
    """One hidden layer at the epoch of the model; movement and refits are means over epochs.

    Attributes
    ----------
    layer : int
        0 is next to the input.
    dead : float
        Share of the rows with a loss gradient whose gradient in this layer is exactly zero.
    gradient_norm : float
    drift : float
        Mean movement in an epoch, as a share of the standard deviation; NaN without an epoch of back-propagation.
    std, std_start : float
        Mean standard deviation of the units, now and before back-propagation.
    r2 : float
        Mean R^2 of the refits to the moved targets; NaN without an epoch of back-propagation.
    explained, explained_held : float
        Share of the target that a linear regression on the layer explains, on training rows and on
        the first evaluation set (NaN without one).
    """

    layer: int
    dead: float
    gradient_norm: float
    drift: float
    std: float
    std_start: float
    r2: float
    explained: float
    explained_held: float

    @property
    def gap(self) -> float:
        """Share of the target that the layer explains on training rows, minus that on held-out rows."""
        return self.explained - self.explained_held

    @property
    def has_collapsed(self) -> bool:
        """Whether hardly anything is left of the units' standard deviation."""
        return self.std <= MIN_STD * self.std_start


@dataclass(frozen=True, slots=True)
class Health:
    """Health of all hidden layers of the model's network, the one with most weight.

    Attributes
    ----------
    epoch : int
        The epoch of the network.
    weight : float
        Weight in the model of the parts on these layers: less than 1 if the network is a part of an average, and 0 if
        it was requested alone (``deep=True``) and left out, so that the report does not describe the predictions.
        Without a network, the weight of parts on hidden layers that are not trained.
    layers : tuple of LayerHealth
    warnings : tuple of str
        Sentences on faults, each with a cure. If the network has no weight in the model, the first one says so.
    """

    epoch: int
    weight: float
    layers: tuple[LayerHealth, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report in types that JSON holds; unknown numbers are None."""
        layers = [asdict(layer) | {"gap": layer.gap} for layer in self.layers]
        known = [{name: value if math.isfinite(value) else None for name, value in row.items()} for row in layers]
        return {"epoch": self.epoch, "weight": self.weight, "layers": known, "warnings": list(self.warnings)}

    def __str__(self) -> str:
        if not self.layers:
            words = weight_in_words(self.weight) or "all of the weight in the model"
            return DIRECTIONS.format(words=words) if self.weight else NO_HIDDEN_LAYERS
        heads = ["", *(f"layer {layer.layer}" for layer in self.layers)]
        rows = [
            [meaning, *(f"{getattr(layer, name):.3g}" for layer in self.layers)]
            for name, meaning in SHOWN_NUMBERS.items()
        ]
        first, *widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        table = [
            "  ".join([meaning.ljust(first), *map(str.rjust, cells, widths)]).rstrip()
            for meaning, *cells in [heads, *rows]
        ]
        words = weight_in_words(self.weight)
        of = f", of a network with {words}" if words else ""
        return "\n".join([f"Hidden layers at epoch {self.epoch}{of}:", *table, *self.warnings])


def health_of(history: History) -> Health:
    """Return the report of a training."""
    if history.network is None:
        return Health(history.best_epoch, history.weight(), (), ())
    best = history[history.best_epoch]
    moved = history.epochs[1 : history.best_epoch + 1] or history.epochs[1:]

    def layer_health(number: int) -> LayerHealth:
        drift, r2 = _mean([epoch.drift[number] for epoch in moved]), _mean([_at(epoch.r2, number) for epoch in moved])
        norm, stds = best.gradient_norms[number], (best.stds[number], history[0].stds[number])
        explained = (_at(best.explained, number), _at(best.explained_held, number))
        return LayerHealth(number, best.dead[number], norm, drift, *stds, r2, *explained)

    layers = tuple([layer_health(number) for number in range(len(best.stds))])
    weight = history.weight(history.network)
    warnings = [] if weight else [LEFT_OUT]
    for layer in layers:
        faults = {
            DEAD: layer.dead >= MAX_DEAD and bool(moved),  # only if there was back-propagation
            COLLAPSED: layer.has_collapsed,
            LOOSE: layer.r2 < MIN_R2,
            MEMORISED: layer.gap > MAX_GAP,
        }
        warnings += [sentence.format(layer) for sentence, is_fault in faults.items() if is_fault]
    if history.stop is Stop.NOT_FINITE:
        warnings.append(history.stop.value)
    if history.metric and moved and history.best_epoch == 0:
        warnings.append(
            f"No epoch of back-propagation was better than the start by {history.metric}: the hidden layers are those "
            "of the start. Try another step_size, or keep them as they are."
        )
    return Health(history.best_epoch, weight, layers, tuple(warnings))


def warn_if_ill(history: History) -> None:
    """Warn of layers that cannot have been trained: no gradient in any epoch, or hardly any variance."""
    if len(history) <= 1:
        return
    health = health_of(history)
    for layer in health.layers:
        is_dead = all(epoch.dead[layer.layer] >= MAX_ALWAYS_DEAD for epoch in history.epochs)
        # With a standard deviation of 0 at the start, the features have no information.
        if layer.std_start != 0.0 and (is_dead or layer.has_collapsed):
            words = weight_in_words(health.weight)
            share = f" The network has {words}." if words else ""
            messages.warn((DEAD if is_dead else COLLAPSED).format(layer) + share, HealthWarning)


def _at(values: Sequence[float], layer: int) -> float:
    """Return a layer's number; NaN if it was not recorded, as in a mixture with a neural network."""
    return values[layer] if layer < len(values) else math.nan


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
