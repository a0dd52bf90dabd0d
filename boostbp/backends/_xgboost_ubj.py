"""Reader of XGBoost's UBJSON model, which returns `Trees`."""

from __future__ import annotations

import numpy as np

from boostbp import core
from boostbp.trees.tree import SplitRoom, Trees

_FIRST = b"base_weights["  # of the arrays of a tree
_KEY = 9  # bytes of a key before its name
UNKNOWN_MODEL = "XGBoost's model is not as expected: this version of it is not supported."


def trees_in_ubj(raw: bytes | bytearray, last: int = 0) -> Trees:
    """Return the last trees of ``Booster.save_raw("ubj")``, or all; leaves have the order of their nodes.

    Raises ValueError if the model is not as expected.
    """
    trees = raw.index(b"trees[")  # after the names of the features
    at = len(raw) if last else raw.index(_FIRST, trees)
    for _ in range(last):
        at = raw.rindex(_FIRST, trees, at)
    model = np.frombuffer(raw, np.uint8, offset=at - _KEY)
    return SplitRoom.filled(core.read_ubj, model, last or raw.count(_FIRST, at), UNKNOWN_MODEL)
