"""Fits on rows that are read block by block; during the fit they are arrays in files."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from dataclasses import replace
from traceback import clear_frames
from typing import TYPE_CHECKING, Any

from sklearn.base import is_classifier

from boostbp.inputs.blocks import rows_of
from boostbp.runtime.disk_arrays import on_disk

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP


def fit_blocks(
    fit: Callable[..., BaseBoostBP],
    estimator: BaseBoostBP,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    **options: Any,
) -> BaseBoostBP:
    """Fit to a path or an iterator of blocks; the model is the same as with these rows as arrays.

    Raises ValueError for ``keep_state=True``, as the state of training is as large as the rows.
    """
    if options.get("keep_state"):
        raise ValueError(
            f"keep_state={options['keep_state']!r} is not supported with rows that are read block by block: the "
            "state is as large as they are. Use checkpoint=..., which stores it in a file."
        )
    named = {"y": y, "sample_weight": sample_weight, **{name: options.get(name) for name in ("offset", "groups")}}
    with on_disk():
        X, columns = rows_of(
            X,
            named,
            labels=is_classifier(estimator),
            categorical_features=estimator.categorical_features,
            schema=getattr(options.get("init_model"), "schema_", None),
        )
        options |= {name: columns[name] for name in options.keys() & columns.keys()}
        try:
            fitted = fit(estimator, X, columns["y"], columns["sample_weight"], **options)
        except BaseException as error:
            clear_frames(error.__traceback__)  # frames would keep arrays, and their disk space
            raise
        finally:
            del X, columns, options
            gc.collect()  # a training refers to its rows in a cycle
    model = estimator.model_
    network, calibration = copy.deepcopy(
        (model.network, model.calibration)
    )  # copies that are not in the files of the fit
    estimator.model_ = replace(model, network=network, calibration=calibration)
    return fitted
