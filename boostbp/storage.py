"""Files of fitted estimators, without pickle.

The file is a `boostbp.runtime.archive`, kind "model", version 11. Its content is

- ``estimator``, the name of its class, and ``set_output``;
- ``parameters``: arguments of the constructor (see `boostbp.runtime.plain`). ``{"loss": ...}``, ``{"step": ...}`` and
  ``{"basis": ...}`` are objects with a name, ``{"spec": {...}}`` and ``{"dict": {...}}`` are specs with their fields;
- the entries and arrays of `boostbp.estimators.state.model_facts`.

Reading executes nothing from the file, and checks all sizes and indices before the core reads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from numbers import Real
from typing import Any, BinaryIO, cast

from sklearn.utils.validation import check_is_fitted

from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival
from boostbp.estimators.base import BaseBoostBP
from boostbp.estimators.nested_parameters import SPECS
from boostbp.estimators.request import Request
from boostbp.estimators.state import OLDEST, VERSION, fitted_attributes, model_facts, model_from
from boostbp.network.layers import LayerSpec
from boostbp.network.settings import BackpropSpec
from boostbp.network.stored import loss_from, loss_of, step_from, step_of
from boostbp.runtime import archive, interrupts, plain
from boostbp.runtime.archive import Arrays
from boostbp.runtime.arrays import numpy_errstate
from boostbp.trees.basis import BASES, Basis

__all__ = ["load", "save"]

MODEL_KIND = "model"
_ESTIMATORS = {
    kind.__name__: kind
    for kind in (BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival)
}
Path = str | os.PathLike[str]
_OUTPUT_CONFIG = "_sklearn_output_config"  # attribute of scikit-learn for set_output
_OUTPUTS = [{"transform": container} for container in ("default", "pandas", "polars")]


@numpy_errstate()
def save(estimator: BaseBoostBP, path: Path | BinaryIO) -> None:
    """Save a fitted estimator to one file of arrays and a JSON header, without pickle.

    The file is written atomically: an earlier file at `path` stays intact until the new one is complete.

    Parameters
    ----------
    estimator : BoostBPRegressor, BoostBPClassifier, BoostBPRanker, BoostBPSurvival or BoostBPAutoencoder
        Fitted estimator. A splitter or rows in `validation` are not stored, nor are requests of metadata, such as those
        of `set_fit_request`.
    path : str, path or binary file
        File name, which is overwritten, or an object with a method ``write`` for bytes, such as `io.BytesIO`.

    Raises
    ------
    ValueError
        If a parameter contains your own code (a basis, loss, backend or metric) or is out of bounds; the message names
        it.
    TypeError
        If `estimator` or `path` has another type. Pickle can store a mixture with a neural network.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.

    Examples
    --------
    >>> import os, tempfile
    >>> import boostbp
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = boostbp.BoostBPClassifier((4,), epochs=1, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     boostbp.save(model, os.path.join(folder, "iris.boostbp"))
    ...     loaded = boostbp.load(os.path.join(folder, "iris.boostbp"))
    >>> bool((loaded.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    name = type(estimator).__name__
    if hasattr(estimator, "to_local"):
        raise TypeError(f"{name} cannot be stored: store the local estimator, save(model.to_local(), ...).")
    if type(estimator) is not _ESTIMATORS.get(name):
        known = ", ".join(sorted(_ESTIMATORS))
        raise TypeError(f"{name} cannot be stored: give a fitted {known}, not a subclass, or use pickle or joblib.")
    check_is_fitted(estimator)
    check_parameters(estimator)  # `load` would refuse an invalid value that was set after the fit
    facts, arrays = model_facts(estimator.model_)
    set_output = getattr(estimator, _OUTPUT_CONFIG, None)
    content = {"estimator": name, "parameters": parameters_of(estimator), "set_output": set_output, **facts}
    stored: Any = {"kind": MODEL_KIND, "version": VERSION, "content": content, "arrays": arrays, "compress": True}
    if hasattr(path, "write"):
        cast(Any, path).write(archive.to_bytes(**stored))
    else:
        archive.write(_checked_path(path), **stored)


@numpy_errstate()
@interrupts.deferred()  # otherwise an exception of a signal handler would look like a fault of the file
def load(
    path: Path | BinaryIO,
) -> BoostBPRegressor | BoostBPClassifier | BoostBPRanker | BoostBPSurvival | BoostBPAutoencoder:
    """Load an estimator that `save` wrote; its predictions are the same to the bit.

    Loading executes no code from the file, and needs neither lightgbm nor xgboost.

    Parameters
    ----------
    path : str, path or binary file
        File name, or an object with a method ``read`` that returns bytes, such as `io.BytesIO`.

    Returns
    -------
    BoostBPRegressor, BoostBPClassifier, BoostBPRanker, BoostBPSurvival or BoostBPAutoencoder

    Raises
    ------
    ValueError
        If the file has another format or a later version, or is truncated, corrupted or inconsistent.
    OSError
        If the file cannot be read.
    TypeError
        If `path` has another type. For bytes, give ``io.BytesIO(data)``.
    """
    if not hasattr(path, "read"):
        return archive.read(_checked_path(path), _rebuilt, kind=MODEL_KIND, version=VERSION, oldest=OLDEST)
    data = cast(Any, path).read()
    if not isinstance(data, bytes):
        raise TypeError(f"path.read() returns a {type(data).__name__}, not bytes: open the file with open(name, 'rb').")
    name = str(getattr(path, "name", type(path).__name__))
    return archive.from_bytes(data, name, _rebuilt, kind=MODEL_KIND, version=VERSION, oldest=OLDEST)


def _checked_path(path: Any) -> Path:
    """Return a path; raise TypeError for numbers and bytes, which `open` would accept."""
    if not isinstance(path, str | os.PathLike):
        cure = "io.BytesIO(data) for the bytes of a file" if isinstance(path, bytes | bytearray) else "an open file"
        raise TypeError(f"path is a {type(path).__name__}: give the name of a file, or {cure}.")
    return path


def _rebuilt(content: Any, arrays: Arrays) -> Any:
    """Return the estimator that a file describes."""
    kind = _ESTIMATORS[content["estimator"]]
    facts = {name: value for name, value in content.items() if name not in ("parameters", "estimator", "set_output")}
    estimator = kind(**{name: _decoded(name, value) for name, value in content["parameters"].items()})
    estimator.__dict__.update(fitted_attributes(model_from(kind, facts, arrays)))
    if content["set_output"] is not None:
        if content["set_output"] not in _OUTPUTS:
            raise ValueError(f"set_output is {content['set_output']!r:.99}")
        setattr(estimator, _OUTPUT_CONFIG, content["set_output"])
    check_parameters(estimator)
    return estimator


def parameters_of(estimator: BaseBoostBP) -> dict[str, Any]:
    """Return the parameters as plain values, and specs as dicts; ValueError with the name of one with a user's code."""
    params = {}
    for name, value in estimator.get_params(deep=False).items():
        if name == "validation" and not isinstance(value, str | Real):
            continue  # rows and splitters belong to a training
        try:
            params[name] = _encoded(name, value)
        except TypeError as error:
            raise ValueError(f"{name} cannot be stored: {error}. Set a name, or use pickle.") from error
    return params


def check_parameters(estimator: BaseBoostBP) -> None:
    """Raise ValueError if a parameter of a fitted estimator is out of bounds, as `fit` would."""
    model = estimator.model_
    Request.of(estimator).settings(1, len(model.network.baseline), 0, model.schema)


def _basis_of(basis: Any) -> str:
    name = next((name for name, known in BASES.items() if known == basis), None)
    if name is None:
        raise TypeError(f"{basis!r} has functions of your own, and files do not store code")
    return name


def _basis_from(name: Any) -> Basis:
    if not isinstance(name, str) or name not in BASES:
        raise ValueError(f"This is not a basis: {name!r:.99}.")
    return BASES[name]


# Parameters that may be objects: functions from the object to a plain value and back.
_OBJECTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "basis": (_basis_of, _basis_from),
    "loss": (loss_of, loss_from),
    "step": (step_of, step_from),
}


def _encoded(name: str, value: Any) -> Any:
    """Return a parameter, or a field of a spec, as a plain value."""
    if name in SPECS and isinstance(value, Sequence):
        return [_encoded(name, spec) for spec in value]
    if name in SPECS and value is not None:
        is_dict = isinstance(value, Mapping)
        values = dict(value) if is_dict else _non_default_fields(value)
        return {"dict" if is_dict else "spec": {field: _encoded(field, content) for field, content in values.items()}}
    if name in _OBJECTS and not isinstance(value, str):
        return {name: _OBJECTS[name][0](value)}
    return plain.encode(value)


def _non_default_fields(spec: LayerSpec | BackpropSpec) -> dict[str, Any]:
    """Return the fields of a spec that are not at their defaults."""
    values = {field.name: getattr(spec, field.name) for field in fields(spec)}
    return {name: value for name, value in values.items() if value != getattr(type(spec)(), name)}


def _decoded(name: str, value: Any) -> Any:
    """Return the parameter or field of a plain value that `_encoded` returned."""
    if name in SPECS and isinstance(value, list):
        return [_decoded(name, spec) for spec in value]
    if name in SPECS and value is not None:
        form = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else ""
        if form not in ("dict", "spec") or not isinstance(value[form], dict):
            raise ValueError(f"This is not a spec: {name}={value!r:.99}.")
        decoded = {field: _decoded(field, content) for field, content in value[form].items()}
        return decoded if form == "dict" else SPECS[name].of(decoded, name)
    if name in _OBJECTS and isinstance(value, dict) and set(value) == {name}:
        return _OBJECTS[name][1](value[name])
    return plain.decode(value)
