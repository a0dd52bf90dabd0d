"""fit_layer: one layer without an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boostbp import backends
from boostbp.backends.base import Growth, Table
from boostbp.inputs import read_weight, refuse_extreme
from boostbp.learning import layer as layers
from boostbp.learning.layer import BoundInput, Layer, LayerSettings, SquaredTo
from boostbp.trees import basis as bases
from boostbp.trees import threads
from boostbp.trees.ridge import Ridge

__all__ = ["fit_layer"]

Floats = NDArray[np.float64]
CODES = 1 << 24  # float32, in which XGBoost holds codes, counts so far


def fit_layer(
    H: Any,
    targets: Any,
    *,
    backend: Any = "lightgbm",
    n_estimators: int = 100,
    max_depth: int = 6,
    max_leaves: int | None = None,
    min_samples_leaf: int = 20,
    max_bins: int = 255,
    extra_trees: bool = False,
    learning_rate: float = 0.1,
    basis: Any = "quadratic",
    reg_lambda: float = 1.0,
    penalize_constant: bool = True,
    standardize: bool = True,
    clip: bool = True,
    base: Literal["ridge"] | None = None,
    base_lambda: float | None = None,
    leaves: Literal["refit", "native"] = "refit",
    multi_strategy: Literal["one_output_per_tree", "multi_output_tree"] = "one_output_per_tree",
    sample_weight: Any = None,
    categorical: tuple[int, ...] = (),
    n_jobs: int | None = None,
    random_state: int = 0,
    backend_params: Mapping[str, Any] | None = None,
) -> Layer:
    """Fit one layer of boosted trees with regressions in their leaves to targets, by squared error.

    Parameters
    ----------
    H : (rows, features) array-like of float
        Input. NaN is missing.
    targets : (rows,) or (rows, outputs) array-like of float
    sample_weight : (rows,) array-like, optional
    categorical : tuple of int
        Columns of `H` that hold category codes 0, 1, 2, ..., or NaN.
    backend, n_estimators, ... :
        As in `BoostBPRegressor`.

    Returns
    -------
    Layer
        ``layer.forward(H) -> (output, trace)``, ``trace.vjp(G)``, ``layer.jacobian(H)``, ``layer.predict(H)``.

    Examples
    --------
    >>> import numpy as np
    >>> H = np.random.default_rng(0).uniform(size=(500, 3))
    >>> layer = fit_layer(H, np.sin(H), n_estimators=20, max_depth=3)
    >>> output, trace = layer.forward(H)
    >>> trace.vjp(np.ones_like(output)).shape
    (500, 3)
    """
    X = np.ascontiguousarray(H, np.float64)
    if X.ndim != 2:
        raise ValueError(f"H has shape {X.shape}: give (rows, features).")
    if np.isinf(X).any():
        raise ValueError("H has infinite values: clip them, or replace them by NaN, which means missing.")
    _check_codes(X, categorical)
    target = np.ascontiguousarray(targets, np.float64)
    target = target.reshape(len(target), -1)
    if len(target) != len(X):
        raise ValueError(f"targets has {len(target)} rows and H has {len(X)}: give one target for each row.")
    if not np.isfinite(target).all():
        raise ValueError(
            f"targets has {np.count_nonzero(~np.isfinite(target))} values that are not finite: leave those rows out."
        )
    refuse_extreme(target, "targets")
    threads_ = threads.count(n_jobs)
    settings = LayerSettings(
        n_estimators=n_estimators,
        learning_rate=learning_rate,
        growth=Growth(
            max_depth=max_depth,
            max_leaves=max_leaves,
            min_samples_leaf=min_samples_leaf,
            max_bins=max_bins,
            extra_trees=backends.draws(backend, extra_trees),
            random_state=random_state,
            shared=multi_strategy == "multi_output_tree",
            params=dict(backend_params or {}),
        ),
        basis=bases.load(basis),
        ridge=Ridge(reg_lambda, penalize_constant, standardize),
        clip=clip,
        base=base,
        base_lambda=base_lambda,
        leaves=leaves,
    )
    weight = read_weight(sample_weight, len(X))
    bound = BoundInput(backends.load(backend), Table(X, categorical), settings, weight)
    return layers.fit(bound, SquaredTo(target, weight), n_threads=threads_, seed=random_state).layer


def _check_codes(X: Floats, categorical: tuple[int, ...]) -> None:
    """Refuse what libraries would read as another category, or die of."""
    for j in categorical:
        if not 0 <= j < X.shape[1]:
            raise ValueError(f"categorical={categorical!r}: H has the columns 0 to {X.shape[1] - 1}.")
        codes = X[~np.isnan(X[:, j]), j]
        wrong = codes[(codes != np.floor(codes)) | (codes < 0) | (codes >= CODES)]
        if len(wrong):
            raise ValueError(
                f"categorical={categorical!r}: column {j} of H holds {wrong[0]:g}. Number its categories 0, 1, 2, ..., "
                f"below {CODES}."
            )
