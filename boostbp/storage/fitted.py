"""Conversion of a model to plain values and arrays and back, with checks."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.archive import Arrays, take
from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier
from boostbp.inputs.schema import Schema
from boostbp.inspection.calibration import Calibration
from boostbp.inspection.summary import SUMMARY, Summary
from boostbp.losses import traits_of
from boostbp.model import Model, Targets
from boostbp.network.stored import history_from, history_of, loss_from, loss_of, network_from, network_of

_LABELS = (bool, int, float, str)
_LABEL_DTYPES = (
    "U",
    "|O",
    "|b1",
    *(f"{'|' if size == 1 else '<'}{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)),
    *("<f2", "<f4", "<f8"),
)
_FACTS = {"network", "schema", "history", "loss", "classes", "one_dimensional", "is_input", "with_offset"}
_CALIBRATION = {field.name: f"calibration.{field.name}" for field in fields(Calibration)}


def model_facts(model: Model) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON content and the arrays of a model.

    Raises
    ------
    ValueError
        If the loss or the basis is the user's own code, or a class is neither text nor a number.
    """
    network, arrays = network_of(model.network)
    targets = model.targets
    try:
        loss = loss_of(targets.loss)
    except TypeError as error:
        raise ValueError(f"loss cannot be stored: {error}. Store the model with pickle or joblib.") from error
    facts: dict[str, Any] = {
        "network": network,
        "schema": model.schema.to_dict(),
        "history": history_of(model.history),
        "loss": loss,
        "classes": None if targets.classes is None else _labels_of(targets.classes),
        "one_dimensional": targets.one_dimensional,
        "is_input": targets.is_input,
        "with_offset": model.with_offset,
    }
    arrays |= {f"summary.{name}": getattr(model.summary, name) for name in SUMMARY}
    if targets.classes is None:
        arrays |= {"shift": targets.shift, "scale": targets.scale}
    if model.calibration is not None:
        arrays |= {name: getattr(model.calibration, field) for field, name in _CALIBRATION.items()}
    return facts, arrays


def model_from(kind: type, facts: dict[str, Any], arrays: Arrays) -> Model:
    """Return the model of an estimator of class `kind` from its JSON content and arrays.

    Raises
    ------
    ValueError
        If content and arrays do not fit together.
    """
    _require(set(facts) == _FACTS, f"it holds {sorted(facts)}")
    network, schema = network_from(facts["network"], arrays), Schema.from_dict(facts["schema"])
    n_features, n_outputs = schema.n_features, len(network.baseline)
    _require(network.layers[0].forest.n_features == n_features, "the network reads other features than the schema")
    summary = {name: take(arrays, f"summary.{name}", float, (n_features,)) for name in SUMMARY}
    for name in ("one_dimensional", "is_input", "with_offset"):
        _require(type(facts[name]) is bool, f"{name} is not a bool")
    loss = loss_from(facts["loss"])
    _require(traits_of(loss).copies in (None, n_outputs), f"{loss!r} and {n_outputs} outputs")
    classes, shift, scale = None, np.zeros(n_outputs), np.ones(n_outputs)
    if issubclass(kind, BoostBPClassifier):
        classes = _labels_from(facts["classes"])
        expected = 1 if len(classes) == 2 else len(classes)
        _require(n_outputs == expected, f"{len(classes)} classes and {n_outputs} outputs")
    else:
        _require(facts["classes"] is None, "it holds classes")
        shift, scale = (take(arrays, name, float, (n_outputs,)) for name in ("shift", "scale"))
    one_dimensional, is_input = facts["one_dimensional"], facts["is_input"]
    _require(not (one_dimensional and n_outputs > 1), f"{n_outputs} outputs in one dimension")
    _require(is_input == issubclass(kind, BoostBPAutoencoder), "another target than the input")
    _require(not is_input or n_outputs == n_features, f"{n_outputs} outputs for {n_features} features")
    targets = Targets(loss, shift, scale, classes, one_dimensional, is_input)
    calibration = None
    if _CALIBRATION["scores"] in arrays:
        calibration = _calibration_from(arrays, 1 if classes is not None else n_outputs)
    history = history_from(facts["history"])
    return Model(
        schema,
        targets,
        network,
        history,
        Summary(summary["center"], summary.__getitem__),
        facts["with_offset"],
        calibration,
    )


def _calibration_from(arrays: Arrays, n_columns: int) -> Calibration:
    scores = take(arrays, _CALIBRATION["scores"], float, (None, n_columns))
    weight = take(arrays, _CALIBRATION["weight"], float, (len(scores),))
    _require(len(scores) > 0 and bool(np.isfinite(scores).all()), "its calibration has no scores")
    _require(bool(np.isfinite(weight).all() and (weight > 0).all()), "its calibration has no weights")
    return Calibration(scores, weight)


def _labels_of(classes: NDArray[Any]) -> dict[str, Any]:
    values = classes.tolist()
    if not all(type(value) in _LABELS for value in values):
        raise ValueError(f"classes_={classes!r} cannot be stored: the labels must be text, numbers or bools.")
    text = classes.dtype.kind == "U"  # the labels determine its length
    return {"dtype": "U" if text else classes.dtype.newbyteorder("<").str, "values": values}


def _labels_from(facts: dict[str, Any]) -> NDArray[Any]:
    values, kind = facts["values"], facts["dtype"]
    valid = isinstance(values, list) and all(type(value) in _LABELS for value in values) and kind in _LABEL_DTYPES
    _require(valid and len(facts) == 2, f"the classes are {facts!r:.999}")
    labels = np.array(values, kind)
    exact = labels.shape == (len(values),) and labels.tolist() == values
    ascending = len(values) >= 2 and all(a < b for a, b in pairwise(values))
    _require(exact and ascending, f"the classes are {facts!r:.999}")
    return labels.astype(labels.dtype.newbyteorder("="))


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
