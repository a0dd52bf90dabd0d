"""The part of one worker in a distributed fit, for any way of starting workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from boostbp.backends.xgboost_network import Address, connected
from boostbp.estimators import BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival
from boostbp.estimators.request import Request
from boostbp.inputs.sources import is_blocks
from boostbp.network.callbacks import Checkpoint
from boostbp.network.fingerprint import words_of
from boostbp.network.steps import STEPS
from boostbp.runtime import checks
from boostbp.runtime.group import Group, training_in
from boostbp.runtime.versions import versions

E = TypeVar("E", BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival)
# Packages whose versions must be the same on all workers; otherwise sums would combine different computations.
PACKAGES = ("boostbp", "lightgbm", "numpy", "scipy", "xgboost", "xgboost-cpu")
_SENTENCE = "{}={} is not supported on several workers: {}."
_OF_MACHINES = frozenset(("n_jobs", "verbose"))  # parameters that do not change the model


def fit_worker(
    estimator: E,
    X: Sized,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    address: Address,
    rank: int,
    parts: Sequence[tuple[int, int]] | None = None,
    **fit: Any,
) -> E:
    """Fit an estimator together with other workers, each of which calls this with its own rows.

    All workers get the same model, that of all rows in the order of the parts. See ``docs/guide/distributed.md``.

    Parameters
    ----------
    estimator : BoostBPRegressor, BoostBPClassifier, BoostBPRanker, or BoostBPSurvival with ``loss="aft"``
        Must have the same parameters on all workers.
    X, y, sample_weight :
        The rows of this worker, at least one, as in `fit`.
    address : Address
        From `tracked`, the same for all workers.
    rank : int
        Number of this worker, from 0 to ``address.n_workers - 1``.
    parts : sequence of (int, int), optional
        Parts of the rows of this worker: ascending numbers among the parts of all workers, and the number of rows of
        each part. By default each worker has one part, in the order of the ranks.
    **fit :
        Other arguments of `fit`. An `eval_set` must be the same on all workers. `callbacks` are called on rank 0. The
        path `checkpoint` must be in a folder that all workers share; another number of workers may continue from it.

    Returns
    -------
    estimator
        The fitted `estimator`.

    Raises
    ------
    ValueError
        If the rows or the parameters cannot be used, or parameters are not supported on several workers.
    WorkersLostError
        If another worker failed, or did not answer for ``address.timeout`` seconds.
    KeyboardInterrupt
        On Ctrl-C, without a model, as the other workers could not know that this one kept its model so far.
    """
    checks.whole("rank", rank, 0, address.n_workers - 1)
    refuse_unsupported(estimator, X, fit)
    if parts is not None:
        if fit.get("checkpoint") is not None:
            raise ValueError("parts with checkpoint is not supported: let each worker have neighbouring rows.")
        if sum(count for _, count in parts) != len(X):
            raise ValueError(f"parts={checks.shown(parts)} is not allowed: their rows are not the {len(X)} of X.")
    with connected(address, rank) as group, training_in(group):
        _check_alike(group, estimator, fit | {"parts": parts})
        if parts is not None:
            group.part = np.repeat(*np.array(parts, np.int64).reshape(-1, 2).T)
        return estimator.fit(X, y, sample_weight, **fit)


def refuse_unsupported(estimator: E, X: object = None, fit: Mapping[str, object] = {}) -> None:
    """Refuse arguments that are not supported on several workers, and with a TypeError another estimator."""
    if not isinstance(estimator, BoostBPClassifier | BoostBPRanker | BoostBPRegressor | BoostBPSurvival):
        cure = "give another estimator than an auto-encoder"
        raise TypeError(_SENTENCE.format("estimator", checks.shown(estimator), cure))
    if faults := list(_unsupported(estimator, X, fit)):
        raise ValueError(" ".join(_SENTENCE.format(name, checks.shown(value), cure) for name, value, cure in faults))


def _unsupported(estimator: E, X: object, fit: Mapping[str, object]) -> Iterator[tuple[str, object, str]]:
    """Yield the name, the value and the cure of each argument that is not supported."""
    settings, callbacks = Request.of(estimator).settings(1, 1, 0), fit.get("callbacks")
    if estimator.backend not in ("lightgbm", "xgboost"):
        yield "backend", estimator.backend, "use backend='lightgbm' or 'xgboost'"
    if not isinstance(estimator.validation, Real) and fit.get("eval_set") is None and fit.get("eval_X") is None:
        yield "validation", estimator.validation, "use a share of the rows, such as 0.1, or pass an eval_set"
    if isinstance(estimator, BoostBPRanker) and estimator.early_stopping and fit.get("eval_set") is None:
        yield "early_stopping", estimator.early_stopping, "pass an eval_set of other queries, or False"
    if estimator.calibration is not None:
        cure = "leave it None, and call calibrate(X, y) with rows that no worker has"
        yield "calibration", estimator.calibration, cure
    if any(layer.leaves == "native" for layer in settings.layers):
        yield "leaves", "native", "use 'refit'"
    if type(settings.step) not in (STEPS["normalised"], STEPS["plain"]):
        yield "step", settings.step, "use 'normalised' or 'plain': others may need quantities of all rows"
    if fit.get("init_model") is not None:
        yield "init_model", "a model", "leave it out"
    if issparse(X) or is_blocks(X):
        yield "X", "a sparse matrix" if issparse(X) else X, "pass this worker's rows as an array or a data frame"
    if isinstance(callbacks, Sequence) and any(isinstance(callback, Checkpoint) for callback in callbacks):
        yield "callbacks", "checkpoint(...)", "pass checkpoint= to fit"
    if fit.get("keep_state"):
        yield "keep_state", fit["keep_state"], "leave it out"
    if fit.get("groups") is not None:
        yield "groups", "...", "pass an eval_set of other groups"


def _check_alike(group: Group, estimator: E, fit: Mapping[str, object]) -> None:
    """Refuse to train with workers that have other parameters or versions, as sums over them are meaningless."""
    installed = versions()
    facts = {"class": type(estimator), "versions": {name: installed.get(name) for name in PACKAGES}}
    facts |= {name: value for name, value in estimator.get_params().items() if name not in _OF_MACHINES}
    facts["arguments"] = sorted(name for name, value in fit.items() if value is not None and name != "callbacks")
    first, *others = group.gather({name: words_of(value) for name, value in facts.items()})
    for rank, other in enumerate(others, start=1):
        for name, words in first.items():
            if other.get(name) != words:
                of_worker = f"Worker {rank} has {name}={other.get(name)}"
                raise ValueError(f"{of_worker}, worker 0 has {words}: let all workers have the same.")
