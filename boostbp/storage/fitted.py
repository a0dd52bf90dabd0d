"""Fitted state of an estimator as plain values and arrays, and back, checked."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.archive import Arrays, take
from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier
from boostbp.estimators.conformal import Calibration
from boostbp.inputs.schema import Schema
from boostbp.inspection.summary import SUMMARY, Summary
from boostbp.losses import traits_of
from boostbp.network.stored import history_from, history_of, loss_from, loss_of, network_from, network_of

_OUTPUT_CONFIG = "_sklearn_output_config"  # where scikit-learn keeps what set_output set
_OUTPUTS = [{"transform": container} for container in ("default", "pandas", "polars")]
_LABELS = (bool, int, float, str)
_LABEL_DTYPES = (
    "U",
    "|O",
    "|b1",
    *(f"{'|' if size == 1 else '<'}{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)),
    *("<f2", "<f4", "<f8"),
)
_SCALED = {"shift": "_shift", "scale": "_scale"}
_CALIBRATION = {field.name: f"calibration.{field.name}" for field in fields(Calibration)}


def fitted_of(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """What JSON holds of the fitted state, and the arrays.

    Raises
    ------
    ValueError
        If the loss or the basis is the user's own, or a class is neither text nor number.
    """
    facts, arrays = network_of(estimator.network_)
    state: dict[str, Any] = {
        "network": facts,
        "schema": estimator.schema_.to_dict(),
        "feature_names": None,
        "history": history_of(estimator.history_),
        "set_output": getattr(estimator, _OUTPUT_CONFIG, None),
    }
    arrays |= {f"summary.{name}": getattr(estimator.feature_summary_, name) for name in SUMMARY}
    if hasattr(estimator, "feature_names_in_"):
        state["feature_names"] = [str(name) for name in estimator.feature_names_in_]
    if isinstance(estimator, BoostBPClassifier):
        state["classes"] = _labels_of(estimator.classes_)
    else:
        arrays |= {name: getattr(estimator, attribute) for name, attribute in _SCALED.items()}
    if not isinstance(estimator, BoostBPAutoencoder):
        if estimator._calibration is not None:
            arrays |= {name: getattr(estimator._calibration, field) for field, name in _CALIBRATION.items()}
        try:
            state["loss"] = loss_of(estimator._loss)
        except TypeError as error:
            raise ValueError(f"loss cannot be stored: {error}. Keep the model by pickle or joblib.") from error
        state["offset"] = bool(estimator._fitted_with_offset)
    if hasattr(estimator, "_one_dimensional"):
        state["one_dimensional"] = bool(estimator._one_dimensional)
    return state, arrays


def fitted_from(kind: type, state: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Attributes of an estimator of that kind, by name.

    Raises
    ------
    ValueError
        If they do not fit together.
    """
    _require(set(state) == _of_kind(kind), f"it holds {sorted(state)}")
    network = network_from(state["network"], arrays)
    schema = Schema.from_dict(state["schema"])
    history = history_from(state["history"])
    n_outputs = len(network.baseline)
    _require(
        network.layers[0].forest.n_features == schema.n_features, "the network reads other features than the schema"
    )
    summary = {name: take(arrays, f"summary.{name}", float, (schema.n_features,)) for name in SUMMARY}
    attributes: dict[str, Any] = {
        "network_": network,
        "schema_": schema,
        "history_": history,
        "n_iter_": len(history) - 1,
        "n_features_in_": schema.n_features,
        "feature_summary_": Summary(summary["center"], summary.__getitem__),
    }
    names = state["feature_names"]
    if names is not None:
        listed = isinstance(names, list) and list(map(type, names)) == [str] * schema.n_features
        _require(listed, f"feature_names are {names!r:.99}")
        attributes["feature_names_in_"] = np.array(names, object)
    if state["set_output"] is not None:
        _require(state["set_output"] in _OUTPUTS, f"set_output is {state['set_output']!r:.99}")
        attributes[_OUTPUT_CONFIG] = state["set_output"]
    if issubclass(kind, BoostBPClassifier):
        attributes["classes_"] = _labels_from(state["classes"])
        expected = 1 if len(attributes["classes_"]) == 2 else len(attributes["classes_"])
        _require(n_outputs == expected, f"{len(attributes['classes_'])} classes and {n_outputs} outputs")
    else:
        attributes |= {attribute: take(arrays, name, float, (n_outputs,)) for name, attribute in _SCALED.items()}
    if issubclass(kind, BoostBPAutoencoder):
        _require(n_outputs == schema.n_features, f"{n_outputs} outputs for {schema.n_features} features")
        return attributes
    if _CALIBRATION["scores"] in arrays:
        attributes["_calibration"] = _calibration_from(arrays, 1 if issubclass(kind, BoostBPClassifier) else n_outputs)
    _require(type(state["offset"]) is bool, "offset is no truth value")
    attributes["_fitted_with_offset"] = state["offset"]
    attributes["_loss"] = loss = loss_from(state["loss"])
    _require(traits_of(loss).copies in (None, n_outputs), f"{loss!r} and {n_outputs} outputs")
    if not issubclass(kind, BoostBPClassifier):
        _require(type(state["one_dimensional"]) is bool, "one_dimensional is no truth value")
        _require(n_outputs == 1 or not state["one_dimensional"], f"{n_outputs} outputs in one dimension")
        attributes["_one_dimensional"] = state["one_dimensional"]
    return attributes


def _calibration_from(arrays: Arrays, n_columns: int) -> Calibration:
    scores = take(arrays, _CALIBRATION["scores"], float, (None, n_columns))
    weight = take(arrays, _CALIBRATION["weight"], float, (len(scores),))
    _require(len(scores) > 0 and bool(np.isfinite(scores).all()), "its calibration has no scores")
    _require(bool(np.isfinite(weight).all() and (weight > 0).all()), "its calibration has no weights")
    return Calibration(scores, weight)


def _of_kind(kind: type) -> set[str]:
    """What is stored of the fitted state of such an estimator."""
    common = {"network", "schema", "feature_names", "history", "set_output"}
    if issubclass(kind, BoostBPAutoencoder):
        return common
    return common | {"loss", "offset", "classes" if issubclass(kind, BoostBPClassifier) else "one_dimensional"}


def _labels_of(classes: NDArray[Any]) -> dict[str, Any]:
    values = classes.tolist()
    if not all(type(value) in _LABELS for value in values):
        raise ValueError(f"classes_={classes!r} cannot be stored: the labels must be text, numbers or truth values.")
    text = classes.dtype.kind == "U"  # as long as the longest label, which alone a file proves
    return {"dtype": "U" if text else classes.dtype.newbyteorder("<").str, "values": values}


def _labels_from(facts: dict[str, Any]) -> NDArray[Any]:
    values, kind = facts["values"], facts["dtype"]
    good = isinstance(values, list) and all(type(value) in _LABELS for value in values) and kind in _LABEL_DTYPES
    _require(good and len(facts) == 2, f"the classes are {facts!r:.999}")
    labels = np.array(values, kind)
    alike = labels.shape == (len(values),) and labels.tolist() == values
    sorted_ = len(values) >= 2 and all(a < b for a, b in pairwise(values))
    _require(alike and sorted_, f"the classes are {facts!r:.999}")
    return labels.astype(labels.dtype.newbyteorder("="))


def _require(good: bool, what: str) -> None:
    if not good:
        raise ValueError(what)
