"""Fitted state as the bytes of an archive, which an estimator has as its state for all but pickle.

skops asks for trust in each class of what it reads, and looks at none of its numbers: of an estimator in this form it
asks for that of the estimator alone, and the numbers are checked as those of a file are (`boostbp.storage.models`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from boostbp import archive
from boostbp.estimators import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.base import BaseBoostBP
from boostbp.storage.fitted import fitted_from, fitted_of
from boostbp.storage.models import OLDEST, VERSION

__all__ = ["pack", "unpack"]

_KIND = "state"
_STATE = "_fitted_state"


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
