"""State of fitted estimators for pickle and files: a model as plain values and arrays, and back with checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from boostbp.inputs.schema import Schema
from boostbp.losses import traits_of
from boostbp.model.model import Calibration, Model, Targets
from boostbp.model.summary import SUMMARY, Summary
from boostbp.network.stored import history_from, loss_from, loss_of, network_from, network_of
from boostbp.runtime import archive, plain
from boostbp.runtime.archive import Arrays, take

VERSION = 11  # of the content of files and pickles
OLDEST = 9  # earlier versions have another format; version 9 has no runs and refits, 10 no options of files
_STATE, _STATE_KIND = "_fitted_state", "state"
# Attributes of a training that copies of a fitted estimator leave out; scikit-learn does the same since 1.9.
TRAINING_ATTRIBUTES = ("_training", "_callback_fit_ctx", "_parent_callback_ctx")
_LABELS = (bool, int, float, str)
_LABEL_DTYPE = re.compile(r"U|\|O|\|b1|\|[iu]1|<[iu][248]|<f[248]")
_FACTS = {"network", "schema", "history", "loss", "classes", "one_dimensional", "is_input", "with_offset"}
_CURVES = ("event_times", "hazard")
_CALIBRATION = {field.name: f"calibration.{field.name}" for field in fields(Calibration)}


def model_facts(model: Model) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON content and the arrays of a model.

    Raises ValueError if the loss or the basis is the user's own code, or a class is neither text nor a number.
    """
    network, arrays = network_of(model.network)
    targets = model.targets
    try:
        loss = loss_of(targets.loss)
    except TypeError as error:
        raise ValueError(f"loss cannot be stored: {error}. Store the model with pickle or joblib.") from error
    facts = {"network": network}
    facts |= {name: plain.encode(getattr(model, name), records=True) for name in ("schema", "history")}
    facts |= {"loss": loss, "classes": None if targets.classes is None else _labels_of(targets.classes)}
    facts |= {name: getattr(targets, name) for name in ("one_dimensional", "is_input")}
    facts["with_offset"] = model.with_offset
    facts |= {} if targets.zero_one is None else {"zero_one": _labels_of(targets.zero_one)}
    arrays |= {f"summary.{name}": getattr(model.summary, name) for name in SUMMARY}
    if targets.classes is None:
        arrays |= {"shift": targets.shift, "scale": targets.scale}
    arrays |= {name: getattr(model, name) for name in _CURVES if getattr(model, name) is not None}
    if model.calibration is not None:
        arrays |= {name: getattr(model.calibration, field) for field, name in _CALIBRATION.items()}
    return facts, arrays


def model_from(kind: type, facts: dict[str, Any], arrays: Arrays) -> Model:
    """Return the model of an estimator of a class from its JSON content and arrays; ValueError if they do not fit."""
    _require(set(facts) - {"zero_one"} == _FACTS, f"it holds {sorted(facts)}")
    network, schema = network_from(facts["network"], arrays), Schema.decoded(facts["schema"])
    n_features, n_outputs = schema.n_features, len(network.baseline)
    _require(network.layers[0].forest.n_features == n_features, "the network reads other features than the schema")
    summary = {name: take(arrays, f"summary.{name}", float, (n_features,)) for name in SUMMARY}
    for name in ("one_dimensional", "is_input", "with_offset"):
        _require(type(facts[name]) is bool, f"{name} is not a bool")
    loss = loss_from(facts["loss"])
    _require(traits_of(loss).copies in (None, n_outputs), f"{loss!r} and {n_outputs} outputs")
    zero_one = _labels_from(facts["zero_one"]) if "zero_one" in facts else None
    multilabel = zero_one is not None
    _require(zero_one is None or zero_one.tolist() == [0, 1], f"{facts.get('zero_one')!r:.99} for 0 and 1")
    classes, shift, scale = None, np.zeros(n_outputs), np.ones(n_outputs)
    has_classes = facts["classes"] is not None
    _require(issubclass(kind, ClassifierMixin) == has_classes, "the classes are missing, or too many")
    _require(multilabel == (has_classes and traits_of(loss).multilabel), f"{loss!r} for other labels")
    if has_classes:
        classes = _labels_from(facts["classes"], ascending=not multilabel)
        expected = 1 if len(classes) == 2 and not multilabel else len(classes)
        _require(n_outputs == expected, f"{len(classes)} classes and {n_outputs} outputs")
    else:
        shift, scale = (take(arrays, name, float, (n_outputs,)) for name in ("shift", "scale"))
    one_dimensional, is_input = facts["one_dimensional"], facts["is_input"]
    _require(not (one_dimensional and n_outputs > 1), f"{n_outputs} outputs in one dimension")
    _require(is_input == (kind.__name__ == "BoostBPAutoencoder"), "another target than the input")
    _require(not is_input or n_outputs == n_features, f"{n_outputs} outputs for {n_features} features")
    targets = Targets(loss, shift, scale, classes, one_dimensional, is_input, zero_one)
    n_columns = 1 if has_classes else n_outputs
    calibration = _calibration_from(arrays, n_columns) if _CALIBRATION["scores"] in arrays else None
    curves = {}
    if traits_of(loss).task == "survival":
        curves = _curves_from(arrays, with_hazard=traits_of(loss).link_name == "identity")
    _require(bool(curves) == (kind.__name__ == "BoostBPSurvival"), f"the loss {loss!r}")
    history = history_from(facts["history"])
    of_rows = Summary(summary["center"], summary.__getitem__)
    return Model(schema, targets, network, history, of_rows, facts["with_offset"], calibration, **curves)


def _curves_from(arrays: Arrays, *, with_hazard: bool) -> Arrays:
    times = take(arrays, "event_times", float, (None,))
    _require(len(times) > 0 and bool(np.isfinite(times).all() and times[0] >= 0), "its times are no times")
    _require(bool((np.diff(times) > 0).all()), "its times do not ascend")
    if not with_hazard:
        return {"event_times": times}
    hazard = take(arrays, "hazard", float, (len(times),))
    _require(bool(np.isfinite(hazard).all() and (np.diff(hazard, prepend=0.0) >= 0).all()), "its hazard falls")
    return {"event_times": times, "hazard": hazard}


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


def _labels_from(facts: dict[str, Any], *, ascending: bool = True) -> NDArray[Any]:
    values, kind = facts["values"], facts["dtype"]
    valid = len(facts) == 2 and isinstance(values, list) and all(type(value) in _LABELS for value in values)
    _require(valid and bool(_LABEL_DTYPE.fullmatch(kind)), f"the classes are {facts!r:.999}")
    labels = np.array(values, kind)
    exact = labels.shape == (len(values),) and labels.tolist() == values
    # several labels have the order of their columns
    distinct = len(values) >= 2 and all(a < b for a, b in pairwise(values if ascending else sorted(values)))
    _require(exact and distinct, f"the classes are {facts!r:.999}")
    return labels.astype(labels.dtype.newbyteorder("="))


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def fitted_attributes(model: Model) -> dict[str, Any]:
    """Return the fitted attributes of an estimator with this model."""
    names = model.schema.names
    of_names = {} if names is None else {"feature_names_in_": np.array(names, object)}
    return {"model_": model, "n_features_in_": model.schema.n_features, **of_names}


def stored_attributes(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an estimator without those of a training."""
    return {name: value for name, value in state.items() if name not in TRAINING_ATTRIBUTES or "model_" not in state}


def pack_state(kind: type[Any], attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an estimator for pickle, with the bytes of an archive in place of the fitted ones.

    The attributes stay as they are if the estimator is not fitted, has a subclass, or contains the user's own code.
    """
    if not kind.__module__.startswith("boostbp.estimators.") or "model_" not in attributes:
        return attributes
    model = attributes["model_"]
    try:
        content, arrays = model_facts(model)
    except ValueError:
        return attributes
    data = archive.to_bytes(kind=_STATE_KIND, version=VERSION, content=content, arrays=arrays)
    packed = fitted_attributes(model)
    return {name: value for name, value in attributes.items() if name not in packed} | {_STATE: data}


def unpack_state(kind: type[Any], state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes from which `pack_state` made the state.

    Raises ValueError if the bytes are corrupted, inconsistent, or of another version, or a parameter is missing.
    """
    attributes = dict(state)
    if _STATE not in attributes:
        return attributes
    absent = sorted(set(kind._get_param_names()) - attributes.keys())
    if absent:
        raise ValueError(
            f"The stored {kind.__name__} has no {', '.join(absent)}: it is damaged, or of another version. Get a new "
            "copy, or fit and store it again."
        )
    data, build = attributes.pop(_STATE), partial(model_from, kind)
    model = archive.from_bytes(data, _STATE, build, kind=_STATE_KIND, version=VERSION, oldest=OLDEST)
    return attributes | fitted_attributes(model)
