"""Description: the parts of a fitted model that a graph or a program needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival
from boostbp.estimators.base import BaseBoostBP
from boostbp.inputs.categories import Category
from boostbp.losses import Loss, traits_of
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.trees.forest import Forest

_ESTIMATORS = (BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival)
# Type of all labels -> type of their array.
_LABEL_TYPES = ((str, object), (bool, np.bool_), (int, np.int64), (int | float, np.float64))
_PROBES = np.array([-60.0, -3.0, -0.5, 0.0, 0.25, 2.0, 60.0])  # raw outputs at which links are compared


@dataclass(frozen=True, slots=True)
class Link:
    """Function from raw outputs to predictions."""

    name: str = "identity"  # link function, whose inverse is applied; "sorted" sorts the outputs of each row
    # lowest, highest: range to which raw outputs are clipped before the exponential
    lowest: float = -np.inf
    highest: float = np.inf


@dataclass(frozen=True, slots=True)
class Description:
    """A fitted model as forests, with the conversion of inputs and outputs."""

    n_features: int
    forests: tuple[Forest, ...]  # one for each layer, from the input up
    skip: bool  # whether layers above the first also read the features, after the hidden units
    baseline: Floats  # (outputs,): added to the output of the last forest
    link: Link = Link()
    # scale, shift: (outputs,) each: ``link(raw) * scale + shift`` is the prediction
    scale: Floats = field(default_factory=lambda: np.ones(1))
    shift: Floats = field(default_factory=lambda: np.zeros(1))
    one_dimensional: bool = False  # whether predictions are (rows,) and not (rows, outputs)
    multilabel: bool = False  # whether each output is the log-odds of one of several labels
    # (classes,) object, bool, int64 or float64: labels of a classifier; see `labels_of`
    labels: NDArray[Any] | None = None
    # (categories,) for each column: the value of each category, which is the category if it is a number, otherwise its
    # code
    categories: Mapping[int, Floats] = field(default_factory=dict)
    truncated: bool = False  # whether a fraction is the category of its integer part
    facts: Mapping[str, Any] = field(default_factory=dict)  # facts about the model for its users, in JSON types

    @property
    def n_outputs(self) -> int:
        """Number of raw outputs."""
        return len(self.baseline)


def described(model: BaseBoostBP) -> Description:
    """Describe a fitted estimator; the errors are those of `to_c`."""
    if type(model) not in _ESTIMATORS:
        known = ", ".join(kind.__name__ for kind in _ESTIMATORS)
        raise TypeError(f"{type(model).__name__} cannot be exported: give a fitted {known}, not a subclass.")
    check_is_fitted(model)
    fitted = model.model_
    network, targets, schema = fitted.network, fitted.targets, fitted.schema
    forests, names = _used_forests(network), None if schema.names is None else list(schema.names)
    categories = {str(j): list(known) for j, known in schema.categories.items()}
    zero_one = targets.zero_one
    of_labels = {} if zero_one is None else {"labels": list(targets.names(()))}
    for forest in forests:
        if forest.basis.has_functions and len(forest.leaves.column):
            raise ValueError(f"basis={forest.basis!r} cannot be exported, as it is code. Use 'linear' or 'quadratic'.")
    return Description(
        n_features=schema.n_features,
        forests=forests,
        skip=network.skip,
        baseline=network.baseline,
        link=_link_of(targets.loss, targets.n_outputs),
        scale=targets.scale,
        shift=targets.shift,
        one_dimensional=targets.one_dimensional,
        multilabel=targets.multilabel,
        labels=None if targets.classes is None else labels_of(targets.classes if zero_one is None else zero_one),
        categories={j: _values_of(j, known) for j, known in schema.categories.items()},
        facts={"model": type(model).__name__, "features": names, "categories": categories, **of_labels},
    )


def _used_forests(network: Network) -> tuple[Forest, ...]:
    """Return the forests of the layers, or only the last one, on the features, if it reads no hidden unit."""
    forests = tuple(layer.forest for layer in network.layers)
    if not (network.skip and len(forests) > 1) or network._hidden_used():
        return forests
    last, units = forests[-1], forests[-2].n_outputs
    trees = replace(last.trees, feature=last.trees.feature - np.int32(units))
    columns = units * last.basis.columns_per_feature
    leaves = last.leaves._replace(column=last.leaves.column - np.int32(columns))
    return (replace(last, n_features=last.n_features - units, trees=trees, leaves=leaves),)


def _link_of(loss: Loss, n_outputs: int) -> Link:
    """Return the link of a loss; raise ValueError unless it agrees with its name."""
    link = Link(traits_of(loss).link_name or "identity")
    if link.name == "log":
        link = Link("log", float(getattr(loss, "lowest", -np.inf)), float(getattr(loss, "highest", np.inf)))
    raw = np.array([np.roll(_PROBES, k) for k in range(n_outputs)]).T
    with np.errstate(over="ignore"):
        linked = np.asarray(loss.link(raw), np.float64)
    if linked.shape != raw.shape or not np.allclose(linked, _linked(link, raw), rtol=1e-12, atol=0):
        known = "neither the identity, a sort, nor the inverse of the log, logit or softmax in its link_name"
        raise ValueError(f"loss={loss.name!r} cannot be exported: its link is {known}. Use another loss.")
    return link


def _linked(link: Link, raw: Floats) -> Floats:
    if link.name == "log":
        return np.exp(np.clip(raw, link.lowest, link.highest))
    inverses = {"sorted": partial(np.sort, axis=1), "logit": expit, "softmax": partial(softmax, axis=1)}
    return inverses[link.name](raw) if link.name in inverses else raw


def _values_of(column: int, categories: tuple[Any, ...]) -> Floats:
    """Return the value of each category in its column, (categories,)."""
    if any(isinstance(category, str) for category in categories):
        return np.arange(len(categories), dtype=np.float64)
    try:
        values = np.array([float(category) for category in categories])
    except OverflowError:
        values = np.full(len(categories), np.inf)
    if len(np.unique(values)) < len(values) or not np.isfinite(values).all():
        example = max(categories, key=abs)
        raise ValueError(f"Column {column} has categories that float64 merges, such as {example!r}: make them text.")
    return values


def labels_of(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels as text (object), bool, int64 or float64, (classes,); ValueError if none holds them all."""
    values = classes.tolist()
    dtype = next((dtype for kind, dtype in _LABEL_TYPES if all(isinstance(value, kind) for value in values)), None)
    for value in sorted(values, key=lambda value: isinstance(value, str | int | float)):
        if fault := _fault(value, dtype):
            raise ValueError(f"classes_ holds {value!r}, {fault}, so the model cannot be exported: use other labels.")
    return np.array(values, dtype)


def _fault(value: Category, dtype: type | None) -> str:
    """Return why an array of this type cannot hold a label, or ""; `dtype` is None if no type holds all labels."""
    if dtype is None:
        return f"a label of type {type(value).__name__}"
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        return "half of a surrogate pair, which UTF-8 cannot encode"
    if dtype is np.int64 and isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "a number beyond int64"
    if dtype is np.float64 and float(value) != value:
        return "an integer among fractions, which float64 cannot represent"
    return ""
