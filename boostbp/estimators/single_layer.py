"""fit_layer: one layer without an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boostbp.backends import load_backend
from boostbp.backends.base import Backend
from boostbp.estimators.request import signs_of
from boostbp.inputs.rows import Rows
from boostbp.inputs.targets import read_weight, refuse_extreme, refuse_text
from boostbp.network import layers
from boostbp.network.layers import BoundInput, Layer, LayerSpec, SquaredObjective
from boostbp.network.layers.layer_spec import OUTPUT, settings_of
from boostbp.runtime import checks, interrupts, threads
from boostbp.runtime.arrays import Floats, numpy_errstate
from boostbp.runtime.threads import single_threaded_blas
from boostbp.trees.sparse import Table

MAX_CODES = 1 << 24  # XGBoost holds codes in float32, which is exact up to here


@numpy_errstate()
@interrupts.deferred()
@single_threaded_blas()
def fit_layer(
    H: ArrayLike,
    targets: ArrayLike,
    layer: LayerSpec | Mapping[str, Any] | None = None,
    *,
    backend: str | Backend = "lightgbm",
    sample_weight: ArrayLike | None = None,
    categorical: tuple[int, ...] = (),
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Layer:
    """Fit one layer of boosted trees with regressions in their leaves to targets, by squared error.

    Parameters
    ----------
    H : (rows, features) array-like of float
        Input. NaN is missing.
    targets : (rows,) or (rows, outputs) array-like of float
    layer : LayerSpec, dict or None
        Settings of the layer, by the fields of `LayerSpec`; the defaults are those of an output layer.
    backend : {"lightgbm", "xgboost", "sklearn"} or Backend
        Library that grows the trees.
    sample_weight : (rows,) array-like, optional
    categorical : tuple of int
        Columns of `H` that hold category codes 0, 1, 2, ..., or NaN.
    n_jobs : int or None
        Threads; -1: all cores. The layer does not depend on it.
    random_state : int

    Returns
    -------
    Layer
        ``layer.forward(H) -> (output, trace)``, ``trace.vjp(G)``, ``layer.jacobian(H)``, ``layer.predict(H)``.

    Examples
    --------
    >>> import numpy as np
    >>> H = np.random.default_rng(0).uniform(size=(500, 3))
    >>> layer = fit_layer(H, np.sin(H), {"n_estimators": 20, "max_depth": 3})
    >>> output, trace = layer.forward(H)
    >>> trace.vjp(np.ones_like(output)).shape
    (500, 3)
    """
    for name, values in (("H", H), ("targets", targets)):
        refuse_text(np.asarray(values), name)
    X = np.ascontiguousarray(H, np.float64)
    if X.ndim != 2:
        raise ValueError(f"H has shape {X.shape}: give (rows, features).")
    if np.isinf(X).any():
        raise ValueError("H has infinite values: clip them, or replace them by NaN, which means missing.")
    check_codes(X, categorical)
    target = np.ascontiguousarray(targets, np.float64)
    if len(target) == 0:
        raise ValueError("targets has no rows: give at least one.")
    target = target.reshape(len(target), -1)
    if len(target) != len(X):
        raise ValueError(f"targets has {len(target)} rows and H has {len(X)}: give one target for each row.")
    if n_wrong := np.count_nonzero(~np.isfinite(target)):
        raise ValueError(f"targets has {n_wrong} values that are not finite: leave those rows out.")
    refuse_extreme(target, "targets")
    threads_ = threads.count(n_jobs)
    seed = checks.whole("random_state", random_state, 0)
    spec = LayerSpec.of(layer, "layer").complete(OUTPUT)
    signs = signs_of(spec.monotone_constraints, X.shape[1], categorical=categorical, n_outputs=target.shape[1])
    settings = settings_of(spec, backend, seed=seed, signs=signs)
    rows = Rows(Table(X, categorical), target, read_weight(sample_weight, len(X))).counted()
    bound = BoundInput(load_backend(backend), rows.table, settings, rows.weight)
    objective = SquaredObjective(rows.y, rows.weight)
    return layers.fit(bound, objective, n_threads=threads_, seed=settings.growth.random_state).layer


def check_codes(X: Floats, categorical: tuple[int, ...]) -> None:
    """Refuse codes that libraries would read as another category, or that would crash them."""
    for j in categorical:
        if not 0 <= j < X.shape[1]:
            raise ValueError(f"categorical={categorical!r}: H has the columns 0 to {X.shape[1] - 1}.")
        codes = X[~np.isnan(X[:, j]), j]
        wrong = codes[(codes != np.floor(codes)) | (codes < 0) | (codes >= MAX_CODES)]
        if len(wrong):
            raise ValueError(
                f"categorical={categorical!r}: column {j} of H holds {wrong[0]:g}. Number its categories 0, 1, 2, ..., "
                f"below {MAX_CODES}."
            )
