"""Fits that happen whole or not at all, and fits on rows beyond memory, whose arrays lie on the disk."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from functools import wraps
from traceback import clear_frames
from typing import Any, ParamSpec, TypeVar

from sklearn.base import is_classifier

from boostbp.estimators import session
from boostbp.floats import usual_floats
from boostbp.inputs import is_blocks, rows_of
from boostbp.trees import interrupts, threads
from boostbp.trees.disk_arrays import on_disk

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
KEPT = ("network_", "_calibration")  # what a fit leaves that may hold large arrays


def all_or_nothing(fit: Callable[P, R]) -> Callable[P, R]:
    """Make a fit that fails leave the estimator as it was: never a network of one fit with the columns of another.

    One that is interrupted when there is a model raises that when the estimator has it. A fit also is the same for any
    number of BLAS's threads, and for any `np.seterr`.
    """

    @wraps(fit)
    @usual_floats()
    @interrupts.deferred()
    @threads.single_threaded_blas()
    def whole(*args: P.args, **options: P.kwargs) -> R:
        estimator = args[0]
        before = dict(vars(estimator))
        try:
            fitted = fit(*args, **options)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise
        session.raise_interrupt(estimator)
        return fitted

    return whole


def on_blocks(fit: Callable[..., T]) -> Callable[..., T]:
    """Let `fit` take a path or an iterator of blocks in the place of arrays; the model is that of these rows as arrays.

    Raises ValueError if the state of training is to be kept: it is as large as the rows.
    """

    @wraps(fit)
    def whole(self: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> T:
        if not is_blocks(X):
            return fit(self, X, y, sample_weight, **options)
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
                labels=is_classifier(self),
                categorical_features=self.categorical_features,
                schema=getattr(options.get("init_model"), "schema_", None),
            )
            options |= {name: beside[name] for name in options.keys() & beside.keys()}
            try:
                fitted = fit(self, X, beside["y"], beside["sample_weight"], **options)
            except BaseException as error:
                clear_frames(error.__traceback__)  # which would hold arrays, and so room on the disk
                raise
            finally:
                del X, beside, options
                gc.collect()  # a training holds its rows in a circle
        for name in KEPT:
            if name in vars(self):
                setattr(self, name, copy.deepcopy(vars(self)[name]))
        return fitted

    return whole
