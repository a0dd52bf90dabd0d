"""fit_layer: one layer without an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boostbp import backends, checks, layers
from boostbp.backends.base import Growth, Table
from boostbp.floats import usual_floats
from boostbp.inputs import drop_zero_weight, read_weight, refuse_extreme, refuse_text
from boostbp.layers import BoundInput, Layer, LayerSettings, SquaredObjective
from boostbp.trees import basis as bases
from boostbp.trees import interrupts, threads
from boostbp.trees.ridge import Ridge

__all__ = ["check_codes", "fit_layer", "layer_settings"]

Floats = NDArray[np.float64]
CODES = 1 << 24  # float32, in which XGBoost holds codes, counts so far


@usual_floats()
@interrupts.deferred()
@threads.single_threaded_blas()
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
    extra_trees: bool | Literal["auto"] = False,
    learning_rate: float = 0.1,
    basis: Any = "quadratic",
    reg_lambda: float = 1.0,
    penalize_constant: bool = True,
    standardize: bool = True,
    clip: bool = True,
    base: Literal["ridge", "additive"] | None = None,
    base_lambda: float | Literal["gcv"] | None = None,
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
        As in `BoostBPRegressor`, of one layer; ``random_state`` is a number.

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
    if not np.isfinite(target).all():
        raise ValueError(
            f"targets has {np.count_nonzero(~np.isfinite(target))} values that are not finite: leave those rows out."
        )
    refuse_extreme(target, "targets")
    threads_ = threads.count(n_jobs)
    settings = layer_settings(
        backend, n_estimators=n_estimators, max_depth=max_depth, max_leaves=max_leaves, max_bins=max_bins,
        min_samples_leaf=min_samples_leaf, extra_trees=extra_trees, learning_rate=learning_rate, basis=basis,
        reg_lambda=reg_lambda, penalize_constant=penalize_constant, standardize=standardize, clip=clip, base=base,
        base_lambda=base_lambda, leaves=leaves, multi_strategy=multi_strategy, random_state=random_state,
        backend_params=backend_params,
    )  # fmt: skip
    table, target, weight = drop_zero_weight(Table(X, categorical), target, read_weight(sample_weight, len(X)))
    bound = BoundInput(backends.load(backend), table, settings, weight)
    return layers.fit(
        bound, SquaredObjective(target, weight), n_threads=threads_, seed=settings.growth.random_state
    ).layer


def layer_settings(
    backend: Any,
    *,
    random_state: int,
    basis: Any,
    extra_trees: bool | str,
    multi_strategy: str,
    backend_params: Mapping[str, Any] | None,
    **rest: Any,
) -> LayerSettings:
    """The parameters of one layer, checked.

    Raises
    ------
    ValueError
        If one is out of bounds; the message names it.
    """
    words = {"extra_trees": extra_trees, "multi_strategy": multi_strategy} | rest
    for name, allowed in checks.WORDS.items():
        checks.one_of(name, words[name], allowed)
    if rest["base_lambda"] is None:  # the default, as in estimators
        rest["base_lambda"] = "gcv"
    numbers = {name: check(name, rest[name]) for name, check in checks.NUMBERS.items()}
    native = rest["leaves"] == "native" and extra_trees == "auto"
    grown = {name: numbers[name] for name in ("max_depth", "max_leaves", "min_samples_leaf", "max_bins")}
    growth = Growth(
        **grown,
        extra_trees=not native and backends.draws(backend, extra_trees),
        random_state=checks.whole("random_state", random_state, 0),
        shared=multi_strategy == "multi_output_tree",
        params=checks.named("backend_params", backend_params),
    )
    return LayerSettings(
        n_estimators=numbers["n_estimators"],
        learning_rate=numbers["learning_rate"],
        growth=growth,
        basis=bases.load(basis),
        ridge=Ridge(numbers["reg_lambda"], rest["penalize_constant"], rest["standardize"]),
        clip=rest["clip"],
        base=rest["base"],
        base_lambda=None if numbers["base_lambda"] == "gcv" else numbers["base_lambda"],
        leaves=rest["leaves"],
    )


def check_codes(X: Floats, categorical: tuple[int, ...]) -> None:
    """Refuse codes that libraries would read as another category, or die of."""
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
