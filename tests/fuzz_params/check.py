"""What must hold of every case: a finite model, or an error that names the parameter."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from boostbp import BoostBPRegressor, fit_layer
from boostbp.backends import capabilities_of, load_backend
from boostbp.backends.base import TreeParams
from boostbp.trees.sparse import Table
from tests.fuzz_params.cases import N_FEATURES, Case

__all__ = ["outcome_of"]

_backend = cache(load_backend)

N_ROWS = 120


@cache
def data(categorical: bool) -> tuple[Any, Any]:
    """Three numbers, of which some are missing, and a column of few whole numbers; two targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    X[rng.random(N_ROWS) < 0.1, 1] = np.nan
    X[:, 3] = rng.integers(0, 6, N_ROWS)
    y = np.column_stack([X[:, 0] * X[:, 2], np.sin(X[:, 0]) + (X[:, 3] > 2)])
    return Table(X, (3,) if categorical else ()), y


def outcome_of(case: Case) -> str:
    """Train and predict: the library and "model", or the first words of the error.

    Raises
    ------
    AssertionError
        If the model is not finite, or the error does not say which parameter is wrong.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message="No effect on the model")  # one set for all surfaces
            TRAINS[case.surface](case)
    except (ValueError, TypeError) as error:
        return clear(error, case)
    return f"{case.backend}: model"


def clear(error: Exception, case: Case) -> str:
    """The first words of an error of ours that names the parameter."""
    text = str(error)
    assert type(error).__module__ == "builtins", f"{type(error).__name__} of a library: {text[:300]}"
    native = case.surface not in ("growth", "layer")
    assert not native or "backend_params" in text, f"does not speak of backend_params: {text[:300]}"
    assert len(text) < 2000, f"an error of {len(text)} characters"
    assert "alloc" not in text, f"out of memory: {text[:300]}"
    if isinstance(case.params, Mapping) and case.params:
        shown = [repr(name)[:40].rstrip("'") if native else name for name in case.params]
        assert any(name in text for name in shown), f"names none of {shown}: {text[:300]}"
    found = re.search("is not|clashes|has no|failed", text)
    return f"{case.backend}: {text[found.start() if found else 0 :][:40]}"


def _bind(case: Case, **how: Any) -> None:
    table, y = data(capabilities_of(_backend(case.backend)).categories)
    grower = _backend(case.backend).bind(table, TreeParams(**{"max_depth": 4, "min_samples_leaf": 3} | how))
    for _ in range(3):
        for tree in grower.grow(-y, np.ones_like(y)):
            leaves = tree.leaf_of(table.X)
            assert leaves.min() >= 0
            assert leaves.max() < tree.n_leaves
            assert not np.isnan(tree.threshold[tree.cat_start < 0]).any()


def _layer(case: Case, **how: Any) -> None:
    table, y = data(case.backend == "lightgbm")
    spec = {"n_estimators": 4, "max_depth": 3, "min_samples_leaf": 3} | how
    layer = fit_layer(table.X, y, spec, backend=case.backend, categorical=table.categorical)
    assert np.isfinite(layer.predict(table.X)).all()


def _estimator(hidden: tuple[int, ...], case: Case) -> None:
    table, y = data(False)
    model = BoostBPRegressor(
        hidden,
        backend=case.backend,
        n_estimators=3,
        hidden={"n_estimators": 3},
        max_depth=3,
        epochs=2,
        min_samples_leaf=3,
        random_state=0,
        deep=True if hidden else "auto",
        backend_params=case.params,
    )
    model.fit(table.X, y)
    assert np.isfinite(model.predict(table.X)).all()


TRAINS = {
    "bind": lambda case: _bind(case, params=case.params),
    "native leaves": lambda case: _layer(
        case, backend_params=case.params, leaves="native" if case.backend == "lightgbm" else "refit"
    ),
    "growth": lambda case: _bind(case, **case.params),
    "layer": lambda case: _layer(case, **case.params),
    "single layer": lambda case: _estimator((), case),
    "network": lambda case: _estimator((3,), case),
}
