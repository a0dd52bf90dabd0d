"""Classes of a target, and their weights."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

from boostbp import cautions
from boostbp.group import workers

MOST_CLASSES = 50  # that are numbers, and not 0, 1, 2, ...: more are probably an amount


def classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """Distinct labels, those of all workers, ascending.

    Raises
    ------
    ValueError
        If they are text on one worker and numbers on another.
    """
    parts = workers().gather(np.unique(labels))
    if len({part.dtype.kind in "fiub" for part in parts}) > 1:
        kinds = " and ".join(sorted({str(part.dtype) for part in parts}))
        raise ValueError(f"y holds labels of dtype {kinds} on different workers: make all of them text, or numbers.")
    return np.unique(np.concatenate(parts))


def weights_of_classes(class_weight: Any, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Weight of each row by its class, (rows,); one that is no weight would leave out the rows of a class."""
    of_class = class_weight
    if isinstance(class_weight, str) and class_weight == "balanced" and not workers().alone:
        of_class = _balanced(labels)
    weight = compute_sample_weight(of_class, labels)
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"class_weight={class_weight!r} gives class {labels[row]} the weight {weight[row]}: weights must be finite "
            "and 0 or more."
        )
    return weight


def _balanced(labels: NDArray[Any]) -> dict[Any, float]:
    """The weights that scikit-learn calls balanced, by the rows of all workers."""
    counts: Counter[Any] = Counter()
    for classes, numbers in workers().gather(np.unique(labels, return_counts=True)):
        counts.update(dict(zip(classes.tolist(), numbers.tolist(), strict=True)))
    return {label: counts.total() / (len(counts) * count) for label, count in counts.items()}


def warn_of_numbers(classes: NDArray[Any]) -> None:
    """Warn of classes, (classes,) in ascending order, that look like an amount: many, and numbers with gaps.

    Warns
    -----
    UserWarning
    """
    numbers = classes.dtype.kind in "fiu" and len(classes) > MOST_CLASSES
    if numbers and not (classes[0] in (0, 1) and classes[-1] - classes[0] == len(classes) - 1):
        cautions.warn(
            f"y has {len(classes)} classes, which are numbers from {classes[0]} to {classes[-1]}: a classifier does "
            "not know their order. Use BoostBPRegressor to predict an amount; make the labels text, as by "
            "y.astype(str), if they are names.",
        )
