"""Storage: a fitted estimator in one file of data, without pickle.

The file is an `boostbp.archive`, kind "model", version 7. Its content is

- ``estimator``: "BoostBPRegressor", "BoostBPClassifier" or "BoostBPAutoencoder";
- ``parameters``: those of the constructor (see `boostbp.plain`; ``{"loss": ...}``, ``{"step": ...}`` and
  ``{"basis": ...}`` for objects that are known by name, ``{"spec": {...}}`` and ``{"dict": {...}}`` for specs by their
  fields), but for rows or a splitter as `validation`, which belong to a run;
- ``network``: for each layer ``n_features``, ``n_outputs``, ``basis`` and ``clip``; its arrays are
  ``layer{i}.NAME`` (see `boostbp.trees.packed`), and ``baseline``;
- ``schema`` (`Schema.to_dict`), ``history``, ``with_offset``, and ``set_output`` of the estimator;
- ``loss``, ``classes``, ``one_dimensional`` and ``is_input``, and the arrays ``shift`` and ``scale`` where targets are
  numbers (`boostbp.model.Targets`);
- the arrays ``summary.NAME`` of the training rows, with the names in `Summary`;
- of a model that was calibrated, the arrays ``calibration.scores`` and ``calibration.weight``.

Reading executes nothing from the file, needs no boosting library, and checks all sizes and indices before
compiled code sees them.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

from boostbp import archive, plain
from boostbp.archive import Arrays
from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.base import BaseBoostBP
from boostbp.estimators.nested_parameters import SPECS
from boostbp.estimators.parameters import settings_of
from boostbp.floats import usual_floats
from boostbp.model import Model
from boostbp.network.stored import loss_from, loss_of, step_from, step_of
from boostbp.storage.fitted import facts_of, model_from
from boostbp.trees import interrupts
from boostbp.trees.basis import BASES

KIND, VERSION = "model", 7
# 1, 2 and 4 had other arrays of trees, 3 another parameter; 5 replaced cells of the input; 6 named other facts
OLDEST = 7
_CLASSES: dict[str, Any] = {
    estimator.__name__: estimator for estimator in (BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor)
}
Path = str | os.PathLike[str]
Fitted = BoostBPRegressor | BoostBPClassifier | BoostBPAutoencoder
_OUTPUT_CONFIG = "_sklearn_output_config"  # where scikit-learn keeps what set_output set
_OUTPUTS = [{"transform": container} for container in ("default", "pandas", "polars")]
_KIND = "state"
_STATE = "_fitted_state"
_OF_A_RUN = "validation"  # belongs to the process that trained, not to the model, unless it is a word or a number


@usual_floats()
def save(estimator: BaseBoostBP, path: Path | BinaryIO) -> None:
    """Save a fitted estimator to one file: arrays and a JSON header, no pickle.

    The file is written atomically, so an earlier file at `path` is whole until the new one is.

    Parameters
    ----------
    estimator : BoostBPRegressor, BoostBPClassifier or BoostBPAutoencoder
        Fitted. A splitter or rows in `validation` are not kept, nor what `set_fit_request` and its like asked for.
    path : str, path or binary file
        Any name; it is overwritten. Or what has a method ``write`` of bytes, such as an `io.BytesIO`.

    Raises
    ------
    ValueError
        If a parameter holds code of your own (a basis, loss, backend or metric), or is out of bounds; it is named.
    TypeError
        If `estimator` is something else, such as a mixture with a neural network, which pickle keeps, or `path` is.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> import os, tempfile
    >>> import boostbp
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = boostbp.BoostBPClassifier((4,), epochs=1, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     boostbp.save(model, os.path.join(folder, "iris.boostbp"))
    ...     again = boostbp.load(os.path.join(folder, "iris.boostbp"))
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    name = type(estimator).__name__
    if hasattr(estimator, "to_local"):
        raise TypeError(f"{name} cannot be stored: store the local estimator, save(model.to_local(), ...).")
    if type(estimator) is not _CLASSES.get(name):
        known = ", ".join(sorted(_CLASSES))
        raise TypeError(
            f"{name} cannot be stored: give a fitted {known}, nothing derived, or keep it by pickle or joblib."
        )
    check_is_fitted(estimator)
    check_parameters(estimator)  # as `load` does, which would refuse a value that was set after the fit
    facts, arrays = facts_of(estimator.model_)
    content = {"estimator": name, "parameters": parameters_of(estimator), "set_output": _output_of(estimator), **facts}
    told: dict[str, Any] = {"kind": KIND, "version": VERSION, "content": content, "arrays": arrays, "compress": True}
    if hasattr(path, "write"):
        path.write(archive.to_bytes(**told))
    else:
        archive.write(_checked(path), **told)


@usual_floats()
@interrupts.deferred()  # what a handler raises is no fault of the file
def load(path: Path | BinaryIO) -> Fitted:
    """Load an estimator that `save` saved; its predictions are the same to the bit.

    Nothing in the file is executed, and neither lightgbm nor xgboost is needed.

    Parameters
    ----------
    path : str, path or binary file
        Or what has a method ``read`` that gives bytes, such as an `io.BytesIO`.

    Returns
    -------
    BoostBPRegressor, BoostBPClassifier or BoostBPAutoencoder

    Raises
    ------
    ValueError
        If the file is foreign, truncated, corrupted, inconsistent, or of a later version.
    OSError
        If it cannot be read.
    TypeError
        If `path` is something else, such as bytes: give ``io.BytesIO(data)``.
    """
    kind: dict[str, Any] = {"kind": KIND, "version": VERSION, "oldest": OLDEST}
    try:
        if not hasattr(path, "read"):
            loaded: Fitted = archive.load(_checked(path), _rebuilt, **kind)
            return loaded
        data = path.read()
        if not isinstance(data, bytes):
            raise TypeError(f"path.read() gives a {type(data).__name__}, not bytes: open the file by open(name, 'rb').")
        return archive.from_bytes(data, str(getattr(path, "name", type(path).__name__)), _rebuilt, **kind)
    finally:
        give_back()


def _checked(path: Any) -> Path:
    """Return a path; numbers and bytes, which `open` accepts too, are refused."""
    if not isinstance(path, str | os.PathLike):
        cure = "io.BytesIO(data) for the bytes of a file" if isinstance(path, bytes | bytearray) else "an open file"
        raise TypeError(f"path is a {type(path).__name__}: give the name of a file, or {cure}.")
    return path


def _rebuilt(content: Any, arrays: Arrays) -> BaseBoostBP:
    kind = _CLASSES[content["estimator"]]
    facts = {name: value for name, value in content.items() if name not in ("parameters", "estimator", "set_output")}
    parameters = {name: _decoded(name, value) for name, value in content["parameters"].items()}
    estimator: BaseBoostBP = kind(**parameters)
    for name, value in _attributes_of(model_from(kind, facts, arrays)).items():
        setattr(estimator, name, value)
    if content["set_output"] is not None:
        if content["set_output"] not in _OUTPUTS:
            raise ValueError(f"set_output is {content['set_output']!r:.99}")
        setattr(estimator, _OUTPUT_CONFIG, content["set_output"])
    check_parameters(estimator)
    return estimator


def _output_of(estimator: BaseBoostBP) -> Any:
    return getattr(estimator, _OUTPUT_CONFIG, None)


def _attributes_of(model: Model) -> dict[str, Any]:
    """Return the fitted attributes of an estimator with this model."""
    schema = model.schema
    attributes: dict[str, Any] = {"model_": model, "n_features_in_": schema.n_features}
    if schema.names is not None:
        attributes["feature_names_in_"] = np.array(schema.names, object)
    return attributes


def pack(estimator: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes with bytes in the place of those that a fit made.

    An estimator that is not fitted, derived, or holds code of the user's own has them as they are.
    """
    if type(estimator) not in (BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor) or "model_" not in attributes:
        return attributes
    try:
        content, arrays = facts_of(attributes["model_"])
    except ValueError:
        return attributes
    data = archive.to_bytes(kind=_KIND, version=VERSION, content=content, arrays=arrays)
    held = _attributes_of(attributes["model_"])
    return {name: value for name, value in attributes.items() if name not in held} | {_STATE: data}


def unpack(kind: type[BaseBoostBP], state: dict[str, Any]) -> dict[str, Any]:
    """The attributes that `pack` took.

    Raises
    ------
    ValueError
        If the bytes are corrupted, inconsistent, or of a later version, or a parameter is not there.
    """
    attributes = dict(state)
    if _STATE not in attributes:
        return attributes
    absent = sorted(set(kind._get_param_names()) - attributes.keys())
    if absent:
        raise ValueError(
            f"The stored {kind.__name__} has no {', '.join(absent)}: it is damaged, or of another version. Get a new "
            "copy, or fit and store it anew."
        )
    return attributes | _read(kind, attributes.pop(_STATE))


def _read(kind: type, data: bytes) -> dict[str, Any]:
    model: Model = archive.from_bytes(
        data, _STATE, partial(model_from, kind), kind=_KIND, version=VERSION, oldest=OLDEST
    )
    return _attributes_of(model)


BaseBoostBP._packing = (pack, unpack)


def give_back() -> None:
    """Let the C library return what was freed: glibc keeps, of what reading a model took, half as much as it holds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Parameters as plain values; rows or splitters in `validation` are left out, specs are told by their fields.

    Raises
    ------
    ValueError
        If a parameter holds an object of the user's own; it is named.
    """
    params = {}
    for name, value in estimator.get_params(deep=False).items():
        if name == _OF_A_RUN and not isinstance(value, str | float):
            continue
        try:
            params[name] = _encoded(name, value)
        except TypeError as error:
            raise ValueError(
                f"{name} cannot be stored: {error}. Set a name instead where there is one, "
                f"or keep the model by pickle or joblib."
            ) from error
    return params


def check_parameters(estimator: Any) -> None:
    """Check the parameters of a fitted estimator as `fit` would.

    Raises
    ------
    ValueError
        If one is out of bounds; it is named.
    """
    settings_of(estimator, 1, len(estimator.network_.baseline), 0, estimator.schema_)


def _basis_of(basis: Any) -> str:
    name = next((name for name, known in BASES.items() if known == basis), None)
    if name is None:
        raise TypeError(f"{basis!r} has functions of your own, which are code: a file of data does not hold them")
    return name


def _basis_from(name: Any) -> Any:
    if not isinstance(name, str) or name not in BASES:
        raise ValueError(f"This is not a basis: {name!r:.99}.")
    return BASES[name]


# Parameters that may be objects, how these are told in plain values, and made from them.
_OBJECTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "basis": (_basis_of, _basis_from),
    "loss": (loss_of, loss_from),
    "step": (step_of, step_from),
}


def _encoded(name: str, value: Any) -> Any:
    if name in SPECS and isinstance(value, list | tuple):
        return [_encoded(name, spec) for spec in value]
    if name in SPECS and value is not None:
        values = dict(value) if isinstance(value, Mapping) else _fields_of(value)
        encoded = {field: _encoded(field, content) for field, content in values.items()}
        return {"dict" if isinstance(value, Mapping) else "spec": encoded}
    if name in _OBJECTS and not isinstance(value, str):
        told, _ = _OBJECTS[name]
        return {name: told(value)}
    return plain.encode(value)


def _fields_of(spec: Any) -> dict[str, Any]:
    """Fields of a spec that are not at their defaults."""
    changed = {field.name: getattr(spec, field.name) for field in fields(spec)}
    return {name: value for name, value in changed.items() if value != getattr(type(spec)(), name)}


def _decoded(name: str, value: Any) -> Any:
    if name in SPECS and isinstance(value, list):
        return [_decoded(name, spec) for spec in value]
    if name in SPECS and value is not None:
        form = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else ""
        if form not in ("dict", "spec") or not isinstance(value[form], dict):
            raise ValueError(f"This is not a spec: {name}={value!r:.99}.")
        decoded = {field: _decoded(field, held) for field, held in value[form].items()}
        return decoded if form == "dict" else SPECS[name].of(decoded, name)
    if name in _OBJECTS and isinstance(value, dict) and set(value) == {name}:
        _, made = _OBJECTS[name]
        return made(value[name])
    return plain.decode(value)
