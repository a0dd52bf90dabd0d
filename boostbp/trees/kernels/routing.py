"""Compiled: which way a split sends a row, for loops that are not yet in `boostbp.core`."""

from __future__ import annotations

import numpy as np

from boostbp.trees.kernels.records import internal


@internal
def sends_left(nodes, split, value):
    """Whether a split sends a value left."""
    if value != value:
        return nodes.missing_left[split]
    if nodes.cat_start[split] < 0:
        return value <= nodes.threshold[split]
    if value > -1.0 and value < 32.0 * nodes.cat_words[split]:
        code = np.int64(value)
        word = nodes.categories[nodes.cat_start[split] + (code >> 5)]
        return (word >> np.uint32(code & 31)) & np.uint32(1) == 1
    return False


@internal
def goes_left(nodes, split, x):
    """Whether a split sends a row left."""
    return sends_left(nodes, split, x[nodes.feature[split]])
