"""Storage: a fitted estimator in one file of data, without pickle.

The file is an `boostbp.archive`, kind "model", version 3. Its content is

- ``estimator``: "BoostBPRegressor", "BoostBPClassifier" or "BoostBPAutoencoder";
- ``parameters``: those of the constructor (see `boostbp.plain`; ``{"loss": ...}``, ``{"step": ...}`` and
  ``{"basis": ...}`` for objects that are known by name, ``{"spec": {...}}`` and ``{"dict": {...}}`` for specs by their
  fields), but for rows or a splitter as `validation`, which belong to a run;
- ``network``: for each layer ``n_features``, ``n_outputs``, ``basis`` and ``clip``; its arrays are
  ``layer{i}.NAME`` (see `boostbp.trees.packed`), and ``baseline``;
- ``schema`` (`Schema.to_dict`), ``feature_names``, ``history``, ``set_output``;
- of what the estimator needs beside these: ``loss``, ``classes``, ``one_dimensional``, and the arrays
  ``shift``, ``scale`` and, of the training rows, ``summary.NAME`` with the names in `Summary`;
- of a model that was calibrated, the arrays ``calibration.scores`` and ``calibration.weight``;
- where mistyped cells are read otherwise, the arrays ``repair.NAME`` with the names in `Units` and `Normal` of
  `boostbp.inputs`.

Reading executes nothing from the file, needs no boosting library, and checks all sizes and indices before
compiled code sees them.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import partial
from typing import Any

from sklearn.utils.validation import check_is_fitted

from boostbp import archive
from boostbp.archive import Arrays
from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.base import BaseBoostBP
from boostbp.floats import usual_floats
from boostbp.storage.fitted import fitted_from, fitted_of
from boostbp.storage.json_parameters import check_parameters, parameters_from, parameters_of
from boostbp.trees import interrupts

KIND, VERSION = "model", 3
OLDEST = 3  # versions 1 and 2 had other arrays of leaves
_CLASSES: dict[str, Any] = {
    estimator.__name__: estimator for estimator in (BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor)
}
Path = str | os.PathLike[str]
_KIND = "state"
_STATE = "_fitted_state"


@usual_floats()
def save(estimator: BaseBoostBP, path: Path) -> None:
    """Save a fitted estimator to one file: arrays and a JSON header, no pickle.

    The file is written atomically, so an earlier file at `path` is whole until the new one is.

    Parameters
    ----------
    estimator : BoostBPRegressor, BoostBPClassifier or BoostBPAutoencoder
        Fitted. A splitter or rows in `validation` are not kept, nor what `set_fit_request` and its like asked for.
    path : str or path
        Any name; it is overwritten.

    Raises
    ------
    ValueError
        If a parameter holds code of your own (a basis, loss, backend or metric), or is out of bounds; it is named.
    TypeError
        If `estimator` is something else, such as a mixture with a neural network, which pickle keeps.
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
    if type(estimator) is not _CLASSES.get(name):
        known = ", ".join(sorted(_CLASSES))
        raise TypeError(
            f"{name} cannot be stored: give a fitted {known}, nothing derived, or keep it by pickle or joblib."
        )
    check_is_fitted(estimator)
    check_parameters(estimator)  # as `load` does, which would refuse a value that was set after the fit
    facts, arrays = fitted_of(estimator)
    content = {"estimator": name, "parameters": parameters_of(estimator), **facts}
    archive.write(path, kind=KIND, version=VERSION, content=content, arrays=arrays, compress=True)


@usual_floats()
@interrupts.deferred()  # what a handler raises is no fault of the file
def load(path: Path) -> Any:
    """Load an estimator that `save` saved; its predictions are the same to the bit.

    Nothing in the file is executed, and neither lightgbm nor xgboost is needed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    BoostBPRegressor, BoostBPClassifier or BoostBPAutoencoder

    Raises
    ------
    ValueError
        If the file is foreign, truncated, corrupted, inconsistent, or of a later version.
    OSError
        If it cannot be read.
    """
    try:
        return archive.load(path, _rebuilt, kind=KIND, version=VERSION, oldest=OLDEST)
    finally:
        give_back()


def _rebuilt(content: Any, arrays: Arrays) -> BaseBoostBP:
    kind = _CLASSES[content["estimator"]]
    parameters, state = content["parameters"], dict(content)
    del state["parameters"], state["estimator"]
    estimator: BaseBoostBP = kind(**parameters_from(parameters))
    for name, value in fitted_from(kind, state, arrays).items():
        setattr(estimator, name, value)
    check_parameters(estimator)
    return estimator


def pack(estimator: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes with bytes in the place of those that a fit made.

    An estimator that is not fitted, derived, or holds code of the user's own has them as they are.
    """
    if type(estimator) not in (BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor) or "network_" not in attributes:
        return attributes
    try:
        content, arrays = fitted_of(estimator)
    except ValueError:
        return attributes
    data = archive.to_bytes(kind=_KIND, version=VERSION, content=content, arrays=arrays)
    held = _read(type(estimator), data)
    return {name: value for name, value in attributes.items() if name not in held} | {_STATE: data}


def unpack(kind: type, state: dict[str, Any]) -> dict[str, Any]:
    """The attributes that `pack` took.

    Raises
    ------
    ValueError
        If the bytes are corrupted, inconsistent, or of a later version.
    """
    attributes = dict(state)
    return attributes | _read(kind, attributes.pop(_STATE)) if _STATE in attributes else attributes


def _read(kind: type, data: bytes) -> dict[str, Any]:
    return archive.from_bytes(data, _STATE, partial(fitted_from, kind), kind=_KIND, version=VERSION, oldest=OLDEST)


BaseBoostBP._packing = (pack, unpack)


def give_back() -> None:
    """Let the C library return what was freed: glibc keeps, of what reading a model took, half as much as it holds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
