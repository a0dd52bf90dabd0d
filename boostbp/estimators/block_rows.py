"""Fits on rows that come block by block: while a fit lasts, they are arrays in files."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from dataclasses import replace
from traceback import clear_frames
from typing import Any

from sklearn.base import is_classifier

from boostbp.inputs.blocks import rows_of
from boostbp.runtime.disk_arrays import on_disk


def fit_blocks(
    fit: Callable[..., Any], estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any
) -> Any:
    """Fit to a path or an iterator of blocks; the model is that of these rows as arrays.

    Raises ValueError if the state of training is to be kept: it is as large as the rows.
    """
    if options.get("keep_state"):
        raise ValueError(
            f"keep_state={options['keep_state']!r} is not supported with rows that are read block by block: the "
            "state is as large as they are. Use checkpoint=..., which keeps it in a file."
        )
    named = {"y": y, "sample_weight": sample_weight, **{name: options.get(name) for name in ("offset", "groups")}}
    with on_disk():
        X, beside = rows_of(
            X,
            named,
            labels=is_classifier(estimator),
            categorical_features=estimator.categorical_features,
            schema=getattr(options.get("init_model"), "schema_", None),
        )
        options |= {name: beside[name] for name in options.keys() & beside.keys()}
        try:
            fitted = fit(estimator, X, beside["y"], beside["sample_weight"], **options)
        except BaseException as error:
            clear_frames(error.__traceback__)  # which would hold arrays, and so room on the disk
            raise
        finally:
            del X, beside, options
            gc.collect()  # a training holds its rows in a circle
    model = estimator.model_
    network, calibration = copy.deepcopy((model.network, model.calibration))  # out of the files of the fit
    estimator.model_ = replace(model, network=network, calibration=calibration)
    return fitted
