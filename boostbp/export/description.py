"""Description: all that a graph or a program needs of a fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.export.labels import labels_of
from boostbp.losses import Loss, traits_of
from boostbp.model import Model
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

_ESTIMATORS = (BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor)
_PROBES = np.array([-60.0, -3.0, -0.5, 0.0, 0.25, 2.0, 60.0])  # raw outputs at which a link is compared with its name


@dataclass(frozen=True, slots=True)
class Link:
    """What makes predictions of raw outputs.

    Attributes
    ----------
    name : {"identity", "log", "logit", "softmax", "sorted"}
        What it undoes; "sorted": it sorts the outputs of a row.
    lowest, highest : float
        Between which raw outputs are clipped before exponentials are taken.
    """

    name: str = "identity"
    lowest: float = -np.inf
    highest: float = np.inf


@dataclass(frozen=True, slots=True)
class Description:
    """A fitted model as forests, and what stands before and behind them.

    Attributes
    ----------
    n_features : int
    forests : tuple of Forest
        One for each layer, from the input up.
    skip : bool
        Whether the layers above the first see the features behind the hidden units.
    baseline : (outputs,) float64
        Added to the output of the last forest.
    link : Link
    scale, shift : (outputs,) float64
        ``link(raw) * scale + shift`` is the prediction.
    one_dimensional : bool
        Whether predictions are (rows,) and not (rows, outputs).
    labels : (classes,) object, bool, int64 or float64 array, or None
        Of a classifier; see `labels_of`.
    categories : dict of int to (categories,) float64
        What stands in a column for each category: the category itself if it is a number, otherwise its code.
    truncated : bool
        Whether fractions are codes of categories, too, those of their whole part.
    facts : dict of str to object
        What a reader should know, in types that JSON holds.
    """

    n_features: int
    forests: tuple[Forest, ...]
    skip: bool
    baseline: Floats
    link: Link = Link()
    scale: Floats = field(default_factory=lambda: np.ones(1))
    shift: Floats = field(default_factory=lambda: np.zeros(1))
    one_dimensional: bool = False
    labels: NDArray[Any] | None = None
    categories: Mapping[int, Floats] = field(default_factory=dict)
    truncated: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_outputs(self) -> int:
        """Number of raw outputs."""
        return len(self.baseline)


def described(model: Any) -> Description:
    """Describe a fitted estimator.

    Raises
    ------
    TypeError
        If it is no estimator of this package, or one of a derived class, which may predict otherwise.
    ValueError
        If it has parts that are code of the user's own: functions as a basis, a loss with a link of its own; or labels
        that no type of a graph or a program holds.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    if type(model) not in _ESTIMATORS:
        known = ", ".join(kind.__name__ for kind in _ESTIMATORS)
        raise TypeError(f"{type(model).__name__} cannot be exported: give a fitted {known}, nothing derived.")
    check_is_fitted(model)
    fitted: Model = model.model_
    network, targets, schema = fitted.network, fitted.targets, fitted.schema
    forests = _used_forests(network)
    for forest in forests:
        if forest.basis.has_functions and len(forest.leaves.column):
            raise ValueError(
                f"basis={forest.basis!r} cannot be exported: its functions are code. Use basis='linear' or 'quadratic'."
            )
    return Description(
        n_features=schema.n_features,
        forests=forests,
        skip=network.skip,
        baseline=network.baseline,
        link=_link_of(targets.loss, targets.n_outputs),
        scale=targets.scale,
        shift=targets.shift,
        one_dimensional=targets.one_dimensional,
        labels=None if targets.classes is None else labels_of(targets.classes),
        categories={j: _values_of(j, known) for j, known in schema.categories.items()},
        facts={
            "model": type(model).__name__,
            "features": None if schema.names is None else list(schema.names),
            "categories": {str(j): list(known) for j, known in schema.categories.items()},
        },
    )


def _used_forests(network: Network) -> tuple[Forest, ...]:
    """Return the forests of the layers; the last one alone, on the features, if it reads no hidden unit."""
    forests = tuple(layer.forest for layer in network.layers)
    if not (network.skip and len(forests) > 1) or network._hidden_used():
        return forests
    last, units = forests[-1], forests[-2].n_outputs
    trees = replace(last.trees, feature=last.trees.feature - np.int32(units))
    columns = units * last.basis.columns_per_feature
    leaves = last.leaves._replace(column=last.leaves.column - np.int32(columns))
    return (replace(last, n_features=last.n_features - units, trees=trees, leaves=leaves),)


def _link_of(loss: Loss, n_outputs: int) -> Link:
    """Return the link of a loss, if it is what its name says."""
    name = traits_of(loss).link_name or "identity"
    link = Link(name)
    if name == "log":
        link = Link(name, float(getattr(loss, "lowest", -np.inf)), float(getattr(loss, "highest", np.inf)))
    raw = np.array([np.roll(_PROBES, k) for k in range(n_outputs)]).T
    with np.errstate(over="ignore"):
        made = np.asarray(loss.link(raw), np.float64)
    if made.shape != raw.shape or not np.allclose(made, _linked(link, raw), rtol=1e-12, atol=0):
        raise ValueError(
            f"loss={loss.name!r} cannot be exported: its link is code of its own, not the identity, a sort, or the "
            "inverse of the logarithm, logit or softmax that its link_name says. Export a model with another loss."
        )
    return link


def _linked(link: Link, raw: Floats) -> Floats:
    if link.name == "log":
        return np.exp(np.clip(raw, link.lowest, link.highest))
    if link.name == "sorted":
        return np.sort(raw, axis=1)
    if link.name == "logit":
        return 1.0 / (1.0 + np.exp(-raw))
    if link.name == "softmax":
        powers = np.exp(raw - raw.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))
    return raw


def _values_of(column: int, categories: tuple[Any, ...]) -> Floats:
    """Return what stands in a column for each category, (categories,)."""
    if any(isinstance(category, str) for category in categories):
        return np.arange(len(categories), dtype=np.float64)
    try:
        values = np.array([float(category) for category in categories])
    except OverflowError:
        values = np.full(len(categories), np.inf)
    if len(np.unique(values)) < len(values) or not np.isfinite(values).all():
        raise ValueError(
            f"Column {column} has categories, such as {max(categories, key=abs)!r}, that are whole numbers which "
            "float64 does not tell apart: make them text before the fit."
        )
    return values
