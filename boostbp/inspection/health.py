"""Health of the layers: whether back-propagation moved them, how well they were fitted, and whether they hold up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from boostbp import cautions
from boostbp.network.choice import weight_in_words
from boostbp.network.history import History, Stop

DEAD = 0.9  # share of rows without gradient from which on a layer hardly learns
SURELY_DEAD = 0.99  # in all epochs
COLLAPSED = 1e-3  # standard deviation, as a share of that at the start
LOOSE = 0.3  # R^2 of the refits
MEMORISED = 0.3  # of the target's variance, explained on training rows and not on held-out ones
LEFT_OUT = (
    "The network has no weight in the model (history_.choice): nothing that is said of it bears on the predictions. "
    "Use early_stopping=False for a model that is the network."
)
NO_HIDDEN_LAYERS = (
    "This model has no hidden layers: deep=False and hidden_layer_sizes=() train none, and deep='auto' keeps none "
    "without weight."
)
DIRECTIONS = (
    "No network is part of the model, so no hidden layer was trained by back-propagation. Layers with {words} stand on "
    "linear combinations of the features, which are not trained."
)


class HealthWarning(UserWarning):
    """A layer that back-propagation cannot have trained: it is dead, or has collapsed."""


@dataclass(frozen=True, slots=True)
class LayerHealth:
    """One hidden layer at the epoch that the model was taken from, but for means over epochs.

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
    def name(self) -> str:
        """What sentences call the layer."""
        return f"Hidden layer {self.layer}"

    @property
    def gap(self) -> float:
        """What the layer explains on training rows and not on held-out ones."""
        return self.explained - self.explained_held


@dataclass(frozen=True, slots=True)
class Health:
    """Health of all hidden layers of the model's network, the one with most weight.

    Attributes
    ----------
    epoch : int
        That the network was taken from.
    weight : float
        Weight in the model of what stands on these layers: less than 1 if the network was weighed against others; 0 of
        a network that was asked for alone (``deep=True``) and left out, of which nothing bears on the predictions.
        Without a network, the weight of what stands on hidden layers that are not trained.
    layers : tuple of LayerHealth
    warnings : tuple of str
        Sentences with a cure each; none if all is well. The first says so if the network has no weight in the model.
    """

    epoch: int
    weight: float
    layers: tuple[LayerHealth, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report in types that JSON holds; numbers that are not known are None."""
        layers = [
            {name: _plain(value) for name, value in (asdict(layer) | {"gap": layer.gap}).items()}
            for layer in self.layers
        ]
        return {"epoch": self.epoch, "weight": self.weight, "layers": layers, "warnings": list(self.warnings)}

    def __str__(self) -> str:
        if not self.layers:
            words = weight_in_words(self.weight) or "all of the weight in the model"
            return DIRECTIONS.format(words=words) if self.weight else NO_HIDDEN_LAYERS
        columns = ("dead", "drift", "std_start", "std", "r2", "explained", "explained_held", "gap")
        rows = [["layer", *columns]]
        rows += [[str(layer.layer), *(f"{getattr(layer, name):.3g}" for name in columns)] for layer in self.layers]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        words = weight_in_words(self.weight)
        of = f", of a network with {words}" if words else ""
        return "\n".join([f"Hidden layers at epoch {self.epoch}{of}:", *table, *self.warnings])


def health_of(history: History) -> Health:
    """Return the report of a training."""
    if history.network is None:
        return Health(history.best_epoch, history.weight(), (), ())
    best = history[history.best_epoch]
    moved = history.epochs[1 : history.best_epoch + 1] or history.epochs[1:]
    layers = tuple(
        LayerHealth(
            layer,
            best.dead[layer],
            best.gradient_norms[layer],
            _mean([epoch.drift[layer] for epoch in moved]),
            best.stds[layer],
            history[0].stds[layer],
            _mean([_at(epoch.r2, layer) for epoch in moved]),
            _at(best.explained, layer),
            _at(best.explained_held, layer),
        )
        for layer in range(len(best.stds))
    )
    weight = history.weight(history.network)
    sentences = [] if weight else [LEFT_OUT]
    sentences += [sentence for layer in layers for sentence in _sentences(layer, back_propagated=bool(moved))]
    if history.stop is Stop.NOT_FINITE:
        sentences.append(history.stop.value)
    if history.metric and moved and history.best_epoch == 0:
        sentences.append(
            f"No epoch of back-propagation was better than the start by {history.metric}: the hidden layers are those "
            "of the start. Try another step_size, or keep them as they are."
        )
    return Health(history.best_epoch, weight, layers, tuple(sentences))


def warn_if_ill(history: History) -> None:
    """Warn of layers that cannot have been trained: no gradient in any epoch, or next to no variance."""
    moved = history.epochs[1:]
    health = health_of(history)
    words = weight_in_words(health.weight)
    share = f" The network has {words}." if words else ""
    for layer in health.layers if moved else ():
        if layer.std_start == 0.0:  # nothing in the features to learn from
            continue
        if all(epoch.dead[layer.layer] >= SURELY_DEAD for epoch in history.epochs):
            cautions.warn(_dead(layer) + share, HealthWarning)
        elif _has_collapsed(layer):
            cautions.warn(_collapsed(layer) + share, HealthWarning)


def _sentences(layer: LayerHealth, *, back_propagated: bool) -> list[str]:
    sentences = []
    if layer.dead >= DEAD and back_propagated:
        sentences.append(_dead(layer))
    if _has_collapsed(layer):
        sentences.append(_collapsed(layer))
    if layer.r2 < LOOSE:
        sentences.append(
            f"{layer.name} does not follow its targets: a refit explains {layer.r2:.0%} of them on average. "
            "Try more n_estimators, a larger learning_rate or a larger max_depth for it."
        )
    if layer.gap > MEMORISED:
        sentences.append(
            f"{layer.name} has memorised training rows: a linear regression on it explains {layer.explained:.0%} of "
            f"the target there, and {layer.explained_held:.0%} on held-out rows. Try a larger reg_lambda or "
            "min_samples_leaf, or a smaller max_depth."
        )
    return sentences


def _dead(layer: LayerHealth) -> str:
    return (
        f"Back-propagation is dead at {layer.name.lower()}: {layer.dead:.0%} of the rows have a gradient of exactly "
        "zero. The layer above has no slopes there: try base='ridge', more n_estimators or a smaller min_samples_leaf "
        "for it."
    )


def _has_collapsed(layer: LayerHealth) -> bool:
    return layer.std <= COLLAPSED * layer.std_start


def _collapsed(layer: LayerHealth) -> str:
    return (
        f"{layer.name} has collapsed: its units have a standard deviation of {layer.std:.2g}, and had "
        f"{layer.std_start:.2g} at the start. Try a larger learning_rate, more n_estimators or a smaller reg_lambda "
        "for it, or a smaller step_size."
    )


def _at(values: Sequence[float], layer: int) -> float:
    """Return a layer's number; NaN if it was not recorded, as in a mixture with a neural network."""
    return values[layer] if layer < len(values) else math.nan


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
